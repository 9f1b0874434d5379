/*
 * reference.c - readable kernels; each is its formula and nothing else.
 *
 * Indices: i sample, o output channel, c input channel, (p, q) output position, (r, s) filter tap. Tap (r, s) of output
 * (p, q) sees input (p*stride - padding + r, q*stride - padding + s), and nothing when that is outside the image.
 */
#include "support/reference.h"

#include <math.h>
#include <stddef.h>

typedef ls_reference_window window;

void ls_reference_window_finish(ls_reference_window *w)
{
	w->out_h = (w->in_h + 2 * w->padding - w->kernel_h) / w->stride + 1;
	w->out_w = (w->in_w + 2 * w->padding - w->kernel_w) / w->stride + 1;
}

static int64_t in_at(const window *w, int i, int c, int y, int x)
{
	return (((int64_t)i * w->in_c + c) * w->in_h + y) * w->in_w + x;
}

static int64_t out_at(const window *w, int i, int o, int p, int q)
{
	return (((int64_t)i * w->out_c + o) * w->out_h + p) * w->out_w + q;
}

static int64_t weight_at(const window *w, int o, int c, int r, int s)
{
	return (((int64_t)o * w->in_c + c) * w->kernel_h + r) * w->kernel_w + s;
}

/* Where tap (r, s) of output (p, q) looks; 0 when that is padding. */
static int tap_inside(const window *w, int p, int q, int r, int s, int *y, int *x)
{
	*y = p * w->stride - w->padding + r;
	*x = q * w->stride - w->padding + s;
	return *y >= 0 && *y < w->in_h && *x >= 0 && *x < w->in_w;
}

/* y[i,o,p,q] = bias[o] + sum_{c,r,s} x[i,c,y,x] * weight[o,c,r,s] */
static double conv_element(const window *w, const float *x, const float *weight, int i, int o, int p, int q)
{
	double sum = 0;
	int iy, ix;
	for (int c = 0; c < w->in_c; c++)
		for (int r = 0; r < w->kernel_h; r++)
			for (int s = 0; s < w->kernel_w; s++)
				if (tap_inside(w, p, q, r, s, &iy, &ix))
					sum += (double)x[in_at(w, i, c, iy, ix)] * weight[weight_at(w, o, c, r, s)];
	return sum;
}

void ls_reference_conv(const ls_reference_window *w, const float *x, const float *weight, const float *bias, float *y)
{
	for (int i = 0; i < w->n; i++)
		for (int o = 0; o < w->out_c; o++)
			for (int p = 0; p < w->out_h; p++)
				for (int q = 0; q < w->out_w; q++) {
					double sum = bias ? bias[o] : 0;
					sum += conv_element(w, x, weight, i, o, p, q);
					y[out_at(w, i, o, p, q)] = (float)sum;
				}
}

/* sum over the outputs (o, p, q) whose tap (r, s) sees input (c, y, x) of dy[i,o,p,q] * weight[o,c,r,s] */
static double conv_data_element(const window *w, const float *dy, const float *weight, int i, int c, int y, int x)
{
	double sum = 0;
	for (int r = 0; r < w->kernel_h; r++)
		for (int s = 0; s < w->kernel_w; s++) {
			int p = y + w->padding - r, q = x + w->padding - s; /* times stride */
			if (p < 0 || q < 0 || p % w->stride || q % w->stride)
				continue;
			p /= w->stride;
			q /= w->stride;
			if (p >= w->out_h || q >= w->out_w)
				continue;
			for (int o = 0; o < w->out_c; o++)
				sum += (double)dy[out_at(w, i, o, p, q)] * weight[weight_at(w, o, c, r, s)];
		}
	return sum;
}

void ls_reference_conv_backward_data(const ls_reference_window *w, const float *dy, const float *weight, float *dx)
{
	for (int i = 0; i < w->n; i++)
		for (int c = 0; c < w->in_c; c++)
			for (int y = 0; y < w->in_h; y++)
				for (int x = 0; x < w->in_w; x++)
					dx[in_at(w, i, c, y, x)] = (float)conv_data_element(w, dy, weight, i, c, y, x);
}

