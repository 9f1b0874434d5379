/*
 * idx.c - parse IDX files, plain or gzip; every declared size is checked against the data.
 */
#include "data/readers/idx.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "data/readers/declared.h"
#include "data/readers/gzip.h"

#define TYPE_U8 0x08
#define TYPE_SHORT 0x0b
#define TYPE_INT 0x0c

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static const char *type_name(uint8_t type)
{
	switch (type) {
	case 0x09:
		return "signed byte";
	case TYPE_SHORT:
		return "short";
	case TYPE_INT:
		return "int";
	case 0x0d:
		return "float";
	case 0x0e:
		return "double";
	default:
		return "unknown";
	}
}

static int type_width(uint8_t type)
{
	return type == TYPE_SHORT ? 2 : type == TYPE_INT ? 4 : 1;
}

static ls_status magic_check(const uint8_t *data, size_t bytes, const char *name)
{
	if (bytes < 4)
		return ls_fail(LS_EFORMAT, "%s: %zu bytes is too short for an IDX file", name, bytes);
	if (data[0] || data[1])
		return ls_fail(LS_EFORMAT,
			       "%s: not an IDX file: it begins with %02x %02x %02x %02x, expected 00 00 08 ..", name,
			       data[0], data[1], data[2], data[3]);
	if (data[2] != TYPE_U8 && !(data[3] == 1 && type_width(data[2]) > 1))
		return ls_fail(LS_EFORMAT,
			       "%s: IDX element type 0x%02x (%s), expected 0x08 (unsigned byte; labels may also be of "
			       "0x0b, short, or 0x0c, int)",
			       name, data[2], type_name(data[2]));
	if (data[3] != 1 && data[3] != 3 && data[3] != 4)
		return ls_fail(LS_EFORMAT, "%s: IDX file with %d dimensions, expected 1 (labels), 3 or 4 (images)",
			       name, data[3]);
	return LS_OK;
}

ls_status ls_idx_header(ls_idx *out, const uint8_t *data, size_t bytes, const char *name, size_t *header_bytes)
{
	LS_TRY(magic_check(data, bytes, name));
	ls_idx idx = { .rank = data[3], .elements = 1, .width = type_width(data[2]) };
	size_t header = 4 + 4 * (size_t)idx.rank;
	if (bytes < header)
		return ls_fail(LS_EFORMAT, "%s: IDX header is truncated: %zu bytes, expected %zu", name, bytes, header);
	for (int i = 0; i < idx.rank; i++) {
		idx.dims[i] = big_endian(data + 4 + 4 * i);
		if (idx.dims[i] == 0)
			return ls_fail(LS_EFORMAT, "%s: IDX dimension %d is 0: the file holds nothing", name, i);
		if (__builtin_mul_overflow(idx.elements, idx.dims[i], &idx.elements) || idx.elements > INT64_MAX / 8)
			return ls_fail(LS_EFORMAT, "%s: IDX header declares more elements than can exist", name);
	}
	*out = idx;
	*header_bytes = header;
	return LS_OK;
}

ls_status ls_idx_parse(ls_idx *out, const uint8_t *data, size_t bytes, const char *name)
{
	ls_idx idx;
	size_t header;
	LS_TRY(ls_idx_header(&idx, data, bytes, name, &header));
	LS_TRY(ls_declared_check(name, bytes, header + idx.elements * (uint64_t)idx.width));
	idx.data = data + header;
	*out = idx;
	return LS_OK;
}

/* Inflate exactly the declared elements after the header, and check that the data ends there. */
static ls_status inflate_elements(ls_idx_file *file, ls_gzip *gzip, size_t header)
{
	const char *name = gzip->name;
	uint64_t content = file->idx.elements * (uint64_t)file->idx.width, declared = header + content;
	if (declared / LS_GZIP_RATIO_MAX > gzip->bytes)
		return ls_fail(LS_EFORMAT,
			       "%s: its header declares %" PRIu64 " bytes, more than %zu bytes of gzip can hold", name,
			       declared, gzip->bytes);
	ls_memory_limit limit = ls_memory_tightest();
	char limit_name[64];
	if (limit.left && declared > limit.left)
		return ls_fail(
			LS_EMEMORY,
			"%s: decompressed it would take %.2f GB of memory, and %.2f GB are left (%s); decompress "
			"the file (gunzip): a plain one is mapped, not loaded",
			name, (double)declared * 1e-9, (double)limit.left * 1e-9,
			ls_memory_limit_name(&limit, limit_name, sizeof(limit_name)));
	size_t wanted = (size_t)content, got = 0, extra = 0;
	uint8_t probe;
	LS_TRY(ls_buffer_new(&file->inflated, wanted, name));
	file->inflated_bytes = wanted;
	LS_TRY(ls_gzip_read(gzip, file->inflated, wanted, &got));
	if (got < wanted)
		return ls_fail(LS_EFORMAT,
			       "%s: decompressed data is truncated: %zu bytes, but its header declares %" PRIu64, name,
			       header + got, declared);
	LS_TRY(ls_gzip_read(gzip, &probe, 1, &extra));
	if (extra)
		return ls_fail(LS_EFORMAT, "%s: decompresses to more than the %" PRIu64 " bytes its header declares",
			       name, declared);
	file->idx.data = file->inflated;
	return LS_OK;
}

