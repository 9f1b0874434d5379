/*
 * batch_norm.c - batch normalisation with micro-batch statistics, with the residual add and relu that follow it.
 *
 *   mean, var over the micro-batch's rows of a channel;  r = 1/sqrt(var + eps);  xhat = (x - mean) r
 *   y  = relu?(scale xhat + shift (+ residual))
 *   g  = dy where y > 0 (with relu);  dshift = sum g;  dscale = r sum g (x - mean)
 *   dx = scale r (g - sum g / m - (x - mean) r^2 sum g (x - mean) / m) = a g + b x + c
 *   dresidual = g
 *
 * Moments come by chunk (the convolution's tiles, or fixed runs of rows) and are combined in chunk order by Chan's
 * formula. aux: per channel mean, r, and forward's two coefficients; chunk means, then m2 (blocks, chunks, panel).
 * scratch: per-channel coefficients (3), then chunk sums of backward (blocks, chunks, 2, panel).
 */
#include <math.h>

#include "kernels/conv.h"
#include "kernels/simd.h"
#include "ops/shape.h"

enum { RUNNING_MEAN = 2, RUNNING_VAR, COUNTER }; /* behind LS_WEIGHT, the scale, and LS_BIAS, the shift */

static ls_status shape(ls_shape *s)
{
	ls_batch_norm_options *o = s->attributes;
	int channels = s->in[0]->channels;
	const struct {
		const char *suffix;
		ls_param row;
	} all[LS_PARAMS_MAX] = { { "weight", ls_vector_param(channels, LS_ROLE_NORM,
							     o->zero_init ? LS_INIT_ZERO : LS_INIT_ONE, 1) },
				 { "bias", ls_vector_param(channels, LS_ROLE_NORM, LS_INIT_ZERO, 1) },
				 { "running_mean", ls_vector_param(channels, LS_ROLE_BUFFER, LS_INIT_ZERO, 1) },
				 { "running_var", ls_vector_param(channels, LS_ROLE_BUFFER, LS_INIT_ONE, 1) },
				 { "num_batches_tracked", { .role = LS_ROLE_COUNTER, .init = LS_INIT_ZERO } } };

	o->eps = o->eps > 0 ? o->eps : 1e-5f;
	o->momentum = o->momentum > 0 ? o->momentum : 0.1f;
	for (int slot = 0; slot <= COUNTER; slot++)
		LS_TRY(ls_shape_param(s, slot, s->name, all[slot].suffix, all[slot].row));
	return ls_shape_same(s);
}

static int has_residual(const ls_op *op)
{
	return op->node->input_count == 2;
}

static float epsilon(const ls_op *op)
{
	return ((const ls_batch_norm_options *)op->node->attributes)->eps;
}

static int keeps(const ls_node *node)
{
	return LS_KEEP_INPUT | (node->activation && node->input_count == 2 ? LS_KEEP_OUTPUT : 0);
}

/* A convolution's plan for micro-batches of a size. */
static const ls_conv_plan *plan_of(const ls_op *conv, int size)
{
	return (const ls_conv_plan *)conv->plan + size;
}

/* Chunks of the forward moments. */
static int64_t moment_chunks(const ls_op *op, int64_t n, int size)
{
	return op->moments_from ? plan_of(op->moments_from, size)->forward.tiles
				: ls_chunks(ls_tensor_rows(op->in[0], n));
}

static int64_t moment_rows(const ls_op *op, int64_t n, int size, int64_t chunk)
{
	return op->moments_from ? ls_conv_tile_rows(plan_of(op->moments_from, size), chunk)
				: ls_chunk_rows(ls_tensor_rows(op->in[0], n), chunk);
}

static int64_t channels(const ls_op *op)
{
	return (int64_t)op->in[0]->blocks * op->in[0]->panel;
}

/* Before the convolution has a plan. */
static size_t aux_bytes(const ls_op *op, int64_t n)
{
	int64_t chunks = op->moments_from ? ls_conv_tiles_most(op->moments_from->node->attributes, n)
					  : ls_chunks(ls_tensor_rows(op->in[0], n));
	return sizeof(float) * (size_t)(2 * chunks * channels(op) + 4 * channels(op));
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	return sizeof(float) * (size_t)(channels(op) * (3 + 2 * ls_chunks(ls_tensor_rows(op->in[0], n))));
}

