/*
 * layer_norm.c - layer normalisation of rows whose channels lie in blocks.
 *
 * Four rows go together: they are neighbours in every block, and their sums do not wait for each other. The mean is
 * taken twice: a first one by adding up, then corrected by the mean of the differences from it, which are small; the
 * variance is that of the differences. So neither a large common offset nor one large channel costs digits. Sums over
 * channels run in sixteen lanes (fold.h), sums over rows in row order: no result depends on the vector width or on how
 * rows are grouped.
 */
#include <math.h>
#include <stddef.h>

#include "kernels/simd/fold.h"
#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

#define GROUP 4 /* rows together */

typedef ls_row_shape row_shape;

/* Sixteen lanes of each row of a group. */
typedef struct lanes {
	ls_vf row[GROUP][LS_FOLD_PARTS];
} lanes;

LS_INLINE int64_t block_stride(const row_shape *shape)
{
	return shape->rows * shape->panel;
}

/* Real channels of the block that starts at channel `first`. */
LS_INLINE int live_channels(const row_shape *shape, int first)
{
	return shape->channels - first < shape->panel ? shape->channels - first : shape->panel;
}

/* value, or 0 in the lanes past `live` where there are such. */
LS_INLINE ls_vf kept(ls_vf value, int live, int part)
{
	return live < LS_FOLD ? ls_vf_where(ls_fold_live(live, part), value) : value;
}

/* Chunks of sixteen channels from `live` on, rounded up, are zero. */
LS_INLINE void zero_rest(float *y, int panel, int live, int rows)
{
	for (int r = 0; r < rows; r++)
		for (int c = (live + LS_FOLD - 1) / LS_FOLD * LS_FOLD; c < panel; c += LS_LANES)
			ls_vf_store(y + r * panel + c, (ls_vf){ 0 });
}

/* s = x + residual of sixteen channels, and their sums; without a residual only the sums. */
LS_INLINE void add_chunk(const float *x, const float *residual, float *s, int panel, int rows, lanes *sum)
{
	LS_UNROLL for (int r = 0; r < rows; r++)
	{
		LS_UNROLL for (int p = 0; p < LS_FOLD_PARTS; p++)
		{
			const int at = r * panel + p * LS_LANES;
			ls_vf t = ls_vf_load(x + at);
			if (residual) {
				t += ls_vf_load(residual + at);
				ls_vf_store(s + at, t);
			}
			sum->row[r][p] += t;
		}
	}
}

LS_INLINE void add_rows(const row_shape *shape, const float *x, const float *residual, float *s, int rows, float *mean)
{
	lanes sum = { 0 };
	int64_t at = 0;
	for (int first = 0; first < shape->channels; first += shape->panel, at += block_stride(shape)) {
		const int live = live_channels(shape, first);
		for (int c = 0; c < live; c += LS_FOLD)
			add_chunk(x + at + c, residual ? residual + at + c : NULL, s ? s + at + c : NULL, shape->panel,
				  rows, &sum);
		if (residual)
			zero_rest(s + at, shape->panel, live, rows);
	}
	for (int r = 0; r < rows; r++)
		mean[r] = ls_fold_sum(sum.row[r]) / (float)shape->channels;
}

/* Sums of s - mean and of its square. */
LS_INLINE void moment_chunk(const float *s, int panel, int rows, int live, const float *mean, lanes *sum, lanes *square)
{
	LS_UNROLL for (int r = 0; r < rows; r++)
	{
		LS_UNROLL for (int p = 0; p < LS_FOLD_PARTS; p++)
		{
			ls_vf d = kept(ls_vf_load(s + r * panel + p * LS_LANES) - mean[r], live, p);
			sum->row[r][p] += d;
			square->row[r][p] += d * d;
		}
	}
}

/* Correct the means and find the inverse deviations. */
LS_INLINE void moment_rows(const row_shape *shape, const float *s, int rows, float epsilon, float *mean, float *inverse)
{
	lanes sum = { 0 }, square = { 0 };
	const float count = (float)shape->channels;
	for (int first = 0; first < shape->channels; first += shape->panel, s += block_stride(shape)) {
		const int live = live_channels(shape, first);
		int c = 0;
		for (; c + LS_FOLD <= live; c += LS_FOLD)
			moment_chunk(s + c, shape->panel, rows, LS_FOLD, mean, &sum, &square);
		if (c < live)
			moment_chunk(s + c, shape->panel, rows, live - c, mean, &sum, &square);
	}
	for (int r = 0; r < rows; r++) {
		const float off = ls_fold_sum(sum.row[r]) / count;
		float variance = ls_fold_sum(square.row[r]) / count - off * off;
		variance = variance < 0 ? 0 : variance;
		mean[r] += off;
		inverse[r] = 1.0f / sqrtf(variance + epsilon);
	}
}