/* dweight[o,c,r,s] = sum_{i,p,q} dy[i,o,p,q] * x[i,c,y,x] */
static double conv_weight_element(const window *w, const float *x, const float *dy, int o, int c, int r, int s)
{
	double sum = 0;
	int iy, ix;
	for (int i = 0; i < w->n; i++)
		for (int p = 0; p < w->out_h; p++)
			for (int q = 0; q < w->out_w; q++)
				if (tap_inside(w, p, q, r, s, &iy, &ix))
					sum += (double)dy[out_at(w, i, o, p, q)] * x[in_at(w, i, c, iy, ix)];
	return sum;
}

/* dbias[o] = sum_{i,p,q} dy[i,o,p,q] */
static double conv_bias_element(const window *w, const float *dy, int o)
{
	double sum = 0;
	for (int i = 0; i < w->n; i++)
		for (int p = 0; p < w->out_h; p++)
			for (int q = 0; q < w->out_w; q++)
				sum += dy[out_at(w, i, o, p, q)];
	return sum;
}

void ls_reference_conv_backward_weights(const ls_reference_window *w, const float *x, const float *dy, float *dweight,
					float *dbias)
{
	for (int o = 0; o < w->out_c; o++) {
		for (int c = 0; c < w->in_c; c++)
			for (int r = 0; r < w->kernel_h; r++)
				for (int s = 0; s < w->kernel_w; s++)
					dweight[weight_at(w, o, c, r, s)] =
						(float)conv_weight_element(w, x, dy, o, c, r, s);
		if (dbias)
			dbias[o] = (float)conv_bias_element(w, dy, o);
	}
}

/* A linear layer is a convolution of 1x1 maps. */
static window linear_window(int n, int in, int out)
{
	return (window){ .n = n,
			 .in_c = in,
			 .out_c = out,
			 .in_h = 1,
			 .in_w = 1,
			 .out_h = 1,
			 .out_w = 1,
			 .kernel_h = 1,
			 .kernel_w = 1,
			 .stride = 1 };
}

/* y[i,o] = bias[o] + sum_c x[i,c] * weight[o,c] */
void ls_reference_linear(int n, int in, int out, const float *x, const float *weight, const float *bias, float *y)
{
	window w = linear_window(n, in, out);
	ls_reference_conv(&w, x, weight, bias, y);
}

void ls_reference_linear_backward(int n, int in, int out, const float *x, const float *weight, const float *dy,
				  float *dx, float *dweight, float *dbias)
{
	window w = linear_window(n, in, out);
	if (dx)
		ls_reference_conv_backward_data(&w, dy, weight, dx);
	if (dweight)
		ls_reference_conv_backward_weights(&w, x, dy, dweight, NULL);
	for (int o = 0; dbias && o < out; o++)
		dbias[o] = (float)conv_bias_element(&w, dy, o);
}

/* Mean and biased variance of channel c: E x, E (x - E x)^2. */
static void channel_moments(const ls_reference_norm *norm, const float *x, int c, double *mean, double *variance)
{
	const double count = (double)norm->n * norm->positions;
	double sum = 0, squares = 0;
	for (int i = 0; i < norm->n; i++)
		for (int p = 0; p < norm->positions; p++)
			sum += x[((int64_t)i * norm->c + c) * norm->positions + p];
	*mean = sum / count;
	for (int i = 0; i < norm->n; i++)
		for (int p = 0; p < norm->positions; p++) {
			double d = x[((int64_t)i * norm->c + c) * norm->positions + p] - *mean;
			squares += d * d;
		}
	*variance = squares / count;
}

