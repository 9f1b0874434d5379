#include "data/transforms/transforms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/status.h"
#include "data/dataset.h"

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static const char *name_at(size_t i)
{
	const ls_transform *row = ls_transform_at(i);
	return row ? row->name : NULL;
}

static ls_status check_number(const ls_transform *row, const ls_transform_number *n, const char *typed, double value)
{
	if (value >= n->low && value <= n->high && (!n->is_whole || value == floor(value)))
		return LS_OK;
	return ls_fail(LS_EINVALID, "options.augment: %s of %s must be %s from %g to %g, not %s", n->name, row->name,
		       n->is_whole ? "a whole number" : "a number", n->low, n->high, typed);
}

static int numbers_of(const ls_transform *row)
{
	int count = 0;

	while (count < LS_TRANSFORM_NUMBERS && row->numbers[count].name)
		count++;
	return count;
}

/* "2:9"; those that are not given are the usual ones. */
static ls_status read_numbers(const ls_transform *row, char *rest, double *out)
{
	int most = numbers_of(row), count = 0;

	for (int i = 0; i < most; i++)
		out[i] = row->numbers[i].usual;
	for (char *word; (word = strsep(&rest, ":")); count++) {
		if (count == most)
			return ls_fail(LS_EINVALID, "options.augment: %s has %d number%s, and more follow: %s",
				       row->name, most, ls_plural((uint64_t)most, "s"), word);
		LS_TRY(ls_parse_real(word, "a number of options.augment", &out[count]));
		LS_TRY(check_number(row, &row->numbers[count], word, out[count]));
	}
	return LS_OK;
}

/* "crop:4" */
static ls_status add(ls_transforms *t, char *word)
{
	char *name = strsep(&word, ":");
	size_t at;

	LS_TRY(ls_name_find("transform", name, name_at, &at));
	if (t->count == LS_TRANSFORMS_MAX)
		return ls_fail(LS_EINVALID, "options.augment has more than %d transforms", LS_TRANSFORMS_MAX);
	t->row[t->count] = ls_transform_at(at);
	LS_TRY(read_numbers(t->row[t->count], word, t->numbers[t->count]));
	t->count++;
	return LS_OK;
}

static ls_status read_list(ls_transforms *t, const char *list)
{
	char text[512], *rest = text;

	if ((size_t)snprintf(text, sizeof(text), "%s", list) >= sizeof(text))
		return ls_fail(LS_EINVALID, "options.augment is longer than %zu characters", sizeof(text) - 1);
	for (char *word; (word = strsep(&rest, ","));)
		LS_TRY(add(t, word));
	return LS_OK;
}

ls_status ls_transforms_check(const char *list)
{
	ls_transforms ignored = { .count = 0 };

	return list && strcmp(list, "none") != 0 ? read_list(&ignored, list) : LS_OK;
}

/* ---- black and white --------------------------------------------------------------------------------------------- */

/* Custom datasets have floats of any range: nothing is black or white there. */
static ls_status find_levels(ls_transforms *t, const ls_normalisation *n)
{
	t->black = calloc(2 * (size_t)t->channels, sizeof(*t->black));
	if (!t->black)
		return ls_fail(LS_EMEMORY, "no memory for transforms of %d channels", t->channels);
	t->white = t->black + t->channels;
	for (int c = 0; c < t->channels; c++) {
		t->black[c] = n ? (0.0f - (float)n->mean[c]) / (float)n->deviation[c] : -INFINITY;
		t->white[c] = n ? (1.0f - (float)n->mean[c]) / (float)n->deviation[c] : INFINITY;
	}
	return LS_OK;
}

static ls_status check_row(const ls_transform *row, const double *numbers, const ls_dataset *set)
{
	if (!row->mix && set->info.height == 1 && set->info.width == 1)
		return ls_fail(LS_EINVALID,
			       "options.augment: %s is for images; a sample of dataset '%s' is a row of numbers",
			       row->name, set->info.name);
	if ((row->needs & LS_NEEDS_PIXEL_RANGE) && !set->read_bytes)
		return ls_fail(
			LS_EINVALID,
			"options.augment: %s needs images of bytes, whose black and white are known; dataset '%s' "
			"has floats of any range",
			row->name, set->info.name);
	if ((row->needs & LS_NEEDS_COLOUR) && set->info.channels != 3)
		return ls_fail(
			LS_EINVALID,
			"options.augment: %s needs colour images; those of dataset '%s' have %d channel%s, not 3",
			row->name, set->info.name, set->info.channels, ls_plural((uint64_t)set->info.channels, "s"));
	return row->check ? row->check(numbers, &set->info) : LS_OK;
}

/* What mixes samples does so with whole ones. */
static ls_status check_order(const ls_transforms *t)
{
	for (size_t i = 1; i < t->count; i++)
		if (t->row[i - 1]->mix && !t->row[i]->mix)
			return ls_fail(LS_EINVALID,
				       "options.augment: %s comes behind %s; what mixes samples must come last",
				       t->row[i]->name, t->row[i - 1]->name);
	return LS_OK;
}