static ls_status gzip_header(ls_gzip *gzip, ls_idx *out, size_t *header_bytes)
{
	uint8_t header[LS_IDX_HEADER_MAX];
	size_t got = 0, rest = 0;
	LS_TRY(ls_gzip_read(gzip, header, 4, &got));
	LS_TRY(magic_check(header, got, gzip->name));
	LS_TRY(ls_gzip_read(gzip, header + 4, 4 * (size_t)header[3], &rest));
	return ls_idx_header(out, header, got + rest, gzip->name, header_bytes);
}

static ls_status load_gzip(ls_idx_file *file, const uint8_t *data, size_t bytes, const char *name)
{
	ls_gzip gzip;
	size_t header_bytes = 0;
	LS_TRY(ls_gzip_open(&gzip, data, bytes, name));
	ls_status status = gzip_header(&gzip, &file->idx, &header_bytes);
	if (!status)
		status = inflate_elements(file, &gzip, header_bytes);
	ls_gzip_close(&gzip);
	return status;
}

static ls_status peek_header(ls_idx *out, const ls_file_map *map, const char *name)
{
	ls_gzip gzip;
	size_t header_bytes;
	if (!ls_gzip_is(map->data, map->bytes))
		return ls_idx_header(out, map->data, map->bytes, name, &header_bytes);
	LS_TRY(ls_gzip_open(&gzip, map->data, map->bytes, name));
	ls_status status = gzip_header(&gzip, out, &header_bytes);
	ls_gzip_close(&gzip);
	return status;
}

ls_status ls_idx_peek(ls_idx *out, const char *path)
{
	ls_file_map map = { 0 };
	ls_idx idx = { 0 };
	LS_TRY(ls_file_map_open(&map, path));
	LS_TRY(ls_file_map_end(&map, peek_header(&idx, &map, path)));
	*out = idx;
	return LS_OK;
}

ls_status ls_idx_load(ls_idx_file *file, const uint8_t *data, size_t bytes, const char *name)
{
	ls_idx_file loaded = { 0 };
	ls_status status = ls_gzip_is(data, bytes) ? load_gzip(&loaded, data, bytes, name)
						   : ls_idx_parse(&loaded.idx, data, bytes, name);
	if (status) {
		ls_idx_close(&loaded);
		return status;
	}
	*file = loaded;
	return LS_OK;
}

ls_status ls_idx_open(ls_idx_file *file, const char *path)
{
	ls_file_map map = { 0 };
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_idx_load(file, map.data, map.bytes, path);
	if (status || file->inflated) {
		ls_status whole = ls_file_map_end(&map, status);
		if (!status && whole)
			ls_idx_close(file);
		return whole;
	}
	file->map = map;
	return LS_OK;
}

void ls_idx_close(ls_idx_file *file)
{
	if (file->inflated)
		ls_buffer_free(file->inflated, file->inflated_bytes);
	if (file->map.data)
		ls_file_map_close(&file->map);
	*file = (ls_idx_file){ 0 };
}

ls_status ls_idx_expect_images(const ls_idx *idx, const char *name)
{
	if (idx->rank == 1)
		return ls_fail(LS_EFORMAT, "%s is a label file (1 dimension, %u labels), expected images (3 or 4)",
			       name, idx->dims[0]);
	return LS_OK;
}

ls_status ls_idx_expect_labels(const ls_idx *idx, const char *name)
{
	if (idx->rank != 1)
		return ls_fail(LS_EFORMAT, "%s is an image file (%d dimensions, %u images), expected labels (1)", name,
			       idx->rank, idx->dims[0]);
	return LS_OK;
}

int32_t ls_idx_label(const ls_idx *labels, uint64_t i)
{
	const uint8_t *at = labels->data + i * (uint64_t)labels->width;
	switch (labels->width) {
	case 2:
		return (int16_t)(uint16_t)(at[0] << 8 | at[1]);
	case 4:
		return (int32_t)big_endian(at);
	default:
		return at[0];
	}
}

size_t ls_idx_encode(uint8_t header[LS_IDX_HEADER_MAX], int rank, const uint32_t *dims)
{
	memset(header, 0, LS_IDX_HEADER_MAX);
	header[2] = TYPE_U8;
	header[3] = (uint8_t)rank;
	for (int i = 0; i < rank && i < LS_IDX_RANK_MAX; i++)
		for (int b = 0; b < 4; b++)
			header[4 + 4 * i + b] = (uint8_t)(dims[i] >> (24 - 8 * b));
	return 4 + 4 * (size_t)rank;
}
