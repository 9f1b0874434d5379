/*
 * simd.h - element-wise and small kernels, one table of functions per instruction set.
 *
 * Activations are panels: rows x P floats, P a multiple of 16 (16, 32 or 64), a row being one position of one sample
 * and its P channels. Channels past the real ones are zero and must stay zero. Pointers are 64-byte aligned at row 0.
 * Every sum runs in a fixed order that depends on the shape alone. Outputs may alias an input only where said.
 */
#ifndef LS_KERNELS_SIMD_H
#define LS_KERNELS_SIMD_H

#include <stdint.h>

#include "kernels/gemm.h"

/* Geometry of a pooling window over panels stored [H][W][N][P]. */
typedef struct ls_pool_geometry {
	int in_h, in_w, out_h, out_w;
	int kernel_h, kernel_w, stride, padding;
	int64_t n; /* samples */
	int panel;
} ls_pool_geometry;

/*
 * Which elements a rectifier let through: those with y > 0; or, where x is at hand anyway and there was no residual,
 * those with x*scale + shift > 0, which are the same and save reading y. All NULL: every element.
 */
typedef struct ls_norm_mask {
	const float *y;             /* (rows, panel) or NULL */
	const float *scale, *shift; /* (panel) or NULL */
} ls_norm_mask;

/* Rows of `channels` real channels in panels: channel c of row r at ((c / panel) * rows + r) * panel + c % panel. */
typedef struct ls_row_shape {
	int64_t rows;
	int panel, channels;
} ls_row_shape;

/* Rows of attention's scores: (rows, ld) with a column per key, `length` of which count; ld is at least that rounded up
 * to 16. A mask of kept probabilities is (rows, ld_keep), with 16 floats of room behind. */
typedef struct ls_score_shape {
	int rows, length, ld, ld_keep;
	float scale; /* of the scores, positive */
} ls_score_shape;

/* Which numbers a mask draws: key j of row r has word j % 4 of ls_rng_words(key, sample, first + r*step + j/4). */
typedef struct ls_keep_draw {
	uint32_t key[2];
	uint64_t sample, first, step;
	float probability;
} ls_keep_draw;

/*
 * Product of bf16 pairs, y (rows, cols) (+)= sum over parts and pairs of x(i, k) . w[k][j], in this order; the
 * arithmetic is that of kernels/simd/bf16.h. x(i, k) is x[i*ldx + k], or x[k*ldx + i] where transposed. Strides count
 * words. cols is a multiple of 16. A sum stays in registers over all parts.
 */
typedef struct ls_bf16_shape {
	int rows, pairs, cols;
	int64_t ldx, ldw, ldy;
	int transposed, accumulate;
} ls_bf16_shape;

typedef struct ls_bf16_part {
	const uint32_t *x, *w;
} ls_bf16_part;

enum { LS_BF16_STEP = 16 }; /* pairs of a step, where a product is summed in steps */

typedef struct ls_bf16_kernels {
	void (*gemm)(const ls_bf16_shape *shape, const ls_bf16_part *parts, int count, float *y);
	/* Round to bf16, in pairs of neighbours; count is a multiple of 16. */
	void (*rows)(const float *x, int64_t count, uint32_t *out);
	/* The same in pairs of rows, out (half of the rows, cols); an odd last row is paired with zeros.
	 * cols is a multiple of 16. */
	void (*pairs)(const float *x, int64_t rows, int cols, int64_t ld, uint32_t *out);
	/* The same in pairs of rows, transposed: out (cols, ld_out), of which half of the rows are written per column.
	 * Where it is there, gemm() takes no transposed x. */
	void (*turned)(const float *x, int64_t rows, int cols, int64_t ld, uint32_t *out, int64_t ld_out);
} ls_bf16_kernels;

/* What becomes of a column of Winograd's outputs. */
typedef enum ls_winograd_put {
	LS_WINOGRAD_SKIP,
	LS_WINOGRAD_SET,
	LS_WINOGRAD_ADD,
	LS_WINOGRAD_SUBTRACT
} ls_winograd_put;

enum { LS_GEMM_TURNED_ROWS = 4 };

