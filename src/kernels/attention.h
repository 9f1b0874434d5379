/*
 * attention.h - multi-head attention over sentences or images, in memory linear in their length.
 *
 *   out = dropout(softmax(scale * q k^T)) v    for each sentence and head
 *
 * q, k, v, out and their gradients are panels, (blocks, rows, panel), as in kernels/simd.h. Head h has channels
 * [h * width, (h + 1) * width); the channels past the last head's are written as zeros. Sentences lie packed end to
 * end: sentence i has rows [start[i], start[i + 1]). Images lie interleaved: position p of image i is row p * samples +
 * i. Each sees itself only: its result depends on neither its neighbours nor its place. Rows outside of all sentences
 * are not touched.
 *
 * A unit of work is one head on one sentence, done by one thread from start to end. It takes blocks of at most
 * LS_ATTENTION_BLOCK queries, each with its scores against all keys of the sentence, or when `causal` against those up
 * to the block's last; backward computes them again from q, k and the log-sum-exp that forward left.
 *
 * In bf16 (kernels/simd/bf16.h) both operands of every product are rounded, probabilities and their gradients, too;
 * sums and what is between products are fp32. Scores are chains over pairs of channels, out and dq over pairs of keys,
 * dk and dv over pairs of a block's queries; an odd last one is paired with a zero.
 */
#ifndef LS_KERNELS_ATTENTION_H
#define LS_KERNELS_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

#define LS_ATTENTION_BLOCK 64 /* queries at a time */

typedef struct ls_attention_plan {
	int heads, width; /* width of a head: 16, 32, 64 or a multiple of 64; it divides panel or is a multiple of it */
	int64_t rows;
	int panel;
	const int32_t *start; /* (samples + 1); sentences are shorter than 2^20 rows. NULL: images */
	int positions;        /* of an image */
	int64_t samples;
	int causal; /* a query sees keys up to its own */
	/* Keys and values that are kept, for a forward that goes on where another ended; NULL: there is one per query.
	 * Sentence i has past[i] of them before its first query; its own are behind those. k and v are then (blocks,
	 * key_rows, panel), and sentence i's begin at row i * key_room. Only of sentences, and causal. */
	const int32_t *past; /* (samples) */
	int64_t key_rows, key_room;
	float scale;                        /* positive */
	const struct ls_bf16_kernels *bf16; /* those of bf16, not bf16-amx; NULL: products in fp32 */
	/* Dropout of the probabilities, 0: none. Key j of query i (both counted in the sentence) of head h is kept,
	 * times 1 / (1 - probability), when word j % 4 of ls_rng_words(key, sample, h << 38 | i << 18 | j >> 2) has a
	 * unit value of at least `probability`. */
	float probability;
	uint32_t key[2];
	const uint64_t *sample; /* (samples) dataset indices; may be NULL without dropout */
} ls_attention_plan;

/* Floats of scratch, 64-byte aligned, for a team of `threads`: enough for both directions, all precisions and sentences
 * up to `longest`. */
size_t ls_attention_scratch_floats(int width, int64_t longest, int threads);

/* lse (heads, rows): log-sum-exp of each row of scores, sample by sample. Called by all threads of a team; no barrier
 * inside or at the end. */
void ls_attention_forward(const ls_attention_plan *a, const float *q, const float *k, const float *v, float *out,
			  float *lse, float *scratch, ls_member member);
/* dq, dk and dv are written, not added to; dq may alias q, dout or out. */
void ls_attention_backward(const ls_attention_plan *a, const float *q, const float *k, const float *v, const float *out,
			   const float *lse, const float *dout, float *dq, float *dk, float *dv, float *scratch,
			   ls_member member);

#endif
