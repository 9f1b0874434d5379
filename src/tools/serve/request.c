#include "tools/serve/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "json/fields.h"

#define BODY_MAX ((size_t)1 << 30)

void ls_request_release(ls_request *r)
{
	for (size_t i = 0; r->part && i < r->count; i++)
		free(r->part[i].own);
	free(r->part);
	free(r->numbers);
	json_decref(r->root);
	*r = (ls_request){ 0 };
}

/* ---- base64 ------------------------------------------------------------------------------------------------------ */

static int digit_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

ls_status ls_base64_decode(uint8_t **out, size_t *bytes, const char *text, size_t length, const char *where)
{
	uint8_t *result = malloc(length / 4 * 3 + 3);
	uint32_t bits = 0;
	size_t digits = 0, used = 0, padding = 0;

	if (!result)
		return ls_fail(LS_EMEMORY, "%s: no memory for %zu characters of base64", where, length);
	for (size_t i = 0; i < length; i++) {
		int digit = digit_of(text[i]);
		padding += text[i] == '=';
		if (strchr(" \t\r\n=", text[i]) && text[i])
			continue;
		if (digit < 0 || padding > 0) {
			free(result);
			return ls_fail(LS_EFORMAT, "%s: character %zu is not base64", where, i + 1);
		}
		bits = bits << 6 | (uint32_t)digit;
		if (++digits % 4 != 1)
			result[used++] = (uint8_t)(bits >> (6 - 2 * ((digits - 1) % 4)));
	}
	if (digits % 4 == 1 || padding > 2) {
		free(result);
		return ls_fail(LS_EFORMAT, "%s: base64 that is cut short", where);
	}
	*out = result;
	*bytes = used;
	return LS_OK;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static size_t values_of(const ls_request_shape *s)
{
	return (size_t)s->channels * (size_t)s->height * (size_t)s->width;
}

/* A nested list is read from outside in; `place` says where it is, "inputs[3][0]". */
typedef struct reading {
	const ls_request_shape *shape;
	char place[96];
	float *to;
} reading;

static ls_status read_list(const reading *r, const json_t *list, float *to, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(list, i);
		if (!json_is_number(item))
			return ls_fail(LS_EFORMAT, "%s[%zu] is not a number", r->place, i);
		to[i] = (float)json_number_value(item);
		if (!isfinite(to[i]))
			return ls_fail(LS_EFORMAT, "%s[%zu] is larger than a float can be", r->place, i);
	}
	return LS_OK;
}

static ls_status read_rows(reading *r, const json_t *rows, float *to)
{
	const ls_request_shape *s = r->shape;
	size_t length = strlen(r->place);

	if (json_array_size(rows) != (size_t)s->height)
		return ls_fail(LS_EFORMAT, "%s has %zu rows; expected %d", r->place, json_array_size(rows), s->height);
	for (int y = 0; y < s->height; y++) {
		const json_t *row = json_array_get(rows, (size_t)y);
		snprintf(r->place + length, sizeof(r->place) - length, "[%d]", y);
		if (!json_is_array(row) || json_array_size(row) != (size_t)s->width)
			return ls_fail(LS_EFORMAT, "%s is not a list of %d numbers", r->place, s->width);
		LS_TRY(read_list(r, row, to + (size_t)y * (size_t)s->width, (size_t)s->width));
	}
	r->place[length] = '\0';
	return LS_OK;
}

/* (C, H, W), of one channel also (H, W), or all numbers in one list. */
static ls_status read_numbers(reading *r, const json_t *item)
{
	const ls_request_shape *s = r->shape;
	const json_t *first = json_array_get(item, 0);
	size_t length = strlen(r->place), positions = (size_t)s->height * (size_t)s->width;

	if (!json_is_array(item))
		return ls_fail(LS_EFORMAT, "%s is not a list; expected %zu numbers, %dx%dx%d", r->place, values_of(s),
			       s->channels, s->height, s->width);
	if (!json_is_array(first)) {
		if (json_array_size(item) != values_of(s))
			return ls_fail(LS_EFORMAT, "%s has %zu numbers; expected %zu, %dx%dx%d", r->place,
				       json_array_size(item), values_of(s), s->channels, s->height, s->width);
		return read_list(r, item, r->to, values_of(s));
	}
	if (s->channels == 1 && !json_is_array(json_array_get(first, 0)))
		return read_rows(r, item, r->to);
	if (json_array_size(item) != (size_t)s->channels)
		return ls_fail(LS_EFORMAT, "%s has %zu channels; expected %d", r->place, json_array_size(item),
			       s->channels);
	for (int c = 0; c < s->channels; c++) {
		snprintf(r->place + length, sizeof(r->place) - length, "[%d]", c);
		LS_TRY(read_rows(r, json_array_get(item, (size_t)c), r->to + (size_t)c * positions));
	}
	return LS_OK;
}

