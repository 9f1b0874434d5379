/*
 * profile.c - profiles as JSON. One table of fields serves writer and reader.
 */
#include "train/profile.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/files.h"
#include "ckpt/shape.h"

#define FORMAT "lockstep profile"

/* More than any model has; a file beyond them is not a profile. */
enum { LAYERS_MAX = 100000, BYTES_MAX = 64 << 20 };
#define SECONDS_MAX 1e6

typedef enum field_kind { TEXT, WHOLE, REAL } field_kind;

typedef struct field {
	const char *name;
	field_kind kind;
	size_t offset;
	double min, max;
} field;

#define AT(member) offsetof(ls_profile, member)
static const field fields[] = {
	{ "model", TEXT, AT(model), 0, 0 },
	{ "channels", WHOLE, AT(channels), 0, 1e6 },
	{ "height", WHOLE, AT(height), 0, 1e6 },
	{ "width", WHOLE, AT(width), 0, 1e6 },
	{ "classes", WHOLE, AT(classes), 1, 1e9 },
	{ "tokens", WHOLE, AT(tokens), 0, 65536 },
	{ "picks", WHOLE, AT(picks), 0, 65536 },
	{ "vocabulary", WHOLE, AT(vocabulary), 0, 1e9 },
	{ "batch", WHOLE, AT(batch), 1, 1e9 },
	{ "slices", WHOLE, AT(slices), 1, 1e6 },
	{ "optimizer", TEXT, AT(optimizer), 0, 0 },
	{ "threads", WHOLE, AT(threads), 1, 1e6 },
	{ "isa", TEXT, AT(isa), 0, 0 },
	{ "kernels", TEXT, AT(kernels), 0, 0 },
	{ "lockstep", TEXT, AT(lockstep), 0, 0 },
	{ "steps", WHOLE, AT(steps), 1, 1e15 },
	{ "step_s", REAL, AT(step_s), 0, SECONDS_MAX },
	{ "loss_s", REAL, AT(loss_s), 0, SECONDS_MAX },
	{ "update_s", REAL, AT(update_s), 0, SECONDS_MAX },
	{ "gflop_a_sample", REAL, AT(gflop_a_sample), 0, 1e15 },
	{ "live_floats", WHOLE, AT(live), LS_PROFILE_LINE, 1e13 },
	{ "extra_floats", WHOLE, AT(extra), 0, 1e12 },
};
#undef AT
#define AT(member) offsetof(ls_profile_layer, member)
static const field layer_fields[] = {
	{ "name", TEXT, AT(name), 0, 0 },
	{ "forward_s", REAL, AT(forward_s), 0, SECONDS_MAX },
	{ "backward_s", REAL, AT(backward_s), 0, SECONDS_MAX },
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

ls_dataset_info ls_profile_samples(const ls_profile *p)
{
	return (ls_dataset_info){ .name = "profile",
				  .channels = (int)p->channels,
				  .height = (int)p->height,
				  .width = (int)p->width,
				  .classes = (int)p->classes,
				  .tokens_max = (int)p->tokens,
				  .picks_max = (int)p->picks,
				  .vocabulary = (int)p->vocabulary };
}

/* ---- writing ---- */

static json_t *field_to_json(const field *f, const void *from)
{
	const char *at = (const char *)from + f->offset;
	if (f->kind == TEXT)
		return json_string(at);
	return f->kind == WHOLE ? json_integer(*(const int64_t *)at) : json_real(*(const double *)at);
}

static json_t *layer_to_json(const ls_profile_layer *layer)
{
	json_t *object = json_object(), *ranges = json_array();
	for (size_t i = 0; i < COUNT(layer_fields); i++)
		json_object_set_new(object, layer_fields[i].name, field_to_json(&layer_fields[i], layer));
	for (int i = 0; i < layer->ranges; i++)
		json_array_append_new(ranges, json_pack("[I, I]", (json_int_t)layer->range[i].begin,
							(json_int_t)layer->range[i].end));
	json_object_set_new(object, "parameters", ranges);
	return object;
}

/* malloc'd; NULL: a name is no UTF-8, or there is no memory. */
static char *to_text(const ls_profile *p)
{
	json_t *root = json_object(), *layers = json_array();
	int bad = json_object_set_new(root, "format", json_string(FORMAT)) ||
		  json_object_set_new(root, "version", json_integer(LS_PROFILE_VERSION));

	for (size_t i = 0; i < COUNT(fields); i++)
		bad |= json_object_set_new(root, fields[i].name, field_to_json(&fields[i], p));
	for (size_t i = 0; i < p->layers; i++)
		bad |= json_array_append_new(layers, layer_to_json(&p->layer[i]));
	bad |= json_object_set_new(root, "layers", layers);
	char *text = bad ? NULL : json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	json_decref(root);
	return text;
}

ls_status ls_profile_write(const ls_profile *profile, const char *path)
{
	ls_file_draft draft;
	char *text = to_text(profile);

	if (text == NULL)
		return ls_fail(LS_EMEMORY, "%s: the profile cannot be written as JSON", path);
	ls_status status = ls_file_begin(&draft, path);
	if (status == LS_OK) {
		status = ls_file_write(&draft, text, strlen(text));
		if (status == LS_OK)
			status = ls_file_write(&draft, "\n", 1);
		if (status == LS_OK)
			status = ls_file_publish(&draft);
		else
			ls_file_abandon(&draft);
	}
	free(text);
	return status;
}

ls_status ls_profile_hash(const ls_profile *profile, uint64_t *out)
{
	char *text = to_text(profile);
	if (text == NULL)
		return ls_fail(LS_EMEMORY, "no memory for a profile as text");
	*out = XXH64(text, strlen(text), 0);
	free(text);
	return LS_OK;
}

/* ---- reading ---- */

/* What is being read: "FILE: layers[3]." stands before a field's name in errors. */
typedef struct place {
	const char *label;
	char prefix[32];
} place;

static ls_status read_text(const place *p, const field *f, const json_t *value, char *out)
{
	const char *text = json_string_value(value);
	if (text == NULL || text[0] == '\0')
		return ls_fail(LS_EFORMAT, "%s: %s%s is missing or not text", p->label, p->prefix, f->name);
	if (strlen(text) >= LS_PROFILE_NAME)
		return ls_fail(LS_EFORMAT, "%s: %s%s is longer than %d bytes", p->label, p->prefix, f->name,
			       LS_PROFILE_NAME - 1);
	memcpy(out, text, strlen(text) + 1);
	return LS_OK;
}

static ls_status read_number(const place *p, const field *f, const json_t *value, void *out)
{
	if (f->kind == WHOLE ? !json_is_integer(value) : !json_is_number(value))
		return ls_fail(LS_EFORMAT, "%s: %s%s is missing or not a %s", p->label, p->prefix, f->name,
			       f->kind == WHOLE ? "whole number" : "number");
	double number = json_number_value(value);
	if (!(number >= f->min && number <= f->max))
		return ls_fail(LS_EFORMAT, "%s: %s%s is %.9g, which is not between %.9g and %.9g", p->label, p->prefix,
			       f->name, number, f->min, f->max);
	if (f->kind == WHOLE)
		*(int64_t *)out = json_integer_value(value);
	else
		*(double *)out = number;
	return LS_OK;
}

static ls_status read_fields(const place *p, const field *list, size_t count, const json_t *object, void *out)
{
	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_object_get(object, list[i].name);
		char *at = (char *)out + list[i].offset;
		if (list[i].kind == TEXT)
			LS_TRY(read_text(p, &list[i], value, at));
		else
			LS_TRY(read_number(p, &list[i], value, at));
	}
	return LS_OK;
}

