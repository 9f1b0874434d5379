/*
 * conv_bf16_parts.h - rounded operands, as the walk of conv_bf16.c and the sums of conv_bf16_wgrad.c share them.
 */
#ifndef LS_KERNELS_CONV_BF16_PARTS_H
#define LS_KERNELS_CONV_BF16_PARTS_H

#include "kernels/conv_walk.h"
#include "kernels/simd.h"

/* A value (blocks, h, w, n, row) and how it is rounded: words (blocks, h, w, n, row / 2) in pairs of channels, or
 * (blocks, h, w, n / 2 rounded up, row) in pairs of samples; transposed (blocks, h), then per segment of positions
 * (row, positions, n / 2 rounded up). */
typedef struct ls_conv_bf16_rows {
	int blocks, h, w, row;
	int64_t n;
	int paired;                        /* in pairs of samples */
	int segment;                       /* then, not 0: transposed, `segment` positions of a row at a time */
	const ls_conv_geometry *only_read; /* skip positions that no tap of this filter reads; NULL: all are read */
} ls_conv_bf16_rows;

/* Words for either pairing, whole cache lines. */
static inline size_t ls_conv_bf16_words(int blocks, int64_t positions, int64_t n, int row)
{
	return ((size_t)(blocks * positions * ((n + 1) / 2) * row) + 15) / 16 * 16;
}
static inline size_t ls_conv_bf16_rows_words(const ls_conv_bf16_rows *s)
{
	return ls_conv_bf16_words(s->blocks, (int64_t)s->h * s->w, s->n, s->row);
}

ls_conv_bf16_rows ls_conv_bf16_x(const ls_conv_plan *plan, int paired);
ls_conv_bf16_rows ls_conv_bf16_dy(const ls_conv_plan *plan, int paired);

/* This member's share; does not synchronise. */
void ls_conv_bf16_round(const ls_bf16_kernels *kernels, const ls_conv_bf16_rows *rows, const float *x, uint32_t *out,
			ls_member member);

#endif