static ls_status read_inputs(ls_request *out, const ls_request_shape *shape, const json_t *list)
{
	out->numbers = calloc(out->count * values_of(shape), sizeof(*out->numbers));
	if (!out->numbers)
		return ls_fail(LS_EMEMORY, "no memory for %zu inputs", out->count);
	for (size_t i = 0; i < out->count; i++) {
		reading r = { .shape = shape, .to = out->numbers + i * values_of(shape) };
		snprintf(r.place, sizeof(r.place), "inputs[%zu]", i);
		LS_TRY(read_numbers(&r, json_array_get(list, i)));
	}
	return LS_OK;
}

/* ---- texts and files --------------------------------------------------------------------------------------------- */

static ls_status read_parts(ls_request *out, const char *name, const json_t *list)
{
	char place[64];

	out->part = calloc(out->count, sizeof(*out->part));
	if (!out->part)
		return ls_fail(LS_EMEMORY, "no memory for %zu inputs", out->count);
	for (size_t i = 0; i < out->count; i++) {
		const json_t *item = json_array_get(list, i);
		ls_request_bytes *part = &out->part[i];
		snprintf(place, sizeof(place), "%s[%zu]", name, i);
		if (!json_is_string(item))
			return ls_fail(LS_EFORMAT, "%s is not a string", place);
		part->bytes = json_string_value(item);
		part->size = json_string_length(item);
		if (out->kind == LS_REQUEST_TEXTS)
			continue;
		uint8_t *file = NULL;
		LS_TRY(ls_base64_decode(&file, &part->size, part->bytes, part->size, place));
		part->bytes = part->own = file;
	}
	return LS_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static ls_status read_objects(ls_request *out, const json_t *list)
{
	char shown[64];

	for (size_t i = 0; i < out->count; i++) {
		json_t *row = json_array_get(list, i), *value;
		const char *name;
		if (!json_is_object(row))
			return ls_fail(LS_EFORMAT, "rows[%zu] is not an object with a value per column", i);
		json_object_foreach(row, name, value)
		{
			if (json_is_object(value) || json_is_array(value))
				return ls_fail(LS_EFORMAT,
					       "rows[%zu]: '%s' is not a number, a text, true, false or null", i,
					       ls_text_printable(shown, sizeof(shown), name));
		}
	}
	out->rows = list;
	return LS_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	ls_request_kind kind;
	ls_request_input input;
} kinds[] = { { "inputs", LS_REQUEST_NUMBERS, LS_REQUEST_OF_IMAGES },
	      { "images", LS_REQUEST_IMAGES, LS_REQUEST_OF_IMAGES },
	      { "text", LS_REQUEST_TEXTS, LS_REQUEST_OF_TEXT },
	      { "rows", LS_REQUEST_ROWS, LS_REQUEST_OF_ROWS } };

static const struct {
	const char *name, *fields, *missing;
} inputs[] = {
	[LS_REQUEST_OF_IMAGES] = { "images", "\"inputs\" or \"images\"",
				   "neither \"inputs\", a list of images as numbers, nor \"images\", a list of files "
				   "in base64" },
	[LS_REQUEST_OF_TEXT] = { "text", "\"text\"", "no \"text\": a list of strings" },
	[LS_REQUEST_OF_ROWS] = { "rows of a table", "\"rows\"",
				 "no \"rows\": a list of objects with values of the columns " },
};

static ls_status find_list(ls_request *out, const ls_request_shape *shape, const char **name, const json_t **list)
{
	int found = 0;

	for (size_t i = 0; i < LS_COUNT(kinds); i++) {
		const json_t *item = json_object_get(out->root, kinds[i].name);
		if (!item)
			continue;
		if (kinds[i].input != shape->input)
			return ls_fail(LS_EFORMAT, "the model takes %s; expected %s, not \"%s\"",
				       inputs[shape->input].name, inputs[shape->input].fields, kinds[i].name);
		out->kind = kinds[i].kind;
		*name = kinds[i].name;
		*list = item;
		found++;
	}
	if (found > 1)
		return ls_fail(LS_EFORMAT, "the request has both \"inputs\" and \"images\"");
	if (found == 0)
		return ls_fail(LS_EFORMAT, "the request has %s%s", inputs[shape->input].missing,
			       shape->columns ? shape->columns : "");
	return LS_OK;
}

static ls_status read_settings(ls_request *out)
{
	const json_t *top = json_object_get(out->root, "top"), *values = json_object_get(out->root, "values");
	const char *said = json_string_value(values), *key;
	json_t *value;
	char shown[64];

	out->top = top ? json_integer_value(top) : 1;
	if (out->top < 1 || (top && !json_is_integer(top)))
		return ls_fail(LS_EFORMAT, "\"top\" is not a whole number of 1 or more");
	out->is_normalised = said && strcmp(said, "normalised") == 0;
	if (values && !(said && (out->is_normalised || strcmp(said, "pixels") == 0)))
		return ls_fail(LS_EFORMAT, "\"values\" is neither \"pixels\" nor \"normalised\"");
	json_object_foreach(out->root, key, value)
	{
		int is_known = strcmp(key, "top") == 0 || strcmp(key, "values") == 0;
		for (size_t i = 0; i < LS_COUNT(kinds); i++)
			is_known |= strcmp(key, kinds[i].name) == 0;
		if (!is_known)
			return ls_fail(LS_EFORMAT, "\"%s\" is not a field of a request",
				       ls_text_printable(shown, sizeof(shown), key));
	}
	return LS_OK;
}

static ls_status read_request(ls_request *out, const ls_request_shape *shape)
{
	const json_t *list = NULL;
	const char *name = NULL;

	if (!json_is_object(out->root))
		return ls_fail(LS_EFORMAT, "the request is not a JSON object");
	LS_TRY(find_list(out, shape, &name, &list));
	LS_TRY(read_settings(out));
	if (!json_is_array(list) || json_array_size(list) == 0)
		return ls_fail(LS_EFORMAT, "\"%s\" is not a list with at least one element", name);
	if (json_array_size(list) > LS_REQUEST_INPUTS_MAX)
		return ls_fail(LS_EFORMAT, "\"%s\" has %zu elements; at most %d are predicted per request", name,
			       json_array_size(list), LS_REQUEST_INPUTS_MAX);
	out->count = json_array_size(list);
	if (out->kind == LS_REQUEST_ROWS)
		return read_objects(out, list);
	return out->kind == LS_REQUEST_NUMBERS ? read_inputs(out, shape, list) : read_parts(out, name, list);
}

ls_status ls_request_from_json(ls_request *out, const ls_request_shape *shape, const void *body, size_t size)
{
	ls_request request = { 0 };

	LS_TRY(ls_json_parse(&request.root, body, size, BODY_MAX, "request"));
	ls_status status = read_request(&request, shape);
	if (request.kind != LS_REQUEST_TEXTS && request.kind != LS_REQUEST_ROWS) { /* copied */
		json_decref(request.root);
		request.root = NULL;
	}
	if (status == LS_OK)
		*out = request;
	else
		ls_request_release(&request);
	return status;
}

ls_status ls_request_from_image(ls_request *out, const ls_request_shape *shape, const void *body, size_t size)
{
	if (shape->input != LS_REQUEST_OF_IMAGES)
		return ls_fail(LS_EFORMAT, "the model takes %s, not images", inputs[shape->input].name);
	ls_request request = { .kind = LS_REQUEST_IMAGES, .count = 1, .top = 1 };
	request.part = calloc(1, sizeof(*request.part));
	if (!request.part)
		return ls_fail(LS_EMEMORY, "no memory for an image");
	request.part[0] = (ls_request_bytes){ .bytes = body, .size = size };
	*out = request;
	return LS_OK;
}
