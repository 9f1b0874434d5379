/*
 * IDX and gzip: what is right is read, and everything that is wrong is named.
 */
#include "unit/data/fixture.h"

#include "base/memory.h"
#include "data/readers/gzip.h"
#include "unit/test_main.h"

static const uint32_t image_dims[] = { 20, 6, 5 };

static ls_status load(const uint8_t *data, size_t bytes)
{
	ls_idx_file file;
	ls_status status = ls_idx_load(&file, data, bytes, "some-file");
	if (!status)
		ls_idx_close(&file);
	return status;
}

static void plain_is_mapped_and_gzip_inflated(void **state)
{
	const char *plain = in_dir(*state, "a"), *packed = in_dir(*state, "b");
	put_idx(plain, 3, image_dims, fill_pixels, 0);
	put_idx(packed, 3, image_dims, fill_pixels, 1);
	ls_idx_file a, b;
	assert_ok(ls_idx_open(&a, plain));
	assert_ok(ls_idx_open(&b, packed));
	assert_null(a.inflated);
	assert_ptr_equal(a.idx.data, a.map.data + 16);
	assert_non_null(b.inflated);
	assert_int_equal(a.idx.elements, 600);
	assert_memory_equal(a.idx.dims, image_dims, sizeof(image_dims));
	assert_memory_equal(b.idx.dims, image_dims, sizeof(image_dims));
	for (size_t i = 0; i < 600; i++)
		assert_int_equal(a.idx.data[i], fill_pixels(i));
	assert_memory_equal(a.idx.data, b.idx.data, 600);
	ls_idx_close(&b);
	ls_idx_close(&a);
	ls_idx_close(&a);
}

static void missing_and_empty_files(void **state)
{
	ls_idx_file file;
	assert_int_not_equal(ls_idx_open(&file, in_dir(*state, "absent")), LS_OK);
	assert_non_null(strstr(ls_last_error(), "absent"));
	put_file(in_dir(*state, "empty"), "", 0);
	assert_fails(ls_idx_open(&file, in_dir(*state, "empty")), LS_EFORMAT, "empty: 0 bytes is too short");
}

