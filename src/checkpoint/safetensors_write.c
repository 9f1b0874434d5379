/*
 * safetensors_write.c - write a safetensors file, one tensor in memory at a time.
 *
 * The header lists tensors in the order given. Their data is laid out by element size, largest first and otherwise in
 * the order given, and the header is padded with spaces to a multiple of DATA_ALIGNMENT: every element is aligned in
 * the file, for readers that map the file and use it in place. Memory: the header and the largest tensor.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "base/names.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shape.h"

#define DATA_ALIGNMENT 64

typedef struct writer {
	const char *path;
	const ls_st_tensor *tensors;
	size_t count;
	size_t *order;  /* (count) tensor at each place of the file */
	size_t *begin;  /* (count) data offset of each tensor */
	size_t *bytes;  /* (count) its size, from its shape */
	size_t largest; /* bytes of the largest tensor */
	char *header;   /* 8 bytes of length, then padded JSON */
	size_t header_bytes;
	XXH64_state_t *hash;
	ls_file_draft draft;
} writer;

static ls_status reject(const writer *w, const char *name, const char *why)
{
	char shown[LS_NAME_TEXT];
	return ls_fail(LS_EINVALID, "cannot write %s: tensor '%s' %s", w->path,
		       ls_text_printable(shown, sizeof(shown), name), why);
}

static ls_status measure(writer *w)
{
	for (size_t i = 0; i < w->count; i++) {
		const ls_st_tensor *tensor = &w->tensors[i];
		if (!*tensor->name || strcmp(tensor->name, "__metadata__") == 0)
			return reject(w, tensor->name, "has a name the format reserves");
		if (tensor->rank < 0 || tensor->rank > LS_ST_RANK_MAX)
			return reject(w, tensor->name, "has too many dimensions");
		if (!ls_shape_bytes(tensor->dtype, tensor->rank, tensor->shape, &w->bytes[i]))
			return reject(w, tensor->name, "has a negative or too large shape");
		if (w->bytes[i] > w->largest)
			w->largest = w->bytes[i];
	}
	return LS_OK;
}

/* Places by element size 8, 4, 2, 1: each run ends at a multiple of its own size, and so of the next. */
static ls_status lay_out(writer *w)
{
	size_t at = 0, place = 0;
	for (size_t element = 8; element; element /= 2) {
		for (size_t i = 0; i < w->count; i++) {
			if (ls_dtype_bytes(w->tensors[i].dtype) != element)
				continue;
			w->order[place++] = i;
			w->begin[i] = at;
			if (__builtin_add_overflow(at, w->bytes[i], &at) || at > INT64_MAX)
				return reject(w, w->tensors[i].name, "makes the file too large");
		}
	}
	return LS_OK;
}

static json_t *entry_json(const writer *w, size_t i)
{
	const ls_st_tensor *tensor = &w->tensors[i];
	json_t *shape = json_array();
	for (int k = 0; shape && k < tensor->rank; k++)
		json_array_append_new(shape, json_integer(tensor->shape[k]));
	return json_pack("{s:s, s:o, s:[I, I]}", "dtype", ls_dtype_name(tensor->dtype), "shape", shape, "data_offsets",
			 (json_int_t)w->begin[i], (json_int_t)(w->begin[i] + w->bytes[i]));
}

static ls_status add_metadata(const writer *w, json_t *header, const ls_st_pair *metadata, size_t pairs)
{
	json_t *object = json_object();
	json_object_set_new(header, "__metadata__", object);
	for (size_t i = 0; i < pairs; i++)
		if (json_object_set_new(object, metadata[i].key, json_string(metadata[i].value)))
			return ls_fail(LS_EINVALID, "cannot write %s: metadata '%s' is not UTF-8 text", w->path,
				       metadata[i].key);
	return LS_OK;
}

