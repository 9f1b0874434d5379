/*
 * safetensors_read.c - a safetensors file from anyone, checked before anything in it is used.
 *
 * What holds once ls_st_open*() has returned LS_OK:
 *  1. The header is one JSON object, at most HEADER_MAX bytes and TENSORS_MAX tensors, without duplicate keys; names
 *     are non-empty text.
 *  2. Every tensor has a known dtype, at most LS_ST_RANK_MAX sizes, and as many bytes as its shape says.
 *  3. In order of their offsets the tensors tile the data exactly: no overlap, no hole, nothing behind the last.
 *     They may start at any address: the format does not demand alignment, and real files are unaligned.
 * The parsed header stays alive with the reader: names and metadata point into it, tensor data into the file.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shape.h"

#define HEADER_MAX ((uint64_t)100 * 1000 * 1000) /* the reference implementation's limit */
#define METADATA "__metadata__"
enum { TENSORS_MAX = 100000, VALUES_MAX = 20 * TENSORS_MAX };

struct ls_st_reader {
	ls_file_map map; /* empty when the bytes are the caller's */
	char *label;
	json_t *header;
	const uint8_t *data; /* behind the header */
	size_t data_bytes;
	ls_st_tensor *tensors; /* (count) in the header's order */
	const ls_st_tensor **by_name;
	size_t count;
};

/* Fail with "FILE: tensor 'NAME': <text>"; with `name` NULL, without the tensor. */
__attribute__((format(printf, 3, 4))) static ls_status reject(const ls_st_reader *reader, const char *name,
							      const char *format, ...)
{
	char text[512], shown[LS_NAME_TEXT];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (!name)
		return ls_fail(LS_EFORMAT, "%s: %s", reader->label, text);
	return ls_fail(LS_EFORMAT, "%s: tensor '%s': %s", reader->label, ls_text_printable(shown, sizeof(shown), name),
		       text);
}

static ls_status parse_dtype(const ls_st_reader *reader, const char *name, const json_t *value, ls_dtype *out)
{
	char known[64], shown[LS_NAME_TEXT];
	if (!json_is_string(value))
		return reject(reader, name, "\"dtype\" is missing or not text");
	*out = ls_dtype_find(json_string_value(value));
	if (*out == LS_DTYPE_COUNT)
		return reject(reader, name, "unknown dtype '%s'; known are %s",
			      ls_text_printable(shown, sizeof(shown), json_string_value(value)),
			      ls_dtype_known(known, sizeof(known)));
	return LS_OK;
}

static ls_status parse_shape(const ls_st_reader *reader, const char *name, const json_t *value, ls_st_tensor *tensor)
{
	if (!json_is_array(value))
		return reject(reader, name, "\"shape\" is missing or not a list");
	size_t rank = json_array_size(value);
	if (rank > LS_ST_RANK_MAX)
		return reject(reader, name, "%zu dimensions; at most %d are supported", rank, LS_ST_RANK_MAX);
	tensor->rank = (int)rank;
	for (size_t i = 0; i < rank; i++) {
		const json_t *size = json_array_get(value, i);
		if (!json_is_integer(size) || json_integer_value(size) < 0)
			return reject(reader, name, "size %zu of its shape is not a whole number >= 0", i);
		tensor->shape[i] = json_integer_value(size);
	}
	return LS_OK;
}

/* Sets data and bytes from "data_offsets": [begin, end), counted from behind the header. */
static ls_status parse_offsets(const ls_st_reader *reader, const char *name, const json_t *value, ls_st_tensor *tensor)
{
	const json_t *first = json_array_get(value, 0), *last = json_array_get(value, 1);
	if (!json_is_array(value) || json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(last))
		return reject(reader, name, "\"data_offsets\" is missing or not a list of two whole numbers");
	int64_t begin = json_integer_value(first), end = json_integer_value(last);
	if (begin < 0 || end < begin)
		return reject(reader, name, "data offsets [%" PRId64 ", %" PRId64 ") are negative or reversed", begin,
			      end);
	if ((uint64_t)end > reader->data_bytes)
		return reject(reader, name,
			      "data offsets [%" PRId64 ", %" PRId64
			      ") reach outside the file's %zu bytes of data; is the "
			      "file truncated?",
			      begin, end, reader->data_bytes);
	tensor->data = reader->data + begin;
	tensor->bytes = (size_t)(end - begin);
	return LS_OK;
}