/* y = (x - mean) / sqrt(variance + epsilon) * scale + shift */
void ls_reference_batch_norm(const ls_reference_norm *norm, const float *x, const float *scale, const float *shift,
			     float *mean, float *variance, float *y)
{
	for (int c = 0; c < norm->c; c++) {
		double m, v;
		channel_moments(norm, x, c, &m, &v);
		mean[c] = (float)m;
		variance[c] = (float)v;
		for (int i = 0; i < norm->n; i++)
			for (int p = 0; p < norm->positions; p++) {
				int64_t at = ((int64_t)i * norm->c + c) * norm->positions + p;
				y[at] = (float)((x[at] - m) / sqrt(v + norm->epsilon) * scale[c] + shift[c]);
			}
	}
}

/*
 * With xhat = (x - mean) / sqrt(variance + epsilon) and N elements a channel:
 *   dshift = sum dy,  dscale = sum dy*xhat,
 *   dx = scale / sqrt(variance + epsilon) * (dy - dshift/N - xhat*dscale/N)
 */
void ls_reference_batch_norm_backward(const ls_reference_norm *norm, const float *x, const float *scale,
				      const float *dy, float *dx, float *dscale, float *dshift)
{
	const double count = (double)norm->n * norm->positions;
	for (int c = 0; c < norm->c; c++) {
		double m, v, sum = 0, sum_xhat = 0;
		channel_moments(norm, x, c, &m, &v);
		const double inverse = 1 / sqrt(v + norm->epsilon);
		for (int i = 0; i < norm->n; i++)
			for (int p = 0; p < norm->positions; p++) {
				int64_t at = ((int64_t)i * norm->c + c) * norm->positions + p;
				sum += dy[at];
				sum_xhat += dy[at] * (x[at] - m) * inverse;
			}
		for (int i = 0; i < norm->n; i++)
			for (int p = 0; p < norm->positions; p++) {
				int64_t at = ((int64_t)i * norm->c + c) * norm->positions + p;
				double xhat = (x[at] - m) * inverse;
				dx[at] = (float)(scale[c] * inverse * (dy[at] - sum / count - xhat * sum_xhat / count));
			}
		dshift[c] = (float)sum;
		dscale[c] = (float)sum_xhat;
	}
}

/* y = max(0, x); NaN stays NaN */
void ls_reference_relu(int64_t count, const float *x, float *y)
{
	for (int64_t k = 0; k < count; k++)
		y[k] = x[k] < 0 ? 0 : x[k];
}

/* dx = dy where y > 0, else 0 */
void ls_reference_relu_backward(int64_t count, const float *y, const float *dy, float *dx)
{
	for (int64_t k = 0; k < count; k++)
		dx[k] = y[k] > 0 ? dy[k] : 0;
}

/* The first maximum of a window in scan order; a NaN beats what came before it, as in PyTorch. */
static void max_element(const window *w, const float *x, int i, int c, int p, int q, float *y, uint8_t *arg)
{
	int iy, ix, found = 0;
	*y = -INFINITY;
	for (int r = 0; r < w->kernel_h; r++)
		for (int s = 0; s < w->kernel_w; s++) {
			if (!tap_inside(w, p, q, r, s, &iy, &ix))
				continue;
			float value = x[in_at(w, i, c, iy, ix)];
			if (!found || value > *y || isnan(value)) {
				*y = value;
				*arg = (uint8_t)(r * w->kernel_w + s);
			}
			found = 1;
		}
}

void ls_reference_max_pool(const ls_reference_window *w, const float *x, float *y, uint8_t *arg)
{
	for (int i = 0; i < w->n; i++)
		for (int c = 0; c < w->in_c; c++)
			for (int p = 0; p < w->out_h; p++)
				for (int q = 0; q < w->out_w; q++) {
					int64_t at = out_at(w, i, c, p, q);
					max_element(w, x, i, c, p, q, &y[at], &arg[at]);
				}
}

