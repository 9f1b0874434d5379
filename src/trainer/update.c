/*
 * update.c - sums become parameters.
 *
 *     update_block()               the exchange has the sum of a block over all micro-batches
 *     ls_node_trainer_update_layer()    without an exchange a layer's gradient is the step's
 *
 * Both ways end in apply(), and for statistics in ls_node_trainer_update_stats(). On several nodes the last blocks of
 * one step are updated while the next step's forward pass goes on: the exchange says which step an update belongs to.
 */
#include "trainer/update.h"

#include <math.h>

#include "base/clock.h"

/* On several nodes, where steps overlap, no gradient is held: every step is an update. */
ls_optimizer_pass ls_node_trainer_pass(ls_node_trainer *t, uint64_t step, double scale, const float *grads,
				       size_t grads_begin)
{
	uint64_t update = step - (uint64_t)t->steps_held;

	return (ls_optimizer_pass){ .kind = t->kind,
				    .hyper = &t->options.hyper,
				    .table = &t->graph->params,
				    .params = t->master,
				    .grads = grads,
				    .grads_begin = grads_begin,
				    .slots = { t->slots[0], t->slots[1] },
				    .scale = (float)scale,
				    .step = update + 1,
				    .lr = ls_schedule_rate(&t->options.schedule, update),
				    .ratios = t->ratios,
				    .average = t->average,
				    .decay = t->options.ema };
}

/* Update [begin, end) with the step's gradient, whose float `grads_begin` is at `grads`. */
static void apply(ls_node_trainer *t, uint64_t step, const float *grads, size_t grads_begin, size_t begin, size_t end)
{
	ls_optimizer_pass pass =
		ls_node_trainer_pass(t, step, ls_node_trainer_record_of(t, step)->scale, grads, grads_begin);
	ls_optimizer_apply(&pass, begin, end);
}

/* A server without a common step replies with the statistics of all workers since the worker's last message. */
static void update_stat_since(ls_node_trainer *t, int node, size_t i, float sum)
{
	double *all = t->all_stats + i, *last = t->all_stats + (size_t)(1 + node) * LS_STAT_NODES + i;

	*all += sum;
	t->state[t->graph->params.buffers + i] = (float)(*all - *last);
	*last = *all;
}

void ls_node_trainer_update_stats(ls_node_trainer *t, double samples, int node, size_t begin, size_t end,
				  const float *sums)
{
	size_t buffers = t->graph->params.buffers, split = end < buffers ? end : buffers;

	end = end < t->stats_floats ? end : t->stats_floats;
	if (begin < split)
		ls_graph_update_running(t->graph, sums, begin, split, samples, t->buffers);
	for (size_t i = begin > buffers ? begin : buffers; i < end; i++) {
		if (node >= 0 && i - buffers < LS_STAT_NODES)
			update_stat_since(t, node, i - buffers, sums[i - begin]);
		else if (node < 0 || i - buffers == LS_STAT_NODES + (size_t)node)
			t->state[i] = sums[i - begin];
	}
}

/* A step without all its data must not change anything: on one node the weights then stay those of the step before, and
 * can still be saved. (On several, a loss that is not a number keeps every node from using the step.) */
static int is_void(const ls_node_trainer *t)
{
	return t->nodes == 1 && atomic_load(&t->data_failed);
}

/* ls_exchange_options.update: the sums of a block are complete. In ps-async they are one worker's, and means. */
static void update_block(void *context, size_t begin, size_t end, const float *sums, int participant)
{
	ls_node_trainer *t = context;
	size_t stats_begin = ls_exchange_statistics_begin(t->exchange);
	double start = ls_clock_thread();
	ls_exchange_source source = ls_exchange_source_of(t->exchange, begin);

	if (is_void(t))
		return;
	if (begin >= stats_begin) {
		double samples = source.node >= 0 ? 1 : (double)ls_node_trainer_record_of(t, source.step)->samples;
		pthread_mutex_lock(&t->stats_lock);
		ls_node_trainer_update_stats(t, samples, source.node, begin - stats_begin, end - stats_begin, sums);
		pthread_mutex_unlock(&t->stats_lock);
	} else if (source.node >= 0) {
		/* the record of a worker's step is that of another step here */
		ls_optimizer_pass pass = ls_node_trainer_pass(t, source.step, 1, sums, begin);
		pass.step = t->first_step * (uint64_t)t->workers + source.updates + 1;
		ls_optimizer_apply(&pass, begin, end);
	} else if (t->is_holding) {
		ls_node_trainer_hold(t, begin, end, sums);
	} else {
		apply(t, source.step, sums, begin, begin, end);
	}
	t->update_s[participant] += ls_clock_thread() - start;
}