static ls_status parse_tensor(const ls_st_reader *reader, const char *name, const json_t *value, ls_st_tensor *tensor)
{
	char text[LS_SHAPE_TEXT];
	size_t bytes;
	if (!*name)
		return reject(reader, NULL, "a tensor has an empty name");
	if (!json_is_object(value))
		return reject(reader, name, "its header entry is not an object");
	tensor->name = name;
	LS_TRY(parse_dtype(reader, name, json_object_get(value, "dtype"), &tensor->dtype));
	LS_TRY(parse_shape(reader, name, json_object_get(value, "shape"), tensor));
	LS_TRY(parse_offsets(reader, name, json_object_get(value, "data_offsets"), tensor));
	ls_shape_text(text, sizeof(text), tensor->rank, tensor->shape);
	if (!ls_shape_bytes(tensor->dtype, tensor->rank, tensor->shape, &bytes))
		return reject(reader, name, "shape %s is too large", text);
	if (bytes != tensor->bytes)
		return reject(reader, name, "shape %s of %s needs %zu bytes, its data offsets hold %zu", text,
			      ls_dtype_name(tensor->dtype), bytes, tensor->bytes);
	return LS_OK;
}

static ls_status check_metadata(const ls_st_reader *reader)
{
	json_t *metadata = json_object_get(reader->header, METADATA), *value;
	const char *key;
	char shown[LS_NAME_TEXT];
	if (!metadata)
		return LS_OK;
	if (!json_is_object(metadata))
		return reject(reader, NULL, "\"" METADATA "\" is not an object");
	json_object_foreach(metadata, key, value) if (!json_is_string(value)) return reject(
		reader, NULL, "\"" METADATA "\" entry '%s' is not text", ls_text_printable(shown, sizeof(shown), key));
	return LS_OK;
}

static ls_status parse_tensors(ls_st_reader *reader)
{
	size_t entries = json_object_size(reader->header);
	reader->tensors = calloc(entries + 1, sizeof(*reader->tensors));
	reader->by_name = calloc(entries + 1, sizeof(*reader->by_name));
	if (!reader->tensors || !reader->by_name)
		return ls_fail(LS_EMEMORY, "%s: not enough memory for its %zu header entries", reader->label, entries);
	const char *name;
	json_t *value;
	json_object_foreach(reader->header, name, value)
	{
		if (strcmp(name, METADATA) == 0)
			continue;
		ls_st_tensor *tensor = &reader->tensors[reader->count];
		LS_TRY(parse_tensor(reader, name, value, tensor));
		reader->by_name[reader->count++] = tensor;
	}
	return LS_OK;
}

static const uint8_t *data_end(const ls_st_tensor *tensor)
{
	return (const uint8_t *)tensor->data + tensor->bytes;
}

/* By where they start, then by where they end, so that an empty tensor comes before what starts at its place. */
static int compare_places(const void *left, const void *right)
{
	const ls_st_tensor *a = *(const ls_st_tensor *const *)left, *b = *(const ls_st_tensor *const *)right;
	const uint8_t *first = a->data, *second = b->data;
	if (first != second)
		return first < second ? -1 : 1;
	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int compare_names(const void *left, const void *right)
{
	const ls_st_tensor *a = *(const ls_st_tensor *const *)left, *b = *(const ls_st_tensor *const *)right;
	return strcmp(a->name, b->name);
}

/* Invariant 3, on pointers sorted by place. */
static ls_status check_tiling(const ls_st_reader *reader, const ls_st_tensor *const *sorted)
{
	const uint8_t *at = reader->data, *end = reader->data + reader->data_bytes;
	char other[LS_NAME_TEXT];
	for (size_t i = 0; i < reader->count; i++) {
		const uint8_t *begin = sorted[i]->data;
		if (begin < at)
			return reject(reader, sorted[i]->name, "its data overlaps that of tensor '%s'",
				      ls_text_printable(other, sizeof(other), sorted[i - 1]->name));
		if (begin > at)
			return reject(reader, sorted[i]->name, "a hole of %zu bytes lies before its data",
				      (size_t)(begin - at));
		at = data_end(sorted[i]);
	}
	if (at != end)
		return reject(reader, NULL, "%zu bytes of data belong to no tensor", (size_t)(end - at));
	return LS_OK;
}

/* `by_name` serves for the check by place first. */
static ls_status check_and_sort(ls_st_reader *reader)
{
	qsort(reader->by_name, reader->count, sizeof(*reader->by_name), compare_places);
	LS_TRY(check_tiling(reader, reader->by_name));
	qsort(reader->by_name, reader->count, sizeof(*reader->by_name), compare_names);
	return LS_OK;
}

/* Estimate the size of the JSON before a parser spends seconds and gigabytes on it. Everything counts that is outside
 * of strings: '{' begins an object, and behind every ',' there is one more value. */
static ls_status check_amount(const ls_st_reader *reader, const char *text, size_t bytes)
{
	size_t objects = 0, values = 1;
	int quoted = 0;
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] == '"')
			quoted = !quoted;
		else if (quoted)
			i += text[i] == '\\';
		else
			objects += text[i] == '{', values += text[i] == ',';
	}
	if (objects > TENSORS_MAX + 2) /* the header's own, and the metadata's */
		return reject(reader, NULL, "the header has more than %d tensors, which is the limit", TENSORS_MAX);
	if (values > VALUES_MAX)
		return reject(reader, NULL, "the header has %zu values, over the limit of %d", values, VALUES_MAX);
	return LS_OK;
}

