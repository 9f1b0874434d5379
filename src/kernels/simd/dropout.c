/*
 * dropout.c - Philox4x32-10 in lanes, and the masks it draws.
 *
 * A 64-bit lane holds one 32-bit word of the state of one block (its upper half is never read), so a vector
 * carries LS_LANES/2 blocks and a round is two 32x32->64 multiplications. Two vectors go side by side, as each round
 * waits for the one before. The words are those of ls_rng_words().
 */
#include "base/rng.h"
#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

#define SETS 2                    /* vectors side by side */
#define BLOCKS (LS_LANES / 2)     /* Philox blocks per vector */
#define WORDS (SETS * BLOCKS * 4) /* words per call of draw() */

typedef uint64_t vq __attribute__((vector_size(4 * LS_LANES)));
typedef uint64_t vq_any __attribute__((vector_size(4 * LS_LANES), aligned(4), may_alias));

typedef uint32_t vu_any __attribute__((vector_size(4 * LS_LANES), aligned(4), may_alias));

/* Product of the lower halves of the lanes. */
LS_INLINE vq multiply(vq a, vq b)
{
#if defined(LS_ISA_IS_avx512)
	return (vq)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(LS_ISA_IS_avx2)
	return (vq)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
	return (vq)_mm_mul_epu32((__m128i)a, (__m128i)b);
#elif defined(LS_ISA_IS_neon)
	return (vq)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#else
	return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

LS_INLINE vq broadcast(uint64_t value)
{
	return value + (vq){ 0 };
}

#if LS_LANES == 16
#define LOW_PAIRS 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_PAIRS 4, 12, 5, 13, 6, 14, 7, 15
static const vq lane_numbers = { 0, 1, 2, 3, 4, 5, 6, 7 };
#elif LS_LANES == 8
#define LOW_PAIRS 0, 4, 1, 5
#define HIGH_PAIRS 2, 6, 3, 7
static const vq lane_numbers = { 0, 1, 2, 3 };
#else
#define LOW_PAIRS 0, 2
#define HIGH_PAIRS 1, 3
static const vq lane_numbers = { 0, 1 };
#endif

/* The words of the blocks in the lanes of `low`, of counter `high`, in element order. */
LS_INLINE void draw_blocks(uint32_t key0, uint32_t key1, uint64_t high, const vq *low, uint32_t words[WORDS])
{
	vq a[SETS], b[SETS], c[SETS], d[SETS];
	LS_UNROLL for (int s = 0; s < SETS; s++)
	{
		a[s] = low[s];
		b[s] = a[s] >> 32;
		c[s] = broadcast(high);
		d[s] = broadcast(high >> 32);
	}
	LS_UNROLL for (int round = 0; round < 10; round++)
	{
		LS_UNROLL for (int s = 0; s < SETS; s++)
		{
			vq p = multiply(a[s], broadcast(0xD2511F53u)), q = multiply(c[s], broadcast(0xCD9E8D57u));
			a[s] = (q >> 32) ^ b[s] ^ broadcast(key0);
			b[s] = q;
			c[s] = (p >> 32) ^ d[s] ^ broadcast(key1);
			d[s] = p;
		}
		key0 += 0x9E3779B9u;
		key1 += 0xBB67AE85u;
	}
	LS_UNROLL for (int s = 0; s < SETS; s++)
	{
		vq ab = (a[s] & 0xffffffffu) | (b[s] << 32), cd = (c[s] & 0xffffffffu) | (d[s] << 32);
		vq_any *out = (vq_any *)(words + s * BLOCKS * 4);
		out[0] = __builtin_shufflevector(ab, cd, LOW_PAIRS);
		out[1] = __builtin_shufflevector(ab, cd, HIGH_PAIRS);
	}
}

/* The words of blocks first, first + 1, ... */
LS_INLINE void draw(uint32_t key0, uint32_t key1, uint64_t high, uint64_t first, uint32_t words[WORDS])
{
	vq low[SETS];
	LS_UNROLL for (int s = 0; s < SETS; s++) low[s] = broadcast(first + (uint64_t)(s * BLOCKS)) + lane_numbers;
	draw_blocks(key0, key1, high, low, words);
}

/* y = x*scale where the word's unit value reaches the probability. */
LS_INLINE void mask(const uint32_t *words, const float *x, int count, float probability, float scale, float *y)
{
	int i = 0;
	for (; i + LS_LANES <= count; i += LS_LANES) {
		ls_vf unit = __builtin_convertvector((ls_vi)(*(const vu_any *)(words + i) >> 8), ls_vf) * 0x1p-24f;
		ls_vf_store(y + i, ls_vf_where(unit >= probability, ls_vf_load(x + i) * scale));
	}
	for (; i < count; i++)
		y[i] = ls_rng_unit(words[i]) >= probability ? x[i] * scale : 0;
}

void LS_ISA_SYMBOL(ls_simd_dropout)(const float *x, int panel, uint32_t key0, uint32_t key1, uint64_t sample,
				    uint64_t first_element, float probability, float *y)
{
	const float scale = 1.0f / (1.0f - probability);
	uint32_t words[WORDS];
	for (int done = 0; done < panel;) {
		const uint64_t element = first_element + (uint64_t)done;
		const int skip = (int)(element % 4);
		const int count = panel - done < WORDS - skip ? panel - done : WORDS - skip;
		draw(key0, key1, sample, element / 4, words);
		mask(words + skip, x + done, count, probability, scale, y + done);
		done += count;
	}
}

/* The mask of a draw's words: scale or 0. */
LS_INLINE void keep_words(const uint32_t words[WORDS], float probability, float scale, float *keep)
{
	LS_UNROLL for (int i = 0; i < WORDS; i += LS_LANES)
	{
		ls_vf unit = __builtin_convertvector((ls_vi)(*(const vu_any *)(words + i) >> 8), ls_vf) * 0x1p-24f;
		ls_vf_store(keep + i, ls_vf_where(unit >= probability, ls_vf_set(scale)));
	}
}

/* Rows are drawn one behind the other, so that short ones fill the vectors too. */
void LS_ISA_SYMBOL(ls_simd_attention_keep)(const ls_keep_draw *d, int rows, int blocks, float *keep)
{
	const float scale = 1.0f / (1.0f - d->probability);
	const int64_t total = (int64_t)rows * blocks;
	uint32_t words[WORDS];
	uint64_t row = d->first, low[SETS * BLOCKS];
	int block = 0;
	for (int64_t done = 0; done < total; done += SETS * BLOCKS, keep += WORDS) {
		vq lanes[SETS];
		for (int i = 0; i < SETS * BLOCKS; i++) {
			low[i] = row + (uint64_t)block;
			if (++block == blocks) {
				block = 0;
				row += d->step;
			}
		}
		LS_UNROLL for (int s = 0; s < SETS; s++) lanes[s] = *(const vq_any *)(low + s * BLOCKS);
		draw_blocks(d->key[0], d->key[1], d->sample, lanes, words);
		keep_words(words, d->probability, scale, keep);
	}
}
