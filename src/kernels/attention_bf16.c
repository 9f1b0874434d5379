/*
 * attention_bf16.c - attention's products with operands in bf16.
 *
 * Rounding is a pass of its own over a block of scores or rows, in the first-level cache. Keys and values are rounded
 * once per sentence and head, into pairs of channels for the scores and into pairs of keys for what the scores weigh.
 */
#include <string.h>

#include "kernels/attention_unit.h"

/* `count` rows of a part of the head, `stride` floats apart, in pairs of channels: (count, part / 2). */
static void round_rows(const ls_attention_unit *u, const float *x, int stride, int count, uint32_t *out)
{
	for (int r = 0; r < count; r++)
		u->a->bf16->rows(x + (int64_t)r * stride, u->part, out + r * (u->part / 2));
}

void ls_attention_bf16_transpose(const ls_attention_unit *u, const float *x, uint32_t *out)
{
	const int half = u->part / 2, stride = ls_attention_key_row_floats(u);
	uint32_t *words = (uint32_t *)u->score; /* which is not in use yet */

	for (int p = 0; p < u->parts; p++, out += (int64_t)half * u->ld) {
		round_rows(u, x + ls_attention_key_place(u, p, 0), stride, u->length, words);
		memset(words + (int64_t)u->length * half, 0,
		       sizeof(*words) * (size_t)((u->columns - u->length) * half));
		u->simd->transpose((const float *)words, u->columns, half, half, (float *)out, u->ld);
	}
}

void ls_attention_bf16_pairs(const ls_attention_unit *u, const float *x)
{
	for (int p = 0; p < u->parts; p++)
		u->a->bf16->pairs(x + ls_attention_key_place(u, p, 0), u->length, u->part,
				  ls_attention_key_row_floats(u), u->pairs + (int64_t)p * u->half * u->part);
}

void ls_attention_bf16_keys(const ls_attention_unit *u, const float *x, const uint32_t *transposed, int row, int count,
			    float *y)
{
	const int half = u->part / 2;

	for (int p = 0; p < u->parts; p++) {
		const ls_bf16_part part = { u->rows, transposed + (int64_t)p * half * u->ld };
		const ls_bf16_shape shape = { .rows = count,
					      .pairs = half,
					      .cols = u->columns,
					      .ldx = half,
					      .ldw = u->ld,
					      .ldy = u->ld,
					      .accumulate = p > 0 };
		round_rows(u, x + ls_attention_place(u, p, row), ls_attention_row_floats(u), count, u->rows);
		u->a->bf16->gemm(&shape, &part, 1, y);
	}
}

void ls_attention_bf16_rows(const ls_attention_unit *u, float *x, int row, int count, float *y)
{
	const ls_bf16_shape shape = { .rows = count,
				      .pairs = (u->length + 1) / 2,
				      .cols = u->part,
				      .ldx = u->columns / 2,
				      .ldw = u->part,
				      .ldy = ls_attention_row_floats(u) };

	for (int r = 0; r < count; r++) {
		float *from = x + (int64_t)r * u->ld;
		if (u->length % 2)
			from[u->length] = 0;
		u->a->bf16->rows(from, u->columns, u->rounded + (int64_t)r * (u->columns / 2));
	}
	for (int p = 0; p < u->parts; p++) {
		const ls_bf16_part part = { u->rounded, u->pairs + (int64_t)p * u->half * u->part };
		u->a->bf16->gemm(&shape, &part, 1, y + ls_attention_place(u, p, row));
	}
}

void ls_attention_bf16_add_to_keys(const ls_attention_unit *u, const float *x, const float *w, int row, int count,
				   int own, float *y)
{
	u->a->bf16->pairs(x, count, u->columns, u->ld, u->rounded);
	for (int p = 0; p < u->parts; p++) {
		ls_bf16_shape shape = { .rows = own,
					.pairs = (count + 1) / 2,
					.cols = u->part,
					.ldx = u->columns,
					.ldw = u->part,
					.ldy = ls_attention_row_floats(u),
					.transposed = 1,
					.accumulate = 1 };
		u->a->bf16->pairs(w + ls_attention_place(u, p, row), count, u->part, ls_attention_row_floats(u),
				  u->rows);
		if (own > 0)
			u->a->bf16->gemm(&shape, &(ls_bf16_part){ u->rounded, u->rows }, 1,
					 y + ls_attention_place(u, p, 0));
		shape.rows = u->length - own;
		shape.accumulate = 0;
		if (shape.rows > 0)
			u->a->bf16->gemm(&shape, &(ls_bf16_part){ u->rounded + own, u->rows }, 1,
					 y + ls_attention_place(u, p, own));
	}
}
