/*
 * png_writer.h - PNG files for tests, byte by byte, so that they may also be wrong.
 */
#ifndef LS_TESTS_PNG_WRITER_H
#define LS_TESTS_PNG_WRITER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct png_file {
	uint8_t *bytes;
	size_t size;
} png_file;

static inline void png_put32(png_file *f, uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		f->bytes[f->size++] = (uint8_t)(value >> shift);
}

static inline void png_chunk(png_file *f, const char *kind, const void *data, uint32_t size)
{
	png_put32(f, size);
	size_t begin = f->size;
	memcpy(f->bytes + f->size, kind, 4);
	if (size > 0)
		memcpy(f->bytes + f->size + 4, data, size);
	f->size += 4 + (size_t)size;
	png_put32(f, (uint32_t)crc32(0, f->bytes + begin, 4 + size));
}

/* The file with a chunk more behind its header. */
static inline png_file png_with(png_file f, const char *kind, const void *data, uint32_t size)
{
	enum { HEADER_END = 33 };
	png_file out = { (uint8_t *)malloc(f.size + 12 + size), HEADER_END };

	memcpy(out.bytes, f.bytes, HEADER_END);
	png_chunk(&out, kind, data, size);
	memcpy(out.bytes + out.size, f.bytes + HEADER_END, f.size - HEADER_END);
	out.size += f.size - HEADER_END;
	free(f.bytes);
	return out;
}

/* `colour` is 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA; `rows` is (height,
 * row_bytes), without filter bytes. */
static inline png_file png_make(uint32_t width, uint32_t height, uint8_t depth, uint8_t colour, const uint8_t *rows,
				size_t row_bytes, const uint8_t *palette, uint32_t colours)
{
	uLong raw_size = (uLong)(height * (row_bytes + 1)), packed_size = compressBound(raw_size);
	uint8_t *raw = calloc(1, raw_size + 1), *packed = malloc(packed_size);
	png_file f = { malloc(packed_size + 3 * (size_t)colours + 256), 0 }, header = { (uint8_t[13]){ 0 }, 0 };

	for (uint32_t y = 0; y < height; y++)
		memcpy(raw + y * (row_bytes + 1) + 1, rows + y * row_bytes, row_bytes);
	compress(packed, &packed_size, raw, raw_size);
	png_put32(&header, width);
	png_put32(&header, height);
	header.bytes[8] = depth;
	header.bytes[9] = colour;
	memcpy(f.bytes, "\x89PNG\r\n\x1a\n", 8);
	f.size = 8;
	png_chunk(&f, "IHDR", header.bytes, 13);
	if (palette)
		png_chunk(&f, "PLTE", palette, 3 * colours);
	png_chunk(&f, "IDAT", packed, (uint32_t)packed_size);
	png_chunk(&f, "IEND", NULL, 0);
	free(raw);
	free(packed);
	return f;
}

#endif
