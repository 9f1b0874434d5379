/*
 * attention_unit.h - one head of one sentence, and its products in bf16 (attention_bf16.c).
 */
#ifndef LS_KERNELS_ATTENTION_UNIT_H
#define LS_KERNELS_ATTENTION_UNIT_H

#include "kernels/attention.h"
#include "kernels/simd.h"

enum { LS_ATTENTION_LANES = 16 };

typedef struct ls_attention_unit {
	const ls_attention_plan *a;
	const ls_simd *simd;
	int64_t first;               /* row of the sentence's first token */
	int stride;                  /* rows from one token to the next */
	int64_t lse;                 /* place of the first token in a head's lse */
	int queries;                 /* tokens of the sentence here */
	int past;                    /* keys before the first query */
	int length;                  /* keys of the sentence, or those that a block of queries sees */
	int columns;                 /* the same, rounded up to 16 */
	int ld;                      /* row stride of matrices with a column per key */
	int64_t key_first, key_rows; /* of k and v: row of the first key, and rows in all */
	int key_stride;
	int head;
	int part, parts; /* channels of the head in one panel, and how many panels it lies in */
	uint64_t sample;
	/* scratch */
	float *keys, *values; /* (width, ld) transposed */
	float *score, *slope; /* (block, ld) */
	float *keep;          /* (block, length rounded up to 4), and room for the end of a draw */
	/* scratch in bf16, words of two; the first two are in place of keys and values */
	uint32_t *key_words, *value_words; /* (width / 2, ld) in pairs of channels, transposed */
	uint32_t *pairs;                   /* v for forward, k for backward: (half, part) in pairs of keys, by part */
	int half;                          /* pairs of keys of the sentence */
	uint32_t *rows;                    /* a block of rows of the head, in pairs of channels or of rows */
	uint32_t *rounded;                 /* probabilities or their gradients, in pairs of keys or of rows */
} ls_attention_unit;

/* Where the channels of a part of the head lie, in the sentence's row `row`. */
static inline int64_t ls_attention_place(const ls_attention_unit *u, int part, int64_t row)
{
	const int channel = u->head * u->a->width + part * u->part, panel = u->a->panel;
	return (channel / panel * u->a->rows + u->first + row * u->stride) * panel + channel % panel;
}

/* Floats from a row of the sentence to the next. */
static inline int ls_attention_row_floats(const ls_attention_unit *u)
{
	return u->a->panel * u->stride;
}

/* The same in k and v, which may be longer. */
static inline int64_t ls_attention_key_place(const ls_attention_unit *u, int part, int64_t row)
{
	const int channel = u->head * u->a->width + part * u->part, panel = u->a->panel;
	return (channel / panel * u->key_rows + u->key_first + row * u->key_stride) * panel + channel % panel;
}

static inline int ls_attention_key_row_floats(const ls_attention_unit *u)
{
	return u->a->panel * u->key_stride;
}

/*
 * Products of a block of queries [row, row + count); x is in fp32 and rounded here.
 */

/* Round the head's keys or values of the unit: transposed in pairs of channels, and in pairs of keys. */
void ls_attention_bf16_transpose(const ls_attention_unit *u, const float *x, uint32_t *out);
void ls_attention_bf16_pairs(const ls_attention_unit *u, const float *x);

/* y (count, columns) = rows of the head of x, times `transposed` (width / 2, columns). */
void ls_attention_bf16_keys(const ls_attention_unit *u, const float *x, const uint32_t *transposed, int row, int count,
			    float *y);

/* Rows of the head of y = x (count, length) . u->pairs; the column of x behind an odd length is cleared. */
void ls_attention_bf16_rows(const ls_attention_unit *u, float *x, int row, int count, float *y);

/* What the block adds to the keys it sees, y (+)= x (count, keys)^T . rows of the head of w: to those from `own` on,
 * which no block before it saw, it writes. */
void ls_attention_bf16_add_to_keys(const ls_attention_unit *u, const float *x, const float *w, int row, int count,
				   int own, float *y);

#endif
