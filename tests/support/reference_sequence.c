/*
 * reference_sequence.c - readable kernels of sequence models; each is its formula and nothing else.
 *
 * Indices: r row, c channel, i query, j key.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "support/reference.h"

/* Mean of a row and 1 / sqrt(variance + epsilon), the variance biased. */
static void row_moments(const ls_reference_rows *shape, const float *x, double *mean, double *inverse)
{
	double sum = 0, squares = 0;
	for (int c = 0; c < shape->channels; c++)
		sum += x[c];
	*mean = sum / shape->channels;
	for (int c = 0; c < shape->channels; c++)
		squares += (x[c] - *mean) * (x[c] - *mean);
	*inverse = 1 / sqrt(squares / shape->channels + shape->epsilon);
}

/* y = (x - mean) * inverse * gamma + beta */
void ls_reference_layer_norm(const ls_reference_rows *shape, const float *x, const float *gamma, const float *beta,
			     float *mean, float *inverse, float *y)
{
	for (int64_t r = 0; r < shape->rows; r++) {
		const int64_t at = r * shape->channels;
		double m, s;
		row_moments(shape, x + at, &m, &s);
		mean[r] = (float)m;
		inverse[r] = (float)s;
		for (int c = 0; c < shape->channels; c++)
			y[at + c] = (float)((x[at + c] - m) * s * gamma[c] + beta[c]);
	}
}

/* With xhat = (x - mean) * inverse and g = dy * gamma: dx = inverse * (g - E g - xhat * E(g xhat)). */
static void layer_norm_row(const ls_reference_rows *shape, const float *x, const float *gamma, const float *dy,
			   float *dx)
{
	double mean, inverse, sum = 0, product = 0;
	row_moments(shape, x, &mean, &inverse);
	for (int c = 0; c < shape->channels; c++) {
		sum += (double)dy[c] * gamma[c];
		product += (double)dy[c] * gamma[c] * (x[c] - mean) * inverse;
	}
	for (int c = 0; c < shape->channels; c++) {
		const double xhat = (x[c] - mean) * inverse;
		dx[c] = (float)(inverse *
				((double)dy[c] * gamma[c] - sum / shape->channels - xhat * product / shape->channels));
	}
}

/* dgamma = sum_r dy * xhat, dbeta = sum_r dy */
void ls_reference_layer_norm_backward(const ls_reference_rows *shape, const float *x, const float *gamma,
				      const float *dy, float *dx, float *dgamma, float *dbeta)
{
	for (int64_t r = 0; r < shape->rows; r++)
		layer_norm_row(shape, x + r * shape->channels, gamma, dy + r * shape->channels,
			       dx + r * shape->channels);
	for (int c = 0; c < shape->channels; c++) {
		double sum = 0, product = 0;
		for (int64_t r = 0; r < shape->rows; r++) {
			const int64_t at = r * shape->channels;
			double mean, inverse;
			row_moments(shape, x + at, &mean, &inverse);
			sum += dy[at + c];
			product += dy[at + c] * (x[at + c] - mean) * inverse;
		}
		dbeta[c] = (float)sum;
		dgamma[c] = (float)product;
	}
}

static const double slope = 0.7978845608028654, cube = 0.044715; /* sqrt(2/pi), and the tanh form's other number */

/* x/2 * (1 + erf(x / sqrt 2)), or x/2 * (1 + tanh(slope * (x + cube x^3))) */
void ls_reference_gelu(int64_t count, int approximate, const float *x, float *y)
{
	for (int64_t i = 0; i < count; i++) {
		const double a = x[i];
		y[i] = (float)(approximate ? a / 2 * (1 + tanh(slope * (a + cube * a * a * a)))
					   : a / 2 * (1 + erf(a * sqrt(0.5))));
	}
}

/* Phi(x) + x phi(x), phi(x) = e^(-x^2/2) / sqrt(2 pi); or (1 + t)/2 + x/2 * (1 - t^2) * slope * (1 + 3 cube x^2) */
void ls_reference_gelu_backward(int64_t count, int approximate, const float *x, const float *dy, float *dx)
{
	for (int64_t i = 0; i < count; i++) {
		const double a = x[i];
		const double t = tanh(slope * (a + cube * a * a * a)), phi = exp(-a * a / 2) * slope / 2;
		const double by_tanh = (1 + t) / 2 + a / 2 * (1 - t * t) * slope * (1 + 3 * cube * a * a);
		const double by_erf = (1 + erf(a * sqrt(0.5))) / 2 + a * phi;
		dx[i] = (float)(dy[i] * (approximate ? by_tanh : by_erf));
	}
}