ls_status ls_transforms_init(ls_transforms *out, const char *list, const ls_dataset *dataset, uint64_t seed)
{
	const ls_dataset_info *info = ls_dataset_describe(dataset);
	ls_transforms t = { .seed = seed, .channels = info->channels, .height = info->height, .width = info->width };

	t.targets = info->targets ? info->targets : info->classes;

	*out = (ls_transforms){ .count = 0 };
	if (!list || !strcmp(list, "none"))
		return LS_OK;
	if (info->tokens_max > 0)
		return ls_fail(LS_EINVALID, "options.augment is for images, and dataset '%s' is text", info->name);
	LS_TRY(read_list(&t, list));
	LS_TRY(check_order(&t));
	for (size_t i = 0; i < t.count; i++)
		LS_TRY(check_row(t.row[i], t.numbers[i], dataset));
	LS_TRY(find_levels(&t, dataset->read_bytes ? ls_dataset_normalisation(dataset) : NULL));
	*out = t;
	return LS_OK;
}

void ls_transforms_release(ls_transforms *t)
{
	free(t->black);
	*t = (ls_transforms){ .count = 0 };
}

/* ---- a sample ---------------------------------------------------------------------------------------------------- */

int ls_transforms_mix(const ls_transforms *t)
{
	return t->count > 0 && t->row[t->count - 1]->mix != NULL;
}

/* What transforms work in, and where samples are mixed the other one with its targets. */
size_t ls_transforms_scratch(const ls_transforms *t)
{
	size_t one = ls_transform_scratch(t->channels, t->height, t->width);
	size_t other = (size_t)t->channels * (size_t)t->height * (size_t)t->width + (size_t)t->targets;

	return t->count == 0 ? 0 : ls_transforms_mix(t) ? one + other : one;
}

/* The draws of the transform at place i of the list for a sample. */
static ls_sample_rng draw_at(const ls_transforms *t, size_t i, uint64_t epoch, uint64_t index)
{
	return ls_sample_rng_begin(ls_rng_make(t->seed, LS_RNG_TRANSFORM, epoch * LS_TRANSFORMS_MAX + i), index);
}

/* Everything but mixing; returns the place of what mixes, or the end of the list. */
static size_t change(const ls_transforms *t, const ls_transform_image *image, uint64_t epoch, uint64_t index)
{
	size_t i = 0;

	for (; i < t->count && !t->row[i]->mix; i++) {
		ls_sample_rng draw = draw_at(t, i, epoch, index);
		t->row[i]->apply(image, t->numbers[i], &draw);
	}
	return i;
}

/* The other sample's targets: probabilities of classes, or numbers. */
static ls_status read_targets(const ls_transforms *t, const ls_dataset *dataset, uint64_t index, int32_t label,
			      float *out)
{
	if (dataset->info.targets)
		return ls_dataset_sample_targets(dataset, index, out);
	memset(out, 0, (size_t)t->targets * sizeof(*out));
	out[label] = 1;
	return LS_OK;
}

/* With what comes at the place `first`, or with one of several, each as often. */
static ls_status mix(const ls_transforms *t, const ls_dataset *dataset, const ls_transform_image *image, size_t first,
		     uint64_t epoch, uint64_t index, float *targets)
{
	ls_transform_image other = *image;
	ls_sample_rng draw = draw_at(t, first, epoch, index);
	size_t place = first + ls_rng_below(ls_sample_rng_word(&draw), (uint32_t)(t->count - first));
	uint64_t high = ls_sample_rng_word(&draw), partner = (high << 32 | ls_sample_rng_word(&draw));
	int32_t label = 0;

	partner %= dataset->info.samples;
	other.values = image->scratch + ls_transform_scratch(t->channels, t->height, t->width);
	float *others = other.values + ls_dataset_values(&dataset->info);
	LS_TRY(ls_dataset_sample(dataset, partner, other.values, &label));
	change(t, &other, epoch, partner);
	float own = t->row[place]->mix(image, other.values, t->numbers[place], &draw);
	if (!targets)
		return LS_OK;
	LS_TRY(read_targets(t, dataset, partner, label, others));
	for (int i = 0; i < t->targets; i++)
		targets[i] = own * targets[i] + (1.0f - own) * others[i];
	return LS_OK;
}

ls_status ls_transforms_apply(const ls_transforms *t, const ls_dataset *dataset, uint64_t epoch, uint64_t index,
			      float *image, float *targets, float *scratch)
{
	const ls_transform_image on = { .values = image,
					.channels = t->channels,
					.height = t->height,
					.width = t->width,
					.black = t->black,
					.white = t->white,
					.scratch = scratch };
	size_t place = change(t, &on, epoch, index);

	return place < t->count ? mix(t, dataset, &on, place, epoch, index, targets) : LS_OK;
}
