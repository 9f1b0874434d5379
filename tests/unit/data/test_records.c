/*
 * Streams, plain and gzip, and the lines and records in them.
 */
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include "data/readers/records.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

enum { MOST = 1000 };

static const char *put(const char *dir, const char *text, size_t bytes, int members)
{
	static char path[TEMP_DIR_NAME + 8];
	snprintf(path, sizeof(path), "%s/file", dir);
	if (!members) {
		assert_ok(ls_file_put(path, text, bytes));
		return path;
	}
	unlink(path);
	for (int i = 0; i < members; i++) { /* parts of it, one gzip member each */
		size_t from = bytes * (size_t)i / (size_t)members, to = bytes * (size_t)(i + 1) / (size_t)members;
		gzFile out = gzopen(path, "ab");
		assert_int_equal(gzwrite(out, text + from, (unsigned)(to - from)), to - from);
		assert_int_equal(gzclose(out), Z_OK);
	}
	return path;
}

/* Records as text: fields in brackets, "line:[a][b];", errors as "!line;". */
static void read_all(const char *path, int is_csv, char *out, size_t size)
{
	ls_stream *stream = NULL;
	ls_records *records = NULL;
	ls_record r;
	uint64_t line;
	int found = 1;
	size_t used = 0;

	assert_ok(ls_stream_open(&stream, path));
	assert_ok(ls_records_new(&records, stream, is_csv ? ',' : 0, MOST));
	out[0] = '\0';
	while (found) {
		ls_status status = ls_records_next(records, &r, &found, &line);
		if (status != LS_OK) {
			assert_int_equal(status, LS_EFORMAT);
			used += (size_t)snprintf(out + used, size - used, "!%d;", (int)line);
			found = 1;
			continue;
		}
		if (!found)
			break;
		used += (size_t)snprintf(out + used, size - used, "%d:", (int)line);
		for (size_t i = 0; i < r.fields; i++) {
			assert_int_equal(strlen(r.field[i]), r.bytes[i]);
			used += (size_t)snprintf(out + used, size - used, "[%s]", r.field[i]);
		}
		used += (size_t)snprintf(out + used, size - used, ";");
	}
	ls_records_free(records);
	ls_stream_close(stream);
}

static void expect(const char *dir, int is_csv, const char *text, const char *expected)
{
	char found[4096];
	for (int members = 0; members < 3; members++) {
		read_all(put(dir, text, strlen(text), members), is_csv, found, sizeof(found));
		assert_string_equal(found, expected);
	}
}

static void test_lines(void **state)
{
	expect(*state, 0, "a\nb\r\n\nc", "1:[a];2:[b];3:[];4:[c];");
	expect(*state, 0,
	       "\xef\xbb\xbf"
	       "a,\"b\n",
	       "1:[a,\"b];");
	expect(*state, 0, "\n", "1:[];");
}

static void test_csv(void **state)
{
	expect(*state, 1, "a,b\n\n1, 2 \r\n", "1:[a][b];3:[1][ 2 ];");
	expect(*state, 1, "\"a,\"\"x\"\"\nb\",c\nd", "1:[a,\"x\"\nb][c];3:[d];");
	expect(*state, 1, ",\n\"\"\n,,x", "1:[][];3:[][][x];");
	expect(*state, 1, "\"a\"\r\n\"b\"", "1:[a];2:[b];");
}

static void test_bad_records_are_left_behind(void **state)
{
	char text[3 * MOST + 16], found[4096];
	expect(*state, 1, "a\nb\"c,d\ne\n\"f\"g\nh\n\"i\nj", "1:[a];!2;3:[e];!4;5:[h];!6;7:[j];");
	memset(text, 'x', sizeof(text));
	memcpy(text + 2 * MOST, "\nb\n", 4);
	read_all(put(*state, text, 2 * MOST + 3, 0), 0, found, sizeof(found));
	assert_string_equal(found, "!1;2:[b];");
}

