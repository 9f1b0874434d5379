/*
 * trainer_update.c - sums become parameters: what the exchange calls with blocks of them, and the short cut without it.
 *
 * On several nodes the last blocks of one step are updated while the next step's forward pass goes on: the exchange
 * tells which step an update belongs to.
 */
#include <math.h>

#include "base/clock.h"
#include "trainer/trainer_inside.h"

static ls_optimizer_pass pass_of(ls_trainer *t, uint64_t step, const float *grads, size_t grads_begin)
{
	return (ls_optimizer_pass){ .kind = t->kind,
				    .hyper = &t->hyper,
				    .table = &t->graph->params,
				    .params = t->master,
				    .grads = grads,
				    .grads_begin = grads_begin,
				    .slots = { t->slots[0], t->slots[1] },
				    .scale = (float)ls_trainer_notes(t, step)->scale,
				    .step = step + 1,
				    .lr = ls_schedule_rate(&t->schedule, step),
				    .ratios = t->ratios };
}

/* What a server without a common step answers: the sums of all workers since this one last heard. */
static void tell_rest(ls_trainer *t, int node, size_t i, float sum)
{
	double *all = t->all_sums + i, *heard = t->all_sums + (size_t)(1 + node) * LS_EXTRA_NODES + i;

	*all += sum;
	t->state[t->graph->params.buffers + i] = (float)(*all - *heard);
	*heard = *all;
}

void ls_trainer_update_extra(ls_trainer *t, double samples, int node, size_t begin, size_t end, const float *sums)
{
	size_t buffers = t->graph->params.buffers, split = end < buffers ? end : buffers;

	end = end < t->extra ? end : t->extra;
	if (begin < split)
		ls_graph_update_running(t->graph, sums, begin, split, samples, t->buffers);
	for (size_t i = begin > buffers ? begin : buffers; i < end; i++) {
		if (node >= 0 && i - buffers < LS_EXTRA_NODES)
			tell_rest(t, node, i - buffers, sums[i - begin]);
		else if (node < 0 || i - buffers == LS_EXTRA_NODES + (size_t)node)
			t->state[i] = sums[i - begin];
	}
}

/* Of a step without all its data nothing may come: on one node the weights then stay those of the step before, and can
 * still be saved. (On several, a loss that is no number keeps everybody from using the step.) */
static int is_void(const ls_trainer *t)
{
	return t->nodes == 1 && atomic_load(&t->data_failed);
}

/* A worker's sums by themselves: they are means already, and every one of them is an update. */
static void update_from(ls_trainer *t, const ls_exchange_source *source, size_t begin, size_t end, const float *sums)
{
	size_t extra_begin = ls_exchange_extra_begin(t->exchange);

	if (begin >= extra_begin) {
		ls_trainer_update_extra(t, 1, source->node, begin - extra_begin, end - extra_begin, sums);
		return;
	}
	ls_optimizer_pass pass = pass_of(t, source->step, sums, begin);
	pass.scale = 1;
	pass.step = t->first_step * (uint64_t)t->workers + source->updates + 1;
	ls_optimizer_apply(&pass, begin, end);
}

void ls_trainer_update(void *context, size_t begin, size_t end, const float *sums, int participant)
{
	ls_trainer *t = context;
	size_t extra_begin = ls_exchange_extra_begin(t->exchange);
	double start = ls_clock_thread();
	ls_exchange_source source = ls_exchange_source_of(t->exchange, begin);

	if (is_void(t))
		return;
	if (source.node >= 0) {
		update_from(t, &source, begin, end, sums);
	} else if (begin >= extra_begin) {
		ls_trainer_update_extra(t, (double)ls_trainer_notes(t, source.step)->samples, -1, begin - extra_begin,
					end - extra_begin, sums);
	} else {
		ls_optimizer_pass pass = pass_of(t, source.step, sums, begin);
		ls_optimizer_apply(&pass, begin, end);
	}
	t->update_s[participant] += ls_clock_thread() - start;
}

/* The round in which the gradient is measured, for clipping; the other is the optimizer's own. */
static int is_clipping(const ls_trainer *t, int round)
{
	return t->clip_norm > 0 && round == 0;
}

size_t ls_trainer_figures(void *context, int round, size_t begin, size_t end)
{
	const ls_trainer *t = context;
	return is_clipping(t, round) ? 1 : 2 * ls_optimizer_runs(&t->graph->params, begin, end);
}

void ls_trainer_measure(void *context, const ls_measuring *m)
{
	ls_trainer *t = context;
	double start = ls_clock_thread();

	if (is_clipping(t, m->round)) {
		ls_norm_block_sums(m->sums, m->end - m->begin, 0, 1, m->figures);
		return;
	}
	if (is_void(t))
		return;
	ls_optimizer_pass pass = pass_of(t, ls_exchange_source_of(t->exchange, m->begin).step, NULL, 0);
	ls_optimizer_norm_pass(&pass, m->begin, m->end, m->sums, m->figures);
	t->update_s[m->participant] += ls_clock_thread() - start;
}

/* 1/samples, and less when the mean gradient is longer than the limit: PyTorch's clip_grad_norm_. */
static void choose_scale(const ls_trainer *t, ls_step_notes *n, double squares)
{
	double mean = 1.0 / (double)n->samples;

	n->gradient_norm = mean * sqrt(squares);
	double factor = t->clip_norm / (n->gradient_norm + 1e-6);
	n->scale = factor < 1 ? mean * factor : mean;
}

void ls_trainer_measured(void *context, int round, const double *figures, size_t count)
{
	ls_trainer *t = context;

	if (is_clipping(t, round))
		choose_scale(t, ls_trainer_notes(t, t->first_step + t->measured_steps++),
			     ls_norm_combine(figures, count));
	else
		ls_optimizer_ratios(&t->graph->params, LS_NORM_BLOCK, figures, t->ratios);
}

/* This member's share of [begin, end), in whole cache lines (parameters start on them). */
static void apply_share(const ls_optimizer_pass *pass, size_t begin, size_t end, ls_member member)
{
	int64_t first, last;
	ls_team_range(member, (int64_t)(end - begin + 15) / 16, &first, &last);
	size_t from = begin + (size_t)first * 16, to = begin + (size_t)last * 16;
	if (from < to)
		ls_optimizer_apply(pass, from, to < end ? to : end);
}

void ls_trainer_update_ready(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	ls_device *d = context;
	ls_trainer *t = d->trainer;
	double began = ls_clock_seconds(), start = ls_clock_thread();
	ls_optimizer_pass pass = pass_of(t, t->step, grads, begin);
	apply_share(&pass, begin, end, member);
	t->update_s[member.rank] += ls_clock_thread() - start;
	double ended = ls_clock_seconds();
	if (member.rank == 0)
		d->give_s += ended - began;
	if (t->act)
		t->act(t->trace_context, LS_ACT_UPDATE, member.rank, -1, began, ended);
}

void ls_trainer_decay_dead(ls_trainer *t)
{
	ls_optimizer_pass pass = { .kind = t->kind,
				   .hyper = &t->hyper,
				   .table = &t->graph->params,
				   .params = t->params,
				   .lr = ls_schedule_rate(&t->schedule, t->step) };
	ls_optimizer_decay_unreachable(&pass);
}
