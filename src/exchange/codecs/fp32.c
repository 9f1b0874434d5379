/*
 * fp32.c - floats travel as they lie in memory: 4 bytes per element, and messages are sent out of the gradients
 * themselves.
 */
#include "exchange/codec.h"

const ls_codec ls_codec_fp32 = {
	.name = "fp32", .summary = "floats as they are: 4 bytes per element", .exact = 1, .width = sizeof(float)
};