static ls_status parse_header(ls_st_reader *reader, const char *text, size_t bytes)
{
	json_error_t error;
	char shown[JSON_ERROR_TEXT_LENGTH];
	LS_TRY(check_amount(reader, text, bytes));
	reader->header = json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (!reader->header)
		return reject(reader, NULL, "the header is not acceptable JSON at byte %d: %s", error.position,
			      ls_text_printable(shown, sizeof(shown), error.text));
	if (!json_is_object(reader->header) || text[0] != '{')
		return reject(reader, NULL, "the header is not a JSON object that starts with '{'");
	LS_TRY(check_metadata(reader));
	LS_TRY(parse_tensors(reader));
	return check_and_sort(reader);
}

static ls_status parse_file(ls_st_reader *reader, const uint8_t *file, size_t bytes)
{
	uint64_t header;
	if (bytes < sizeof(header))
		return reject(reader, NULL, "%zu bytes are too few for a safetensors file", bytes);
	memcpy(&header, file, sizeof(header));
	if (header > HEADER_MAX)
		return reject(reader, NULL,
			      "the header would be %" PRIu64 " bytes, over the limit of %" PRIu64
			      "; is this a safetensors file?",
			      header, HEADER_MAX);
	if (header > bytes - sizeof(header))
		return reject(reader, NULL, "the header would be %" PRIu64 " bytes, but the file ends after %zu",
			      header, bytes - sizeof(header));
	reader->data = file + sizeof(header) + header;
	reader->data_bytes = bytes - sizeof(header) - (size_t)header;
	return parse_header(reader, (const char *)file + sizeof(header), (size_t)header);
}

static ls_status reader_new(ls_st_reader **out, const char *label)
{
	ls_st_reader *reader = calloc(1, sizeof(*reader));
	if (reader)
		reader->label = strdup(label);
	if (!reader || !reader->label) {
		free(reader);
		return ls_fail(LS_EMEMORY, "%s: not enough memory to open it", label);
	}
	*out = reader;
	return LS_OK;
}

ls_status ls_st_open_bytes(ls_st_reader **out, const void *data, size_t bytes, const char *label)
{
	ls_st_reader *reader = NULL;
	LS_TRY(reader_new(&reader, label));
	ls_status status = parse_file(reader, data, bytes);
	if (status != LS_OK)
		ls_st_close(reader);
	else
		*out = reader;
	return status;
}

ls_status ls_st_open(ls_st_reader **out, const char *path)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_st_open_bytes(out, map.data, map.bytes, path);
	if (status != LS_OK)
		return ls_file_map_end(&map, status);
	(*out)->map = map;
	return LS_OK;
}

ls_status ls_st_check(const ls_st_reader *reader)
{
	return ls_file_map_check(&reader->map);
}

void ls_st_close(ls_st_reader *reader)
{
	if (!reader)
		return;
	free(reader->by_name);
	free(reader->tensors);
	json_decref(reader->header);
	free(reader->label);
	if (reader->map.bytes)
		ls_file_map_close(&reader->map);
	free(reader);
}

size_t ls_st_count(const ls_st_reader *reader)
{
	return reader->count;
}

const ls_st_tensor *ls_st_at(const ls_st_reader *reader, size_t i)
{
	return i < reader->count ? &reader->tensors[i] : NULL;
}

const ls_st_tensor *ls_st_find(const ls_st_reader *reader, const char *name)
{
	ls_st_tensor wanted = { .name = name };
	const ls_st_tensor *key = &wanted;
	const ls_st_tensor **found =
		bsearch(&key, reader->by_name, reader->count, sizeof(*reader->by_name), compare_names);
	return found ? *found : NULL;
}

const char *ls_st_metadata(const ls_st_reader *reader, const char *key)
{
	return json_string_value(json_object_get(json_object_get(reader->header, METADATA), key));
}
