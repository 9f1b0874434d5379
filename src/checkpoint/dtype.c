/*
 * dtype.c - number formats of safetensors files, and their way to float.
 *
 * Tensors in a file may start at any address, so elements are fetched with memcpy. float16 is 1 sign, 5 exponent
 * (bias 15), 10 fraction bits; bfloat16 is the upper half of a float.
 */
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shape.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors data is little-endian and used in place");

static const struct {
	const char *name;
	size_t bytes;
} dtypes[LS_DTYPE_COUNT] = {
	[LS_F32] = { "F32", 4 }, [LS_F64] = { "F64", 8 }, [LS_F16] = { "F16", 2 }, [LS_BF16] = { "BF16", 2 },
	[LS_I64] = { "I64", 8 }, [LS_I32] = { "I32", 4 }, [LS_U8] = { "U8", 1 },
};

size_t ls_dtype_bytes(ls_dtype dtype)
{
	return dtypes[dtype].bytes;
}

const char *ls_dtype_name(ls_dtype dtype)
{
	return dtypes[dtype].name;
}

ls_dtype ls_dtype_find(const char *name)
{
	int i = 0;
	while (i < LS_DTYPE_COUNT && strcmp(dtypes[i].name, name) != 0)
		i++;
	return (ls_dtype)i;
}

const char *ls_dtype_known(char *out, size_t size)
{
	size_t at = 0;
	out[0] = 0;
	for (int i = 0; i < LS_DTYPE_COUNT && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", dtypes[i].name);
	return out;
}

static float float_of_bits(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Exponent 31 is infinity or NaN; exponent 0 is fraction * 2^-24; else 1.fraction * 2^(exponent - 15). */
static float float_of_half(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000) << 16;
	uint32_t exponent = (half >> 10) & 31, fraction = half & 0x3ff;
	if (exponent == 31)
		return float_of_bits(sign | 0x7f800000 | fraction << 13);
	if (exponent == 0) {
		float value = (float)fraction * 0x1p-24f;
		return sign ? -value : value;
	}
	return float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

static void convert_halves(const uint8_t *data, size_t count, int brain, float *out)
{
	for (size_t i = 0; i < count; i++) {
		uint16_t half;
		memcpy(&half, data + 2 * i, sizeof(half));
		out[i] = brain ? float_of_bits((uint32_t)half << 16) : float_of_half(half);
	}
}

static void convert_doubles(const uint8_t *data, size_t count, float *out)
{
	for (size_t i = 0; i < count; i++) {
		double value;
		memcpy(&value, data + 8 * i, sizeof(value));
		out[i] = (float)value;
	}
}

ls_status ls_st_to_float(const ls_st_tensor *tensor, float *out)
{
	char name[LS_NAME_TEXT];
	size_t count = tensor->bytes / ls_dtype_bytes(tensor->dtype);
	switch (tensor->dtype) {
	case LS_F32:
		if (count)
			memcpy(out, tensor->data, tensor->bytes);
		return LS_OK;
	case LS_F64:
		convert_doubles(tensor->data, count, out);
		return LS_OK;
	case LS_F16:
	case LS_BF16:
		convert_halves(tensor->data, count, tensor->dtype == LS_BF16, out);
		return LS_OK;
	default:
		return ls_fail(LS_EFORMAT, "tensor '%s' is of integer type %s; a floating-point type is needed",
			       ls_text_printable(name, sizeof(name), tensor->name), ls_dtype_name(tensor->dtype));
	}
}
