/*
 * checkpoint.h - save and load checkpoints; each is whole or absent.
 *
 * Invariants
 *  1. RUN/ckpt/step-000000200/ contains model.safetensors (PyTorch names and shapes), optimizer.safetensors
 *     ("exp_avg.NAME" ...) and state.json (progress, settings, fingerprint, xxh64 of the two files). It is written as a
 *     hidden sibling directory, synced, and renamed: a directory with that name is always whole.
 *  2. Older ones are removed only after the new one is in place; at least one whole checkpoint survives any crash.
 *  3. Loading verifies the checksums. A damaged newest checkpoint is reported (warning) and the one before is used. One
 *     of a later format, or one that cannot be read, is refused instead: it may be whole.
 *  4. What we do not understand we do not delete: a checkpoint that is in the way and does not verify is renamed
 *     step-*.aside, with a warning.
 *  5. The contents do not depend on memory layout, number of devices or nodes.
 *  6. Only the newest start of a run publishes, and it alone removes anything (generation.h).
 */
#ifndef LS_CHECKPOINT_CHECKPOINT_H
#define LS_CHECKPOINT_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "checkpoint/safetensors.h"
#include "params/params.h"

/* Where a run stands: the next step to do. */
typedef struct ls_ckpt_progress {
	uint64_t step;       /* optimizer steps done */
	uint64_t epoch;      /* of the next step */
	uint64_t epoch_step; /* next step within that epoch */
	double loss_sum;     /* of the epoch so far, to report its mean after a resume */
	uint64_t loss_samples, correct;
	uint64_t answers;        /* predictions that `correct` is of: samples, or in a language model tokens */
	int64_t batches_tracked; /* BatchNorm's counter */

	/* Evaluations by their metric, for runs that keep the best weights or stop early; zeros: there was none. */
	uint64_t eval_step; /* of the newest: an evaluation counts once, also after a resume */
	uint64_t best_step; /* of the best */
	double best;        /* its metric */
	uint64_t stale;     /* evaluations since one was better by more than the delta */
	uint64_t has_reference;
	double reference; /* the metric of that one */
} ls_ckpt_progress;

/* Maximum number of metadata entries that a run adds to its files, and the key of the vocabulary's hash. */
#define LS_CKPT_METADATA_MAX 32
#define LS_CKPT_VOCABULARY "vocabulary"

typedef struct ls_ckpt_content {
	const ls_param_table *table;
	float *params, *buffers;
	int slots;
	const char *const *slot_names;
	float *const *slot; /* arrays of `reachable` floats */
	ls_ckpt_progress progress;
	const char *model;          /* name for the metadata; may be NULL */
	const ls_st_pair *metadata; /* (metadata_count) further entries */
	size_t metadata_count;      /* at most LS_CKPT_METADATA_MAX */
	const char *settings;       /* JSON object text: what the run was started with */
	uint64_t fingerprint;       /* of params and buffers (ls_params_fingerprint); set by saving and loading */
	const char *isa, *kernels;  /* instruction set and kernel library; NULL: not known */
	uint64_t generation;        /* of the start of the run that saves it (generation.h); 0: none */
} ls_ckpt_content;

/* Make RUN and RUN/ckpt and remove leftovers, before the training starts: a directory that cannot be written is found
 * early. */
ls_status ls_ckpt_begin(const char *run);

/* Write RUN/ckpt/step-*, then prune to the newest `keep`. RUN must be there. Nothing that existed is lost when this
 * fails. Refused where the run was started again after content->generation. */
ls_status ls_ckpt_save(const char *run, ls_ckpt_content *content, int64_t keep);

/* Directory of the newest whole checkpoint. LS_ENOTFOUND: the run has no checkpoint and may start from the beginning;
 * LS_EFORMAT: all its checkpoints are damaged, and starting over would lose work; LS_EUNSUPPORTED or LS_EIO: a newer
 * checkpoint than the newest whole one has a later format or cannot be read. */
ls_status ls_ckpt_newest(const char *run, char *out, size_t size);

/* Bytes of the files of the newest checkpoint, which are mapped while it is loaded; 0: there is none. */
uint64_t ls_ckpt_newest_bytes(const char *run);

/* Whether the run has a checkpoint directory, whole or not. */
ls_status ls_ckpt_present(const char *run, int *out);

/* Settings JSON of a checkpoint directory, malloc'd: compare before loading. */
ls_status ls_ckpt_settings(const char *checkpoint, char **out);

/* Load params, buffers, slots and progress from a checkpoint directory. Names, shapes and slots must
 * agree, weights must be finite (LS_ENUMERIC). */
ls_status ls_ckpt_load(const char *checkpoint, ls_ckpt_content *content);

/* How to import weights from any source. */
typedef struct ls_ckpt_import {
	int fresh_heads;     /* a head that the file lacks keeps its initial values: for another task */
	const char *head;    /* name of the classification layer: with fresh_heads it keeps its initial values if the
				file's has another number of classes; may be NULL */
	uint64_t seed;       /* of these initial values, for the log */
	uint64_t vocabulary; /* hash of the vocabulary in use; 0: none */
	const char *trained; /* path of the vocabulary they were trained with, for the error message; may be NULL */
} ls_ckpt_import;

/* Import weights alone from a safetensors file of any program: every parameter must be there with its shape and be
 * finite (else LS_ENUMERIC); extra tensors are an error unless they are known to be harmless (num_batches_tracked may
 * be absent). With `how` the rules of name_rules.h apply: other names, and heads of other tasks, which are logged; a
 * vocabulary that the file names must be the one in use. */
ls_status ls_ckpt_load_weights(const char *file, const ls_param_table *table, const ls_ckpt_import *how, float *params,
			       float *buffers, int64_t *batches_tracked);

#endif
