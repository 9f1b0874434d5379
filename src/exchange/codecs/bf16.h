/*
 * bf16.h - floats with 8 bits of mantissa: half the bytes in messages.
 */
#ifndef LS_EXCHANGE_CODECS_BF16_H
#define LS_EXCHANGE_CODECS_BF16_H

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

/* The functions of a codec (codec.h). */

static inline void ls_bf16_encode(void *to, const float *from, size_t count)
{
	uint16_t *out = to;
	for (size_t i = 0; i < count; i++)
		out[i] = ls_bf16_from(from[i]);
}

static inline void ls_bf16_decode(float *to, const void *from, size_t count)
{
	const uint16_t *in = from;
	for (size_t i = 0; i < count; i++)
		to[i] = ls_bf16_to(in[i]);
}

static inline void ls_bf16_encode_change(void *change, float *values, const float *target, size_t count)
{
	uint16_t *out = change;
	for (size_t i = 0; i < count; i++) {
		out[i] = ls_bf16_from(target[i] - values[i]);
		values[i] += ls_bf16_to(out[i]);
	}
}

static inline void ls_bf16_add_change(float *values, const void *change, size_t count)
{
	const uint16_t *in = change;
	for (size_t i = 0; i < count; i++)
		values[i] += ls_bf16_to(in[i]);
}

#endif
