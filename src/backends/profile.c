/*
 * profile.c - profiles as JSON.
 */
#include "backends/profile.h"

#include <inttypes.h>
#include <lockstep/text.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/files.h"
#include "json/document.h"
#include "json/fields.h"

#define FORMAT "lockstep profile"

/* More than any model has; a file beyond them is not a profile. */
enum { LAYERS_MAX = 100000, BYTES_MAX = 64 << 20 };
#define SECONDS_MAX 1e6

#define AT(member) LS_FIELD_AT(ls_profile, member)
static const ls_field fields[] = {
	{ "model", LS_FIELD_TEXT, AT(model), 0, 0 },
	{ "channels", LS_FIELD_WHOLE, AT(channels), 0, 1e6 },
	{ "height", LS_FIELD_WHOLE, AT(height), 0, 1e6 },
	{ "width", LS_FIELD_WHOLE, AT(width), 0, 1e6 },
	{ "classes", LS_FIELD_WHOLE, AT(classes), 1, 1e9 },
	{ "tokens", LS_FIELD_WHOLE, AT(tokens), 0, LS_TOKENS_MAX },
	{ "masked", LS_FIELD_WHOLE, AT(masked), 0, LS_TOKENS_MAX },
	{ "vocabulary", LS_FIELD_WHOLE, AT(vocabulary), 0, 1e9 },
	{ "micro_batch", LS_FIELD_WHOLE, AT(batch), 1, 1e9 },
	{ "tiles", LS_FIELD_WHOLE, AT(tiles), 1, 1e6 },
	{ "optimizer", LS_FIELD_TEXT, AT(optimizer), 0, 0 },
	{ "threads", LS_FIELD_WHOLE, AT(threads), 1, 1e6 },
	{ "isa", LS_FIELD_TEXT, AT(isa), 0, 0 },
	{ "kernels", LS_FIELD_TEXT, AT(kernels), 0, 0 },
	{ "lockstep", LS_FIELD_TEXT, AT(lockstep), 0, 0 },
	{ "precision", LS_FIELD_MAYBE, AT(precision), 0, 0 },
	{ "steps", LS_FIELD_WHOLE, AT(steps), 1, 1e15 },
	{ "devices", LS_FIELD_WHOLE_IF, AT(devices), 1, 1e6 },
	{ "micro_batches", LS_FIELD_WHOLE_IF, AT(microbatches), 1, 1e9 },
	{ "repeats", LS_FIELD_WHOLE_IF, AT(repeats), 0, 1e9 },
	{ "step_s", LS_FIELD_REAL, AT(step_s), 0, SECONDS_MAX },
	{ "step_spread", LS_FIELD_REAL_IF, AT(step_spread), 0, 1e3 },
	{ "loss_s", LS_FIELD_REAL, AT(loss_s), 0, SECONDS_MAX },
	{ "other_s", LS_FIELD_REAL_IF, AT(other_s), 0, SECONDS_MAX },
	{ "update_s", LS_FIELD_REAL, AT(update_s), 0, SECONDS_MAX },
	{ "exchange_s", LS_FIELD_REAL_IF, AT(exchange_s), 0, SECONDS_MAX },
	{ "gflop_per_sample", LS_FIELD_REAL, AT(gflop_a_sample), 0, 1e15 },
	{ "reachable_floats", LS_FIELD_WHOLE, AT(reachable), LS_PROFILE_LINE, 1e13 },
	{ "statistics_floats", LS_FIELD_WHOLE, AT(extra), 0, 1e12 },
};
#undef AT
/* Names in version 1. */
static const ls_field_rename renames[] = {
	{ "picks", "masked" },
	{ "batch", "micro_batch" },
	{ "slices", "tiles" },
	{ "gflop_a_sample", "gflop_per_sample" },
	{ "live_floats", "reachable_floats" },
	{ "extra_floats", "statistics_floats" },
};
#define AT(member) LS_FIELD_AT(ls_profile_layer, member)
static const ls_field layer_fields[] = {
	{ "name", LS_FIELD_TEXT, AT(name), 0, 0 },
	{ "forward_s", LS_FIELD_REAL, AT(forward_s), 0, SECONDS_MAX },
	{ "backward_s", LS_FIELD_REAL, AT(backward_s), 0, SECONDS_MAX },
};

