/*
 * Products of bf16 pairs: every instruction set, and the processor's own instruction where it has it, give the bits of
 * two multiply-adds per pair, each rounded by hand with subnormal numbers as zeros. Those of bf16-amx: the same, in
 * steps of 16 pairs with a sum of the first and one of the second elements.
 */
#include "unit/kernels/simd_check.h"
#include "unit/test_main.h"

static float flushed(float x)
{
	return bits_of(x) & 0x7f800000u ? x : float_of(bits_of(x) & 0x80000000u);
}

/* The sum rounded to odd in double, so that the second rounding is the only one; then, below
 * the normal numbers, zero. */
static float multiply_add(float a, float b, float c)
{
	const double product = (double)flushed(a) * flushed(b), sum = product + flushed(c), part = sum - product;
	const double rest = (product - (sum - part)) + (flushed(c) - part);
	uint64_t bits;
	double odd;
	memcpy(&bits, &sum, sizeof(bits));
	if ((rest < 0 || rest > 0) && !(bits & 1))
		bits = (rest < 0) == (sum < 0) ? bits + 1 : bits - 1;
	memcpy(&odd, &bits, sizeof(odd));
	return fabs(odd) < 0x1p-126 - 0x1p-151 ? copysignf(0, (float)odd) : (float)odd;
}

static float add_pair(uint32_t x, uint32_t w, float sum)
{
	sum = multiply_add(float_of(x & 0xffff0000u), float_of(w & 0xffff0000u), sum);
	return multiply_add(float_of(x << 16), float_of(w << 16), sum);
}

static uint32_t draw(uint64_t *at)
{
	uint32_t words[4];
	ls_rng_words(ls_rng_make(CHECK_SEED, LS_RNG_TEST, 99), 0, *at / 4, words);
	return words[(*at)++ % 4];
}

/* Two numbers of exponents [least, least + span). */
static uint32_t draw_pair(uint64_t *at, uint32_t least, uint32_t span)
{
	const uint32_t word = draw(at), a = least + draw(at) % span, b = least + draw(at) % span;
	return (word & 0x807f807fu) | a << 7 | b << 23;
}

/* The kernels of each instruction set, and the processor's own as the last. */
static const ls_bf16_kernels *kernels_at(int i)
{
	if (i == LS_ISA_COUNT)
		return ls_bf16_is_native() ? ls_bf16_get() : NULL;
	return ls_isa_has(i) ? &ls_simd_of(i)->bf16 : NULL;
}

static const ls_bf16_kernels *amx_at(int i)
{
	if (i == LS_ISA_COUNT)
		return ls_bf16_amx_is_native() ? ls_bf16_amx_get() : NULL;
	return ls_isa_has(i) ? &ls_simd_of(i)->bf16_amx : NULL;
}

static const char *name_at(int i)
{
	return i < LS_ISA_COUNT ? ls_isa_name((ls_isa)i) : "the processor's instruction";
}

static void check_one(uint32_t x, const uint32_t w[16], const float y[16])
{
	const ls_bf16_shape shape = {
		.rows = 1, .pairs = 1, .cols = 16, .ldx = 1, .ldw = 16, .ldy = 16, .accumulate = 1
	};
	const ls_bf16_part part = { &x, w };
	for (int i = 0; i <= LS_ISA_COUNT; i++) {
		const ls_bf16_kernels *kernels = kernels_at(i);
		float got[16];
		if (!kernels)
			continue;
		memcpy(got, y, sizeof(got));
		kernels->gemm(&shape, &part, 1, got);
		for (int k = 0; k < 16; k++) {
			const float want = add_pair(x, w[k], y[k]);
			if (isnan(want) ? !isnan(got[k]) : bits_of(got[k]) != bits_of(want))
				fail_msg("seed %d: %s: (%a, %a) . (%a, %a) + %a is %a, not %a", CHECK_SEED, name_at(i),
					 (double)float_of(x << 16), (double)float_of(x & 0xffff0000u),
					 (double)float_of(w[k] << 16), (double)float_of(w[k] & 0xffff0000u),
					 (double)y[k], (double)got[k], (double)want);
		}
	}
}

/* Any bits; usual sizes; sizes whose products are about 2^-126, where results become zeros. */
static void test_pairs(void **state)
{
	static const uint32_t least[] = { 0, 120, 60, 62, 1 }, span[] = { 256, 14, 8, 3, 100 };
	uint64_t at = 0;
	(void)state;
	for (int row = 0; row < 100000; row++) {
		const int kind = row % 5;
		const uint32_t x = draw_pair(&at, least[kind], span[kind]);
		uint32_t w[16];
		float y[16];
		for (int i = 0; i < 16; i++) {
			w[i] = draw_pair(&at, least[kind], span[kind]);
			const float upper = float_of(x & 0xffff0000u) * float_of(w[i] & 0xffff0000u);
			const float lower = float_of(x << 16) * float_of(w[i] << 16);
			const uint32_t word = draw(&at);
			const float any[] = { float_of(word),
					      -upper,
					      -lower,
					      -upper * (1 + 0x1p-23f),
					      -(upper + lower),
					      0,
					      float_of((word & 0x81ffffffu)) };
			y[i] = any[word % 7];
		}
		check_one(x, w, y);
	}
}

