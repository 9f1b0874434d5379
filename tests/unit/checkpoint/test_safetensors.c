/*
 * Files that Lockstep writes, read back by its own reader and by a second one that takes nothing for granted.
 */
#include "support.h"

#include <jansson.h>
#include <xxhash.h>

#include "checkpoint/safetensors.h"
#include "unit/test_main.h"

/* Given in an order that would misalign the I64 and the F64 if the data followed it. */
static const ls_st_tensor given[] = {
	{ .name = "bytes", .dtype = LS_U8, .rank = 1, .shape = { 3 } },
	{ .name = "odd.weight", .dtype = LS_F32, .rank = 3, .shape = { 3, 1, 5 } },
	{ .name = "count", .dtype = LS_I64, .rank = 0 },
	{ .name = "halves", .dtype = LS_BF16, .rank = 2, .shape = { 1, 3 } },
	{ .name = "nothing", .dtype = LS_F32, .rank = 2, .shape = { 0, 7 } },
	{ .name = "deep", .dtype = LS_F64, .rank = 8, .shape = { 1, 2, 1, 1, 1, 1, 1, 1 } },
	{ .name = "caf\xc3\xa9 \"quoted\"", .dtype = LS_F16, .rank = 1, .shape = { 1 } },
};
enum { GIVEN = sizeof(given) / sizeof(given[0]) };
static const size_t given_bytes[GIVEN] = { 3, 60, 8, 6, 0, 16, 2 };
static const ls_st_pair metadata[] = { { "format", "pt" }, { "note", "line\nbreak" } };

static ls_status fill(void *context, size_t i, void *data)
{
	int *calls = context;
	calls[i]++;
	for (size_t k = 0; k < given_bytes[i]; k++)
		((uint8_t *)data)[k] = (uint8_t)(16 * i + k);
	return LS_OK;
}

static const char *write_given(char path[2048], const scratch *s, uint64_t *checksum)
{
	int calls[GIVEN] = { 0 };
	join(path, s->path, "given.safetensors");
	if (ls_st_write(path, given, GIVEN, metadata, 2, fill, calls, checksum) != LS_OK)
		fail_msg("%s", ls_last_error());
	for (size_t i = 0; i < GIVEN; i++)
		assert_int_equal(calls[i], given_bytes[i] ? 1 : 0);
	return path;
}

static void round_trip(void **state)
{
	char path[2048];
	ls_st_reader *reader;
	assert_int_equal(ls_st_open(&reader, write_given(path, *state, NULL)), LS_OK);
	assert_int_equal(ls_st_count(reader), GIVEN);
	for (size_t i = 0; i < GIVEN; i++) {
		const ls_st_tensor *t = ls_st_at(reader, i);
		assert_ptr_equal(ls_st_find(reader, given[i].name), t);
		assert_string_equal(t->name, given[i].name);
		assert_int_equal(t->dtype, given[i].dtype);
		assert_int_equal(t->rank, given[i].rank);
		assert_memory_equal(t->shape, given[i].shape, sizeof(t->shape));
		assert_int_equal(t->bytes, given_bytes[i]);
		assert_int_equal((uintptr_t)t->data % ls_dtype_bytes(t->dtype), 0);
		for (size_t k = 0; k < t->bytes; k++)
			assert_int_equal(((const uint8_t *)t->data)[k], (uint8_t)(16 * i + k));
	}
	assert_null(ls_st_at(reader, GIVEN));
	assert_null(ls_st_find(reader, "coun"));
	assert_null(ls_st_find(reader, "__metadata__"));
	assert_string_equal(ls_st_metadata(reader, "format"), "pt");
	assert_string_equal(ls_st_metadata(reader, "note"), "line\nbreak");
	assert_null(ls_st_metadata(reader, "model"));
	ls_st_close(reader);
}

/* By hand: length, JSON, offsets in order without holes up to the end of the file. */
static void second_reader(void **state)
{
	char path[2048];
	size_t bytes, end = 0;
	uint64_t length;
	write_given(path, *state, NULL);
	uint8_t *file = take_file(path, &bytes);
	memcpy(&length, file, 8);
	assert_true(length + 8 <= bytes);
	assert_int_equal((length + 8) % 64, 0);
	assert_int_equal(file[8], '{');
	json_t *header = json_loadb((char *)file + 8, length, JSON_REJECT_DUPLICATES, NULL);
	assert_int_equal(json_object_size(header), GIVEN + 1);
	assert_string_equal(json_string_value(json_object_get(json_object_get(header, "__metadata__"), "format")),
			    "pt");
	for (size_t i = 0; i < GIVEN; i++) {
		json_t *entry = json_object_get(header, given[i].name),
		       *offsets = json_object_get(entry, "data_offsets");
		assert_string_equal(json_string_value(json_object_get(entry, "dtype")), ls_dtype_name(given[i].dtype));
		assert_int_equal(json_array_size(json_object_get(entry, "shape")), given[i].rank);
		size_t first = (size_t)json_integer_value(json_array_get(offsets, 0));
		size_t last = (size_t)json_integer_value(json_array_get(offsets, 1));
		assert_int_equal(last - first, given_bytes[i]);
		assert_int_equal(first % ls_dtype_bytes(given[i].dtype), 0);
		for (size_t k = 0; k < given_bytes[i]; k++)
			assert_int_equal(file[8 + length + first + k], (uint8_t)(16 * i + k));
		end += last - first;
	}
	assert_int_equal(8 + length + end, bytes);
	json_decref(header);
	free(file);
}