/* dx[i,c,y,x] = sum of dy[i,c,p,q] over the windows that chose (y, x) */
void ls_reference_max_pool_backward(const ls_reference_window *w, const float *dy, const uint8_t *arg, float *dx)
{
	for (int64_t k = 0; k < (int64_t)w->n * w->in_c * w->in_h * w->in_w; k++)
		dx[k] = 0;
	for (int i = 0; i < w->n; i++)
		for (int c = 0; c < w->in_c; c++)
			for (int p = 0; p < w->out_h; p++)
				for (int q = 0; q < w->out_w; q++) {
					int64_t at = out_at(w, i, c, p, q);
					int iy, ix;
					if (tap_inside(w, p, q, arg[at] / w->kernel_w, arg[at] % w->kernel_w, &iy, &ix))
						dx[in_at(w, i, c, iy, ix)] += dy[at];
				}
}

/* y[i,c,p,q] = sum_{r,s} x[i,c,y,x] / (kernel_h * kernel_w), padding counted as zeros */
static double avg_element(const window *w, const float *x, int i, int c, int p, int q)
{
	double sum = 0;
	int iy, ix;
	for (int r = 0; r < w->kernel_h; r++)
		for (int s = 0; s < w->kernel_w; s++)
			if (tap_inside(w, p, q, r, s, &iy, &ix))
				sum += x[in_at(w, i, c, iy, ix)];
	return sum / (w->kernel_h * w->kernel_w);
}

void ls_reference_avg_pool(const ls_reference_window *w, const float *x, float *y)
{
	for (int i = 0; i < w->n; i++)
		for (int c = 0; c < w->in_c; c++)
			for (int p = 0; p < w->out_h; p++)
				for (int q = 0; q < w->out_w; q++)
					y[out_at(w, i, c, p, q)] = (float)avg_element(w, x, i, c, p, q);
}

/* sum over the windows (p, q) that contain (y, x) of dy[i,c,p,q] / (kernel_h * kernel_w) */
static double avg_data_element(const window *w, const float *dy, int i, int c, int y, int x)
{
	double sum = 0;
	for (int p = 0; p < w->out_h; p++)
		for (int q = 0; q < w->out_w; q++) {
			int r = y + w->padding - p * w->stride, s = x + w->padding - q * w->stride;
			if (r >= 0 && r < w->kernel_h && s >= 0 && s < w->kernel_w)
				sum += dy[out_at(w, i, c, p, q)];
		}
	return sum / (w->kernel_h * w->kernel_w);
}

void ls_reference_avg_pool_backward(const ls_reference_window *w, const float *dy, float *dx)
{
	for (int i = 0; i < w->n; i++)
		for (int c = 0; c < w->in_c; c++)
			for (int y = 0; y < w->in_h; y++)
				for (int x = 0; x < w->in_w; x++)
					dx[in_at(w, i, c, y, x)] = (float)avg_data_element(w, dy, i, c, y, x);
}

/* With m = max z: loss = ln sum_c e^(z_c - m) - (z_label - m);  dz_c = e^(z_c - m) / sum - [c = label] */
static void softmax_sample(int classes, const float *z, int label, float *loss, uint8_t *correct, float *dz)
{
	int best = 0;
	double sum = 0;
	for (int c = 1; c < classes; c++)
		if (z[c] > z[best])
			best = c;
	for (int c = 0; c < classes; c++)
		sum += exp((double)z[c] - z[best]);
	*loss = (float)(log(sum) - ((double)z[label] - z[best]));
	*correct = best == label;
	for (int c = 0; dz && c < classes; c++)
		dz[c] = (float)(exp((double)z[c] - z[best]) / sum - (c == label));
}

void ls_reference_softmax_xent(int n, int classes, const float *logits, const int32_t *labels, float *loss,
			       uint8_t *correct, float *dlogits)
{
	for (int i = 0; i < n; i++)
		softmax_sample(classes, logits + (int64_t)i * classes, labels[i], &loss[i], &correct[i],
			       dlogits ? dlogits + (int64_t)i * classes : NULL);
}
