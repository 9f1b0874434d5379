/*
 * tensors.h - the parameter arrays of a model as a list of named tensors, to write to a file and to read from one.
 *
 * One entry per tensor of the file: its name and PyTorch shape, and the parameter and array that it stores.
 */
#ifndef LS_CHECKPOINT_TENSORS_H
#define LS_CHECKPOINT_TENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "params/params.h"

typedef struct ls_ckpt_source {
	const ls_param *param;
	float *store; /* parameters, buffers or a slot; unused for a counter */
	ls_store_kind kind;
} ls_ckpt_source;

typedef struct ls_ckpt_tensors {
	ls_arena arena;
	ls_st_tensor *tensors;      /* (count) */
	ls_ckpt_source *sources;    /* (count) */
	const ls_st_tensor **found; /* (count) the tensor in a matching file; NULL: absent */
	size_t count;
	size_t elements_max; /* of the largest */
	int64_t counter;     /* value of every num_batches_tracked */
	int may_overflow;    /* infinities are allowed: squares of gradients may overflow, which is harmless */
} ls_ckpt_tensors;

/* All parameters and buffers of a table, in its order. */
ls_status ls_ckpt_tensors_model(ls_ckpt_tensors *out, const ls_param_table *table, float *params, float *buffers,
				int64_t counter);
/* "exp_avg.NAME" for every slot and trainable parameter. */
ls_status ls_ckpt_tensors_optimizer(ls_ckpt_tensors *out, const ls_ckpt_content *content);
void ls_ckpt_tensors_release(ls_ckpt_tensors *entries);

/* The file's metadata: Lockstep's version, the model, and content->metadata. */
ls_status ls_ckpt_tensors_write(const ls_ckpt_tensors *entries, const char *path, const ls_ckpt_content *content,
				uint64_t *checksum);

/* LS_EMISMATCH, naming tensors, unless the file has each entry with its shape and nothing else. Counters may be absent,
 * and so may what name_rules.h allows unless `how` is NULL. Sets `found`. */
ls_status ls_ckpt_tensors_match(ls_ckpt_tensors *entries, const ls_st_reader *reader, const ls_ckpt_import *how,
				const char *label);

/* LS_ENUMERIC, naming the first tensor, unless all that was found in the file is finite. */
ls_status ls_ckpt_tensors_finite(const ls_ckpt_tensors *entries, const char *label);

/* Fill the stores from a file that matches; sets `counter` to the largest counter found, 0 without any. Nothing is
 * changed on failure. */
ls_status ls_ckpt_tensors_import(ls_ckpt_tensors *entries);

#endif