/* Odd shapes, strides and both forms: the chain over parts and pairs, in order. */
static void test_products(void **state)
{
	(void)state;
	for (int number = 0; number < 400; number++) {
		const int t = number % 2, rows = 1 + number % 29, cols = 16 * (1 + number / 3 % 4),
			  pairs = 1 + number % 35;
		const int count = 1 + number % 3;
		ls_bf16_shape s = { .rows = rows,
				    .pairs = pairs,
				    .cols = cols,
				    .ldx = (t ? rows : pairs) + number % 5,
				    .ldw = cols + 16 * (number % 2),
				    .ldy = cols + number % 3,
				    .transposed = t,
				    .accumulate = number / 2 % 2 };
		const int64_t x_step = s.ldx * (t ? pairs : rows), w_step = s.ldw * pairs;
		const int64_t x_count = x_step * count, w_count = w_step * count, y_count = s.ldy * rows;
		float *xs = check_random(2 * x_count, 1), *ws = check_random(2 * w_count, 2),
		      *start = check_random(y_count, 3);
		uint32_t *x = check_bytes((size_t)x_count * 4), *w = check_bytes((size_t)w_count * 4);
		float *want = check_copy(start, y_count), *got = check_floats(y_count);
		for (int64_t i = 0; i < x_count; i++)
			x[i] = bits_of(xs[2 * i]) >> 16 | (bits_of(xs[2 * i + 1]) & 0xffff0000u);
		for (int64_t i = 0; i < w_count; i++)
			w[i] = bits_of(ws[2 * i]) >> 16 | (bits_of(ws[2 * i + 1]) & 0xffff0000u);
		for (int r = 0; r < rows; r++)
			for (int c = 0; c < cols; c++) {
				float sum = s.accumulate ? start[r * s.ldy + c] : 0;
				for (int b = count - 1; b >= 0; b--)
					for (int k = 0; k < pairs; k++)
						sum = add_pair(x[b * x_step + (t ? k * s.ldx + r : r * s.ldx + k)],
							       w[b * w_step + k * s.ldw + c], sum);
				want[r * s.ldy + c] = sum;
			}
		ls_bf16_part parts[3]; /* in another order than they lie in memory */
		for (int b = 0; b < count; b++)
			parts[b] = (ls_bf16_part){ x + (count - 1 - b) * x_step, w + (count - 1 - b) * w_step };
		for (int i = 0; i <= LS_ISA_COUNT; i++) {
			if (!kernels_at(i))
				continue;
			memcpy(got, start, (size_t)y_count * sizeof(float));
			kernels_at(i)->gemm(&s, parts, count, got);
			check_same(name_at(i), got, want, y_count);
		}
		void *all[] = { xs, ws, start, x, w, want, got };
		for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
			free(all[i]);
	}
}

static uint32_t nearest(float x)
{
	const float f = flushed(x);
	const uint32_t bits = bits_of(f), below = bits & 0xffff0000u, rest = bits & 0xffffu;
	if (isnan(f))
		return (bits | 0x00400000u) >> 16;
	return (below >> 16) + (rest > 0x8000u || (rest == 0x8000u && (below >> 16 & 1)));
}

/* To the nearest, ties to even, subnormal numbers to zeros; in pairs of neighbours and of rows. */
static void test_rounding(void **state)
{
	enum { COLS = 48, ROWS = 7 };
	uint64_t at = 5000000;
	(void)state;
	for (int round = 0; round < 3000; round++) {
		float x[ROWS * COLS];
		for (int i = 0; i < ROWS * COLS; i++) {
			const uint32_t word = draw(&at);
			x[i] = float_of(round % 3 == 0   ? word
					: round % 3 == 1 ? (word & 0xffff0000u) | 0x8000u
							 : word & 0x80ffffffu);
		}
		for (int i = 0; i <= LS_ISA_COUNT; i++) {
			uint32_t rows[ROWS * COLS / 2], pairs[(ROWS + 1) / 2 * COLS];
			if (!kernels_at(i))
				continue;
			kernels_at(i)->rows(x, ROWS * COLS, rows);
			kernels_at(i)->pairs(x, ROWS, COLS, COLS, pairs);
			for (int k = 0; k < ROWS * COLS; k++) {
				const uint32_t want = nearest(x[k]), r = (uint32_t)(k / COLS),
					       word = pairs[r / 2 * COLS + k % COLS];
				assert_int_equal(k % 2 ? rows[k / 2] >> 16 : rows[k / 2] & 0xffff, want);
				assert_int_equal(r % 2 ? word >> 16 : word & 0xffff, want);
				if (r == ROWS - 1)
					assert_int_equal(word >> 16, 0);
			}
		}
	}
}

/* ---- bf16-amx ---- */

