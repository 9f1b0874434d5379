/*
 * formula.h - weights and inputs that are computed, not stored.
 *
 * Element i of the tensor named s is a pure function of (seed, s, i), the same bits here and in formula.py:
 *
 *     f    = mix(FNV-1a(s) ^ seed)                       32 bits
 *     h    = mix(f + i * 0x9E3779B9)                     mod 2^32
 *     unit = (h >> 8) * 2^-23 - 1                        in [-1, 1), exact in a float
 *     x    = float(center + double(unit) * double(bound))
 *
 * The product of two floats is exact in a double, so a compiler that fuses the multiply and the add gets the same bits.
 * `bound` is a float; where it comes from a fan-in it is float(sqrt(6 / fan_in)), computed in double.
 */
#ifndef LS_GOLDEN_FORMULA_H
#define LS_GOLDEN_FORMULA_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t golden_mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	x ^= x >> 16;
	return x;
}

static inline uint32_t golden_stream(uint32_t seed, const char *name)
{
	uint32_t hash = 2166136261u;
	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	return golden_mix(hash ^ seed);
}

static inline uint32_t golden_word(uint32_t stream, size_t i)
{
	return golden_mix(stream + (uint32_t)i * 0x9E3779B9u);
}

static inline float golden_unit(uint32_t stream, size_t i)
{
	return (float)(golden_word(stream, i) >> 8) * 0x1p-23f - 1.0f;
}

static inline void golden_fill(uint32_t seed, const char *name, float center, float bound, size_t count, float *out)
{
	uint32_t stream = golden_stream(seed, name);
	for (size_t i = 0; i < count; i++)
		out[i] = (float)((double)center + (double)golden_unit(stream, i) * (double)bound);
}

static inline void golden_labels(uint32_t seed, int classes, size_t count, int32_t *out)
{
	uint32_t stream = golden_stream(seed, "labels");
	for (size_t i = 0; i < count; i++)
		out[i] = (int32_t)(golden_word(stream, i) % (uint32_t)classes);
}

static inline float golden_bound(int64_t fan_in)
{
	return (float)sqrt(6.0 / (double)fan_in);
}

static inline int golden_ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);
	return n >= m && strcmp(name + n - m, end) == 0;
}

/* Fill the parameter or buffer `name` of PyTorch shape `shape` (rank 1, 2 or 4) by the table in README.md. */
static inline void golden_fill_param(uint32_t seed, const char *name, int rank, const int64_t *shape, float *out)
{
	size_t count = 1, fan_in = 1;
	for (int d = 0; d < rank; d++) {
		count *= (size_t)shape[d];
		fan_in *= d > 0 ? (size_t)shape[d] : 1;
	}
	if (rank > 1)
		golden_fill(seed, name, 0.0f, golden_bound((int64_t)fan_in), count, out);
	else if (golden_ends_with(name, ".running_var"))
		golden_fill(seed, name, 1.0f, 0.25f, count, out);
	else if (golden_ends_with(name, ".bn3.weight"))
		golden_fill(seed, name, 0.25f, 0.0625f, count, out);
	else if (golden_ends_with(name, ".weight"))
		golden_fill(seed, name, 0.5f, 0.125f, count, out);
	else if (golden_ends_with(name, ".bias"))
		golden_fill(seed, name, 0.25f, 0.125f, count, out);
	else
		golden_fill(seed, name, 0.0f, 0.125f, count, out);
}

#endif
