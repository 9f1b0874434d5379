/*
 * Requests: every form of input, base64, and what is wrong with others. The end of connections and the answers are
 * tested by tests/cli/t0440-serve.sh.
 */
#include <stdlib.h>

#include "base/array.h"
#include "tools/serve/request.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

static const ls_request_shape grey = { .channels = 1, .height = 2, .width = 3 };
static const ls_request_shape colour = { .channels = 2, .height = 1, .width = 2 };
static const ls_request_shape text = { .input = LS_REQUEST_OF_TEXT };
static const ls_request_shape rows = {
	.input = LS_REQUEST_OF_ROWS, .channels = 3, .height = 1, .width = 1, .columns = "area, city"
};

static ls_status read(ls_request *out, const ls_request_shape *shape, const char *json)
{
	return ls_request_from_json(out, shape, json, strlen(json));
}

static void test_numbers(void **state)
{
	ls_request r;
	(void)state;
	assert_ok(
		read(&r, &grey, "{\"inputs\": [[1,2,3,4,5,6], [[1,2,3],[4,5,6]], [[[1,2,3],[4,5,6.5]]]], \"top\": 4}"));
	assert_int_equal(r.count, 3);
	assert_int_equal(r.top, 4);
	assert_false(r.is_normalised);
	for (int i = 0; i < 17; i++)
		assert_true(r.numbers[i] == (float)(i % 6 + 1));
	assert_true(r.numbers[17] == 6.5f);
	ls_request_release(&r);
	ls_request_release(&r);
	assert_ok(read(&r, &colour, "{\"inputs\": [[[[1,2]],[[3,4]]]], \"values\": \"normalised\"}"));
	assert_true(r.is_normalised && r.numbers[3] == 4);
	ls_request_release(&r);
}

static void test_texts(void **state)
{
	ls_request r;
	(void)state;
	assert_ok(read(&r, &text, "{\"text\": [\"a\\u00e9\", \"\"]}"));
	assert_int_equal(r.kind, LS_REQUEST_TEXTS);
	assert_int_equal(r.part[0].size, 3);
	assert_memory_equal(r.part[0].bytes, "a\xc3\xa9", 3);
	assert_int_equal(r.part[1].size, 0);
	ls_request_release(&r);
}

static void test_rows(void **state)
{
	static const struct {
		const char *json, *message;
	} bad[] = {
		{ "{}", "no \"rows\": a list of objects with values of the columns area, city" },
		{ "{\"rows\": {}}", "\"rows\" is not a list" },
		{ "{\"rows\": [{}, [1]]}", "rows[1] is not an object" },
		{ "{\"rows\": [{\"area\": [1]}]}", "rows[0]: 'area' is not a number" },
		{ "{\"inputs\": [[1, 2, 3]]}", "the model takes rows of a table; expected \"rows\", not \"inputs\"" },
		{ "{\"images\": [\"AA==\"]}", "expected \"rows\", not \"images\"" },
		{ "{\"text\": [\"a\"]}", "expected \"rows\", not \"text\"" },
	};
	ls_request r = { 0 };
	(void)state;
	assert_ok(read(&r, &rows, "{\"rows\": [{\"area\": 1.5, \"city\": null}, {\"city\": true}, {}]}"));
	assert_int_equal(r.kind, LS_REQUEST_ROWS);
	assert_int_equal(r.count, 3);
	assert_true(json_real_value(json_object_get(json_array_get(r.rows, 0), "area")) == 1.5);
	ls_request_release(&r);
	for (size_t i = 0; i < LS_COUNT(bad); i++)
		assert_fails(read(&r, &rows, bad[i].json), LS_EFORMAT, bad[i].message);
	assert_fails(ls_request_from_image(&r, &rows, "x", 1), LS_EFORMAT, "takes rows of a table, not images");
}

