/*
 * reference.h - every kernel once more, slow and obvious, to check the fast ones against.
 *
 * Tensors are dense and in PyTorch's layout: activations (n, c, h, w), convolution weights (out_c, in_c, kernel_h,
 * kernel_w), linear weights (out, in). Sums are taken in double and rounded once. Gradients are of a sum over samples.
 * No output may alias an input.
 */
#ifndef LS_TESTS_SUPPORT_REFERENCE_H
#define LS_TESTS_SUPPORT_REFERENCE_H

#include <stdint.h>

/* A convolution or pooling; a pooling has in_c = out_c. */
typedef struct ls_reference_window {
	int n, in_c, out_c;
	int in_h, in_w, out_h, out_w;
	int kernel_h, kernel_w, stride, padding;
} ls_reference_window;

/* Set out_h and out_w from the rest: (in + 2*padding - kernel) / stride + 1. */
void ls_reference_window_finish(ls_reference_window *window);

/* x (n, in_c, in_h, in_w), weight (out_c, in_c, kernel_h, kernel_w), bias (out_c) or NULL, y (n, out_c, out_h, out_w).
 */
void ls_reference_conv(const ls_reference_window *window, const float *x, const float *weight, const float *bias,
		       float *y);
void ls_reference_conv_backward_data(const ls_reference_window *window, const float *dy, const float *weight,
				     float *dx);
void ls_reference_conv_backward_weights(const ls_reference_window *window, const float *x, const float *dy,
					float *dweight, float *dbias); /* dbias may be NULL */

/* x (n, in), weight (out, in), bias (out) or NULL, y (n, out). dx, dweight, dbias may be NULL. */
void ls_reference_linear(int n, int in, int out, const float *x, const float *weight, const float *bias, float *y);
void ls_reference_linear_backward(int n, int in, int out, const float *x, const float *weight, const float *dy,
				  float *dx, float *dweight, float *dbias);

/* Batch norm over n and `positions` of x (n, c, positions); mean and variance (c) are outputs, variance is biased. */
typedef struct ls_reference_norm {
	int n, c, positions;
	double epsilon;
} ls_reference_norm;
void ls_reference_batch_norm(const ls_reference_norm *norm, const float *x, const float *scale, const float *shift,
			     float *mean, float *variance, float *y);
void ls_reference_batch_norm_backward(const ls_reference_norm *norm, const float *x, const float *scale,
				      const float *dy, float *dx, float *dscale, float *dshift);

void ls_reference_relu(int64_t count, const float *x, float *y);
void ls_reference_relu_backward(int64_t count, const float *y, const float *dy, float *dx);

/* arg (n, c, out_h, out_w): r*kernel_w + s of the first maximum of a window. */
void ls_reference_max_pool(const ls_reference_window *window, const float *x, float *y, uint8_t *arg);
void ls_reference_max_pool_backward(const ls_reference_window *window, const float *dy, const uint8_t *arg, float *dx);
void ls_reference_avg_pool(const ls_reference_window *window, const float *x, float *y);
void ls_reference_avg_pool_backward(const ls_reference_window *window, const float *dy, float *dx);

/* logits (n, classes); loss (n), correct (n); dlogits (n, classes) may be NULL. */
void ls_reference_softmax_xent(int n, int classes, const float *logits, const int32_t *labels, float *loss,
			       uint8_t *correct, float *dlogits);

/* Layer norm of rows of x (rows, channels); mean and inverse = 1 / sqrt(variance + epsilon), (rows), are outputs. */
typedef struct ls_reference_rows {
	int64_t rows;
	int channels;
	double epsilon;
} ls_reference_rows;
void ls_reference_layer_norm(const ls_reference_rows *shape, const float *x, const float *gamma, const float *beta,
			     float *mean, float *inverse, float *y);
void ls_reference_layer_norm_backward(const ls_reference_rows *shape, const float *x, const float *gamma,
				      const float *dy, float *dx, float *dgamma, float *dbeta);

/* x * Phi(x), or with `approximate` the tanh form; and dx = dy * its derivative. */
void ls_reference_gelu(int64_t count, int approximate, const float *x, float *y);
void ls_reference_gelu_backward(int64_t count, int approximate, const float *x, const float *dy, float *dx);

/*
 * One head on one sentence: q, k, v, out and their gradients (length, width); keep (length, length) has the factor of
 * each probability, 0 or 1 / (1 - p), or is NULL: all 1. lse (length): log-sum-exp of each query's scores.
 */
typedef struct ls_reference_head {
	int length, width;
	double scale;
	const float *q, *k, *v, *keep;
	int causal; /* query i sees keys up to i */
} ls_reference_head;
void ls_reference_attention(const ls_reference_head *head, float *out, float *lse);
void ls_reference_attention_backward(const ls_reference_head *head, const float *dout, float *dq, float *dk, float *dv);

#endif
