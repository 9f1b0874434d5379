/*
 * parts.h - the functions of the table, by the file that defines them; kernels/simd.h documents them.
 */
#ifndef LS_KERNELS_SIMD_PARTS_H
#define LS_KERNELS_SIMD_PARTS_H

#include "base/isa.h"
#include "kernels/simd.h"

/* gemm.c */
void LS_ISA_SYMBOL(ls_simd_gemm)(const ls_gemm_shape *shape, const float *x, const float *w, float *y);

/* norm.c */
void LS_ISA_SYMBOL(ls_simd_moments)(const float *x, int64_t rows, int panel, float *mean, float *m2);
void LS_ISA_SYMBOL(ls_simd_normalize)(const float *x, const float *residual, int64_t rows, int panel,
				      const float *scale, const float *shift, int relu, float *y);
void LS_ISA_SYMBOL(ls_simd_normalize_sums)(const float *dy, ls_norm_mask mask, const float *x, int64_t rows, int panel,
					   const float *mean, float *g, float *sum_g, float *sum_gx);
void LS_ISA_SYMBOL(ls_simd_normalize_input)(const float *dy, ls_norm_mask mask, const float *x, int64_t rows, int panel,
					    const float *a, const float *b, const float *c, float *dx);

/* layer_norm.c */
void LS_ISA_SYMBOL(ls_simd_layer_norm)(const ls_row_shape *shape, const float *x, const float *residual, int64_t begin,
				       int64_t end, const float *gamma, const float *beta, float epsilon, float *s,
				       float *y, float *mean, float *inverse);
void LS_ISA_SYMBOL(ls_simd_layer_norm_backward)(const ls_row_shape *shape, const float *dy, const float *s,
						int64_t begin, int64_t end, const float *gamma, const float *mean,
						const float *inverse, float *ds, float *dgamma, float *dbeta);

/* gelu.c */
void LS_ISA_SYMBOL(ls_simd_gelu)(const float *x, int64_t count, int approximate, float *y);
void LS_ISA_SYMBOL(ls_simd_gelu_slope)(const float *x, int64_t count, int approximate, float *y, float *slope);
void LS_ISA_SYMBOL(ls_simd_gelu_backward)(const float *dy, const float *x, int64_t count, int approximate, float *dx);
void LS_ISA_SYMBOL(ls_simd_tanh)(const float *x, int64_t count, float *y);
void LS_ISA_SYMBOL(ls_simd_tanh_backward)(const float *dy, const float *y, int64_t count, float *dx);

/* attention.c */
void LS_ISA_SYMBOL(ls_simd_attention_softmax)(const ls_score_shape *shape, const float *keep, float *score,
					      float *inverse, float *lse);
void LS_ISA_SYMBOL(ls_simd_attention_softmax_backward)(const ls_score_shape *shape, const float *keep, const float *lse,
						       const float *dots, float *score, float *slope);
void LS_ISA_SYMBOL(ls_simd_attention_scale)(float *y, int rows, int cols, int ld, const float *factor);
void LS_ISA_SYMBOL(ls_simd_attention_dots)(const float *a, const float *b, int rows, int cols, int ld, float *dots);

/* pointwise.c */
void LS_ISA_SYMBOL(ls_simd_bias_act)(float *y, int64_t rows, int panel, const float *bias, int relu);
void LS_ISA_SYMBOL(ls_simd_relu_backward)(const float *dy, const float *y, int64_t count, float *g);
void LS_ISA_SYMBOL(ls_simd_column_sums)(const float *x, int64_t rows, int panel, float *sums);
void LS_ISA_SYMBOL(ls_simd_add)(const float *a, const float *b, int64_t count, int relu, float *y);
void LS_ISA_SYMBOL(ls_simd_multiply)(const float *a, const float *b, int64_t count, float *y);
void LS_ISA_SYMBOL(ls_simd_accumulate)(float *y, const float *x, int64_t count);

/* pool.c */
void LS_ISA_SYMBOL(ls_simd_max_pool)(const ls_pool_geometry *g, const float *x, int oy, float *y, uint8_t *arg);
void LS_ISA_SYMBOL(ls_simd_max_pool_backward)(const ls_pool_geometry *g, const float *dy, const uint8_t *arg, int iy,
					      int accumulate, float *dx);
void LS_ISA_SYMBOL(ls_simd_avg_pool)(const ls_pool_geometry *g, const float *x, int oy, float *y);
void LS_ISA_SYMBOL(ls_simd_avg_pool_backward)(const ls_pool_geometry *g, const float *dy, int iy, int accumulate,
					      float *dx);

/* dropout.c */
void LS_ISA_SYMBOL(ls_simd_dropout)(const float *x, int panel, uint32_t key0, uint32_t key1, uint64_t sample,
				    uint64_t first_element, float probability, float *y);
void LS_ISA_SYMBOL(ls_simd_attention_keep)(const ls_keep_draw *draw, int rows, int blocks, float *keep);

/* softmax.c */
void LS_ISA_SYMBOL(ls_simd_softmax_xent)(const float *logits, int64_t n, int panel, int classes, const int32_t *labels,
					 int64_t begin, int64_t end, float scale, float *loss, uint8_t *correct,
					 float *dlogits);

/* gemm_turned.c */
void LS_ISA_SYMBOL(ls_simd_gemm_turned)(const ls_gemm_shape *shape, const float *x, const float *w, float *y);

/* transpose.c */
void LS_ISA_SYMBOL(ls_simd_transpose)(const float *in, int rows, int cols, int ld_in, float *out, int ld_out);

/* winograd.c */
void LS_ISA_SYMBOL(ls_simd_winograd_input)(const float *const d[4][2], int add, int64_t count, float *v, int64_t plane);
void LS_ISA_SYMBOL(ls_simd_winograd_output)(const float *m, int64_t plane, int rows, int64_t count,
					    const ls_winograd_put how[2], float *const y[2][2]);
void LS_ISA_SYMBOL(ls_simd_winograd_gradient)(const float *const dy[2][2], int column, int64_t count, float *w,
					      int64_t plane);
void LS_ISA_SYMBOL(ls_simd_winograd_weights)(const float *const g[9], int64_t count, float *const u[16]);
void LS_ISA_SYMBOL(ls_simd_winograd_weights_backward)(const float *const u[16], int64_t count, int accumulate,
						      float *const dg[9]);

/* bf16.c */
void LS_ISA_SYMBOL(ls_simd_bf16_gemm)(const ls_bf16_shape *shape, const ls_bf16_part *parts, int count, float *y);
void LS_ISA_SYMBOL(ls_simd_bf16_rows)(const float *x, int64_t count, uint32_t *out);
void LS_ISA_SYMBOL(ls_simd_bf16_pairs)(const float *x, int64_t rows, int cols, int64_t ld, uint32_t *out);

void LS_ISA_SYMBOL(ls_simd_bf16_turned)(const float *x, int64_t rows, int cols, int64_t ld, uint32_t *out,
					int64_t ld_out);

/* bf16_steps.c */
void LS_ISA_SYMBOL(ls_simd_bf16_steps_gemm)(const ls_bf16_shape *shape, const ls_bf16_part *parts, int count, float *y);

/* bf16_native.c, bf16_amx.c */
extern const ls_bf16_kernels ls_bf16_native, ls_bf16_amx;
void ls_bf16_native_rows(const float *x, int64_t count, uint32_t *out);
void ls_bf16_native_pairs(const float *x, int64_t rows, int cols, int64_t ld, uint32_t *out);

extern const ls_simd LS_ISA_SYMBOL(ls_simd_table);

#endif
