/*
 * attention.c - the walk over sentences, heads and blocks of queries, on small products.
 *
 * For a block of queries, with s = q k^T and p = e^(scale s - lse):
 *   forward:   out = keep p v
 *   backward:  dv += (keep p)^T dout,  dp = keep (dout v^T),  ds = scale p (dp - dout . out),  dq = ds k,  dk += ds^T q
 * (dout . out = sum_j p dp, as out is what p was multiplied into). Products need the right factor row by row, so k and,
 * for backward, v are transposed once per unit, with zero columns up to a multiple of 16; what these columns give is
 * never read. A matrix with a column per key has a row stride that is an odd number of cache lines: rows a power of two
 * apart would share a few sets of the first-level cache. Products in bf16 are in attention_bf16.c.
 */
#include "kernels/attention.h"

#include <math.h>
#include <string.h>

#include "kernels/attention_unit.h"
#include "params/panel.h"

typedef ls_attention_unit unit;

static int64_t rounded(int64_t length)
{
	return (length + LS_ATTENTION_LANES - 1) / LS_ATTENTION_LANES * LS_ATTENTION_LANES;
}

static int64_t odd_stride(int64_t length)
{
	return rounded(length) | LS_ATTENTION_LANES;
}

static int64_t member_floats(int width, int64_t longest)
{
	const int64_t matrix = odd_stride(longest);
	const int64_t in_bf16 = LS_ATTENTION_BLOCK * (LS_PANEL_MAX / 2 + matrix / 2);
	return 2 * width * matrix + 3 * LS_ATTENTION_BLOCK * matrix + 4 * LS_ATTENTION_LANES + in_bf16;
}

size_t ls_attention_scratch_floats(int width, int64_t longest, int threads)
{
	return (size_t)(member_floats(width, longest) * threads);
}

static int64_t longest_sentence(const ls_attention_plan *a)
{
	int64_t longest = a->start ? 0 : a->positions;
	for (int64_t i = 0; a->start && i < a->samples; i++) {
		int64_t length = a->start[i + 1] - a->start[i] + (a->past ? a->past[i] : 0);
		longest = length > longest ? length : longest;
	}
	return longest;
}

static unit unit_make(const ls_attention_plan *a, int64_t number, float *scratch)
{
	const int64_t sample = number / a->heads;
	unit u = { .a = a, .simd = ls_simd_get(), .stride = 1, .head = (int)(number % a->heads) };
	if (a->start) {
		u.first = u.lse = a->start[sample];
		u.queries = a->start[sample + 1] - a->start[sample];
	} else {
		u.first = sample;
		u.lse = sample * a->positions;
		u.stride = (int)a->samples;
		u.queries = a->positions;
	}
	u.past = a->past ? a->past[sample] : 0;
	u.length = u.past + u.queries;
	u.key_first = a->past ? sample * a->key_room : u.first;
	u.key_rows = a->past ? a->key_rows : a->rows;
	u.key_stride = a->past ? 1 : u.stride;
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
	u.half = (u.length + 1) / 2;
	u.key_words = (uint32_t *)u.keys;
	u.pairs = u.key_words + (int64_t)a->width / 2 * u.ld;
	u.value_words = (uint32_t *)u.values;
	u.rows = (uint32_t *)(u.keep + (int64_t)LS_ATTENTION_BLOCK * u.ld + 4 * LS_ATTENTION_LANES);
	u.rounded = u.rows + LS_ATTENTION_BLOCK * LS_PANEL_MAX / 2;
	return u;
}

/* out (width, columns) = the head's rows of x, keys or values, transposed, with zeros in the
 * columns past the sentence. */
static void transpose_head(const unit *u, const float *x, float *out)
{
	const int whole = u->length / LS_ATTENTION_LANES * LS_ATTENTION_LANES, rest = u->length - whole;
	for (int p = 0; p < u->parts; p++, out += (int64_t)u->part * u->ld) {
		u->simd->transpose(x + ls_attention_key_place(u, p, 0), whole, u->part, ls_attention_key_row_floats(u),
				   out, u->ld);
		if (!rest)
			continue;
		float last[LS_ATTENTION_LANES * 64] = { 0 };
		for (int r = 0; r < rest; r++)
			memcpy(last + r * u->part, x + ls_attention_key_place(u, p, whole + r),
			       (size_t)u->part * sizeof(*last));
		u->simd->transpose(last, LS_ATTENTION_LANES, u->part, u->part, out + whole, u->ld);
	}
}

