/*
 * state.h - state.json: progress and settings of a run, and checksums of its tensor files.
 *
 *     {"format": 1, "lockstep": "0.1.0", "model": "resnet18",
 *      "progress": {"step": 200, ..., "loss_sum": 12.25, ...}, "fingerprint": "0123456789abcdef",
 *      "files": {"model.safetensors": {"bytes": 44730000, "xxh64": "0123456789abcdef"}, "optimizer.safetensors": ...},
 *      "slots": ["exp_avg", "exp_avg_sq"], "isa": "avx512", "kernels": "xsmm", "settings": {...}, "xxh64": "of all the
 * rest"}
 *
 * Early versions did not write "fingerprint".
 *
 * Reals are written with 17 significant digits, which give the same double back.
 */
#ifndef LS_CHECKPOINT_STATE_H
#define LS_CHECKPOINT_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "checkpoint/checkpoint.h"

#define LS_CKPT_STATE_FORMAT 1

/* The two tensor files of a checkpoint. */
typedef enum ls_ckpt_file { LS_CKPT_MODEL, LS_CKPT_OPTIMIZER, LS_CKPT_FILES } ls_ckpt_file;
const char *ls_ckpt_file_name(ls_ckpt_file file); /* "model.safetensors" */
#define LS_CKPT_STATE_NAME "state.json"

typedef struct ls_ckpt_sum {
	uint64_t bytes, xxh64;
} ls_ckpt_sum;

typedef struct ls_ckpt_state {
	ls_arena arena; /* owns the texts */
	ls_ckpt_progress progress;
	ls_ckpt_sum files[LS_CKPT_FILES];
	size_t slots;
	const char **slot_names;
	const char *settings;      /* JSON object */
	const char *isa, *kernels; /* NULL: the file does not say */
	int has_fingerprint;
	uint64_t fingerprint;
} ls_ckpt_state;

/* Check that this content can be stored: numbers finite and in range, settings a JSON object. Cheap; call before
 * writing.
 */
ls_status ls_ckpt_state_check(const ls_ckpt_content *content);

ls_status ls_ckpt_state_write(const char *path, const ls_ckpt_content *content, const ls_ckpt_sum files[LS_CKPT_FILES]);

/* Parse the bytes of a state.json, which may be damaged or hostile; `label` names them in errors. LS_EUNSUPPORTED: a
 * later version wrote it, so nothing else about it is known. */
ls_status ls_ckpt_state_parse(ls_ckpt_state *out, const void *text, size_t bytes, const char *label);
ls_status ls_ckpt_state_read(ls_ckpt_state *out, const char *path);
void ls_ckpt_state_release(ls_ckpt_state *state);

#endif
