/*
 * Number formats: every float16 and bfloat16 pattern against arithmetic, and sizes that would overflow.
 */
#include "support.h"

#include <math.h>

#include "base/names.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shape.h"
#include "unit/test_main.h"

static float convert(ls_dtype dtype, const void *data)
{
	/* one byte off, as data in a file may be */
	uint8_t shifted[9];
	float out = -1;
	memcpy(shifted + 1, data, ls_dtype_bytes(dtype));
	ls_st_tensor tensor = { .name = "x", .dtype = dtype, .data = shifted + 1, .bytes = ls_dtype_bytes(dtype) };
	assert_int_equal(ls_st_to_float(&tensor, &out), LS_OK);
	return out;
}

/* sign * 2^(exponent - bias) * (1 + fraction / 2^bits), by ldexp. */
static double decode(uint32_t pattern, int exponent_bits, int fraction_bits)
{
	int exponent = (int)(pattern >> fraction_bits) & ((1 << exponent_bits) - 1);
	int bias = (1 << (exponent_bits - 1)) - 1;
	double fraction = ldexp(pattern & ((1u << fraction_bits) - 1), -fraction_bits);
	double sign = pattern >> (exponent_bits + fraction_bits) ? -1 : 1;
	if (exponent == (1 << exponent_bits) - 1)
		return fraction != 0 ? NAN : sign * INFINITY;
	return sign * ldexp(fraction + (exponent ? 1 : 0), (exponent ? exponent : 1) - bias);
}

static void check_all_patterns(ls_dtype dtype, int exponent_bits, int fraction_bits)
{
	for (uint32_t pattern = 0; pattern < 65536; pattern++) {
		uint16_t half = (uint16_t)pattern;
		float got = convert(dtype, &half);
		double expected = decode(pattern, exponent_bits, fraction_bits);
		if (isnan(expected) ? !isnan(got) : got != expected || !signbit(got) != !signbit(expected))
			fail_msg("%s %04x gives %a, not %a", ls_dtype_name(dtype), pattern, (double)got, expected);
	}
}

static void half_patterns(void **state)
{
	(void)state;
	check_all_patterns(LS_F16, 5, 10);
}

static void brain_patterns(void **state)
{
	(void)state;
	check_all_patterns(LS_BF16, 8, 7);
}

static void wide_floats(void **state)
{
	(void)state;
	double third = 1.0 / 3.0, big = 1e300;
	float quarter = 0.25f;
	assert_true(convert(LS_F64, &third) == (float)(1.0 / 3.0));
	assert_true(isinf(convert(LS_F64, &big)));
	assert_true(convert(LS_F32, &quarter) == 0.25f);
}

static void integers_are_refused(void **state)
{
	(void)state;
	static const ls_dtype integers[] = { LS_I64, LS_I32, LS_U8 };
	uint8_t data[8] = { 0 };
	float out;
	for (size_t i = 0; i < 3; i++) {
		ls_st_tensor tensor = { .name = "count", .dtype = integers[i], .data = data, .bytes = 8 };
		assert_int_equal(ls_st_to_float(&tensor, &out), LS_EFORMAT);
		assert_mentions("'count'");
		assert_mentions(ls_dtype_name(integers[i]));
	}
}

static void names_and_sizes(void **state)
{
	(void)state;
	for (int i = 0; i < LS_DTYPE_COUNT; i++)
		assert_int_equal(ls_dtype_find(ls_dtype_name((ls_dtype)i)), i);
	assert_int_equal(ls_dtype_find("f32"), LS_DTYPE_COUNT);
	assert_int_equal(ls_dtype_find(""), LS_DTYPE_COUNT);
	assert_int_equal(ls_dtype_bytes(LS_BF16), 2);
}

static void shape_bytes(void **state)
{
	(void)state;
	size_t bytes = 99;
	assert_true(ls_shape_bytes(LS_F32, 0, NULL, &bytes) && bytes == 4);
	assert_true(ls_shape_bytes(LS_F64, 2, (int64_t[]){ 3, 0 }, &bytes) && bytes == 0);
	assert_true(ls_shape_bytes(LS_U8, 1, (int64_t[]){ INT64_MAX }, &bytes) && bytes == INT64_MAX);
	assert_false(ls_shape_bytes(LS_F32, 1, (int64_t[]){ INT64_MAX }, &bytes));
	assert_false(ls_shape_bytes(LS_U8, 1, (int64_t[]){ -1 }, &bytes));
	assert_false(ls_shape_bytes(LS_U8, 2, (int64_t[]){ 1LL << 32, 1LL << 32 }, &bytes));
	assert_false(ls_shape_bytes(LS_U8, 3, (int64_t[]){ 0, 1LL << 32, 1LL << 32 }, &bytes));
}

static void printable_text(void **state)
{
	(void)state;
	char out[8];
	assert_string_equal(ls_text_printable(out, sizeof(out), "a\x1b[2J"), "a?[2J");
	assert_string_equal(ls_text_printable(out, sizeof(out), "1234567"), "1234567");
	assert_string_equal(ls_text_printable(out, sizeof(out), "12345678"), "1234...");
}

TEST_MAIN(half_patterns, brain_patterns, wide_floats, integers_are_refused, names_and_sizes, shape_bytes,
	  printable_text)