/* The line of the quote is lost, and nothing else; the lines behind it count on. */
static void test_stray_quotes(void **state)
{
	expect(*state, 1, "a,b\n\"1,2\n3,4\n5,6\n", "1:[a][b];!2;3:[3][4];4:[5][6];");
	expect(*state, 1, "a,\"b\n3,\"x\"\n5,\"y\"\n", "!1;2:[3][x];3:[5][y];");
	expect(*state, 1, "\"a\nb\",\"c\nd,e\n\"f\ng\"\n", "!1;3:[d][e];4:[f\ng];");
	expect(*state, 1, "\"a\n\"b\n\"c\n\"d\n", "!1;!2;!3;!4;");
	expect(*state, 1, "x\n\"", "1:[x];!2;");

	char text[3 * MOST], found[65536];
	size_t used = (size_t)snprintf(text, sizeof(text), "\"");
	while (used < 2 * MOST)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "x\n");
	read_all(put(*state, text, used, 0), 1, found, sizeof(found));
	assert_memory_equal(found, "!1;2:[x];3:[x];", 15); /* a field that is too long: nor what follows it */
	char *last = strrchr(found, ':');
	assert_int_equal(strtol(last - 4, NULL, 10), MOST);

	ls_stream *stream = NULL;
	ls_records *records = NULL;
	ls_record r;
	uint64_t line;
	int is_found;
	assert_ok(ls_stream_open(&stream, put(*state, "a\nb,\"c\nd\ne", 10, 0)));
	assert_ok(ls_records_new(&records, stream, ',', MOST));
	assert_ok(ls_records_next(records, &r, &is_found, &line));
	assert_fails(
		ls_records_next(records, &r, &is_found, &line), LS_EFORMAT,
		"file:2: the quote that a field begins with is never closed; 2 more lines would belong to the field");
	ls_records_free(records);
	ls_stream_close(stream);
}

static void test_records_of_lines(void **state)
{
	ls_stream *stream = NULL;
	ls_records *records = NULL;
	ls_record r;
	uint64_t line;
	int found;
	static const uint64_t lines[] = { 1, 3, 1, 2 };

	assert_ok(ls_stream_open(&stream, put(*state, "a\n\"b\n\nc\"\nd\n\"e\nf\"", 16, 0)));
	assert_ok(ls_records_new(&records, stream, ',', MOST));
	for (size_t i = 0; i < 4; i++) {
		assert_ok(ls_records_next(records, &r, &found, &line));
		assert_int_equal(r.lines, lines[i]);
	}
	ls_records_free(records);
	ls_stream_close(stream);
}

static void test_streams_end(void **state)
{
	const char *path = put(*state, "some text that is packed", 24, 1);
	char text[64];
	size_t got;
	ls_stream *stream = NULL;
	ls_file_map map;

	assert_ok(ls_file_map_open(&map, path));
	assert_true(map.bytes > 20);
	assert_int_equal(truncate(path, (off_t)map.bytes - 5), 0);
	ls_file_map_close(&map);
	assert_ok(ls_stream_open(&stream, path));
	ls_status status = LS_OK;
	for (got = 1; status == LS_OK && got > 0;)
		status = ls_stream_read(stream, text, sizeof(text), &got);
	assert_fails(status, LS_EFORMAT, "cut short");
	ls_stream_close(stream);
	assert_fails(ls_stream_open(&stream, "/nowhere/file"), LS_ENOTFOUND, "/nowhere/file");
	assert_fails(ls_stream_open(&stream, *state), LS_EFORMAT, "is a directory");
}

static void test_peek_and_take(void **state)
{
	enum { BYTES = 200000 };
	char *text = malloc(BYTES);
	const uint8_t *bytes;
	uint8_t *all;
	size_t got;
	for (int members = 0; members < 4; members++) {
		for (size_t i = 0; i < BYTES; i++)
			text[i] = (char)(i * 31 % 253);
		ls_stream *stream = NULL;
		assert_ok(ls_stream_open(&stream, put(*state, text, BYTES, members)));
		assert_ok(ls_stream_peek(stream, &bytes, 8, &got));
		assert_int_equal(got, 8);
		assert_memory_equal(bytes, text, 8);
		assert_ok(ls_stream_peek(stream, &bytes, 60, &got));
		assert_memory_equal(bytes, text, 60);
		assert_ok(ls_stream_take(stream, &all, &got, BYTES));
		assert_int_equal(got, BYTES);
		assert_memory_equal(all, text, BYTES);
		free(all);
		ls_stream_close(stream);
		assert_ok(ls_stream_open(&stream, put(*state, text, BYTES, members)));
		assert_fails(ls_stream_take(stream, &all, &got, BYTES / 3), LS_EFORMAT, "more than");
		ls_stream_close(stream);
	}
	free(text);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_lines, test_csv, test_bad_records_are_left_behind,
	       test_stray_quotes, test_records_of_lines, test_streams_end, test_peek_and_take)
