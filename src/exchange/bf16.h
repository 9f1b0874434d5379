/*
 * bf16.h - floats with 8 bits of mantissa: half the bytes on the wire.
 */
#ifndef LS_EXCHANGE_BF16_H
#define LS_EXCHANGE_BF16_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Rounded to nearest, ties to even; NaN stays NaN. */
static inline uint16_t ls_bf16_from(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
	uint32_t nan = (bits >> 16) | 0x40u;
	return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

static inline float ls_bf16_to(uint16_t value)
{
	uint32_t bits = (uint32_t)value << 16;
	float out;
	memcpy(&out, &bits, sizeof(out));
	return out;
}

static inline void ls_bf16_pack(uint16_t *out, const float *in, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = ls_bf16_from(in[i]);
}

static inline void ls_bf16_expand(float *out, const uint16_t *in, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = ls_bf16_to(in[i]);
}

/* values += in */
static inline void ls_bf16_add(float *values, const uint16_t *in, size_t count)
{
	for (size_t i = 0; i < count; i++)
		values[i] += ls_bf16_to(in[i]);
}

/* What takes `values` towards `target`, rounded; and `values` go there: the rest is taken along the next time. */
static inline void ls_bf16_step(uint16_t *delta, float *values, const float *target, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		delta[i] = ls_bf16_from(target[i] - values[i]);
		values[i] += ls_bf16_to(delta[i]);
	}
}

#endif