ls_dataset_info ls_profile_samples(const ls_profile *p)
{
	return (ls_dataset_info){ .name = "profile",
				  .channels = (int)p->channels,
				  .height = (int)p->height,
				  .width = (int)p->width,
				  .classes = (int)p->classes,
				  .tokens_max = (int)p->tokens,
				  .masked_max = (int)p->masked,
				  .vocabulary = (int)p->vocabulary };
}

double ls_profile_compute(const ls_profile *p)
{
	double seconds = p->loss_s;
	for (size_t i = 0; i < p->layers; i++)
		seconds += p->layer[i].forward_s + p->layer[i].backward_s;
	return seconds;
}

/* ---- writing ---- */

static json_t *layer_to_json(const ls_profile_layer *layer)
{
	json_t *object = json_object(), *ranges = json_array();
	ls_fields_write(layer_fields, LS_COUNT(layer_fields), layer, object);
	for (int i = 0; i < layer->ranges; i++)
		json_array_append_new(ranges, json_pack("[I, I]", (json_int_t)layer->range[i].begin,
							(json_int_t)layer->range[i].end));
	json_object_set_new(object, "parameters", ranges);
	return object;
}

/* NULL: a name is no UTF-8, or there is no memory. */
static json_t *to_json(const ls_profile *p)
{
	json_t *root = ls_json_begin(FORMAT, LS_PROFILE_VERSION), *layers = json_array();
	int bad = ls_fields_write(fields, LS_COUNT(fields), p, root);

	for (size_t i = 0; i < p->layers; i++)
		bad |= json_array_append_new(layers, layer_to_json(&p->layer[i]));
	bad |= json_object_set_new(root, "layers", layers);
	if (!bad)
		return root;
	json_decref(root);
	return NULL;
}

ls_status ls_profile_write(const ls_profile *profile, const char *path)
{
	json_t *root = to_json(profile);
	if (!root)
		return ls_fail(LS_EMEMORY, "%s: the profile cannot be written as JSON", path);
	ls_status status = ls_json_publish(root, path);
	json_decref(root);
	return status;
}

ls_status ls_profile_to_text(const ls_profile *profile, char **out)
{
	json_t *root = to_json(profile);
	char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(root);
	if (!text)
		return ls_fail(LS_EMEMORY, "no memory for a profile as text, or the name of its model is not UTF-8");
	*out = text;
	return LS_OK;
}

ls_status ls_profile_hash(const ls_profile *profile, uint64_t *out)
{
	json_t *root = to_json(profile);
	char *text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(root);
	if (!text)
		return ls_fail(LS_EMEMORY, "no memory for a profile as text");
	*out = XXH64(text, strlen(text), 0);
	free(text);
	return LS_OK;
}

/* ---- reading ---- */

static ls_status read_range(const ls_json_place *p, int i, const json_t *pair, int64_t reachable, ls_profile_range *out)
{
	const json_t *begin = json_array_get(pair, 0), *end = json_array_get(pair, 1);
	if (json_array_size(pair) != 2 || !json_is_integer(begin) || !json_is_integer(end))
		return ls_fail(LS_EFORMAT, "%s: %sparameters[%d] is not a pair of whole numbers, [begin, end]",
			       p->label, p->prefix, i);
	out->begin = json_integer_value(begin);
	out->end = json_integer_value(end);
	if (out->begin < 0 || out->begin >= out->end || out->end > reachable || out->begin % LS_PROFILE_LINE != 0)
		return ls_fail(LS_EFORMAT,
			       "%s: %sparameters[%d] is [%" PRId64 ", %" PRId64 "]: it must begin at a multiple of %d, "
			       "before its end, and end by reachable_floats, %" PRId64,
			       p->label, p->prefix, i, out->begin, out->end, LS_PROFILE_LINE, reachable);
	return LS_OK;
}

static ls_status read_layer(const ls_json_place *p, const json_t *object, int64_t reachable, ls_profile_layer *layer)
{
	static const char *const others[] = { "parameters", NULL };
	const json_t *ranges = json_object_get(object, "parameters");

	LS_TRY(ls_fields_only(p, object, layer_fields, LS_COUNT(layer_fields), others));
	LS_TRY(ls_fields_read(p, layer_fields, LS_COUNT(layer_fields), object, layer));
	if (!json_is_array(ranges) || json_array_size(ranges) > LS_PROFILE_RANGES)
		return ls_fail(LS_EFORMAT, "%s: %sparameters is missing or not a list of at most %d pairs", p->label,
			       p->prefix, LS_PROFILE_RANGES);
	layer->ranges = (int)json_array_size(ranges);
	for (int i = 0; i < layer->ranges; i++)
		LS_TRY(read_range(p, i, json_array_get(ranges, (size_t)i), reachable, &layer->range[i]));
	return LS_OK;
}