static void test_base64(void **state)
{
	static const struct {
		const char *text, *bytes;
	} good[] = { { "", "" },           { "QQ==", "A" },      { "QUI=", "AB" },          { "QUJD", "ABC" },
		     { "QUJDRA", "ABCD" }, { "Q U\nJD", "ABC" }, { "+/+/", "\xfb\xff\xbf" } };
	static const char *const bad[] = { "A", "QQ=A", "Q*==", "QUJDR", "QQ===", "Q\xc3" };
	uint8_t *bytes;
	size_t size;
	(void)state;
	for (size_t i = 0; i < LS_COUNT(good); i++) {
		assert_ok(ls_base64_decode(&bytes, &size, good[i].text, strlen(good[i].text), "x"));
		assert_int_equal(size, strlen(good[i].bytes));
		assert_memory_equal(bytes, good[i].bytes, size);
		free(bytes);
	}
	for (size_t i = 0; i < LS_COUNT(bad); i++)
		assert_fails(ls_base64_decode(&bytes, &size, bad[i], strlen(bad[i]), "images[3]"), LS_EFORMAT,
			     "images[3]: ");
	assert_fails(ls_base64_decode(&bytes, &size, "QQ\0A", 4, "x"), LS_EFORMAT, "character 3");
}

static void test_refusals(void **state)
{
	static const struct {
		const char *json, *message;
	} bad[] = {
		{ "", "not acceptable JSON" },
		{ "{\"inputs\": [[1,2,3,4,5,6]]} x", "not acceptable JSON" },
		{ "{\"inputs\": [[1]], \"inputs\": [[1]]}", "not acceptable JSON" },
		{ "[]", "not a JSON object" },
		{ "{}", "neither \"inputs\"" },
		{ "{\"inputs\": 5}", "\"inputs\" is not a list" },
		{ "{\"inputs\": [5]}", "inputs[0] is not a list; expected 6 numbers, 1x2x3" },
		{ "{\"inputs\": [[]]}", "inputs[0] has 0 numbers; expected 6" },
		{ "{\"inputs\": [[1,2,3,4,5,6,7]]}", "inputs[0] has 7 numbers" },
		{ "{\"inputs\": [[1,2,3,4,5,6],[1,2,3,4,5,true]]}", "inputs[1][5] is not a number" },
		{ "{\"inputs\": [[1,2,3,4,5,1e39]]}", "inputs[0][5] is larger than a float" },
		{ "{\"inputs\": [[[1,2,3]]]}", "inputs[0] has 1 rows; expected 2" },
		{ "{\"inputs\": [[[1,2,3],[4,5]]]}", "inputs[0][1] is not a list of 3 numbers" },
		{ "{\"inputs\": [[[1,2,3],4]]}", "inputs[0][1] is not a list of 3 numbers" },
		{ "{\"inputs\": [[[[1,2,3],[4,5,6]],[[1,2,3],[4,5,6]]]]}", "inputs[0] has 2 channels; expected 1" },
		{ "{\"inputs\": [[[[1,2,3],[4,5,\"6\"]]]]}", "inputs[0][0][1][2] is not a number" },
		{ "{\"inputs\": [[1,2,3,4,5,6]], \"values\": 3}", "\"values\" is neither" },
		{ "{\"inputs\": [[1,2,3,4,5,6]], \"top\": 1.5}", "\"top\" is not a whole number" },
		{ "{\"inputs\": [[1,2,3,4,5,6]], \"x\": 1}", "\"x\" is not a field" },
		{ "{\"text\": [\"a\"]}", "the model takes images; expected \"inputs\" or \"images\", not \"text\"" },
		{ "{\"rows\": [{}]}", "expected \"inputs\" or \"images\", not \"rows\"" },
		{ "{\"inputs\": [], \"images\": []}", "both \"inputs\" and \"images\"" },
		{ "{\"images\": [5]}", "images[0] is not a string" },
	};
	ls_request r = { 0 };
	(void)state;
	for (size_t i = 0; i < LS_COUNT(bad); i++) {
		assert_fails(read(&r, &grey, bad[i].json), LS_EFORMAT, bad[i].message);
		assert_null(r.numbers);
	}
	assert_fails(read(&r, &text, "{\"inputs\": [[1]]}"), LS_EFORMAT, "the model takes text; expected \"text\"");
	assert_fails(ls_request_from_image(&r, &text, "x", 1), LS_EFORMAT, "takes text");
}

TEST_MAIN(test_numbers, test_texts, test_rows, test_base64, test_refusals)