typedef ls_reference_head head;

static double dot(int width, const float *a, const float *b)
{
	double sum = 0;
	for (int c = 0; c < width; c++)
		sum += (double)a[c] * b[c];
	return sum;
}

static double score(const head *h, int i, int j)
{
	if (h->causal && j > i)
		return -INFINITY;
	return h->scale * dot(h->width, h->q + (int64_t)i * h->width, h->k + (int64_t)j * h->width);
}

/* ln sum_j e^score(i, j) */
static double log_sum(const head *h, int i)
{
	double greatest = -INFINITY, sum = 0;
	for (int j = 0; j < h->length; j++)
		greatest = fmax(greatest, score(h, i, j));
	for (int j = 0; j < h->length; j++)
		sum += exp(score(h, i, j) - greatest);
	return greatest + log(sum);
}

static double keep(const head *h, int i, int j)
{
	return h->keep ? h->keep[(int64_t)i * h->length + j] : 1;
}

/* out[i] = sum_j keep(i, j) * p(i, j) * v[j],  p(i, j) = e^(score(i, j) - lse(i)) */
void ls_reference_attention(const ls_reference_head *h, float *out, float *lse)
{
	for (int i = 0; i < h->length; i++) {
		const double log_of_sum = log_sum(h, i);
		lse[i] = (float)log_of_sum;
		for (int c = 0; c < h->width; c++) {
			double sum = 0;
			for (int j = 0; j < h->length; j++)
				sum += keep(h, i, j) * exp(score(h, i, j) - log_of_sum) *
				       h->v[(int64_t)j * h->width + c];
			out[(int64_t)i * h->width + c] = (float)sum;
		}
	}
}

/* Row i of dscore, scale included: p * (keep * dp - sum_j p * keep * dp) * scale with dp(i, j) = dout[i] . v[j]. */
static void score_gradient(const head *h, const float *dout, int i, double *p, double *dscore)
{
	const double log_of_sum = log_sum(h, i);
	double mean = 0;
	for (int j = 0; j < h->length; j++) {
		p[j] = exp(score(h, i, j) - log_of_sum);
		dscore[j] = keep(h, i, j) * dot(h->width, dout + (int64_t)i * h->width, h->v + (int64_t)j * h->width);
		mean += p[j] * dscore[j];
	}
	for (int j = 0; j < h->length; j++)
		dscore[j] = h->scale * p[j] * (dscore[j] - mean);
}

/* dv[j] = sum_i keep*p * dout[i],  dq[i] = sum_j dscore * k[j],  dk[j] = sum_i dscore * q[i] */
static void head_gradients(const head *h, const float *dout, const double *p, const double *dscore, float *dq,
			   float *dk, float *dv)
{
	for (int i = 0; i < h->length; i++)
		for (int c = 0; c < h->width; c++) {
			double q = 0, k = 0, v = 0;
			for (int j = 0; j < h->length; j++) {
				const int64_t ij = (int64_t)i * h->length + j, ji = (int64_t)j * h->length + i;
				const int64_t there = (int64_t)j * h->width + c;
				q += dscore[ij] * h->k[there];
				k += dscore[ji] * h->q[there];
				v += keep(h, j, i) * p[ji] * dout[there];
			}
			dq[(int64_t)i * h->width + c] = (float)q;
			dk[(int64_t)i * h->width + c] = (float)k;
			dv[(int64_t)i * h->width + c] = (float)v;
		}
}

void ls_reference_attention_backward(const ls_reference_head *h, const float *dout, float *dq, float *dk, float *dv)
{
	const size_t count = (size_t)h->length * (size_t)h->length;
	double *p = malloc(2 * count * sizeof(*p));
	if (!p)
		abort();
	for (int i = 0; i < h->length; i++)
		score_gradient(h, dout, i, p + (int64_t)i * h->length, p + count + (int64_t)i * h->length);
	head_gradients(h, dout, p, p + count, dq, dk, dv);
	free(p);
}
