/*
 * bf16.c - floats rounded to 8 bits of mantissa: 2 bytes per element.
 *
 * New values travel as rounded changes, and owners keep exact values apart: rounding a value would lose every update
 * smaller than the rounding, while a change keeps 8 bits, and what its rounding left out is part of the next change.
 */
#include "exchange/codecs/bf16.h"
#include "exchange/codec.h"

const ls_codec ls_codec_bf16 = { .name = "bf16",
				 .summary = "rounded to bf16: 2 bytes per element",
				 .width = sizeof(uint16_t),
				 .encode = ls_bf16_encode,
				 .decode = ls_bf16_decode,
				 .encode_change = ls_bf16_encode_change,
				 .add_change = ls_bf16_add_change };