/* Data starts at a multiple of 64 bytes however long the header is. */
static void data_is_aligned(void **state)
{
	const scratch *s = *state;
	char path[2048], note[80] = "";
	join(path, s->path, "aligned.safetensors");
	for (size_t length = 0; length < 66; length++) {
		ls_st_pair pair = { "note", note };
		int calls[GIVEN] = { 0 };
		size_t bytes;
		uint64_t header;
		memset(note, 'x', length);
		assert_int_equal(ls_st_write(path, given, GIVEN, &pair, 1, fill, calls, NULL), LS_OK);
		uint8_t *file = take_file(path, &bytes);
		memcpy(&header, file, 8);
		free(file);
		assert_int_equal((8 + header) % 64, 0);
	}
}

static void checksum_is_of_the_file(void **state)
{
	char path[2048];
	uint64_t checksum = 0;
	size_t bytes;
	write_given(path, *state, &checksum);
	uint8_t *file = take_file(path, &bytes);
	assert_true(checksum == XXH64(file, bytes, 0));
	free(file);
}

static void empty_file_of_tensors(void **state)
{
	const scratch *s = *state;
	char path[2048];
	ls_st_reader *reader;
	join(path, s->path, "none.safetensors");
	assert_int_equal(ls_st_write(path, NULL, 0, NULL, 0, fill, NULL, NULL), LS_OK);
	assert_int_equal(ls_st_open(&reader, path), LS_OK);
	assert_int_equal(ls_st_count(reader), 0);
	assert_null(ls_st_find(reader, "x"));
	assert_null(ls_st_metadata(reader, "format"));
	ls_st_close(reader);
}

static void writer_refuses(void **state)
{
	static const struct {
		ls_st_tensor tensors[2];
		size_t count;
		const char *expect;
	} cases[] = {
		{ { { .name = "", .dtype = LS_F32 } }, 1, "reserves" },
		{ { { .name = "__metadata__", .dtype = LS_F32 } }, 1, "reserves" },
		{ { { .name = "twice", .dtype = LS_F32 }, { .name = "twice", .dtype = LS_F32 } },
		  2,
		  "'twice' is given twice" },
		{ { { .name = "flat", .dtype = LS_F32, .rank = 9 } }, 1, "too many dimensions" },
		{ { { .name = "neg", .dtype = LS_F32, .rank = 1, .shape = { -1 } } }, 1, "negative or too large" },
		{ { { .name = "big", .dtype = LS_F32, .rank = 1, .shape = { INT64_MAX } } },
		  1,
		  "negative or too large" },
		{ { { .name = "a\xff", .dtype = LS_F32 } }, 1, "not UTF-8" },
	};
	const scratch *s = *state;
	char path[2048];
	int calls[GIVEN] = { 0 };
	join(path, s->path, "refused.safetensors");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ls_st_write(path, cases[i].tensors, cases[i].count, NULL, 0, fill, calls, NULL),
				 LS_EINVALID);
		assert_mentions(cases[i].expect);
		assert_false(ls_path_exists(path));
	}
}

static ls_status fill_fails(void *context, size_t i, void *data)
{
	(void)context, (void)data;
	return i == 1 ? ls_fail(LS_ENUMERIC, "no data today") : LS_OK;
}

static void failing_source_leaves_old_file(void **state)
{
	char path[2048];
	size_t before, after;
	write_given(path, *state, NULL);
	uint8_t *old = take_file(path, &before);
	assert_int_equal(ls_st_write(path, given, GIVEN, NULL, 0, fill_fails, NULL, NULL), LS_ENUMERIC);
	assert_mentions("no data today");
	uint8_t *now = take_file(path, &after);
	assert_int_equal(before, after);
	assert_memory_equal(old, now, before);
	free(now);
	free(old);
}

static void missing_file(void **state)
{
	const scratch *s = *state;
	char path[2048];
	ls_st_reader *reader = NULL;
	assert_int_equal(ls_st_open(&reader, join(path, s->path, "absent.safetensors")), LS_ENOTFOUND);
	assert_mentions("absent.safetensors");
	assert_int_equal(ls_st_open(&reader, s->path), LS_EIO);
	assert_null(reader);
}

TEST_MAIN_EACH(scratch_make, scratch_remove, round_trip, data_is_aligned, second_reader, checksum_is_of_the_file,
	       empty_file_of_tensors, writer_refuses, missing_file, failing_source_leaves_old_file)