LS_INLINE void scale_chunk(const float *s, int panel, int rows, int live, const float *gamma, const float *beta,
			   const float *mean, const float *inverse, float *y)
{
	LS_UNROLL for (int p = 0; p < LS_FOLD_PARTS; p++)
	{
		ls_vf a = ls_vf_load(gamma + p * LS_LANES), b = ls_vf_load(beta + p * LS_LANES);
		LS_UNROLL for (int r = 0; r < rows; r++)
		{
			const int at = r * panel + p * LS_LANES;
			ls_vf t = (ls_vf_load(s + at) - mean[r]) * inverse[r];
			ls_vf_store(y + at, kept(t * a + b, live, p));
		}
	}
}

LS_INLINE void scale_rows(const row_shape *shape, const float *s, int rows, const float *gamma, const float *beta,
			  const float *mean, const float *inverse, float *y)
{
	int64_t at = 0;
	for (int first = 0; first < shape->channels; first += shape->panel, at += block_stride(shape)) {
		const int live = live_channels(shape, first);
		int c = 0;
		for (; c + LS_FOLD <= live; c += LS_FOLD)
			scale_chunk(s + at + c, shape->panel, rows, LS_FOLD, gamma + first + c, beta + first + c, mean,
				    inverse, y + at + c);
		if (c < live)
			scale_chunk(s + at + c, shape->panel, rows, live - c, gamma + first + c, beta + first + c, mean,
				    inverse, y + at + c);
		zero_rest(y + at, shape->panel, live, rows);
	}
}

/* What is the same for all rows of a call. */
typedef struct forward {
	const row_shape *shape;
	const float *x, *residual, *gamma, *beta;
	float *s, *y, *mean, *inverse;
	float epsilon;
} forward;

LS_INLINE void forward_rows(const forward *f, int64_t row, int rows)
{
	const row_shape *shape = f->shape;
	const int64_t at = row * shape->panel;
	const float *s = f->x + at;
	float mean[GROUP], inverse[GROUP];
	if (f->residual) {
		add_rows(shape, f->x + at, f->residual + at, f->s + at, rows, mean);
		s = f->s + at;
	} else {
		add_rows(shape, s, NULL, NULL, rows, mean);
	}
	moment_rows(shape, s, rows, f->epsilon, mean, inverse);
	scale_rows(shape, s, rows, f->gamma, f->beta, mean, inverse, f->y + at);
	for (int r = 0; r < rows; r++) {
		f->mean[row + r] = mean[r];
		f->inverse[row + r] = inverse[r];
	}
}

void LS_ISA_SYMBOL(ls_simd_layer_norm)(const ls_row_shape *shape, const float *x, const float *residual, int64_t begin,
				       int64_t end, const float *gamma, const float *beta, float epsilon, float *s,
				       float *y, float *mean, float *inverse)
{
	const forward f = { shape, x, residual, gamma, beta, s, y, mean, inverse, epsilon };
	int64_t row = begin;
	for (; row + GROUP <= end; row += GROUP)
		forward_rows(&f, row, GROUP);
	for (; row < end; row++)
		forward_rows(&f, row, 1);
}

/*
 * Backward, with xhat = (s - mean) * inverse and g = dy * gamma:
 *   dbeta = sum over rows of dy,  dgamma = sum over rows of dy * xhat,
 *   ds = inverse * (g - E g - xhat * E(g xhat)), E being the mean over the channels of a row.
 */
typedef struct backward {
	const row_shape *shape;
	const float *dy, *s, *gamma, *mean, *inverse;
	float *ds, *dgamma, *dbeta;
} backward;

/* Sixteen channels' share of the sums over channels (g, g xhat), and the rows' share of those over rows. */
LS_INLINE void sums_chunk(const float *dy, const float *s, int panel, int rows, int live, const float *gamma,
			  const float *mean, const float *inverse, lanes *sum, lanes *product, float *dgamma,
			  float *dbeta)
{
	LS_UNROLL for (int p = 0; p < LS_FOLD_PARTS; p++)
	{
		ls_vf a = ls_vf_load(gamma + p * LS_LANES);
		ls_vf da = ls_vf_load(dgamma + p * LS_LANES), db = ls_vf_load(dbeta + p * LS_LANES);
		LS_UNROLL for (int r = 0; r < rows; r++)
		{
			const int at = r * panel + p * LS_LANES;
			ls_vf d = kept(ls_vf_load(dy + at), live, p);
			ls_vf xhat = kept((ls_vf_load(s + at) - mean[r]) * inverse[r], live, p);
			ls_vf g = d * a;
			db += d;
			da += d * xhat;
			sum->row[r][p] += g;
			product->row[r][p] += g * xhat;
		}
		ls_vf_store(dgamma + p * LS_LANES, da);
		ls_vf_store(dbeta + p * LS_LANES, db);
	}
}