static ls_status read_range(const place *p, int i, const json_t *pair, int64_t live, ls_profile_range *out)
{
	const json_t *begin = json_array_get(pair, 0), *end = json_array_get(pair, 1);
	if (json_array_size(pair) != 2 || !json_is_integer(begin) || !json_is_integer(end))
		return ls_fail(LS_EFORMAT, "%s: %sparameters[%d] is not a pair of whole numbers, [begin, end]",
			       p->label, p->prefix, i);
	out->begin = json_integer_value(begin);
	out->end = json_integer_value(end);
	if (out->begin < 0 || out->begin >= out->end || out->end > live || out->begin % LS_PROFILE_LINE != 0)
		return ls_fail(LS_EFORMAT,
			       "%s: %sparameters[%d] is [%" PRId64 ", %" PRId64 "]: it must begin at a multiple of %d, "
			       "before its end, and end by live_floats, %" PRId64,
			       p->label, p->prefix, i, out->begin, out->end, LS_PROFILE_LINE, live);
	return LS_OK;
}

static ls_status read_layer(const place *p, const json_t *object, int64_t live, ls_profile_layer *layer)
{
	const json_t *ranges = json_object_get(object, "parameters");

	LS_TRY(read_fields(p, layer_fields, COUNT(layer_fields), object, layer));
	if (!json_is_array(ranges) || json_array_size(ranges) > LS_PROFILE_RANGES)
		return ls_fail(LS_EFORMAT, "%s: %sparameters is missing or not a list of at most %d pairs", p->label,
			       p->prefix, LS_PROFILE_RANGES);
	layer->ranges = (int)json_array_size(ranges);
	for (int i = 0; i < layer->ranges; i++)
		LS_TRY(read_range(p, i, json_array_get(ranges, (size_t)i), live, &layer->range[i]));
	return LS_OK;
}

