/*
 * simd_check.h - what the tests of the vector kernels share: buffers, seeded numbers, comparisons, the list of
 * instruction sets this machine has.
 */
#ifndef LS_TESTS_SIMD_CHECK_H
#define LS_TESTS_SIMD_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/isa.h"
#include "base/rng.h"
#include "kernels/simd.h"

#define CHECK_SEED 20240607

static inline uint32_t bits_of(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static inline float float_of(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* Exactly `bytes` bytes on a 64-byte boundary, so that a sanitizer sees one float too many; filled with a NaN pattern.
 */
static inline void *check_bytes(size_t bytes)
{
	void *p = NULL;
	assert_int_equal(posix_memalign(&p, 64, bytes ? bytes : 1), 0);
	memset(p, 0xff, bytes);
	return p;
}

static inline float *check_floats(int64_t count)
{
	return check_bytes((size_t)count * sizeof(float));
}

/* Normal numbers, others for every stream. */
static inline float *check_random(int64_t count, uint64_t stream)
{
	float *p = check_floats(count);
	ls_rng_fill_normal(ls_rng_make(CHECK_SEED, LS_RNG_TEST, stream), 0, 0, (size_t)count, 1.0f, p);
	return p;
}

/* Rows of a panel, zero in channels from `real` on. */
static inline float *check_random_panel(int64_t rows, int panel, int real, uint64_t stream)
{
	float *p = check_random(rows * panel, stream);
	for (int64_t r = 0; r < rows; r++)
		for (int c = real; c < panel; c++)
			p[r * panel + c] = 0;
	return p;
}

static inline float *check_copy(const float *from, int64_t count)
{
	float *p = check_floats(count);
	memcpy(p, from, (size_t)count * sizeof(float));
	return p;
}

/* |got - expected| <= tolerance * (scale + |expected|) everywhere. */
static inline void check_close(const char *what, const float *got, const float *expected, int64_t count,
			       double tolerance, double scale)
{
	for (int64_t i = 0; i < count; i++) {
		double error = fabs((double)got[i] - expected[i]);
		if (!(error <= tolerance * (scale + fabs((double)expected[i]))))
			fail_msg("seed %d: %s, element %lld is %.9g, expected %.9g", CHECK_SEED, what, (long long)i,
				 (double)got[i], (double)expected[i]);
	}
}

static inline void check_same(const char *what, const float *got, const float *expected, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		if (memcmp(&got[i], &expected[i], sizeof(float)))
			fail_msg("seed %d: %s, element %lld is %.9g, expected exactly %.9g", CHECK_SEED, what,
				 (long long)i, (double)got[i], (double)expected[i]);
}

/* Every instruction set of this processor, weakest first: `simd` is its table. */
#define CHECK_EACH_ISA(simd)                                                                                           \
	for (int isa_ = 0; isa_ < LS_ISA_COUNT; isa_++)                                                                \
		for (const ls_simd *simd = ls_isa_has(isa_) ? ls_simd_of(isa_) : NULL; simd; simd = NULL)

#endif
