/*
 * batch_norm.c - batch normalisation, with the residual and the relu that follow it.
 *
 * x, y, residual are (C, H, W) per sample; weight, bias, mean, variance are (C). m = micro-batch x H x W rows.
 *
 *   forward    mean, variance   of a channel over the m rows; in evaluation the running ones
 *              inverse          = 1 / sqrt(variance + eps)
 *              y                = relu?((x - mean) inverse weight + bias (+ residual))
 *                               = relu?(a x + b (+ residual)),   a = weight inverse,   b = bias - mean a
 *   backward   g                = dy where y > 0 (without relu: dy);   dresidual = g
 *              dbias            = sum g;   dweight = inverse sum g (x - mean)
 *              dx               = weight inverse (g - sum g / m - (x - mean) inverse^2 sum g (x - mean) / m)
 *                               = a g + b x + c,   the three coefficients again per channel
 *
 * So each direction is: sums over chunks of rows, coefficients per channel from them, one pass over the data. Sums are
 * put together in chunk order, whoever made them. A chunk is LS_CHUNK_ROWS rows of a channel block; for the mean and
 * variance it is a tile of the convolution before, where that computes the moments in passing (`moments_from`).
 *
 * The statistics of a micro-batch go to pass->stats; graph/running.c makes the running ones of them after the step.
 *
 * A frozen one (ls_op_is_frozen_norm()) goes by the running statistics in training, too: they are constants, and so
 * dx = a g.
 */
#include <math.h>

#include "kernels/conv.h"
#include "kernels/simd.h"
#include "ops/shape.h"

enum { RUNNING_MEAN = 2, RUNNING_VAR, COUNTER }; /* behind LS_WEIGHT and LS_BIAS */

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

static float eps(const ls_op *op)
{
	return ((const ls_batch_norm_options *)op->node->attributes)->eps;
}

