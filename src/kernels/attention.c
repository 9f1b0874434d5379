/*
 * attention.c - the walk over sentences, heads and blocks of queries, on small products.
 *
 * For a block of queries, with s = q k^T and p = e^(scale s - lse):
 *   forward:   out = keep p v
 *   backward:  dv += (keep p)^T dout,  dp = keep (dout v^T),  ds = scale p (dp - dout . out),  dq = ds k,  dk += ds^T q
 * (dout . out = sum_j p dp, as out is what p was multiplied into). Products need the right factor row by row, so k and,
 * for backward, v are transposed once a unit, with zero columns up to a multiple of 16; what these columns give is
 * never read. A matrix with a column a key has a row stride that is an odd number of cache lines: rows a power of two
 * apart would share a few sets of the first-level cache.
 */
#include "kernels/attention.h"

#include <string.h>

#include "kernels/simd.h"

#define LANES 16

typedef struct unit {
	const ls_attention *a;
	const ls_simd *simd;
	int64_t first; /* row of the sentence's first token */
	int length;    /* tokens */
	int columns;   /* the same, rounded up to 16 */
	int ld;        /* row stride of matrices with a column a key */
	int head;
	int part, parts; /* channels of the head in one panel, and how many panels it lies in */
	uint64_t sample;
	/* scratch */
	float *keys, *values; /* (width, ld) transposed */
	float *score, *slope; /* (block, ld) */
	float *keep;          /* (block, length rounded up to 4), and room for the end of a draw */
} unit;

static int64_t rounded(int64_t length)
{
	return (length + LANES - 1) / LANES * LANES;
}

static int64_t odd_stride(int64_t length)
{
	return rounded(length) | LANES;
}

static int64_t member_floats(int width, int64_t longest)
{
	const int64_t matrix = odd_stride(longest);
	return 2 * width * matrix + 3 * LS_ATTENTION_BLOCK * matrix + 4 * LANES;
}

size_t ls_attention_scratch_floats(int width, int64_t longest, int threads)
{
	return (size_t)(member_floats(width, longest) * threads);
}

static int64_t longest_sentence(const ls_attention *a)
{
	int64_t longest = 0;
	for (int64_t i = 0; i < a->samples; i++)
		if (a->start[i + 1] - a->start[i] > longest)
			longest = a->start[i + 1] - a->start[i];
	return longest;
}

static unit unit_make(const ls_attention *a, int64_t number, float *scratch)
{
	const int64_t sample = number / a->heads;
	unit u = { .a = a, .simd = ls_simd_get(), .first = a->start[sample], .head = (int)(number % a->heads) };
	u.length = a->start[sample + 1] - a->start[sample];
	u.columns = (int)rounded(u.length);
	u.ld = (int)odd_stride(u.length);
	u.part = a->width < a->panel ? a->width : a->panel;
	u.parts = a->width / u.part;
	u.sample = a->probability > 0 ? a->sample[sample] : 0;
	u.keys = scratch;
	u.values = u.keys + (int64_t)a->width * u.ld;
	u.score = u.values + (int64_t)a->width * u.ld;
	u.slope = u.score + (int64_t)LS_ATTENTION_BLOCK * u.ld;
	u.keep = u.slope + (int64_t)LS_ATTENTION_BLOCK * u.ld;
	return u;
}

/* Where the channels of a part of the head lie, in the sentence's row `row`. */
static int64_t place(const unit *u, int part, int64_t row)
{
	const int channel = u->head * u->a->width + part * u->part, panel = u->a->panel;
	return (channel / panel * u->a->rows + u->first + row) * panel + channel % panel;
}

/* out (width, columns) = the head's rows of x, transposed, with zeros in the columns past the sentence. */
static void transpose_head(const unit *u, const float *x, float *out)
{
	const int whole = u->length / LANES * LANES, rest = u->length - whole, panel = u->a->panel;
	for (int p = 0; p < u->parts; p++, out += (int64_t)u->part * u->ld) {
		u->simd->transpose(x + place(u, p, 0), whole, u->part, panel, out, u->ld);
		if (!rest)
			continue;
		float last[LANES * 64] = { 0 };
		for (int r = 0; r < rest; r++)
			memcpy(last + r * u->part, x + place(u, p, whole + r), (size_t)u->part * sizeof(*last));
		u->simd->transpose(last, LANES, u->part, u->part, out + whole, u->ld);
	}
}

/* y (count, columns) = rows [row, row + count) of the head of x, times `transposed` (width, columns). */
static void multiply_keys(const unit *u, const float *x, const float *transposed, int row, int count, float *y)
{
	for (int p = 0; p < u->parts; p++) {
		const ls_gemm_shape shape = { .rows = count,
					      .depth = u->part,
					      .cols = u->columns,
					      .ldx = u->a->panel,
					      .ldw = u->ld,
					      .ldy = u->ld,
					      .accumulate = p > 0 };
		u->simd->gemm(&shape, x + place(u, p, row), transposed + (int64_t)p * u->part * u->ld, y);
	}
}

/* Rows [row, row + count) of the head of y = x (count, length) . the head's rows of w. */
static void multiply_rows(const unit *u, const float *x, const float *w, int row, int count, float *y)
{
	const ls_gemm_shape shape = {
		.rows = count, .depth = u->length, .cols = u->part, .ldx = u->ld, .ldw = u->a->panel, .ldy = u->a->panel
	};
	for (int p = 0; p < u->parts; p++)
		u->simd->gemm(&shape, x, w + place(u, p, 0), y + place(u, p, row));
}

