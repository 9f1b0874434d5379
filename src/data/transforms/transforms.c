#include "data/transforms/transforms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/status.h"
#include "data/dataset.h"

/* ---- the list ------------------------------------------------------------------------------------------------------ */

static const char *name_at(size_t i)
{
	const ls_transform *row = ls_transform_at(i);
	return row ? row->name : NULL;
}

static ls_status check_amount(const ls_transform *row, const char *typed, double amount)
{
	if (amount >= row->low && amount <= row->high && (!row->is_whole || amount == floor(amount)))
		return LS_OK;
	return ls_fail(LS_EINVALID, "options.augment: %s of %s must be %s from %g to %g, not %s", row->amount,
		       row->name, row->is_whole ? "a whole number" : "a number", row->low, row->high, typed);
}

/* "crop:4" */
static ls_status add(ls_transforms *t, char *word)
{
	char *number = strchr(word, ':');
	size_t at;

	if (number)
		*number++ = '\0';
	LS_TRY(ls_name_find("transform", word, name_at, &at));
	if (t->count == LS_TRANSFORMS_MAX)
		return ls_fail(LS_EINVALID, "options.augment has more than %d transforms", LS_TRANSFORMS_MAX);
	const ls_transform *row = ls_transform_at(at);
	double amount = row->usual;
	if (number) {
		LS_TRY(ls_parse_real(number, "a number of options.augment", &amount));
		LS_TRY(check_amount(row, number, amount));
	}
	t->row[t->count] = row;
	t->amount[t->count++] = amount;
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

/* ---- black and white ----------------------------------------------------------------------------------------------- */

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

static ls_status check_rows(const ls_transforms *t, const ls_dataset *set)
{
	for (size_t i = 0; !ls_dataset_normalisation(set) && i < t->count; i++)
		if (t->row[i]->needs_pixel_range)
			return ls_fail(LS_EINVALID,
				       "options.augment: %s needs images of bytes, whose black and white are known; "
				       "dataset '%s' "
				       "has floats of any range",
				       t->row[i]->name, set->info.name);
	return LS_OK;
}

ls_status ls_transforms_init(ls_transforms *out, const char *list, const ls_dataset *dataset, uint64_t seed)
{
	const ls_dataset_info *info = ls_dataset_describe(dataset);
	ls_transforms t = { .seed = seed, .channels = info->channels, .height = info->height, .width = info->width };

	*out = (ls_transforms){ .count = 0 };
	if (!list || !strcmp(list, "none"))
		return LS_OK;
	if (info->tokens_max > 0)
		return ls_fail(LS_EINVALID, "options.augment is for images, and dataset '%s' is text", info->name);
	LS_TRY(read_list(&t, list));
	LS_TRY(check_rows(&t, dataset));
	LS_TRY(find_levels(&t, ls_dataset_normalisation(dataset)));
	*out = t;
	return LS_OK;
}

void ls_transforms_release(ls_transforms *t)
{
	free(t->black);
	*t = (ls_transforms){ .count = 0 };
}

/* ---- a sample ------------------------------------------------------------------------------------------------------ */

void ls_transforms_apply(const ls_transforms *t, uint64_t epoch, uint64_t index, float *image)
{
	const ls_transform_image on = { .values = image,
					.channels = t->channels,
					.height = t->height,
					.width = t->width,
					.black = t->black,
					.white = t->white };

	for (size_t i = 0; i < t->count; i++) {
		ls_rng rng = ls_rng_make(t->seed, LS_RNG_TRANSFORM, epoch * LS_TRANSFORMS_MAX + i);
		ls_sample_rng draw = ls_sample_rng_begin(rng, index);
		t->row[i]->apply(&on, t->amount[i], &draw);
	}
}