/* The first thing in aux, so that its place does not depend on n: means; behind them r, then forward's coefficients. */
static float *kept_mean(const ls_op *op)
{
	return op->aux;
}

float *ls_batch_norm_moments(const ls_op *norm)
{
	return (float *)norm->aux + 4 * channels(norm);
}

static void chunk_moments(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_tensor_rows(op->in[0], pass->n), chunks = ls_chunks(rows), panel = op->in[0]->panel, unit;
	float *mean = ls_batch_norm_moments(op), *m2 = mean + chunks * channels(op);

	while ((unit = ls_team_next(member, chunks * op->in[0]->blocks)) >= 0) {
		int64_t block = unit / chunks, chunk = unit % chunks;
		const float *x = op->x[0] + (block * rows + chunk * LS_CHUNK_ROWS) * panel;
		ls_simd_get()->moments(x, ls_chunk_rows(rows, chunk), (int)panel, mean + unit * panel,
				       m2 + unit * panel);
	}
	ls_team_barrier(member);
}

/* Chan, Golub and LeVeque: join (count, mean, m2) of one chunk to the running triple. */
static void join(double *count, double *mean, double *m2, double rows, double chunk_mean, double chunk_m2)
{
	double total = *count + rows, delta = chunk_mean - *mean;
	*mean += delta * rows / total;
	*m2 += chunk_m2 + delta * delta * *count * rows / total;
	*count = total;
}

/* Micro-batch statistics of this thread's share of the channels; scale and shift of the pass into scratch. */
static void combine_moments(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t chunks = moment_chunks(op, pass->n, pass->size), panel = op->in[0]->panel, begin, end;
	const float *means = ls_batch_norm_moments(op), *m2s = means + chunks * channels(op);
	float *mean = kept_mean(op), *r = mean + channels(op);
	float *microbatch_mean = pass->stats + op->params[RUNNING_MEAN]->offset;
	float *microbatch_var = pass->stats + op->params[RUNNING_VAR]->offset;

	ls_team_range(member, channels(op), &begin, &end);
	for (int64_t c = begin; c < end; c++) {
		double count = 0, m = 0, m2 = 0;
		for (int64_t k = 0; k < chunks; k++) {
			int64_t at = (c / panel * chunks + k) * panel + c % panel;
			join(&count, &m, &m2, (double)moment_rows(op, pass->n, pass->size, k), means[at], m2s[at]);
		}
		mean[c] = (float)m;
		r[c] = (float)(1 / sqrt(m2 / count + epsilon(op)));
		microbatch_mean[c] = (float)m;
		microbatch_var[c] = (float)(m2 / (count > 1 ? count - 1 : 1));
	}
}

static void use_running(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const float *running_mean = pass->buffers + op->params[RUNNING_MEAN]->offset;
	const float *running_var = pass->buffers + op->params[RUNNING_VAR]->offset;
	float *mean = kept_mean(op), *r = mean + channels(op);
	int64_t begin, end;

	ls_team_range(member, channels(op), &begin, &end);
	for (int64_t c = begin; c < end; c++) {
		mean[c] = running_mean[c];
		r[c] = (float)(1 / sqrt((double)running_var[c] + epsilon(op)));
	}
}

/* y = x * (scale r) + (shift - mean scale r): coefficients of this thread's channels. */
static void coefficients(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const float *mean = kept_mean(op), *r = mean + channels(op);
	const float *scale = ls_op_param(op, pass, LS_WEIGHT), *shift = ls_op_param(op, pass, LS_BIAS);
	float *a = kept_mean(op) + 2 * channels(op), *b = a + channels(op);
	int64_t begin, end;

	ls_team_range(member, channels(op), &begin, &end);
	for (int64_t c = begin; c < end; c++) {
		a[c] = scale[c] * r[c];
		b[c] = shift[c] - mean[c] * a[c];
	}
	ls_team_barrier(member);
}

