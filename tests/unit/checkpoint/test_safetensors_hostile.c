/*
 * Files from outside that must be refused, each with a message that says why; and odd ones that must not.
 */
#include "support.h"

#include "checkpoint/safetensors.h"
#include "unit/test_main.h"

typedef struct hostile {
	const char *header;
	size_t data; /* bytes behind the header */
	const char *expect;
} hostile;

#define F32(name, shape, offsets) "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const hostile cases[] = {
	/* not what it should be at all */
	{ "", 0, "not acceptable JSON" },
	{ "{", 0, "not acceptable JSON" },
	{ "hello", 0, "not acceptable JSON" },
	{ "{}x", 0, "not acceptable JSON" },
	{ "[]", 0, "not a JSON object" },
	{ "3", 0, "not a JSON object" },
	{ " {}", 0, "starts with '{'" },
	{ "{\"\xff\":1}", 0, "not acceptable JSON" },
	/* names */
	{ "{\"\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "empty name" },
	{ "{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "not acceptable JSON" },
	{ "{" F32("a", "[1]", "[0,4]") "," F32("a", "[1]", "[0,4]") "}", 4, "duplicate" },
	{ "{" F32("a", "[1]", "[0,4]") "," F32("\\u0061", "[1]", "[4,8]") "}", 8, "duplicate" },
	{ "{\"a\\u001b[2J\":{\"dtype\":\"Q4\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "'a?[2J'" },
	/* entries */
	{ "{\"a\":3}", 0, "tensor 'a': its header entry is not an object" },
	{ "{\"a\":{\"shape\":[],\"data_offsets\":[0,4]}}", 4, "\"dtype\" is missing" },
	{ "{\"a\":{\"dtype\":7,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "\"dtype\" is missing or not text" },
	{ "{\"a\":{\"dtype\":\"Q4\",\"shape\":[],\"data_offsets\":[0,4]}}", 4,
	  "unknown dtype 'Q4'; known are F32, F64, F16, BF16, I64, I32, U8" },
	{ "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "\"shape\" is missing" },
	{ "{" F32("a", "4", "[0,4]") "}", 4, "\"shape\" is missing or not a list" },
	{ "{" F32("a", "[-1]", "[0,4]") "}", 4, "not a whole number >= 0" },
	{ "{" F32("a", "[1.0]", "[0,4]") "}", 4, "not a whole number >= 0" },
	{ "{" F32("a", "[\"1\"]", "[0,4]") "}", 4, "not a whole number >= 0" },
	{ "{" F32("a", "[true]", "[0,4]") "}", 4, "not a whole number >= 0" },
	{ "{" F32("a", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "9 dimensions; at most 8" },
	{ "{" F32("a", "[18446744073709551617]", "[0,4]") "}", 4, "too big integer" },
	{ "{" F32("a", "[9223372036854775807]", "[0,4]") "}", 4, "too large" },
	{ "{" F32("a", "[4294967296,4294967296]", "[0,0]") "}", 0, "too large" },
	{ "{" F32("a", "[4611686018427387905]", "[0,4]") "}", 4, "too large" }, /* 4 bytes each wraps to 4 */
	{ "{" F32("a", "[0,4294967296,4294967296]", "[0,0]") "}", 0, "too large" },
	/* offsets */
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4, "\"data_offsets\" is missing" },
	{ "{" F32("a", "[1]", "[0]") "}", 4, "not a list of two" },
	{ "{" F32("a", "[1]", "[0,4,8]") "}", 4, "not a list of two" },
	{ "{" F32("a", "[1]", "[0,4.0]") "}", 4, "not a list of two" },
	{ "{" F32("a", "[1]", "{\"0\":0}") "}", 4, "not a list of two" },
	{ "{" F32("a", "[1]", "[4,0]") "}", 4, "negative or reversed" },
	{ "{" F32("a", "[1]", "[-4,0]") "}", 4, "negative or reversed" },
	{ "{" F32("a", "[1]", "[-9223372036854775808,9223372036854775807]") "}", 4, "negative or reversed" },
	{ "{" F32("a", "[2]", "[0,8]") "}", 7, "outside the file's 7 bytes" },
	{ "{" F32("a", "[1]", "[9223372036854775804,9223372036854775807]") "}", 4, "outside" },
	{ "{" F32("a", "[2]", "[0,4]") "}", 4, "shape (2) of F32 needs 8 bytes, its data offsets hold 4" },
	{ "{" F32("a", "[]", "[0,0]") "}", 0, "shape () of F32 needs 4 bytes" },
	{ "{" F32("a", "[0]", "[0,4]") "}", 4, "needs 0 bytes" },
	/* tiling */
	{ "{" F32("a", "[2]", "[0,8]") "," F32("b", "[2]", "[4,12]") "}", 12,
	  "tensor 'b': its data overlaps that of tensor 'a'" },
	{ "{" F32("a", "[2]", "[0,8]") "," F32("b", "[2]", "[0,8]") "}", 8, "overlaps" },
	{ "{" F32("a", "[2]", "[0,8]") "," F32("b", "[0]", "[4,4]") "}", 8, "overlaps" },
	{ "{" F32("a", "[1]", "[0,4]") "," F32("b", "[1]", "[8,12]") "}", 12, "tensor 'b': a hole of 4 bytes" },
	{ "{" F32("a", "[1]", "[4,8]") "}", 8, "a hole of 4 bytes" },
	{ "{" F32("a", "[0]", "[4,4]") "}", 4, "a hole of 4 bytes" },
	{ "{" F32("a", "[1]", "[0,4]") "}", 5, "1 bytes of data belong to no tensor" },
	{ "{}", 1, "belong to no tensor" },
	/* metadata */
	{ "{\"__metadata__\":3}", 0, "\"__metadata__\" is not an object" },
	{ "{\"__metadata__\":null}", 0, "\"__metadata__\" is not an object" },
	{ "{\"__metadata__\":{\"a\":1}}", 0, "entry 'a' is not text" },
	{ "{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0, "entry 'a' is not text" },
	{ "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate" },
};

/* On the heap and exactly as long as the file, so that a sanitizer sees a read past its end. */
static ls_status open_case(ls_st_reader **out, const char *header, uint64_t length, size_t data, uint8_t **bytes)
{
	size_t text = strlen(header), total = 8 + text + data;
	*bytes = calloc(1, total);
	memcpy(*bytes, &length, 8);
	memcpy(*bytes + 8, header, text);
	return ls_st_open_bytes(out, *bytes, total, "hostile.safetensors");
}

static void refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ls_st_reader *reader = NULL;
		uint8_t *bytes;
		ls_status status = open_case(&reader, cases[i].header, strlen(cases[i].header), cases[i].data, &bytes);
		free(bytes);
		if (status != LS_EFORMAT || reader)
			fail_msg("case %zu was taken: %s", i, cases[i].header);
		assert_mentions("hostile.safetensors");
		assert_mentions(cases[i].expect);
	}
}

/* Odd, but within the format: a float that starts at byte 1. */
static void unaligned_is_taken(void **state)
{
	(void)state;
	const char *header =
		"{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}," F32("a", "[1]", "[1,5]") "}";
	ls_st_reader *reader = NULL;
	uint8_t *bytes;
	float value = -1;
	assert_int_equal(open_case(&reader, header, strlen(header), 5, &bytes), LS_OK);
	assert_int_equal(ls_st_to_float(ls_st_find(reader, "a"), &value), LS_OK);
	ls_st_close(reader);
	free(bytes);
	assert_true(value == value);
}

static void bad_lengths(void **state)
{
	(void)state;
	static const struct {
		uint64_t length;
		const char *expect;
	} lengths[] = {
		{ 3, "but the file ends after 2" },
		{ 100000000, "but the file ends after 2" },
		{ 100000001, "over the limit of 100000000" },
		{ UINT64_MAX, "over the limit" },
		{ UINT64_MAX - 7, "over the limit" },
		{ 1, "not acceptable JSON" },
		{ 0, "not acceptable JSON" },
	};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		ls_st_reader *reader = NULL;
		uint8_t *bytes;
		assert_int_equal(open_case(&reader, "{}", lengths[i].length, 0, &bytes), LS_EFORMAT);
		assert_null(reader);
		assert_mentions(lengths[i].expect);
		free(bytes);
	}
}