static ls_status describe(const writer *w, json_t *header, const ls_st_pair *metadata, size_t pairs)
{
	if (pairs)
		LS_TRY(add_metadata(w, header, metadata, pairs));
	for (size_t i = 0; i < w->count; i++) {
		if (json_object_get(header, w->tensors[i].name))
			return reject(w, w->tensors[i].name, "is given twice");
		if (json_object_set_new(header, w->tensors[i].name, entry_json(w, i)))
			return reject(w, w->tensors[i].name, "has a name that is not UTF-8, or memory ran out");
	}
	return LS_OK;
}

/* header = length, JSON, spaces. */
static ls_status make_header(writer *w, const ls_st_pair *metadata, size_t pairs)
{
	json_t *header = json_object();
	ls_status status = header ? describe(w, header, metadata, pairs)
				  : ls_fail(LS_EMEMORY, "no memory for the header of %s", w->path);
	if (status == LS_OK) {
		size_t text = json_dumpb(header, NULL, 0, JSON_COMPACT);
		w->header_bytes = (8 + text + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
		w->header = malloc(w->header_bytes);
		if (!text || !w->header) {
			status = ls_fail(LS_EMEMORY, "no memory for the header of %s", w->path);
		} else {
			uint64_t length = w->header_bytes - 8;
			memset(w->header, ' ', w->header_bytes);
			memcpy(w->header, &length, sizeof(length));
			json_dumpb(header, w->header + 8, text, JSON_COMPACT);
		}
	}
	json_decref(header);
	return status;
}

static ls_status put(writer *w, const void *data, size_t bytes)
{
	XXH64_update(w->hash, data, bytes);
	return ls_file_write(&w->draft, data, bytes);
}

static ls_status put_all(writer *w, ls_st_fill fill, void *context, void *buffer)
{
	LS_TRY(put(w, w->header, w->header_bytes));
	for (size_t place = 0; place < w->count; place++) {
		size_t i = w->order[place];
		if (!w->bytes[i])
			continue;
		LS_TRY(fill(context, i, buffer));
		LS_TRY(put(w, buffer, w->bytes[i]));
	}
	return LS_OK;
}

static ls_status write_draft(writer *w, ls_st_fill fill, void *context)
{
	void *buffer;
	size_t bytes = w->largest ? w->largest : 1;
	LS_TRY(ls_buffer_new(&buffer, bytes, "tensor being written"));
	ls_status status = ls_file_begin(&w->draft, w->path);
	if (status == LS_OK)
		status = ls_file_finish(&w->draft, put_all(w, fill, context, buffer));
	ls_buffer_free(buffer, bytes);
	return status;
}

static ls_status writer_init(writer *w)
{
	w->order = calloc(w->count + 1, sizeof(*w->order));
	w->begin = calloc(w->count + 1, sizeof(*w->begin));
	w->bytes = calloc(w->count + 1, sizeof(*w->bytes));
	w->hash = XXH64_createState();
	if (!w->order || !w->begin || !w->bytes || !w->hash)
		return ls_fail(LS_EMEMORY, "no memory to write the %zu tensors of %s", w->count, w->path);
	XXH64_reset(w->hash, 0);
	return LS_OK;
}

static void writer_release(writer *w)
{
	free(w->header);
	XXH64_freeState(w->hash);
	free(w->bytes);
	free(w->begin);
	free(w->order);
}

ls_status ls_st_write(const char *path, const ls_st_tensor *tensors, size_t count, const ls_st_pair *metadata,
		      size_t pairs, ls_st_fill fill, void *context, uint64_t *checksum)
{
	writer w = { .path = path, .tensors = tensors, .count = count };
	ls_status status = writer_init(&w);
	if (status == LS_OK)
		status = measure(&w);
	if (status == LS_OK)
		status = lay_out(&w);
	if (status == LS_OK)
		status = make_header(&w, metadata, pairs);
	if (status == LS_OK)
		status = write_draft(&w, fill, context);
	if (status == LS_OK && checksum)
		*checksum = XXH64_digest(w.hash);
	writer_release(&w);
	return status;
}
