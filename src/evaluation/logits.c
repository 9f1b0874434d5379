#include "evaluation/logits.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint/safetensors.h"
#include "data/dataset.h"

enum { LOGITS, LABELS, WANTED, IMAGES, TOKENS, SEGMENTS, STARTS, MASKED, TARGETS, KINDS };

struct ls_logits {
	const ls_dataset_info *info;
	size_t samples, classes, values; /* values: of an image */
	int64_t *start, *masked_start;   /* (samples + 1) text: where a sample's tokens and masked positions begin */
	ls_st_tensor tensor[KINDS];      /* data is NULL where there is none */
	void *data[KINDS];
};

static ls_status add(ls_logits *o, int kind, const char *name, ls_dtype dtype, int rank, const int64_t *shape)
{
	ls_st_tensor *t = &o->tensor[kind];
	size_t bytes = ls_dtype_bytes(dtype);

	*t = (ls_st_tensor){ .name = name, .dtype = dtype, .rank = rank };
	for (int i = 0; i < rank; i++) {
		t->shape[i] = shape[i];
		bytes *= (size_t)shape[i];
	}
	t->bytes = bytes;
	o->data[kind] = malloc(bytes + 1);
	if (!o->data[kind])
		return ls_fail(LS_EMEMORY, "no memory to keep the %s of %zu samples; use options.samples", name,
			       o->samples);
	return LS_OK;
}

static ls_status add_vector(ls_logits *o, int kind, const char *name, ls_dtype dtype, int64_t length)
{
	return add(o, kind, name, dtype, 1, &length);
}

/* Samples have their places before any of them is read. */
static ls_status measure(ls_logits *o, const ls_dataset *set)
{
	o->start = calloc(o->samples + 1, sizeof(*o->start));
	o->masked_start = calloc(o->samples + 1, sizeof(*o->masked_start));
	if (!o->start || !o->masked_start)
		return ls_fail(LS_EMEMORY, "no memory for the places of %zu samples; use options.samples", o->samples);
	for (size_t i = 0; i < o->samples; i++) {
		int length, masked;
		LS_TRY(ls_dataset_sample_measures(set, i, 0, &length, &masked));
		o->start[i + 1] = o->start[i] + length;
		o->masked_start[i + 1] = o->masked_start[i] + masked;
	}
	return LS_OK;
}

static ls_status add_text(ls_logits *o, const ls_dataset *set)
{
	LS_TRY(measure(o, set));
	LS_TRY(add_vector(o, TOKENS, "tokens", LS_I32, o->start[o->samples]));
	LS_TRY(add_vector(o, SEGMENTS, "segments", LS_I32, o->start[o->samples]));
	LS_TRY(add_vector(o, STARTS, "starts", LS_I64, (int64_t)o->samples + 1));
	memcpy(o->data[STARTS], o->start, (o->samples + 1) * sizeof(*o->start));
	if (o->info->masked_max == 0)
		return LS_OK;
	LS_TRY(add_vector(o, MASKED, "masked_positions", LS_I64, o->masked_start[o->samples]));
	return add_vector(o, TARGETS, "targets", LS_I32, o->masked_start[o->samples]);
}

static ls_status make(ls_logits *o, const ls_dataset *set)
{
	const ls_dataset_info *info = o->info;
	int64_t n = (int64_t)o->samples;

	LS_TRY(add(o, LOGITS, "logits", LS_F32, 2, (int64_t[]){ n, (int64_t)o->classes }));
	LS_TRY(add_vector(o, LABELS, "labels", LS_I32, n));
	if (info->targets > 0)
		LS_TRY(add(o, WANTED, "float_targets", LS_F32, 2, (int64_t[]){ n, info->targets }));
	if (info->tokens_max > 0)
		return add_text(o, set);
	return add(o, IMAGES, "images", LS_F32, 4, (int64_t[]){ n, info->channels, info->height, info->width });
}

ls_status ls_logits_new(ls_logits **out, const ls_graph *graph, const ls_dataset *set)
{
	const ls_dataset_info *info = ls_dataset_describe(set);
	ls_logits *o = calloc(1, sizeof(*o));

	if (!o)
		return ls_fail(LS_EMEMORY, "no memory for outputs");
	o->info = info;
	o->samples = info->samples;
	o->classes = (size_t)graph->values[graph->logits].channels;
	o->values = (size_t)info->channels * (size_t)info->height * (size_t)info->width;
	ls_status status = make(o, set);
	if (status != LS_OK) {
		ls_logits_free(o);
		return status;
	}
	*out = o;
	return LS_OK;
}

void ls_logits_free(ls_logits *o)
{
	if (!o)
		return;
	for (int i = 0; i < KINDS; i++)
		free(o->data[i]);
	free(o->masked_start);
	free(o->start);
	free(o);
}

/* The micro-batch's tokens are neighbours in the whole as they are in it. */
static void keep_text(ls_logits *o, const ls_microbatch *microbatch, size_t first)
{
	const ls_packed *text = microbatch->text;
	size_t tokens = (size_t)text->start[microbatch->count], masked = (size_t)text->masked_start[microbatch->count];
	int64_t at = o->start[first];

	memcpy((int32_t *)o->data[TOKENS] + at, text->token, tokens * sizeof(int32_t));
	memcpy((int32_t *)o->data[SEGMENTS] + at, text->segment, tokens * sizeof(int32_t));
	if (!o->data[MASKED])
		return;
	int64_t *masked_at = (int64_t *)o->data[MASKED] + o->masked_start[first];
	for (size_t i = 0; i < masked; i++)
		masked_at[i] = at + text->masked_at[i];
	memcpy((int32_t *)o->data[TARGETS] + o->masked_start[first], text->target, masked * sizeof(int32_t));
}

void ls_logits_keep(void *outputs, const ls_microbatch *microbatch, const float *logits)
{
	ls_logits *o = outputs;
	size_t count = (size_t)microbatch->count, first = microbatch->samples[0];

	memcpy((float *)o->data[LOGITS] + first * o->classes, logits, count * o->classes * sizeof(float));
	memcpy((int32_t *)o->data[LABELS] + first, microbatch->labels, count * sizeof(int32_t));
	if (microbatch->targets)
		memcpy((float *)o->data[WANTED] + first * (size_t)microbatch->target_count, microbatch->targets,
		       count * (size_t)microbatch->target_count * sizeof(float));
	if (microbatch->text)
		keep_text(o, microbatch, first);
	else
		memcpy((float *)o->data[IMAGES] + first * o->values, microbatch->images,
		       count * o->values * sizeof(float));
}

/* The writer's list has only what there is. */
typedef struct chosen {
	const ls_logits *logits;
	ls_st_tensor tensor[KINDS];
	int kind[KINDS];
	size_t count;
} chosen;

static ls_status fill(void *context, size_t i, void *data)
{
	const chosen *c = context;
	memcpy(data, c->logits->data[c->kind[i]], c->tensor[i].bytes);
	return LS_OK;
}

ls_status ls_logits_write(ls_logits *o, const char *path, const char *weights)
{
	chosen c = { .logits = o };
	ls_st_pair metadata[] = { { "data", o->info->name }, { "weights", weights } };

	for (int i = 0; i < KINDS; i++) {
		if (!o->data[i])
			continue;
		c.tensor[c.count] = o->tensor[i];
		c.kind[c.count++] = i;
	}
	return ls_st_write(path, c.tensor, c.count, metadata, 2, fill, &c, NULL);
}