static void too_short(void **state)
{
	(void)state;
	ls_st_reader *reader = NULL;
	for (size_t bytes = 0; bytes < 8; bytes++) {
		uint8_t *data = calloc(1, bytes + 1);
		assert_int_equal(ls_st_open_bytes(&reader, data, bytes, "short"), LS_EFORMAT);
		assert_mentions("too few");
		free(data);
	}
	assert_int_equal(ls_st_open_bytes(&reader, NULL, 0, "empty"), LS_EFORMAT);
	assert_null(reader);
}

/* Nesting deeper than any stack: refused by the JSON parser, not by a crash. */
static void deep_nesting(void **state)
{
	(void)state;
	enum { DEEP = 1 << 20 };
	char *text = malloc(DEEP + 1);
	ls_st_reader *reader = NULL;
	uint8_t *bytes;
	memset(text, '[', DEEP);
	text[DEEP] = 0;
	assert_int_equal(open_case(&reader, text, DEEP, 0, &bytes), LS_EFORMAT);
	free(bytes);
	free(text);
}

static const hostile fine[] = {
	{ "{}", 0, NULL },
	{ "{}      ", 0, NULL },
	{ "{\"__metadata__\":{}}", 0, NULL },
	{ "{" F32("a", "[1]", "[0,4]") "}\n\t ", 4, NULL },
	{ "{" F32("b", "[1]", "[4,8]") "," F32("a", "[1]", "[0,4]") "}", 8, NULL },
	{ "{" F32("a", "[0]", "[0,0]") "," F32("b", "[1]", "[0,4]") "," F32("c", "[0,5]", "[4,4]") "}", 4, NULL },
	{ "{" F32("a", "[]", "[0,4]") "}", 4, NULL },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"later\":\"field\"}}", 4, NULL },
};