/* What all blocks multiply by: keys and maybe values transposed, and what `rows` multiplies as it lies. */
static void prepare(const unit *u, const float *keys, const float *values, const float *rows)
{
	if (!u->a->bf16) {
		transpose_head(u, keys, u->keys);
		if (values)
			transpose_head(u, values, u->values);
		return;
	}
	ls_attention_bf16_transpose(u, keys, u->key_words);
	if (values)
		ls_attention_bf16_transpose(u, values, u->value_words);
	ls_attention_bf16_pairs(u, rows);
}

/* y (count, columns) = rows [row, row + count) of the head of x, times `transposed` (width, columns). */
static void multiply_keys(const unit *u, const float *x, const float *transposed, int row, int count, float *y)
{
	if (u->a->bf16) {
		ls_attention_bf16_keys(u, x, (const uint32_t *)transposed, row, count, y);
		return;
	}
	for (int p = 0; p < u->parts; p++) {
		const ls_gemm_shape shape = { .rows = count,
					      .depth = u->part,
					      .cols = u->columns,
					      .ldx = ls_attention_row_floats(u),
					      .ldw = u->ld,
					      .ldy = u->ld,
					      .accumulate = p > 0 };
		u->simd->gemm(&shape, x + ls_attention_place(u, p, row), transposed + (int64_t)p * u->part * u->ld, y);
	}
}

/* Rows [row, row + count) of the head of y = x (count, length) . the head's rows of w, keys or values. */
static void multiply_rows(const unit *u, float *x, const float *w, int row, int count, float *y)
{
	if (u->a->bf16) {
		ls_attention_bf16_rows(u, x, row, count, y);
		return;
	}
	const ls_gemm_shape shape = { .rows = count,
				      .depth = u->length,
				      .cols = u->part,
				      .ldx = u->ld,
				      .ldw = ls_attention_key_row_floats(u),
				      .ldy = ls_attention_row_floats(u) };
	for (int p = 0; p < u->parts; p++)
		u->simd->gemm(&shape, x, w + ls_attention_key_place(u, p, 0), y + ls_attention_place(u, p, row));
}

/* Rows [first, first + keys) of the head of y (+)= x (count, keys)^T . rows [row, row + count) of the head of w. */
static void multiply_transposed(const unit *u, const float *x, const float *w, int row, int count, int first, int keys,
				int accumulate, float *y)
{
	const ls_gemm_shape shape = { .rows = count,
				      .depth = keys,
				      .cols = u->part,
				      .ldx = u->ld,
				      .ldw = ls_attention_row_floats(u),
				      .ldy = ls_attention_row_floats(u),
				      .transposed = 1,
				      .accumulate = accumulate };
	for (int p = 0; p < u->parts; p++)
		u->simd->gemm(&shape, x + first, w + ls_attention_place(u, p, row),
			      y + ls_attention_place(u, p, first));
}

/* What a block of queries adds to the keys it sees; the first block that sees a key writes. */
static void add_to_keys(const unit *u, const float *x, const float *w, int row, int count, float *y)
{
	if (u->a->bf16) {
		ls_attention_bf16_add_to_keys(u, x, w, row, count, u->a->causal || !row ? row : u->length, y);
		return;
	}
	if (!u->a->causal) {
		multiply_transposed(u, x, w, row, count, 0, u->length, row > 0, y);
		return;
	}
	if (row > 0)
		multiply_transposed(u, x, w, row, count, 0, row, 1, y);
	multiply_transposed(u, x, w, row, count, row, count, 0, y);
}

/* A block of queries [row, row + count) sees keys up to its last. */
static unit up_to_block(const unit *u, int row, int count)
{
	unit b = *u;
	b.length = u->past + row + count;
	b.columns = (int)rounded(b.length);
	return b;
}

