/*
 * zips.h - ZIP archives made by hand for the tests.
 */
#ifndef LS_TEST_DATA_ZIPS_H
#define LS_TEST_DATA_ZIPS_H

#include "unit/data/fixture.h"

typedef struct zip_builder {
	uint8_t data[1 << 16], directory[4096];
	size_t bytes, directory_bytes;
	unsigned members;
} zip_builder;

static void zip_put(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/* A member, stored or deflated. Its local header has an extra field that the directory's entry has not. */
static void zip_add(zip_builder *zip, const char *name, const void *data, size_t bytes, int deflated)
{
	uint8_t packed[1 << 15], *local = zip->data + zip->bytes, *entry = zip->directory + zip->directory_bytes;
	size_t size = bytes, length = strlen(name);
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)bytes };
	memcpy(packed, data, bytes);
	if (deflated) {
		stream.next_out = packed;
		stream.avail_out = sizeof(packed);
		assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
		assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
		size = stream.total_out;
		deflateEnd(&stream);
	}
	memset(local, 0, 30);
	memset(entry, 0, 46);
	zip_put(local, 0x04034b50, 4);
	zip_put(local + 26, length, 2);
	zip_put(local + 28, 4, 2);
	memcpy(local + 30, name, length);
	memcpy(local + 30 + length, "xtra", 4);
	memcpy(local + 34 + length, packed, size);
	zip_put(entry, 0x02014b50, 4);
	zip_put(entry + 10, deflated ? 8 : 0, 2);
	zip_put(entry + 16, crc32(0, data, (uInt)bytes), 4);
	zip_put(entry + 20, size, 4);
	zip_put(entry + 24, bytes, 4);
	zip_put(entry + 28, length, 2);
	zip_put(entry + 42, zip->bytes, 4);
	memcpy(entry + 46, name, length);
	zip->bytes += 34 + length + size;
	zip->directory_bytes += 46 + length;
	zip->members++;
}

static void zip_finish(zip_builder *zip, const char *comment)
{
	uint8_t *end = zip->data + zip->bytes + zip->directory_bytes;
	memcpy(zip->data + zip->bytes, zip->directory, zip->directory_bytes);
	memset(end, 0, 22);
	zip_put(end, 0x06054b50, 4);
	zip_put(end + 8, zip->members, 2);
	zip_put(end + 10, zip->members, 2);
	zip_put(end + 12, zip->directory_bytes, 4);
	zip_put(end + 16, zip->bytes, 4);
	zip_put(end + 20, strlen(comment), 2);
	memcpy(end + 22, comment, strlen(comment));
	zip->bytes += zip->directory_bytes + 22 + strlen(comment);
}

#endif