static ls_status read_layers(ls_profile *profile, const json_t *root, const char *label)
{
	const json_t *list = json_object_get(root, "layers");
	const ls_json_place top = { .label = label };

	if (!json_is_array(list) || json_array_size(list) < 1 || json_array_size(list) > LAYERS_MAX)
		return ls_fail(LS_EFORMAT, "%s: layers is missing or not a list of 1 to %d layers", label, LAYERS_MAX);
	profile->layers = json_array_size(list);
	profile->layer = calloc(profile->layers, sizeof(*profile->layer));
	if (!profile->layer)
		return ls_fail(LS_EMEMORY, "%s: no memory for %zu layers", label, profile->layers);
	for (size_t i = 0; i < profile->layers; i++) {
		ls_json_place at = ls_json_element(&top, "layers", i);
		LS_TRY(read_layer(&at, json_array_get(list, i), profile->reachable, &profile->layer[i]));
	}
	return LS_OK;
}

static int by_begin(const void *a, const void *b)
{
	const ls_profile_range *left = a, *right = b;
	return (left->begin > right->begin) - (left->begin < right->begin);
}

/* `ranges` in ascending order are all of [0, reachable), once. */
static ls_status check_cover(const ls_profile_range *ranges, size_t count, int64_t reachable, const char *label)
{
	int64_t reached = 0;
	for (size_t i = 0; i <= count; i++) {
		int64_t begin = i < count ? ranges[i].begin : reachable;
		if (begin > reached)
			return ls_fail(LS_EFORMAT, "%s: floats %" PRId64 " to %" PRId64 " are parameters of no layer",
				       label, reached, begin);
		if (begin < reached && i < count)
			return ls_fail(LS_EFORMAT, "%s: floats %" PRId64 " and on are parameters of two layers", label,
				       begin);
		if (i < count)
			reached = (ranges[i].end + LS_PROFILE_LINE - 1) / LS_PROFILE_LINE * LS_PROFILE_LINE;
	}
	return LS_OK;
}

static ls_status check_ranges(const ls_profile *profile, const char *label)
{
	ls_profile_range *all = calloc(profile->layers * LS_PROFILE_RANGES, sizeof(*all));
	size_t count = 0;

	if (!all)
		return ls_fail(LS_EMEMORY, "%s: no memory for the parameters of %zu layers", label, profile->layers);
	for (size_t i = 0; i < profile->layers; i++)
		for (int k = 0; k < profile->layer[i].ranges; k++)
			all[count++] = profile->layer[i].range[k];
	qsort(all, count, sizeof(*all), by_begin);
	ls_status status = check_cover(all, count, profile->reachable, label);
	free(all);
	return status;
}

static ls_status read_root(void *out, json_t *root, const char *label)
{
	static const char *const others[] = { "format", "version", "layers", NULL };
	ls_profile *profile = out;
	int version;
	const ls_json_place top = { .label = label };

	profile->devices = profile->microbatches = 1;
	profile->other_s = -1;
	LS_TRY(ls_json_check(root, FORMAT, LS_PROFILE_VERSION, label, &version));
	if (version < 2)
		ls_fields_rename(root, renames, LS_COUNT(renames));
	LS_TRY(ls_fields_only(&top, root, fields, LS_COUNT(fields), others));
	LS_TRY(ls_fields_read(&top, fields, LS_COUNT(fields), root, profile));
	if (profile->tiles > profile->batch)
		return ls_fail(LS_EFORMAT, "%s: tiles is %" PRId64 ", more than the micro_batch of %" PRId64, label,
			       profile->tiles, profile->batch);
	LS_TRY(read_layers(profile, root, label));
	if (profile->other_s < 0) /* of a version that did not record it, from steps of one micro-batch on one device */
		profile->other_s = fmax(0, profile->step_s - ls_profile_compute(profile) - profile->update_s);
	return check_ranges(profile, label);
}

LS_JSON_DOCUMENT(ls_profile, BYTES_MAX, read_root)

void ls_profile_release(ls_profile *profile)
{
	free(profile->layer);
	*profile = (ls_profile){ 0 };
}