/* The pass over the data: y from x, the residual and the coefficients. */
static void remake(const ls_op *op, const ls_pass *pass, float *y, ls_member member)
{
	int64_t rows = ls_tensor_rows(op->in[0], pass->n), chunks = ls_chunks(rows), panel = op->in[0]->panel, unit;
	const float *a = kept_mean(op) + 2 * channels(op), *b = a + channels(op);

	while ((unit = ls_team_next(member, chunks * op->in[0]->blocks)) >= 0) {
		int64_t block = unit / chunks, chunk = unit % chunks;
		int64_t at = (block * rows + chunk * LS_CHUNK_ROWS) * panel;
		ls_simd_get()->normalize(op->x[0] + at, op->x[1] ? op->x[1] + at : NULL, ls_chunk_rows(rows, chunk),
					 (int)panel, a + block * panel, b + block * panel,
					 op->node->activation == LS_ACT_RELU, y + at);
	}
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	if (!pass->training) {
		use_running(op, pass, member);
	} else {
		if (!op->moments_from)
			chunk_moments(op, pass, member);
		combine_moments(op, pass, member);
	}
	coefficients(op, pass, member);
	remake(op, pass, op->y, member);
}

/* What the relu let through, at float `at` of the panels of `block`. Without a residual it follows from x as well as
 * from y, and x is read anyway; the coefficients are forward's. */
static ls_norm_mask mask_at(const ls_op *op, int64_t at, int64_t block)
{
	const float *a = kept_mean(op) + 2 * channels(op), *b = a + channels(op);

	if (!op->node->activation)
		return (ls_norm_mask){ 0 };
	if (has_residual(op))
		return (ls_norm_mask){ .y = op->y + at };
	return (ls_norm_mask){ .scale = a + block * op->in[0]->panel, .shift = b + block * op->in[0]->panel };
}

/*
 * Backward has three parts: chunk sums, coefficients from them, and dx. A channel block needs nothing of another, so
 * where there is a block for every thread each takes whole blocks through all three, finding in cache for the third
 * what the first has read, without a barrier. Otherwise threads share the chunks of a block, with a barrier between the
 * parts. Same sums.
 */

/* Chunk sums of g and g (x - mean); the masked gradient goes to the residual where there is one. */
static void chunk_sums(const ls_op *op, const ls_pass *pass, int64_t block, int64_t chunk, float *sums)
{
	int64_t rows = ls_tensor_rows(op->in[0], pass->n), panel = op->in[0]->panel,
		unit = block * ls_chunks(rows) + chunk;
	int64_t at = (block * rows + chunk * LS_CHUNK_ROWS) * panel, count = ls_chunk_rows(rows, chunk);
	float *g = !op->dx[1] ? NULL : (op->add_dx[1] ? op->dy : op->dx[1]) + at;

	ls_simd_get()->normalize_sums(op->dy + at, mask_at(op, at, block), op->x[0] + at, count, (int)panel,
				      kept_mean(op) + block * panel, g, sums + unit * 2 * panel,
				      sums + (unit * 2 + 1) * panel);
	if (g && op->add_dx[1])
		ls_simd_get()->accumulate(op->dx[1] + at, g, count * panel);
}

static void add_grad(float *grad, double value, int accumulate)
{
	*grad = (float)(accumulate ? *grad + value : value);
}

/* Parameter gradients and a, b, c of channels [begin, end). */
static void backward_coefficients(const ls_op *op, const ls_pass *pass, const float *sums, int64_t begin, int64_t end)
{
	int64_t rows = ls_tensor_rows(op->in[0], pass->n), chunks = ls_chunks(rows), panel = op->in[0]->panel;
	const float *mean = kept_mean(op), *r = mean + channels(op), *scale = ls_op_param(op, pass, LS_WEIGHT);
	float *dscale = ls_op_grad(op, pass, LS_WEIGHT), *dshift = ls_op_grad(op, pass, LS_BIAS);
	float *a = op->scratch, *b = a + channels(op), *k = b + channels(op);

	for (int64_t c = begin; c < end; c++) {
		double sum_g = 0, sum_gx = 0, m = (double)rows;
		for (int64_t i = 0; i < chunks; i++) {
			const float *pair = sums + (c / panel * chunks + i) * 2 * panel + c % panel;
			sum_g += pair[0];
			sum_gx += pair[panel];
		}
		add_grad(&dshift[c], sum_g, pass->accumulate);
		add_grad(&dscale[c], sum_gx * r[c], pass->accumulate);
		double factor = (double)scale[c] * r[c], slope = -factor * r[c] * r[c] * sum_gx / m;
		a[c] = (float)factor;
		b[c] = (float)slope;
		k[c] = (float)(-factor * sum_g / m - slope * mean[c]);
	}
}