/* Keys behind their query: scores of -inf, which are probabilities of 0. */
static void mask_future(const unit *u, int row, int count)
{
	for (int r = 0; r < count; r++)
		for (int j = u->past + row + r + 1; j < u->length; j++)
			u->score[(int64_t)r * u->ld + j] = -INFINITY;
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
	if (u->a->causal)
		mask_future(u, row, count);
	u->simd->attention_softmax(&shape, draw_keep(u, row, count), u->score, inverse,
				   lse + u->head * u->a->rows + u->lse + row);
	multiply_rows(u, u->score, v, row, count, out);
	for (int p = 0; p < u->parts; p++)
		u->simd->attention_scale(out + ls_attention_place(u, p, row), count, u->part,
					 ls_attention_row_floats(u), inverse);
}

static void backward_block(const unit *u, const float *q, const float *k, const float *out, const float *lse,
			   const float *dout, int row, int count, float *dq, float *dk, float *dv)
{
	float dots[LS_ATTENTION_BLOCK] = { 0 };
	const ls_score_shape shape = score_shape(u, count);
	multiply_keys(u, q, u->keys, row, count, u->score);
	multiply_keys(u, dout, u->values, row, count, u->slope);
	if (u->a->causal)
		mask_future(u, row, count);
	for (int p = 0; p < u->parts; p++)
		u->simd->attention_dots(dout + ls_attention_place(u, p, row), out + ls_attention_place(u, p, row),
					count, u->part, ls_attention_row_floats(u), dots);
	u->simd->attention_softmax_backward(&shape, draw_keep(u, row, count), lse + u->head * u->a->rows + u->lse + row,
					    dots, u->score, u->slope);
	if (dv)
		add_to_keys(u, u->score, dout, row, count, dv);
	if (dk)
		add_to_keys(u, u->slope, q, row, count, dk);
	if (dq)
		multiply_rows(u, u->slope, k, row, count, dq);
}

/* Queries per block: as even as can be, none above the most; causal: the most, so that blocks begin on cache lines. */
static int block_rows(const unit *u)
{
	if (u->a->causal)
		return LS_ATTENTION_BLOCK;
	const int blocks = (u->queries + LS_ATTENTION_BLOCK - 1) / LS_ATTENTION_BLOCK;
	return blocks ? (u->queries + blocks - 1) / blocks : 1;
}

/* The last head of a sentence clears the channels behind it. */
static void clear_rest(const unit *u, float *y)
{
	const int channels = u->a->heads * u->a->width, panel = u->a->panel, rest = channels % panel;
	if (!y || u->head != u->a->heads - 1 || !rest)
		return;
	float *row = y + (channels / panel * u->a->rows + u->first) * panel;
	for (int r = 0; r < u->queries; r++, row += ls_attention_row_floats(u))
		memset(row + rest, 0, (size_t)(panel - rest) * sizeof(*row));
}

void ls_attention_forward(const ls_attention_plan *a, const float *q, const float *k, const float *v, float *out,
			  float *lse, float *scratch, ls_member member)
{
	const int64_t units = a->samples * a->heads;
	scratch += member.rank * member_floats(a->width, longest_sentence(a));
	for (int64_t i; (i = ls_team_next(member, units)) >= 0;) {
		const unit u = unit_make(a, i, scratch);
		const int block = block_rows(&u);
		prepare(&u, k, NULL, v);
		for (int row = 0; row < u.queries; row += block) {
			const int count = u.queries - row < block ? u.queries - row : block;
			const unit b = a->causal ? up_to_block(&u, row, count) : u;
			forward_block(&b, q, v, row, count, out, lse);
		}
		clear_rest(&u, out);
	}
}

void ls_attention_backward(const ls_attention_plan *a, const float *q, const float *k, const float *v, const float *out,
			   const float *lse, const float *dout, float *dq, float *dk, float *dv, float *scratch,
			   ls_member member)
{
	const int64_t units = a->samples * a->heads;
	scratch += member.rank * member_floats(a->width, longest_sentence(a));
	for (int64_t i; (i = ls_team_next(member, units)) >= 0;) {
		const unit u = unit_make(a, i, scratch);
		const int block = block_rows(&u);
		prepare(&u, k, v, k);
		for (int row = 0; row < u.queries; row += block) {
			const int count = u.queries - row < block ? u.queries - row : block;
			const unit b = a->causal ? up_to_block(&u, row, count) : u;
			backward_block(&b, q, k, out, lse, dout, row, count, dq, dk, dv);
		}
		clear_rest(&u, dq);
		clear_rest(&u, dk);
		clear_rest(&u, dv);
	}
}
