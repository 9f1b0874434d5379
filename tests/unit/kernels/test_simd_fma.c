/*
 * One rounding per multiply-add in every instruction set, against a sum of integers that is rounded by hand: a product
 * of depth one that accumulates is y = x*w + y.
 */
#include "unit/kernels/simd_check.h"
#include "unit/test_main.h"

#include <stdio.h>

/* A finite float is (-1)^sign * size * 2^exponent. */
typedef struct number {
	int is_negative, exponent;
	unsigned __int128 size;
} number;

static number take_apart(float x)
{
	const uint32_t bits = bits_of(x);
	const int field = (int)(bits >> 23 & 0xff);
	return (number){ .is_negative = (int)(bits >> 31),
			 .exponent = (field > 0 ? field : 1) - 150,
			 .size = (bits & 0x7fffff) | (field > 0 ? 0x800000u : 0u) };
}

/* Round to nearest, ties to even; subnormal below 2^-126, infinite from 2^128 on. */
static float put_together(number n)
{
	int length = 0, drop;
	while (length < 128 && n.size >> length)
		length++;
	drop = length - 24 > -149 - n.exponent ? length - 24 : -149 - n.exponent;
	if (drop > 0) {
		const unsigned __int128 one = 1, rest = drop < 128 ? n.size & ((one << drop) - 1) : n.size;
		const unsigned __int128 half = drop <= 128 ? one << (drop - 1) : 0;
		unsigned __int128 kept = drop < 128 ? n.size >> drop : 0;
		if (half > 0 && (rest > half || (rest == half && (kept & 1))))
			kept++;
		n.size = kept;
		n.exponent += drop;
	}
	return (float)(n.is_negative ? -1 : 1) * (float)ldexp((double)n.size, n.exponent);
}

/* x*y + z of finite numbers, with the smaller term as a sticky last bit where it is far below the larger. */
static float reference(float x, float y, float z)
{
	number a = take_apart(x), b = take_apart(y), c = take_apart(z);
	number p = { a.is_negative ^ b.is_negative, a.exponent + b.exponent, a.size * b.size };
	if (p.size == 0 || c.size == 0)
		return p.size == 0 ? x * y + z : put_together(p); /* signs of zeros are the processor's */
	number *high = p.exponent > c.exponent ? &p : &c, *low = high == &p ? &c : &p;
	int gap = high->exponent - low->exponent;
	const int most = 70; /* bits that either may be moved without loss */
	if (gap > most) {    /* then the lower is less than a last bit: what remains is whether there was one */
		low->size = 1;
		low->exponent = high->exponent - most;
		gap = most;
	}
	high->size <<= gap;
	high->exponent -= gap;
	if (high->is_negative == low->is_negative) {
		high->size += low->size;
		return put_together(*high);
	}
	if (high->size == low->size)
		return 0.0f;
	number *more = high->size > low->size ? high : low, *less = more == high ? low : high;
	more->size -= less->size;
	return put_together((number){ more->is_negative, high->exponent, more->size });
}

enum { COLS = 64 };

/* y[i] = x*w[i] + y[i] in every instruction set. */
static void check_row(float x, const float *w, const float *y)
{
	const ls_gemm_shape shape = { 1, 1, COLS, 1, COLS, COLS, 0, 1 };
	CHECK_EACH_ISA(simd)
	{
		float got[COLS];
		memcpy(got, y, sizeof(got));
		simd->gemm(&shape, &x, w, got);
		for (int i = 0; i < COLS; i++) {
			const int is_finite = isfinite(x) && isfinite(w[i]) && isfinite(y[i]);
			const float want = is_finite ? reference(x, w[i], y[i]) : fmaf(x, w[i], y[i]);
			if (isnan(want) ? !isnan(got[i]) : bits_of(got[i]) != bits_of(want))
				fail_msg("seed %d: %s: %a * %a + %a is %a, not %a", CHECK_SEED,
					 ls_isa_name((ls_isa)isa_), (double)x, (double)w[i], (double)y[i],
					 (double)got[i], (double)want);
		}
	}
}

static uint32_t draw(uint64_t *at)
{
	uint32_t words[4];
	ls_rng_words(ls_rng_make(CHECK_SEED, LS_RNG_TEST, 77), 0, *at / 4, words);
	return words[(*at)++ % 4];
}

/* Any bits: most sums are far apart, many overflow or vanish. */
static void test_random_bits(void **state)
{
	uint64_t at = 0;
	(void)state;
	for (int row = 0; row < 4000; row++) {
		float x = float_of(draw(&at)), w[COLS], y[COLS];
		for (int i = 0; i < COLS; i++) {
			w[i] = float_of(draw(&at));
			y[i] = float_of(draw(&at));
		}
		check_row(x, w, y);
	}
}

/* A float of this exponent, or a subnormal one below -126. */
static float of_exponent(int exponent, uint32_t word)
{
	const float size = (float)ldexp(1.0 + (word & 0x7fffff) * 0x1p-23, exponent);
	return word >> 31 ? -size : size;
}

/* Terms of about the same size, over all exponents: sums that cancel, results that are subnormal. */
static void test_near_sums(void **state)
{
	uint64_t at = 1 << 20;
	(void)state;
	for (int row = 0; row < 4000; row++) {
		const int top = (int)(draw(&at) % 260) - 145;
		const int one = top / 2;
		float x = of_exponent(one, draw(&at)), w[COLS], y[COLS];
		for (int i = 0; i < COLS; i++) {
			w[i] = of_exponent(top - one + (int)(draw(&at) % 5) - 2, draw(&at));
			y[i] = i % 4 == 0 ? -(x * w[i]) : of_exponent(top + (int)(draw(&at) % 60) - 30, draw(&at));
		}
		check_row(x, w, y);
	}
}

/* The product is half a unit of y's last place, and a little more or less, by less than a double can hold beside y: to
 * round to a double and then to a float goes wrong here. */
static void test_almost_ties(void **state)
{
	static const float nearly[] = { 1 + 0x1p-23f, 1 - 0x1p-23f, 1 + 0x1p-22f, 1 - 0x1p-24f, 1 };
	uint64_t at = 1 << 24;
	int wrong = 0;
	(void)state;
	for (int exponent = -126; exponent <= 127; exponent++)
		for (int factor = 0; factor < 5; factor++)
			for (int sign = -1; sign <= 1; sign += 2) {
				float x = (float)sign * nearly[factor], w[COLS], y[COLS];
				for (int i = 0; i < COLS; i++) {
					y[i] = of_exponent(exponent, draw(&at));
					w[i] = (float)ldexp((double)nearly[draw(&at) % 5], exponent - 24);
					wrong += (float)((double)x * w[i] + y[i]) != reference(x, w[i], y[i]);
				}
				check_row(x, w, y);
			}
	print_message("# %d of these are rounded wrongly by way of a double\n", wrong);
	assert_true(wrong > 1000); /* or these cases are not hard */
}

static void test_reference_is_the_library_s(void **state)
{
	uint64_t at = 1 << 26;
	(void)state;
	for (int i = 0; i < 1000000; i++) {
		float x = float_of(draw(&at)), y = float_of(draw(&at)), z = float_of(draw(&at));
		if (i % 2)
			z = of_exponent((int)(draw(&at) % 270) - 147, draw(&at)), y = z / x;
		if (isfinite(x) && isfinite(y) && isfinite(z))
			assert_int_equal(bits_of(reference(x, y, z)), bits_of(fmaf(x, y, z)));
	}
}

TEST_MAIN(test_reference_is_the_library_s, test_random_bits, test_near_sums, test_almost_ties)