typedef struct ls_simd {
	/* Portable product; same meaning as ls_gemm. */
	void (*gemm)(const ls_gemm_shape *shape, const float *x, const float *w, float *y);

	/* mean[c] and m2[c] = sum (x - mean)^2 over rows; one chunk of a micro-batch, at most a few hundred rows. */
	void (*moments)(const float *x, int64_t rows, int panel, float *mean, float *m2);
	/* y = x*scale + shift (+ residual) (then max(0, .)); y may alias x or residual. */
	void (*normalize)(const float *x, const float *residual, int64_t rows, int panel, const float *scale,
			  const float *shift, int relu, float *y);
	/* g = dy where `mask` lets it through, else 0; sum_g = sum g, sum_gx = sum g*(x - mean) over rows; g stored
	 * when `g` is not NULL (may alias dy). */
	void (*normalize_sums)(const float *dy, ls_norm_mask mask, const float *x, int64_t rows, int panel,
			       const float *mean, float *g, float *sum_g, float *sum_gx);
	/* dx = a*g + b*x + c with g as above; dx may alias dy. */
	void (*normalize_input)(const float *dy, ls_norm_mask mask, const float *x, int64_t rows, int panel,
				const float *a, const float *b, const float *c, float *dx);

	/*
	 * Layer norm of rows [begin, end): y = (s - mean) * inverse * gamma + beta, s = x + residual, with mean and
	 * inverse = 1 / sqrt(variance + epsilon) over the channels of a row, the variance biased. residual and s may be
	 * NULL (both or neither: without a residual s is x); s may alias x or residual. gamma, beta: (blocks * panel);
	 * mean, inverse: (rows), those of [begin, end) written.
	 */
	void (*layer_norm)(const ls_row_shape *shape, const float *x, const float *residual, int64_t begin, int64_t end,
			   const float *gamma, const float *beta, float epsilon, float *s, float *y, float *mean,
			   float *inverse);
	/* ds (may alias dy) of rows [begin, end); dgamma and dbeta, (blocks * panel), are the sums over these rows. */
	void (*layer_norm_backward)(const ls_row_shape *shape, const float *dy, const float *s, int64_t begin,
				    int64_t end, const float *gamma, const float *mean, const float *inverse, float *ds,
				    float *dgamma, float *dbeta);

	/*
	 * Gaussian error linear unit, x * Phi(x); approximate: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))). count
	 * is a multiple of 16. y may alias x, dx may alias dy.
	 */
	void (*gelu)(const float *x, int64_t count, int approximate, float *y);
	/* The same, and its derivative at x, which costs little beside it; either may alias x. */
	void (*gelu_slope)(const float *x, int64_t count, int approximate, float *y, float *slope);
	void (*gelu_backward)(const float *dy, const float *x, int64_t count, int approximate, float *dx);
	/* y = tanh x, dx = dy * (1 - y^2); count and aliases as above. */
	void (*tanh)(const float *x, int64_t count, float *y);
	void (*tanh_backward)(const float *dy, const float *y, int64_t count, float *dx);

	/* score = keep * e^(scale*(score - maximum of the row)); inverse = 1 / sum and lse = ln sum of e^(scale*score),
	 * without keep, which may be NULL: all 1. */
	void (*attention_softmax)(const ls_score_shape *shape, const float *keep, float *score, float *inverse,
				  float *lse);
	/* With p = e^(scale*score - lse): score = keep*p, slope = scale * p * (keep*slope - dots). */
	void (*attention_softmax_backward)(const ls_score_shape *shape, const float *keep, const float *lse,
					   const float *dots, float *score, float *slope);
	/* keep (rows, 4*blocks), dense: 1 / (1 - probability) or 0; may write up to 64 floats more. */
	void (*attention_keep)(const ls_keep_draw *draw, int rows, int blocks, float *keep);
	/* Rows of y (rows, cols) times factor[row]; dots[row] += a . b over cols, a multiple of 16. */
	void (*attention_scale)(float *y, int rows, int cols, int ld, const float *factor);
	void (*attention_dots)(const float *a, const float *b, int rows, int cols, int ld, float *dots);

	/* y = x + bias (bias may be NULL), then max(0, .) when relu; in place. */
	void (*bias_act)(float *y, int64_t rows, int panel, const float *bias, int relu);
	/* g = y > 0 ? dy : 0 over count floats; may alias dy. */
	void (*relu_backward)(const float *dy, const float *y, int64_t count, float *g);
	/* sums[c] = sum of x over rows. */
	void (*column_sums)(const float *x, int64_t rows, int panel, float *sums);
	void (*add)(const float *a, const float *b, int64_t count, int relu, float *y); /* y = a + b; may alias */
	void (*accumulate)(float *y, const float *x, int64_t count);                    /* y += x */
	void (*multiply)(const float *a, const float *b, int64_t count, float *y);      /* y = a * b; may alias */

	/* One output row `oy` (all ox, n, channels of one panel) of a pooling. x (in_h, in_w, n, P), y (out_h, out_w,
	 * n, P). arg (out_h, out_w, n, P): window index r*kernel_w+s of the first maximum; PyTorch's choice. */
	void (*max_pool)(const ls_pool_geometry *g, const float *x, int oy, float *y, uint8_t *arg);
	/* One *input* row `iy` of dx, gathered from the windows that contain it; accumulate adds to dx. */
	void (*max_pool_backward)(const ls_pool_geometry *g, const float *dy, const uint8_t *arg, int iy,
				  int accumulate, float *dx);
	/* Average over kernel_h*kernel_w, padding counted as zeros. */
	void (*avg_pool)(const ls_pool_geometry *g, const float *x, int oy, float *y);
	void (*avg_pool_backward)(const ls_pool_geometry *g, const float *dy, int iy, int accumulate, float *dx);

	/* y = keep ? x / (1 - p) : 0 for one sample's row of `panel` channels; element e of sample `sample` draws word
	 * e%4 of ls_rng_words(rng, sample, e/4), keep when its unit value >= p. */
	void (*dropout)(const float *x, int panel, uint32_t key0, uint32_t key1, uint64_t sample,
			uint64_t first_element, float probability, float *y);

	/* Softmax cross-entropy of samples [begin, end). logits and dlogits: (blocks, n, panel), classes real channels.
	 * loss[i] for each sample; correct[i] = 1 when the first maximum is the label. dlogits (may be NULL, may alias
	 * logits) = (softmax - onehot) * scale: gradient of scale times the *sum*; zero in padded channels. */
	void (*softmax_xent)(const float *logits, int64_t n, int panel, int classes, const int32_t *labels,
			     int64_t begin, int64_t end, float scale, float *loss, uint8_t *correct, float *dlogits);

	/* y (rows, cols) (+)= x (rows, depth) . w (cols, depth)^T, to the bits of a product with turned weights; 1 to
	 * LS_GEMM_TURNED_ROWS rows, cols a multiple of 16 and depth of 4. */
	void (*gemm_turned)(const ls_gemm_shape *shape, const float *x, const float *w, float *y);

	/* out (cols, rows) = in (rows, cols)^T; rows a multiple of 16 and cols of 4, strides given. */
	void (*transpose)(const float *in, int rows, int cols, int ld_in, float *out, int ld_out);

	/*
	 * Winograd's transforms (kernels/winograd.h), of one column of the 4x4 where it has columns; over `count`
	 * floats, a multiple of 16. Element i of a column of v, m and w lies `plane` floats behind element i - 1.
	 */
	/* Column of V: e[r] = d[r][0] - d[r][1], or their sum with `add`; v = e0 - e2, e1 + e2, e2 - e1, e1 - e3. */
	void (*winograd_input)(const float *const d[4][2], int add, int64_t count, float *v, int64_t plane);
	/* z = m0 + m1 + m2 and, with two rows, m1 - m2 - m3: put into y[row][0] and y[row][1]. */
	void (*winograd_output)(const float *m, int64_t plane, int rows, int64_t count, const ls_winograd_put how[2],
				float *const y[2][2]);
	/* Column of A dy A^T. */
	void (*winograd_gradient)(const float *const dy[2][2], int column, int64_t count, float *w, int64_t plane);
	/* u = G g G^T; and dg = G^T u G, added to dg with `accumulate`. */
	void (*winograd_weights)(const float *const g[9], int64_t count, float *const u[16]);
	void (*winograd_weights_backward)(const float *const u[16], int64_t count, int accumulate, float *const dg[9]);

	ls_bf16_kernels bf16, bf16_amx; /* by fp32 instructions */
} ls_simd;

/* The table of the instruction set in use; and of a given one (tests), NULL when this build lacks it. */
const ls_simd *ls_simd_get(void);
const ls_simd *ls_simd_of(int isa);

/* The kernels in use of each arithmetic of bf16 (simd/bf16.h), and whether they are the processor's own instructions:
 * AVX512-BF16 and AMX. */
const ls_bf16_kernels *ls_bf16_get(void);
int ls_bf16_is_native(void);
const ls_bf16_kernels *ls_bf16_amx_get(void);
int ls_bf16_amx_is_native(void);

#endif