static void headers_are_not_believed(void **state)
{
	(void)state;
	size_t bytes;
	uint8_t *idx = idx_bytes(3, image_dims, fill_pixels, &bytes);
	uint8_t *bad = malloc(bytes);
	struct {
		size_t at;
		uint8_t value;
		const char *text;
	} cases[] = {
		{ 0, 0x89, "not an IDX file: it begins with 89 00 08 03" },
		{ 1, 1, "not an IDX file" },
		{ 2, 0x0d, "element type 0x0d (float), expected 0x08" },
		{ 2, 0x77, "element type 0x77 (unknown)" },
		{ 3, 0, "0 dimensions" },
		{ 3, 2, "2 dimensions" },
		{ 3, 200, "200 dimensions" },
		{ 3, 1, "bytes too many" },
		{ 7, 0, "dimension 0 is 0" },
		{ 7, 21, "truncated: 616 bytes, but its header declares 646" },
		{ 7, 19, "30 bytes too many: 616, but its header declares 586" },
		{ 4, 0xff, "truncated" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(bad, idx, bytes);
		bad[cases[i].at] = cases[i].value;
		assert_fails(load(bad, bytes), LS_EFORMAT, cases[i].text);
		assert_non_null(strstr(ls_last_error(), "some-file"));
	}
	memcpy(bad, idx, bytes);
	memset(bad + 4, 0xff, 12);
	assert_fails(load(bad, bytes), LS_EFORMAT, "more elements than can exist");
	ls_idx_encode(bad, 3, (uint32_t[]){ 1u << 30, 1u << 30, 16 }); /* 2^64: wraps to nothing */
	assert_fails(load(bad, 16), LS_EFORMAT, "more elements than can exist");
	free(bad);
	free(idx);
}

static void every_truncation_is_noticed(void **state)
{
	(void)state;
	size_t bytes, packed_bytes;
	uint8_t *idx = idx_bytes(3, image_dims, fill_pixels, &bytes);
	uint8_t *packed = gzip_bytes(idx, bytes, &packed_bytes);
	assert_ok(load(idx, bytes));
	assert_ok(load(packed, packed_bytes));
	for (size_t cut = 0; cut < bytes; cut++)
		assert_int_equal(load(idx, cut), LS_EFORMAT);
	for (size_t cut = 0; cut < packed_bytes; cut++)
		assert_int_equal(load(packed, cut), LS_EFORMAT);
	assert_fails(load(packed, packed_bytes - 1), LS_EFORMAT, "gzip data is truncated: it stops at byte");
	free(packed);
	free(idx);
}

/* Padding bits between blocks mean nothing; any other flipped bit is found by the trailer's CRC at the latest. */
static void every_damaged_byte_of_gzip_is_noticed(void **state)
{
	(void)state;
	size_t bytes, packed_bytes, harmless = 0;
	uint8_t *idx = idx_bytes(3, image_dims, fill_pixels, &bytes);
	uint8_t *packed = gzip_bytes(idx, bytes, &packed_bytes);
	for (size_t i = 10; i < packed_bytes; i++) {
		ls_idx_file file;
		packed[i] ^= 0x10;
		if (ls_idx_load(&file, packed, packed_bytes, "some-file") == LS_OK) {
			assert_memory_equal(file.idx.data, idx + 16, 600);
			ls_idx_close(&file);
			harmless++;
		}
		packed[i] ^= 0x10;
	}
	assert_true(harmless <= 2);
	packed[packed_bytes - 8] ^= 1;
	assert_fails(load(packed, packed_bytes), LS_EFORMAT, "damaged near byte");
	assert_non_null(strstr(ls_last_error(), "incorrect data check"));
	free(packed);
	free(idx);
}

static void gzip_with_more_behind(void **state)
{
	(void)state;
	size_t bytes, packed_bytes, rest_bytes;
	uint8_t *idx = idx_bytes(1, (uint32_t[]){ 100 }, fill_digits, &bytes);
	uint8_t *packed = gzip_bytes(idx, bytes, &packed_bytes);
	uint8_t *longer = malloc(packed_bytes + 3);
	memcpy(longer, packed, packed_bytes);
	memcpy(longer + packed_bytes, "abc", 3);
	assert_fails(load(longer, packed_bytes + 3), LS_EFORMAT, "3 bytes of something else follow");
	free(longer);
	free(packed);

	/* two members one after the other are one file */
	packed = gzip_bytes(idx, 50, &packed_bytes);
	uint8_t *rest = gzip_bytes(idx + 50, bytes - 50, &rest_bytes);
	longer = malloc(packed_bytes + rest_bytes);
	memcpy(longer, packed, packed_bytes);
	memcpy(longer + packed_bytes, rest, rest_bytes);
	ls_idx_file file;
	assert_ok(ls_idx_load(&file, longer, packed_bytes + rest_bytes, "two"));
	assert_memory_equal(file.idx.data, idx + 8, 100);
	ls_idx_close(&file);
	free(longer);
	free(rest);
	free(packed);
	free(idx);
}

static void bombs_cost_what_the_header_declares(void **state)
{
	(void)state;
	/* 8 MB of zeros behind a header that declares 4 labels */
	size_t plain_bytes = 8 << 20, bytes;
	uint8_t *plain = calloc(1, plain_bytes);
	ls_idx_encode(plain, 1, (uint32_t[]){ 4 });
	uint8_t *packed = gzip_bytes(plain, plain_bytes, &bytes);
	assert_fails(load(packed, bytes), LS_EFORMAT, "decompresses to more than the 12 bytes");
	free(packed);

	/* a header that declares far more than so little gzip can hold: refused before any memory is taken */
	ls_idx_encode(plain, 3, (uint32_t[]){ 4000000000u, 28, 28 });
	packed = gzip_bytes(plain, 100, &bytes);
	assert_fails(load(packed, bytes), LS_EFORMAT, "more than");
	assert_non_null(strstr(ls_last_error(), "bytes of gzip can hold"));
	free(packed);

	/* believable, but not there */
	ls_idx_encode(plain, 3, (uint32_t[]){ 10, 28, 28 });
	packed = gzip_bytes(plain, 100, &bytes);
	assert_fails(load(packed, bytes), LS_EFORMAT, "truncated: 100 bytes, but its header declares 7856");
	free(packed);
	free(plain);
}

/* As many bytes of gzip as could hold more than the memory there is. */
static void more_than_memory_is_refused_at_once(void **state)
{
	(void)state;
	uint64_t declared = ls_memory_available() + ((uint64_t)1 << 30);
	size_t bytes = (size_t)(declared / LS_GZIP_RATIO_MAX) + 4096, packed_bytes;
	if (bytes > 100 << 20) {
		print_message("too much memory here\n");
		skip();
	}
	uint8_t *plain = malloc(bytes);
	for (size_t i = 0; i < bytes; i++)
		plain[i] = (uint8_t)ls_mix64(i);
	ls_idx_encode(plain, 4, (uint32_t[]){ (uint32_t)(declared >> 20) + 1, 4, 512, 512 });
	uint8_t *packed = gzip_bytes(plain, bytes, &packed_bytes);
	assert_fails(load(packed, packed_bytes), LS_EMEMORY, "decompressed it would take");
	free(packed);
	free(plain);
}

static void headers_are_read_alone(void **state)
{
	ls_idx idx = { 0 };
	for (int gz = 0; gz < 2; gz++) {
		const char *path = in_dir(*state, gz ? "b" : "a");
		put_idx(path, 3, image_dims, fill_pixels, gz);
		assert_ok(ls_idx_peek(&idx, path));
		assert_int_equal(idx.rank, 3);
		assert_memory_equal(idx.dims, image_dims, sizeof(image_dims));
		assert_null(idx.data);
	}
	put_file(in_dir(*state, "c"), "none", 4);
	assert_fails(ls_idx_peek(&idx, in_dir(*state, "c")), LS_EFORMAT, "not an IDX file");
}

static void images_and_labels_are_told_apart(void **state)
{
	(void)state;
	ls_idx labels = { .rank = 1, .dims = { 60 } }, images = { .rank = 4, .dims = { 60, 3, 8, 8 } };
	assert_ok(ls_idx_expect_images(&images, "x"));
	assert_ok(ls_idx_expect_labels(&labels, "x"));
	assert_fails(ls_idx_expect_images(&labels, "train"), LS_EFORMAT, "train is a label file");
	assert_fails(ls_idx_expect_labels(&images, "train"), LS_EFORMAT, "train is an image file");
}

TEST_MAIN_EACH(fixture_enter, temp_dir_remove, plain_is_mapped_and_gzip_inflated, missing_and_empty_files,
	       headers_are_not_believed, every_truncation_is_noticed, every_damaged_byte_of_gzip_is_noticed,
	       gzip_with_more_behind, bombs_cost_what_the_header_declares, more_than_memory_is_refused_at_once,
	       headers_are_read_alone, images_and_labels_are_told_apart)