static void chunk_input(const ls_op *op, const ls_pass *pass, int64_t block, int64_t chunk)
{
	int64_t rows = ls_tensor_rows(op->in[0], pass->n), panel = op->in[0]->panel;
	int64_t at = (block * rows + chunk * LS_CHUNK_ROWS) * panel;
	const float *a = op->scratch, *b = a + channels(op), *k = b + channels(op);
	/* The residual's gradient is the masked one already. */
	const float *g = !op->dx[1] || op->add_dx[1] ? op->dy : op->dx[1];
	ls_norm_mask mask = op->dx[1] ? (ls_norm_mask){ 0 } : mask_at(op, at, block);

	ls_simd_get()->normalize_input(g + at, mask, op->x[0] + at, ls_chunk_rows(rows, chunk), (int)panel,
				       a + block * panel, b + block * panel, k + block * panel, op->dx[0] + at);
}

static void backward_by_block(const ls_op *op, const ls_pass *pass, float *sums, ls_member member)
{
	int64_t chunks = ls_chunks(ls_tensor_rows(op->in[0], pass->n)), panel = op->in[0]->panel, block;

	while ((block = ls_team_next(member, op->in[0]->blocks)) >= 0) {
		for (int64_t chunk = 0; chunk < chunks; chunk++)
			chunk_sums(op, pass, block, chunk, sums);
		backward_coefficients(op, pass, sums, block * panel, (block + 1) * panel);
		for (int64_t chunk = chunks - 1; op->dx[0] && chunk >= 0; chunk--) /* last read, first in cache */
			chunk_input(op, pass, block, chunk);
	}
}

static void backward_by_chunk(const ls_op *op, const ls_pass *pass, float *sums, ls_member member)
{
	int64_t chunks = ls_chunks(ls_tensor_rows(op->in[0], pass->n)), units = chunks * op->in[0]->blocks, unit, begin,
		end;

	while ((unit = ls_team_next(member, units)) >= 0)
		chunk_sums(op, pass, unit / chunks, unit % chunks, sums);
	ls_team_barrier(member);
	ls_team_range(member, channels(op), &begin, &end);
	backward_coefficients(op, pass, sums, begin, end);
	ls_team_barrier(member);
	while (op->dx[0] && (unit = ls_team_next(member, units)) >= 0)
		chunk_input(op, pass, unit / chunks, unit % chunks);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	float *sums = (float *)op->scratch + 3 * channels(op);

	if (op->in[0]->blocks % member.size == 0)
		backward_by_block(op, pass, sums, member);
	else
		backward_by_chunk(op, pass, sums, member);
}

const ls_op_type ls_op_batch_norm = {
	.name = "batch_norm",
	.formula = "y = (x - mean) / sqrt(variance + eps) * weight + bias, mean and variance of each channel",
	LS_INPUTS(1, "x"),
	LS_ATTRIBUTES(ls_batch_norm_options, "eps, momentum, zero_init"),
	.named = 1,
	.fuses = LS_FUSES_RELU | LS_FUSES_SUM_BEHIND | LS_TAKES_MOMENTS,
	.adds = 2,
	.maps = 1,
	.couples = 1,
	.shape = shape,
	.keeps = keeps,
	.aux_bytes = aux_bytes,
	.scratch_bytes = scratch_bytes,
	.forward = forward,
	.backward = backward,
	.remake = remake,
	.cases = { LS_CASE_IMAGES(20, 4, 3, .attributes = &(ls_batch_norm_options){ 0 }) },
};