static ls_status read_layers(ls_profile *profile, const json_t *root, const char *label)
{
	const json_t *list = json_object_get(root, "layers");

	if (!json_is_array(list) || json_array_size(list) < 1 || json_array_size(list) > LAYERS_MAX)
		return ls_fail(LS_EFORMAT, "%s: layers is missing or not a list of 1 to %d layers", label, LAYERS_MAX);
	profile->layers = json_array_size(list);
	profile->layer = calloc(profile->layers, sizeof(*profile->layer));
	if (profile->layer == NULL)
		return ls_fail(LS_EMEMORY, "%s: no memory for %zu layers", label, profile->layers);
	for (size_t i = 0; i < profile->layers; i++) {
		place at = { .label = label };
		snprintf(at.prefix, sizeof(at.prefix), "layers[%zu].", i);
		LS_TRY(read_layer(&at, json_array_get(list, i), profile->live, &profile->layer[i]));
	}
	return LS_OK;
}

static int by_begin(const void *a, const void *b)
{
	const ls_profile_range *left = a, *right = b;
	return (left->begin > right->begin) - (left->begin < right->begin);
}

/* `ranges` in ascending order are all of [0, live), once. */
static ls_status check_cover(const ls_profile_range *ranges, size_t count, int64_t live, const char *label)
{
	int64_t reached = 0;
	for (size_t i = 0; i <= count; i++) {
		int64_t begin = i < count ? ranges[i].begin : live;
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

	if (all == NULL)
		return ls_fail(LS_EMEMORY, "%s: no memory for the parameters of %zu layers", label, profile->layers);
	for (size_t i = 0; i < profile->layers; i++)
		for (int k = 0; k < profile->layer[i].ranges; k++)
			all[count++] = profile->layer[i].range[k];
	qsort(all, count, sizeof(*all), by_begin);
	ls_status status = check_cover(all, count, profile->live, label);
	free(all);
	return status;
}

static ls_status read_root(ls_profile *profile, const json_t *root, const char *label)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	const json_t *version = json_object_get(root, "version");
	const place top = { .label = label };

	if (format == NULL || strcmp(format, FORMAT) != 0 || !json_is_integer(version))
		return ls_fail(LS_EFORMAT, "%s: not a profile: \"format\" is not \"" FORMAT "\" with a \"version\"",
			       label);
	if (json_integer_value(version) != LS_PROFILE_VERSION)
		return ls_fail(LS_EFORMAT,
			       "%s: version is %" PRId64 ", this program reads %d; record the profile again", label,
			       (int64_t)json_integer_value(version), LS_PROFILE_VERSION);
	LS_TRY(read_fields(&top, fields, COUNT(fields), root, profile));
	if (profile->slices > profile->batch)
		return ls_fail(LS_EFORMAT, "%s: slices is %" PRId64 ", more than the batch of %" PRId64, label,
			       profile->slices, profile->batch);
	LS_TRY(read_layers(profile, root, label));
	return check_ranges(profile, label);
}

ls_status ls_profile_parse(ls_profile *out, const void *text, size_t bytes, const char *label)
{
	ls_profile profile = { 0 };
	char shown[JSON_ERROR_TEXT_LENGTH];
	json_error_t error;

	if (bytes > BYTES_MAX)
		return ls_fail(LS_EFORMAT, "%s: %zu bytes are too many for a profile", label, bytes);
	json_t *root = json_loadb(bytes > 0 ? text : "", bytes, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL)
		return ls_fail(LS_EFORMAT, "%s:%d: not acceptable JSON: %s", label, error.line,
			       ls_text_printable(shown, sizeof(shown), error.text));
	ls_status status = read_root(&profile, root, label);
	json_decref(root);
	if (status == LS_OK)
		*out = profile;
	else
		ls_profile_release(&profile);
	return status;
}

ls_status ls_profile_read(ls_profile *out, const char *path)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_profile_parse(out, map.data, map.bytes, path);
	ls_file_map_close(&map);
	return status;
}

void ls_profile_release(ls_profile *profile)
{
	free(profile->layer);
	*profile = (ls_profile){ 0 };
}