/* The head's rows of y (+)= x (count, length)^T . rows [row, row + count) of the head of w. */
static void multiply_transposed(const unit *u, const float *x, const float *w, int row, int count, float *y)
{
	const ls_gemm_shape shape = { .rows = count,
				      .depth = u->length,
				      .cols = u->part,
				      .ldx = u->ld,
				      .ldw = u->a->panel,
				      .ldy = u->a->panel,
				      .transposed = 1,
				      .accumulate = row > 0 };
	for (int p = 0; p < u->parts; p++)
		u->simd->gemm(&shape, x, w + place(u, p, row), y + place(u, p, 0));
}

/* The block's mask, or NULL where nothing is dropped. */
static const float *draw_keep(const unit *u, int row, int count)
{
	if (!(u->a->probability > 0))
		return NULL;
	const ls_keep_draw draw = { .key = { u->a->key[0], u->a->key[1] },
				    .sample = u->sample,
				    .first = (uint64_t)u->head << 38 | (uint64_t)row << 18,
				    .step = 1u << 18,
				    .probability = u->a->probability };
	u->simd->attention_keep(&draw, count, (u->length + 3) / 4, u->keep);
	return u->keep;
}

static ls_score_shape score_shape(const unit *u, int count)
{
	return (ls_score_shape){ .rows = count,
				 .length = u->length,
				 .ld = u->ld,
				 .ld_keep = (u->length + 3) / 4 * 4,
				 .scale = u->a->scale };
}

static void forward_block(const unit *u, const float *q, const float *v, int row, int count, float *out, float *lse)
{
	float inverse[LS_ATTENTION_BLOCK];
	const ls_score_shape shape = score_shape(u, count);
	multiply_keys(u, q, u->keys, row, count, u->score);
	u->simd->attention_softmax(&shape, draw_keep(u, row, count), u->score, inverse,
				   lse + u->head * u->a->rows + u->first + row);
	multiply_rows(u, u->score, v, row, count, out);
	for (int p = 0; p < u->parts; p++)
		u->simd->attention_scale(out + place(u, p, row), count, u->part, u->a->panel, inverse);
}

static void backward_block(const unit *u, const float *q, const float *k, const float *out, const float *lse,
			   const float *dout, int row, int count, float *dq, float *dk, float *dv)
{
	float dots[LS_ATTENTION_BLOCK] = { 0 };
	const ls_score_shape shape = score_shape(u, count);
	multiply_keys(u, q, u->keys, row, count, u->score);
	multiply_keys(u, dout, u->values, row, count, u->slope);
	for (int p = 0; p < u->parts; p++)
		u->simd->attention_dots(dout + place(u, p, row), out + place(u, p, row), count, u->part, u->a->panel,
					dots);
	u->simd->attention_softmax_backward(&shape, draw_keep(u, row, count),
					    lse + u->head * u->a->rows + u->first + row, dots, u->score, u->slope);
	multiply_transposed(u, u->score, dout, row, count, dv);
	multiply_transposed(u, u->slope, q, row, count, dk);
	multiply_rows(u, u->slope, k, row, count, dq);
}

/* Queries a block: as even as can be, none above the most. */
static int block_rows(const unit *u)
{
	const int blocks = (u->length + LS_ATTENTION_BLOCK - 1) / LS_ATTENTION_BLOCK;
	return blocks ? (u->length + blocks - 1) / blocks : 1;
}

/* The last head of a sentence clears the channels behind it. */
static void clear_rest(const unit *u, float *y)
{
	const int channels = u->a->heads * u->a->width, panel = u->a->panel, rest = channels % panel;
	if (u->head != u->a->heads - 1 || !rest)
		return;
	float *row = y + (channels / panel * u->a->rows + u->first) * panel;
	for (int r = 0; r < u->length; r++, row += panel)
		memset(row + rest, 0, (size_t)(panel - rest) * sizeof(*row));
}

void ls_attention_forward(const ls_attention *a, const float *q, const float *k, const float *v, float *out, float *lse,
			  float *scratch, ls_member member)
{
	const int64_t units = a->samples * a->heads;
	scratch += member.rank * member_floats(a->width, longest_sentence(a));
	for (int64_t i; (i = ls_team_next(member, units)) >= 0;) {
		const unit u = unit_make(a, i, scratch);
		const int block = block_rows(&u);
		transpose_head(&u, k, u.keys);
		for (int row = 0; row < u.length; row += block)
			forward_block(&u, q, v, row, u.length - row < block ? u.length - row : block, out, lse);
		clear_rest(&u, out);
	}
}

void ls_attention_backward(const ls_attention *a, const float *q, const float *k, const float *v, const float *out,
			   const float *lse, const float *dout, float *dq, float *dk, float *dv, float *scratch,
			   ls_member member)
{
	const int64_t units = a->samples * a->heads;
	scratch += member.rank * member_floats(a->width, longest_sentence(a));
	for (int64_t i; (i = ls_team_next(member, units)) >= 0;) {
		const unit u = unit_make(a, i, scratch);
		const int block = block_rows(&u);
		transpose_head(&u, k, u.keys);
		transpose_head(&u, v, u.values);
		for (int row = 0; row < u.length; row += block)
			backward_block(&u, q, k, out, lse, dout, row, u.length - row < block ? u.length - row : block,
				       dq, dk, dv);
		clear_rest(&u, dq);
		clear_rest(&u, dk);
		clear_rest(&u, dv);
	}
}