/* In whole cache lines, on which parameters start. */
void ls_node_trainer_update_layer(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	ls_driver *d = context;
	ls_node_trainer *t = d->trainer;
	double began = ls_clock_seconds(), start = ls_clock_thread();
	int64_t first, last;

	ls_team_range(member, (int64_t)(end - begin + 15) / 16, &first, &last);
	size_t from = begin + (size_t)first * 16, to = begin + (size_t)last * 16;
	if (from < to)
		apply(t, t->step, grads, begin, from, to < end ? to : end);
	t->update_s[member.rank] += ls_clock_thread() - start;
	double ended = ls_clock_seconds();
	if (member.rank == 0)
		d->deliver_s += ended - began;
	if (t->options.act)
		t->options.act(t->options.trace_context, LS_EVENT_UPDATE, member.rank, -1, began, ended);
}

void ls_node_trainer_decay_unreachable(ls_node_trainer *t)
{
	ls_optimizer_pass pass = { .kind = t->kind,
				   .hyper = &t->options.hyper,
				   .table = &t->graph->params,
				   .params = t->params,
				   .lr = ls_schedule_rate(&t->options.schedule, ls_node_trainer_updates(t)) };
	ls_optimizer_decay_unreachable(&pass);
}

/* ---- norms, where an update waits for them: clipping, then the optimizer's own (LAMB) ---- */

int ls_node_trainer_norm_passes(const ls_node_trainer_options *o, const ls_optimizer_kind *kind)
{
	return (o->clip_norm > 0) + (kind->direction != NULL);
}

int ls_node_trainer_is_clipping(const ls_node_trainer *t, int pass)
{
	return t->options.clip_norm > 0 && pass == 0;
}

static size_t count_norms(void *context, int pass, size_t begin, size_t end)
{
	const ls_node_trainer *t = context;
	return ls_node_trainer_is_clipping(t, pass) ? 1 : 2 * ls_optimizer_runs(&t->graph->params, begin, end);
}

static void sum_squares(void *context, const ls_norm_block *b)
{
	ls_node_trainer *t = context;
	double start = ls_clock_thread();

	if (ls_node_trainer_is_clipping(t, b->pass)) {
		ls_norm_block_sums(b->sums, b->end - b->begin, 0, 1, b->norms);
		return;
	}
	if (is_void(t) || t->is_holding)
		return;
	uint64_t step = ls_exchange_source_of(t->exchange, b->begin).step;
	ls_optimizer_pass pass = ls_node_trainer_pass(t, step, ls_node_trainer_record_of(t, step)->scale, NULL, 0);
	ls_optimizer_norm_pass(&pass, b->begin, b->end, b->sums, b->norms);
	t->update_s[b->participant] += ls_clock_thread() - start;
}

/* 1/samples, and less when the mean gradient is longer than the limit, as PyTorch's clip_grad_norm_. */
void ls_node_trainer_clip(const ls_node_trainer *t, ls_step_record *r, const double *squares, size_t count)
{
	double mean = 1.0 / (double)r->samples;

	r->gradient_norm = mean * sqrt(ls_norm_combine(squares, count));
	double factor = t->options.clip_norm / (r->gradient_norm + 1e-6);
	r->scale = factor < 1 ? mean * factor : mean;
}

/* The norms of all blocks are here. */
static void use_norms(void *context, int pass, const double *squares, size_t count)
{
	ls_node_trainer *t = context;

	if (ls_node_trainer_is_clipping(t, pass))
		ls_node_trainer_clip(t, ls_node_trainer_record_of(t, t->first_step + t->clipped_steps++), squares,
				     count);
	else
		ls_optimizer_ratios(&t->graph->params, LS_NORM_BLOCK, squares, t->ratios);
}

static void trace_exchange(void *context, ls_exchange_event event, int participant, int64_t number, double begin_s,
			   double end_s)
{
	const ls_node_trainer *t = context;
	t->options.act(t->options.trace_context, event, participant, number, begin_s, end_s);
}

void ls_node_trainer_set_hooks(ls_exchange_options *x, const ls_node_trainer_options *o)
{
	x->update = update_block;
	x->norm_count = count_norms;
	x->norms = sum_squares;
	x->norms_complete = use_norms;
	x->trace = o->act ? trace_exchange : NULL;
}
