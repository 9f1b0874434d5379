/*
 * attention.c - what attention does to rows of scores between its products.
 *
 * A row has a column per key; `length` of them count, and what lies behind them up to a multiple of 16 may be
 * overwritten. Sums run in sixteen lanes (fold.h). A NaN among the scores makes the row's sum, and so its output, a
 * NaN.
 */
#include <math.h>
#include <stddef.h>

#include "kernels/simd/explog.h"
#include "kernels/simd/fold.h"
#include "kernels/simd/parts.h"
#include "kernels/simd/vexp.h"

/* The greatest of the scores, NaN passed over. The columns behind them, up to a multiple of 16, become -inf. */
LS_INLINE float row_maximum(float *s, int length)
{
	const ls_vf least = ls_vf_set(-INFINITY);
	ls_vf greatest[LS_FOLD_PARTS];
	LS_UNROLL for (int p = 0; p < LS_FOLD_PARTS; p++) greatest[p] = least;
	int j = 0;
	for (; j + LS_FOLD <= length; j += LS_FOLD)
		LS_UNROLL for (int p = 0; p < LS_FOLD_PARTS; p++) greatest[p] =
			ls_vf_max(ls_vf_load(s + j + p * LS_LANES), greatest[p]);
	LS_UNROLL for (int p = 0; j < length && p < LS_FOLD_PARTS; p++)
	{
		float *at = s + j + p * LS_LANES;
		ls_vf last = ls_vf_select(ls_fold_live(length - j, p), ls_vf_load(at), least);
		ls_vf_store(at, last);
		greatest[p] = ls_vf_max(last, greatest[p]);
	}
	return ls_fold_max(greatest);
}

/* s = e^(scale*s - shift) * keep; the sum, without keep. Columns of -inf add nothing. */
LS_INLINE float row_exponentials(float *s, const float *keep, int length, float scale, float shift)
{
	const ls_vf a = ls_vf_set(scale), b = ls_vf_set(-shift);
	ls_vf sum[LS_FOLD_PARTS] = { 0 };
	for (int j = 0; j < length; j += LS_FOLD) {
		LS_UNROLL for (int p = 0; p < LS_FOLD_PARTS; p++)
		{
			const int at = j + p * LS_LANES;
			ls_vf e = ls_vf_exp_negative(ls_vf_fma(ls_vf_load(s + at), a, b));
			sum[p] += e;
			ls_vf_store(s + at, keep ? e * ls_vf_load(keep + at) : e);
		}
	}
	return ls_fold_sum(sum);
}

LS_INLINE void softmax_rows(const ls_score_shape *shape, const float *keep, float *score, float *sum, float *shift)
{
	for (int r = 0; r < shape->rows; r++, score += shape->ld) {
		shift[r] = row_maximum(score, shape->length) * shape->scale;
		sum[r] = row_exponentials(score, keep, shape->length, shape->scale, shift[r]);
		keep = keep ? keep + shape->ld_keep : NULL;
	}
}

void LS_ISA_SYMBOL(ls_simd_attention_softmax)(const ls_score_shape *shape, const float *keep, float *score,
					      float *inverse, float *lse)
{
	if (keep)
		softmax_rows(shape, keep, score, inverse, lse);
	else
		softmax_rows(shape, NULL, score, inverse, lse);
	for (int r = 0; r < shape->rows; r++) {
		lse[r] += ls_log_above_one(inverse[r]);
		inverse[r] = 1.0f / inverse[r];
	}
}

/* score = p * keep, slope = scale * p * (slope * keep - dot) with p = e^(scale*score - lse). */
LS_INLINE void backward_row(const ls_score_shape *shape, const float *keep, float lse, float dot, float *score,
			    float *slope)
{
	const ls_vf scale = ls_vf_set(shape->scale), shift = ls_vf_set(-lse), mean = ls_vf_set(-dot);
	for (int j = 0; j < shape->length; j += LS_LANES) {
		ls_vf p = ls_vf_exp_negative(ls_vf_fma(ls_vf_load(score + j), scale, shift));
		ls_vf factor = keep ? ls_vf_load(keep + j) : ls_vf_set(1.0f);
		ls_vf_store(score + j, keep ? p * factor : p);
		ls_vf d = keep ? ls_vf_fma(ls_vf_load(slope + j), factor, mean) : ls_vf_load(slope + j) + mean;
		ls_vf_store(slope + j, p * scale * d);
	}
}

void LS_ISA_SYMBOL(ls_simd_attention_softmax_backward)(const ls_score_shape *shape, const float *keep, const float *lse,
						       const float *dots, float *score, float *slope)
{
	for (int r = 0; r < shape->rows; r++, score += shape->ld, slope += shape->ld)
		if (keep)
			backward_row(shape, keep + (int64_t)r * shape->ld_keep, lse[r], dots[r], score, slope);
		else
			backward_row(shape, NULL, lse[r], dots[r], score, slope);
}

void LS_ISA_SYMBOL(ls_simd_attention_scale)(float *y, int rows, int cols, int ld, const float *factor)
{
	for (int r = 0; r < rows; r++, y += ld)
		for (int c = 0; c < cols; c += LS_LANES)
			ls_vf_store(y + c, ls_vf_load(y + c) * factor[r]);
}

void LS_ISA_SYMBOL(ls_simd_attention_dots)(const float *a, const float *b, int rows, int cols, int ld, float *dots)
{
	for (int r = 0; r < rows; r++, a += ld, b += ld) {
		ls_vf sum[LS_FOLD_PARTS] = { 0 };
		for (int c = 0; c < cols; c += LS_FOLD)
			LS_UNROLL for (int p = 0; p < LS_FOLD_PARTS; p++)
			{
				const int at = c + p * LS_LANES;
				sum[p] = ls_vf_fma(ls_vf_load(a + at), ls_vf_load(b + at), sum[p]);
			}
		dots[r] += ls_fold_sum(sum);
	}
}