/* y of a row and a column: steps of up to 16 pairs of each part. */
static float steps_of(const ls_bf16_shape *s, const ls_bf16_part *parts, int count, int row, int col, float sum)
{
	for (const ls_bf16_part *p = parts; p < parts + count; p++)
		for (int first = 0; first < s->pairs; first += 16) {
			float of[2] = { 0, 0 };
			for (int k = first; k < first + 16; k++) {
				const uint32_t x = k < s->pairs ? p->x[row * s->ldx + k] : 0,
					       w = k < s->pairs ? p->w[k * s->ldw + col] : 0;
				of[0] = multiply_add(float_of(x << 16), float_of(w << 16), of[0]);
				of[1] = multiply_add(float_of(x & 0xffff0000u), float_of(w & 0xffff0000u), of[1]);
			}
			sum = multiply_add(multiply_add(of[0], 1, of[1]), 1, sum);
		}
	return sum;
}

/* Any bits; usual sizes; cancelling sizes; and sizes whose products are about 2^-126. Odd shapes, strides and tails. */
static void test_steps(void **state)
{
	static const uint32_t least[] = { 0, 120, 60, 62, 127 }, span[] = { 255, 14, 8, 3, 1 };
	uint64_t at = 9000000;
	(void)state;
	for (int number = 0; number < 600; number++) {
		const int kind = number % 5, rows = 1 + number % 71, cols = 16 * (1 + number / 3 % 5),
			  count = 1 + number % 3;
		const int pairs = number % 4 ? 1 + number % 35 : 16 * (1 + number % 3);
		const ls_bf16_shape s = { .rows = rows,
					  .pairs = pairs,
					  .cols = cols,
					  .ldx = pairs + number % 5,
					  .ldw = cols + 16 * (number % 2),
					  .ldy = cols + number % 3,
					  .accumulate = number / 2 % 2 };
		const int64_t x_step = s.ldx * rows, w_step = s.ldw * pairs, y_count = s.ldy * rows;
		uint32_t *x = check_bytes((size_t)(x_step * count) * 4), *w = check_bytes((size_t)(w_step * count) * 4);
		float *start = check_floats(y_count), *want = check_floats(y_count), *got = check_floats(y_count);
		ls_bf16_part parts[3];
		for (int64_t i = 0; i < x_step * count; i++)
			x[i] = draw_pair(&at, least[kind], span[kind]);
		for (int64_t i = 0; i < w_step * count; i++)
			w[i] = draw_pair(&at, least[kind], span[kind]);
		for (int64_t i = 0; i < y_count; i++)
			start[i] = float_of((draw(&at) & 0x807fffffu) | (kind == 0   ? draw(&at) % 255
									 : kind == 1 ? 127
										     : draw(&at) % 6)
										<< 23);
		for (int b = 0; b < count; b++)
			parts[b] = (ls_bf16_part){ x + (count - 1 - b) * x_step, w + (count - 1 - b) * w_step };
		memcpy(want, start, (size_t)y_count * sizeof(float));
		for (int r = 0; r < rows; r++)
			for (int c = 0; c < cols; c++)
				want[r * s.ldy + c] =
					steps_of(&s, parts, count, r, c, s.accumulate ? start[r * s.ldy + c] : 0);
		for (int i = 0; i <= LS_ISA_COUNT; i++) {
			if (!amx_at(i))
				continue;
			memcpy(got, start, (size_t)y_count * sizeof(float));
			amx_at(i)->gemm(&s, parts, count, got);
			for (int64_t e = 0; e < y_count; e++)
				if (isnan(want[e]) ? !isnan(got[e]) : bits_of(got[e]) != bits_of(want[e]))
					fail_msg("seed %d: %s, product %d: element %lld is %a, not %a", CHECK_SEED,
						 name_at(i), number, (long long)e, (double)got[e], (double)want[e]);
		}
		void *all[] = { x, w, start, want, got };
		for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
			free(all[i]);
	}
}

/* In pairs of rows, transposed: what pairs() makes, elsewhere; and nothing beside it. */
static void test_turned(void **state)
{
	(void)state;
	for (int rows = 1; rows < 80; rows++) {
		const int cols = 16 * (1 + rows % 4), half = (rows + 1) / 2, ld = half + rows % 3;
		float *x = check_random(rows * (cols + 5), (uint64_t)rows);
		uint32_t *pairs = check_bytes((size_t)(half * cols) * 4),
			 *turned = check_bytes((size_t)(cols * ld) * 4);
		for (int i = 0; i <= LS_ISA_COUNT; i++) {
			if (!amx_at(i))
				continue;
			memset(turned, 0xaa, (size_t)(cols * ld) * 4);
			amx_at(i)->pairs(x, rows, cols, cols + 5, pairs);
			amx_at(i)->turned(x, rows, cols, cols + 5, turned, ld);
			for (int c = 0; c < cols; c++)
				for (int k = 0; k < ld; k++)
					assert_int_equal(turned[c * ld + k],
							 k < half ? pairs[k * cols + c] : 0xaaaaaaaau);
		}
		free(x);
		free(pairs);
		free(turned);
	}
}

TEST_MAIN(test_pairs, test_products, test_rounding, test_steps, test_turned)