/* The means of g and of g xhat of each row. */
LS_INLINE void sums_rows(const backward *b, int64_t at, int rows, const float *mean, const float *inverse,
			 float *mean_g, float *mean_gx)
{
	const row_shape *shape = b->shape;
	lanes sum = { 0 }, product = { 0 };
	for (int first = 0; first < shape->channels; first += shape->panel, at += block_stride(shape)) {
		const int live = live_channels(shape, first);
		int c = 0;
		for (; c + LS_FOLD <= live; c += LS_FOLD)
			sums_chunk(b->dy + at + c, b->s + at + c, shape->panel, rows, LS_FOLD, b->gamma + first + c,
				   mean, inverse, &sum, &product, b->dgamma + first + c, b->dbeta + first + c);
		if (c < live)
			sums_chunk(b->dy + at + c, b->s + at + c, shape->panel, rows, live - c, b->gamma + first + c,
				   mean, inverse, &sum, &product, b->dgamma + first + c, b->dbeta + first + c);
	}
	for (int r = 0; r < rows; r++) {
		mean_g[r] = ls_fold_sum(sum.row[r]) / (float)shape->channels;
		mean_gx[r] = ls_fold_sum(product.row[r]) / (float)shape->channels;
	}
}

/* Rows' statistics, and the means over their channels. */
typedef struct row_terms {
	float mean[GROUP], inverse[GROUP], mean_g[GROUP], mean_gx[GROUP];
} row_terms;

LS_INLINE void input_chunk(const float *dy, const float *s, int panel, int rows, int live, const float *gamma,
			   const row_terms *t, float *ds)
{
	LS_UNROLL for (int p = 0; p < LS_FOLD_PARTS; p++)
	{
		ls_vf a = ls_vf_load(gamma + p * LS_LANES);
		LS_UNROLL for (int r = 0; r < rows; r++)
		{
			const int at = r * panel + p * LS_LANES;
			ls_vf xhat = (ls_vf_load(s + at) - t->mean[r]) * t->inverse[r];
			ls_vf d = (ls_vf_load(dy + at) * a - t->mean_g[r]) - xhat * t->mean_gx[r];
			ls_vf_store(ds + at, kept(d * t->inverse[r], live, p));
		}
	}
}

LS_INLINE void backward_rows(const backward *b, int64_t row, int rows)
{
	const row_shape *shape = b->shape;
	int64_t at = row * shape->panel;
	row_terms t;
	for (int r = 0; r < rows; r++) {
		t.mean[r] = b->mean[row + r];
		t.inverse[r] = b->inverse[row + r];
	}
	sums_rows(b, at, rows, t.mean, t.inverse, t.mean_g, t.mean_gx);
	for (int first = 0; first < shape->channels; first += shape->panel, at += block_stride(shape)) {
		const int live = live_channels(shape, first);
		int c = 0;
		for (; c + LS_FOLD <= live; c += LS_FOLD)
			input_chunk(b->dy + at + c, b->s + at + c, shape->panel, rows, LS_FOLD, b->gamma + first + c,
				    &t, b->ds + at + c);
		if (c < live)
			input_chunk(b->dy + at + c, b->s + at + c, shape->panel, rows, live - c, b->gamma + first + c,
				    &t, b->ds + at + c);
		zero_rest(b->ds + at, shape->panel, live, rows);
	}
}

void LS_ISA_SYMBOL(ls_simd_layer_norm_backward)(const ls_row_shape *shape, const float *dy, const float *s,
						int64_t begin, int64_t end, const float *gamma, const float *mean,
						const float *inverse, float *ds, float *dgamma, float *dbeta)
{
	const backward b = { shape, dy, s, gamma, mean, inverse, ds, dgamma, dbeta };
	int64_t row = begin;
	for (int c = 0; c < shape->channels; c += shape->panel)
		for (int k = 0; k < shape->panel; k++)
			dgamma[c + k] = dbeta[c + k] = 0;
	for (; row + GROUP <= end; row += GROUP)
		backward_rows(&b, row, GROUP);
	for (; row < end; row++)
		backward_rows(&b, row, 1);
}
