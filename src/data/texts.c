/*
 * texts.c - text samples that a program has in memory: what they predict, and a dataset of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/handles.h"
#include "base/status.h"
#include "data/dataset.h"

ls_status ls_text_sample_set_targets(ls_text_sample *sample, const int32_t *labels)
{
	LS_TRY(ls_argument_check(sample, "sample"));
	LS_TRY(ls_argument_check(labels, "labels"));
	if (!sample->places || !sample->targets)
		return ls_fail(LS_EINVALID,
			       "sample.places and sample.targets must not be NULL: they get the tokens to predict");
	sample->masked = 0;
	for (int32_t i = 0; i < sample->length; i++) {
		if (labels[i] == LS_IGNORE_INDEX)
			continue;
		sample->targets[sample->masked] = labels[i]; /* never ahead of i: labels may be the targets */
		sample->places[sample->masked++] = i;
	}
	return LS_OK;
}

static void copy_sample(ls_text_sample *to, const ls_text_sample *from)
{
	size_t tokens = (size_t)from->length * sizeof(int32_t), masked = (size_t)from->masked * sizeof(int32_t);

	to->length = from->length;
	to->masked = from->masked;
	to->label = from->label;
	memcpy(to->tokens, from->tokens, tokens);
	if (from->segments)
		memcpy(to->segments, from->segments, tokens);
	else
		memset(to->segments, 0, tokens);
	if (masked > 0) {
		memcpy(to->places, from->places, masked);
		memcpy(to->targets, from->targets, masked);
	}
}

/* ---- a dataset of them ------------------------------------------------------------------------------------------- */

typedef struct texts {
	const ls_text_sample *samples; /* the program's */
	const float *targets;          /* (samples, width), the program's; NULL: none */
	size_t width;
} texts;

static ls_status texts_read(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	(void)epoch;
	copy_sample(out, &((const texts *)self)->samples[index]);
	return LS_OK;
}

static ls_status texts_measure(void *self, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	const ls_text_sample *sample = &((const texts *)self)->samples[index];

	(void)epoch;
	*length = sample->length;
	*masked = sample->masked;
	return LS_OK;
}

static ls_status texts_read_targets(void *self, uint64_t index, float *targets)
{
	const texts *t = self;

	memcpy(targets, t->targets + index * t->width, t->width * sizeof(*targets));
	return LS_OK;
}

static ls_status check_sample(const ls_dataset *set, uint64_t index, const ls_text_sample *sample, ls_text_sample *room)
{
	if (!sample->tokens)
		return ls_fail(LS_EINVALID, "dataset '%s': samples[%llu].tokens is NULL", set->info.name,
			       (unsigned long long)index);
	if (sample->masked > 0 && (!sample->places || !sample->targets))
		return ls_fail(LS_EINVALID,
			       "dataset '%s': samples[%llu].masked is %d; its places and targets must not be NULL",
			       set->info.name, (unsigned long long)index, sample->masked);
	ls_status status = ls_dataset_sample_text(set, index, 0, room);
	if (status != LS_EFORMAT)
		return status;
	char why[256]; /* no file is to blame */
	snprintf(why, sizeof(why), "%s", ls_last_error());
	return ls_fail(LS_EINVALID, "%s", why);
}

/* Found now, with its place, and not in the middle of an epoch. */
static ls_status check(const ls_dataset *set, const texts *t)
{
	size_t tokens = (size_t)set->info.tokens_max, masked = (size_t)set->info.masked_max;
	int32_t *room = calloc(2 * (tokens + masked), sizeof(*room));
	ls_text_sample copy = { .tokens = room,
				.segments = room + tokens,
				.places = room + 2 * tokens,
				.targets = room + 2 * tokens + masked };
	ls_status status = room ? LS_OK : ls_fail(LS_EMEMORY, "no memory for a sample of %zu tokens", tokens);

	for (uint64_t i = 0; status == LS_OK && i < set->info.samples; i++) {
		status = check_sample(set, i, &t->samples[i], &copy);
		for (int k = 0; status == LS_OK && t->targets && k < set->info.targets; k++)
			status = ls_dataset_check_target(set, i, k, t->targets[i * t->width + (size_t)k]);
	}
	free(room);
	return status;
}

ls_status ls_dataset_from_texts(ls_dataset **out, const ls_dataset_info *info, const ls_text_sample *samples,
				const float *targets)
{
	if (!out || !info || !samples)
		return ls_fail(LS_EINVALID, "ls_dataset_from_texts needs an info and samples");
	if (info->tokens_max < 1)
		return ls_fail(LS_EINVALID,
			       "ls_dataset_from_texts: info.tokens_max of '%.63s' is %d; it is the longest sample",
			       info->name, info->tokens_max);
	if ((info->targets > 0) != (targets != NULL))
		return ls_fail(LS_EINVALID, "ls_dataset_from_texts: info.targets of '%.63s' is %d and targets is %s",
			       info->name, info->targets, targets ? "given" : "NULL");
	const ls_dataset_ops ops = { .read_text = texts_read,
				     .measure_text = texts_measure,
				     .free = free,
				     .read_targets = targets ? texts_read_targets : NULL };
	ls_dataset *set = NULL;
	texts *self = malloc(sizeof(*self));
	if (!self)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%.63s'", info->name);
	*self = (texts){ .samples = samples, .targets = targets, .width = (size_t)info->targets };
	ls_status status = ls_dataset_new(&set, info, &ops, self);
	if (status != LS_OK) {
		free(self);
		return status;
	}
	status = check(set, self);
	if (status == LS_OK)
		*out = set;
	else
		ls_dataset_free(set);
	return status;
}