static void taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		ls_st_reader *reader = NULL;
		uint8_t *bytes;
		if (open_case(&reader, fine[i].header, strlen(fine[i].header), fine[i].data, &bytes) != LS_OK)
			fail_msg("%s: %s", fine[i].header, ls_last_error());
		ls_st_close(reader);
		free(bytes);
	}
}

/* Every cut of a good file is refused: no length is trusted. */
static void every_truncation(void **state)
{
	(void)state;
	static const char header[] = "{" F32("a", "[2]", "[0,8]") "," F32("b", "[1]", "[8,12]") "}";
	ls_st_reader *reader = NULL;
	uint8_t *bytes;
	size_t total = 8 + strlen(header) + 12;
	assert_int_equal(open_case(&reader, header, strlen(header), 12, &bytes), LS_OK);
	ls_st_close(reader);
	for (size_t cut = 0; cut < total; cut++) {
		uint8_t *part = malloc(cut + !cut);
		memcpy(part, bytes, cut);
		ls_status status = ls_st_open_bytes(&reader, part, cut, "cut");
		free(part);
		assert_int_equal(status, LS_EFORMAT);
	}
	free(bytes);
}

/* Of a header with `count` tensors without data. */
static ls_status open_many(size_t count, const char *shape)
{
	ls_st_reader *reader = NULL;
	uint8_t *bytes;
	char *header = NULL;
	size_t length = 0;
	FILE *to = open_memstream(&header, &length);
	assert_non_null(to);
	for (size_t i = 0; i < count; i++)
		fprintf(to, "%c\"t,{%zu\\\"{\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[0,0]}",
			i ? ',' : '{', i, shape);
	fputs("}", to);
	assert_int_equal(fclose(to), 0);
	ls_status status = open_case(&reader, header, length, 0, &bytes);
	if (status == LS_OK)
		ls_st_close(reader);
	free(bytes);
	free(header);
	return status;
}

/* A header may be large, but not so large that reading it takes seconds. */
static void too_many(void **state)
{
	(void)state;
	assert_int_equal(open_many(100000, "0"), LS_OK);
	assert_int_equal(open_many(100003, "0"), LS_EFORMAT);
	assert_non_null(strstr(ls_last_error(), "more than 100000 tensors"));
	char *sizes = malloc(4000001);
	for (size_t i = 0; i < 4000000; i += 2)
		memcpy(sizes + i, "1,", 2);
	memcpy(sizes + 3999999, "0", 2);
	sizes[4000000] = 0;
	assert_int_equal(open_many(1, sizes), LS_EFORMAT);
	assert_non_null(strstr(ls_last_error(), "values, over the limit"));
	free(sizes);
}

/* The data of a file that is cut short while it is open. */
static void cut_while_open(void **state)
{
	scratch *s = *state;
	static const char header[] = "{" F32("a", "[2097152]", "[0,8388608]") "}";
	char path[2048];
	uint64_t length = strlen(header), sum = 0;
	size_t total = 8 + strlen(header) + 8388608;
	uint8_t *bytes = malloc(total);
	memset(bytes, 1, total);
	memcpy(bytes, &length, 8);
	memcpy(bytes + 8, header, length);
	snprintf(path, sizeof(path), "%s/cut.safetensors", s->path);
	assert_int_equal(ls_file_put(path, bytes, total), LS_OK);
	free(bytes);
	ls_st_reader *reader = NULL;
	assert_int_equal(ls_st_open(&reader, path), LS_OK);
	assert_int_equal(ls_st_check(reader), LS_OK);
	assert_int_equal(truncate(path, 4096), 0);
	const uint8_t *data = ls_st_find(reader, "a")->data;
	for (size_t i = 0; i < 8388608; i++)
		sum += data[i];
	assert_true(sum <= 4096);
	assert_int_equal(ls_st_check(reader), LS_EIO);
	assert_non_null(strstr(ls_last_error(), "cut.safetensors was cut short"));
	ls_st_close(reader);
}

TEST_MAIN_EACH(scratch_make, scratch_remove, refused, unaligned_is_taken, bad_lengths, too_short, deep_nesting, taken,
	       every_truncation, too_many, cut_while_open)