/* The relu's mask follows from x, or with a residual from y (mask_at()). */
static int keeps(const ls_node *node)
{
	return LS_KEEP_INPUT | (node->activation && node->input_count == 2 ? LS_KEEP_OUTPUT : 0);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Channels with those that fill the last panel. */
static int64_t padded_channels(const ls_op *op)
{
	return (int64_t)op->in[0]->blocks * op->in[0]->panel;
}

/* aux: what backward needs, (padded channels) each, then the moments of chunks. The chunks come last, since their
 * number depends on the micro-batch. */
typedef struct kept {
	float *mean, *inverse;
	float *a, *b;       /* of forward */
	float *chunk_means; /* (blocks, chunks, panel); behind it the sums of squared deviations, of the same shape */
} kept;

static kept kept_of(const ls_op *op)
{
	int64_t channels = padded_channels(op);
	float *aux = op->aux;
	return (kept){ aux, aux + channels, aux + 2 * channels, aux + 3 * channels, aux + 4 * channels };
}

float *ls_batch_norm_moments(const ls_op *norm)
{
	return kept_of(norm).chunk_means;
}

/* Before the convolution has a plan. */
static size_t aux_bytes(const ls_op *op, int64_t n)
{
	int64_t chunks = op->moments_from ? ls_conv_tiles_most(op->moments_from->node->attributes,
							       op->moments_from->conv_algorithm, n)
					  : ls_chunks(ls_tensor_rows(op->in[0], n));
	return sizeof(float) * (size_t)((4 + 2 * chunks) * padded_channels(op));
}

/* scratch: of backward. */
typedef struct working {
	float *a, *b, *c; /* (padded channels) */
	float *sums;      /* (blocks, chunks, 2, panel) of g and of g (x - mean) */
} working;

static working working_of(const ls_op *op)
{
	int64_t channels = padded_channels(op);
	float *scratch = op->scratch;
	return (working){ scratch, scratch + channels, scratch + 2 * channels, scratch + 3 * channels };
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	return sizeof(float) * (size_t)((3 + 2 * ls_chunks(ls_tensor_rows(op->in[0], n))) * padded_channels(op));
}

/* Chunk `unit` of all chunks of all channel blocks. */
typedef struct chunk_place {
	int64_t at;      /* its first float */
	int64_t rows;    /* how many */
	int64_t channel; /* the first one of the block */
} chunk_place;

static int64_t chunks_of(const ls_op *op, const ls_pass *pass)
{
	return ls_chunks(ls_tensor_rows(op->in[0], pass->n));
}

static chunk_place chunk_at(const ls_op *op, const ls_pass *pass, int64_t unit)
{
	int64_t rows = ls_tensor_rows(op->in[0], pass->n), chunks = ls_chunks(rows), panel = op->in[0]->panel;
	int64_t block = unit / chunks, chunk = unit % chunks;
	return (chunk_place){ .at = (block * rows + chunk * LS_CHUNK_ROWS) * panel,
			      .rows = ls_chunk_rows(rows, chunk),
			      .channel = block * panel };
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* A convolution's plan for micro-batches of this size. */
static const ls_conv_plan *plan_of(const ls_op *conv, const ls_pass *pass)
{
	return (const ls_conv_plan *)conv->plan + pass->size;
}

static int64_t moment_chunks(const ls_op *op, const ls_pass *pass)
{
	return op->moments_from ? plan_of(op->moments_from, pass)->forward.tiles : chunks_of(op, pass);
}

static int64_t moment_rows(const ls_op *op, const ls_pass *pass, int64_t chunk)
{
	return op->moments_from ? ls_conv_tile_rows(plan_of(op->moments_from, pass), chunk)
				: ls_chunk_rows(ls_tensor_rows(op->in[0], pass->n), chunk);
}

/* Mean and sum of squared deviations of every chunk, where no convolution made them. */
static void make_moments(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t chunks = chunks_of(op, pass), panel = op->in[0]->panel, unit;
	float *means = kept_of(op).chunk_means, *squares = means + chunks * padded_channels(op);

	while ((unit = ls_team_next(member, chunks * op->in[0]->blocks)) >= 0) {
		chunk_place chunk = chunk_at(op, pass, unit);
		ls_simd_get()->moments(op->x[0] + chunk.at, chunk.rows, (int)panel, means + unit * panel,
				       squares + unit * panel);
	}
	ls_team_barrier(member);
}

/* Chan, Golub and LeVeque: join (count, mean, sum of squared deviations) of one chunk to the running triple. */
static void join(double *count, double *mean, double *squares, double rows, double chunk_mean, double chunk_squares)
{
	double total = *count + rows, delta = chunk_mean - *mean;
	*mean += delta * rows / total;
	*squares += chunk_squares + delta * delta * *count * rows / total;
	*count = total;
}

/* Mean and inverse deviation of this thread's channels from the moments of chunks; statistics for the running ones. */
static void combine_moments(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t chunks = moment_chunks(op, pass), panel = op->in[0]->panel, begin, end;
	kept k = kept_of(op);
	const float *chunk_squares = k.chunk_means + chunks * padded_channels(op);
	float *microbatch_mean = pass->stats + op->params[RUNNING_MEAN]->offset;
	float *microbatch_var = pass->stats + op->params[RUNNING_VAR]->offset;

	ls_team_range(member, padded_channels(op), &begin, &end);
	for (int64_t c = begin; c < end; c++) {
		double count = 0, mean = 0, squares = 0;
		for (int64_t i = 0; i < chunks; i++) {
			int64_t at = (c / panel * chunks + i) * panel + c % panel;
			join(&count, &mean, &squares, (double)moment_rows(op, pass, i), k.chunk_means[at],
			     chunk_squares[at]);
		}
		k.mean[c] = (float)mean;
		k.inverse[c] = (float)(1 / sqrt(squares / count + eps(op)));
		microbatch_mean[c] = (float)mean;
		microbatch_var[c] = (float)(squares / (count > 1 ? count - 1 : 1)); /* unbiased, as PyTorch keeps it */
	}
}

/* Evaluation, or frozen: the running statistics instead. */
static void use_running(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const float *running_mean = pass->buffers + op->params[RUNNING_MEAN]->offset;
	const float *running_var = pass->buffers + op->params[RUNNING_VAR]->offset;
	kept k = kept_of(op);
	int64_t begin, end;

	ls_team_range(member, padded_channels(op), &begin, &end);
	for (int64_t c = begin; c < end; c++) {
		k.mean[c] = running_mean[c];
		k.inverse[c] = (float)(1 / sqrt((double)running_var[c] + eps(op)));
	}
	for (int64_t c = begin; pass->training && c < end; c++) /* what the step adds up must be numbers */
		pass->stats[op->params[RUNNING_MEAN]->offset + (size_t)c] =
			pass->stats[op->params[RUNNING_VAR]->offset + (size_t)c] = 0;
}

static void forward_coefficients(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const float *weight = ls_op_param(op, pass, LS_WEIGHT), *bias = ls_op_param(op, pass, LS_BIAS);
	kept k = kept_of(op);
	int64_t begin, end;

	ls_team_range(member, padded_channels(op), &begin, &end);
	for (int64_t c = begin; c < end; c++) {
		k.a[c] = weight[c] * k.inverse[c];
		k.b[c] = bias[c] - k.mean[c] * k.a[c];
	}
	ls_team_barrier(member);
}

/* The pass over the data; also `remake`, since x and the coefficients are kept. */
static void write_output(const ls_op *op, const ls_pass *pass, float *y, ls_member member)
{
	int64_t units = chunks_of(op, pass) * op->in[0]->blocks, unit;
	kept k = kept_of(op);

	while ((unit = ls_team_next(member, units)) >= 0) {
		chunk_place chunk = chunk_at(op, pass, unit);
		ls_simd_get()->normalize(op->x[0] + chunk.at, op->x[1] ? op->x[1] + chunk.at : NULL, chunk.rows,
					 op->in[0]->panel, k.a + chunk.channel, k.b + chunk.channel,
					 op->node->activation == LS_ACT_RELU, y + chunk.at);
	}
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	if (!pass->training || ls_op_is_frozen_norm(op)) {
		use_running(op, pass, member);
	} else {
		if (!op->moments_from)
			make_moments(op, pass, member);
		combine_moments(op, pass, member);
	}
	forward_coefficients(op, pass, member);
	write_output(op, pass, op->y, member);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* What the relu let through, in a chunk. Without a residual it follows from x as well as from y, and x is read anyway;
 * the coefficients are forward's. */
static ls_norm_mask mask_at(const ls_op *op, const chunk_place *chunk)
{
	kept k = kept_of(op);

	if (!op->node->activation)
		return (ls_norm_mask){ 0 };
	if (has_residual(op))
		return (ls_norm_mask){ .y = op->y + chunk->at };
	return (ls_norm_mask){ .scale = k.a + chunk->channel, .shift = k.b + chunk->channel };
}

/* Sums of g and g (x - mean); g goes to the residual where that wants a gradient. */
static void sum_chunk(const ls_op *op, const ls_pass *pass, int64_t unit)
{
	chunk_place chunk = chunk_at(op, pass, unit);
	int64_t panel = op->in[0]->panel;
	float *g = !op->dx[1] ? NULL : (op->add_dx[1] ? op->dy : op->dx[1]) + chunk.at;
	float *sums = working_of(op).sums + unit * 2 * panel;

	ls_simd_get()->normalize_sums(op->dy + chunk.at, mask_at(op, &chunk), op->x[0] + chunk.at, chunk.rows,
				      (int)panel, kept_of(op).mean + chunk.channel, g, sums, sums + panel);
	if (g && op->add_dx[1])
		ls_simd_get()->accumulate(op->dx[1] + chunk.at, g, chunk.rows * panel);
}

/* Add to element c of a gradient, unless nobody wants it. */
static void add_grad(float *grad, int64_t c, double value, int accumulate)
{
	if (grad)
		grad[c] = (float)(accumulate ? grad[c] + value : value);
}

/* Gradients of weight and bias, and the coefficients of dx, of channels [begin, end). */
static void backward_coefficients(const ls_op *op, const ls_pass *pass, int64_t begin, int64_t end)
{
	int64_t chunks = chunks_of(op, pass), panel = op->in[0]->panel;
	double m = (double)ls_tensor_rows(op->in[0], pass->n);
	const float *weight = ls_op_param(op, pass, LS_WEIGHT);
	float *dweight = ls_op_grad(op, pass, LS_WEIGHT), *dbias = ls_op_grad(op, pass, LS_BIAS);
	int is_frozen = ls_op_is_frozen_norm(op);
	kept k = kept_of(op);
	working w = working_of(op);

	for (int64_t c = begin; c < end; c++) {
		double sum_g = 0, sum_gx = 0, r = k.inverse[c];
		for (int64_t i = 0; i < chunks; i++) {
			const float *pair = w.sums + (c / panel * chunks + i) * 2 * panel + c % panel;
			sum_g += pair[0];
			sum_gx += pair[panel];
		}
		add_grad(dbias, c, sum_g, pass->accumulate);
		add_grad(dweight, c, sum_gx * r, pass->accumulate);
		double a = (double)weight[c] * r, b = is_frozen ? 0 : -a * r * r * sum_gx / m;
		w.a[c] = (float)a;
		w.b[c] = (float)b;
		w.c[c] = is_frozen ? 0 : (float)(-a * sum_g / m - b * k.mean[c]);
	}
}

/* dx of a chunk. Where the residual has got g, it is read from there, masked already. */
static void write_chunk(const ls_op *op, const ls_pass *pass, int64_t unit)
{
	chunk_place chunk = chunk_at(op, pass, unit);
	const float *g = !op->dx[1] || op->add_dx[1] ? op->dy : op->dx[1];
	ls_norm_mask mask = op->dx[1] ? (ls_norm_mask){ 0 } : mask_at(op, &chunk);
	working w = working_of(op);

	ls_simd_get()->normalize_input(g + chunk.at, mask, op->x[0] + chunk.at, chunk.rows, op->in[0]->panel,
				       w.a + chunk.channel, w.b + chunk.channel, w.c + chunk.channel,
				       op->dx[0] + chunk.at);
}

/*
 * A channel block needs nothing of another. So where there is a block for every thread, each takes whole blocks through
 * sums, coefficients and dx, without a barrier, and finds in cache for dx what the sums have read last.
 */
static void backward_by_block(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t chunks = chunks_of(op, pass), panel = op->in[0]->panel, block;

	while ((block = ls_team_next(member, op->in[0]->blocks)) >= 0) {
		int64_t first = block * chunks;
		for (int64_t unit = first; unit < first + chunks; unit++)
			sum_chunk(op, pass, unit);
		backward_coefficients(op, pass, block * panel, (block + 1) * panel);
		for (int64_t unit = first + chunks - 1; op->dx[0] && unit >= first; unit--)
			write_chunk(op, pass, unit);
	}
}

/* Otherwise threads share the chunks of a block, with a barrier between the parts. Same sums. */
static void backward_by_chunk(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t units = chunks_of(op, pass) * op->in[0]->blocks, unit, begin, end;

	while ((unit = ls_team_next(member, units)) >= 0)
		sum_chunk(op, pass, unit);
	ls_team_barrier(member);
	ls_team_range(member, padded_channels(op), &begin, &end);
	backward_coefficients(op, pass, begin, end);
	ls_team_barrier(member);
	while (op->dx[0] && (unit = ls_team_next(member, units)) >= 0)
		write_chunk(op, pass, unit);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	if (op->in[0]->blocks % member.size == 0)
		backward_by_block(op, pass, member);
	else
		backward_by_chunk(op, pass, member);
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
	.remake = write_output,
	.cases = { LS_CASE_IMAGES(20, 4, 3, .attributes = &(ls_batch_norm_options){ 0 }) },
};
