/*
 * Sums of gradients give the same bits by every table of instructions, whatever the length and alignment, and touch
 * nothing beyond their range.
 */
#include <stdint.h>
#include <string.h>

#include "base/isa.h"
#include "exchange/simd.h"
#include "unit/test_main.h"

enum { MOST = 1100, PAD = 8 };

static float a[MOST + 2 * PAD], b[MOST + 2 * PAD], out[MOST + 2 * PAD], expected[MOST + 2 * PAD];

static void prepare(size_t at, size_t count)
{
	for (size_t i = 0; i < MOST + 2 * PAD; i++) {
		a[i] = 1.0f / (float)(i + 3);
		b[i] = -0.3f * (float)(i % 17) + 1e-3f * (float)i;
		out[i] = expected[i] = -7;
	}
	for (size_t i = at; i < at + count; i++)
		expected[i] = a[i] + b[i];
}

static void check(const ls_exchange_simd *table, size_t at, size_t count)
{
	prepare(at, count);
	table->sum(out + at, a + at, b + at, count);
	assert_memory_equal(out, expected, sizeof(out));
	memcpy(out, a, sizeof(a));
	table->add(out + at, b + at, count);
	assert_memory_equal(out + at, expected + at, count * sizeof(float));
	assert_memory_equal(out, a, at * sizeof(float));
	assert_memory_equal(out + at + count, a + at + count, (MOST + 2 * PAD - at - count) * sizeof(float));
}

static void tables_agree(void **state)
{
	static const size_t counts[] = { 0, 1, 15, 16, 17, 31, 33, 512, 529, MOST };
	(void)state;
	for (int isa = 0; isa < LS_ISA_COUNT; isa++)
		for (size_t i = 0; ls_isa_has(isa) && i < sizeof(counts) / sizeof(counts[0]); i++)
			for (size_t at = 0; at < PAD; at++)
				check(ls_exchange_simd_of(isa), at, counts[i]);
	assert_non_null(ls_exchange_simd_get());
}

TEST_MAIN(tables_agree)
