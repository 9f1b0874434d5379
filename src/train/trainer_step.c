/*
 * trainer_step.c - one step: what drivers, teams and the exchange do, and what is noted of it.
 *
 * On several nodes the last blocks of one step are updated while the next step's forward pass goes on: the exchange
 * tells which step an update belongs to.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "train/trainer.h"

static ls_step_notes *notes_of(ls_trainer *t, uint64_t step)
{
	return &t->notes[step % 4];
}

static ls_optimizer_pass pass_of(ls_trainer *t, uint64_t step, const float *grads, size_t grads_begin)
{
	return (ls_optimizer_pass){ .kind = t->kind,
				    .hyper = &t->hyper,
				    .table = &t->graph->params,
				    .params = t->master,
				    .grads = grads,
				    .grads_begin = grads_begin,
				    .slots = { t->slots[0], t->slots[1] },
				    .scale = (float)notes_of(t, step)->scale,
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

/* Running statistics move; other sums are kept as they are. `node`: whose they are, -1 everybody's. */
static void update_extra(ls_trainer *t, double samples, int node, size_t begin, size_t end, const float *sums)
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

/* A worker's sums by themselves: they are means already, and every one of them is an update. */
static void update_from(ls_trainer *t, const ls_exchange_source *source, size_t begin, size_t end, const float *sums)
{
	size_t extra_begin = ls_exchange_extra_begin(t->exchange);

	if (begin >= extra_begin) {
		update_extra(t, 1, source->node, begin - extra_begin, end - extra_begin, sums);
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

	if (source.node >= 0) {
		update_from(t, &source, begin, end, sums);
	} else if (begin >= extra_begin) {
		update_extra(t, (double)notes_of(t, source.step)->samples, -1, begin - extra_begin, end - extra_begin,
			     sums);
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
	ls_optimizer_pass pass = pass_of(t, ls_exchange_source_of(t->exchange, m->begin).step, NULL, 0);
	ls_optimizer_prepare(&pass, m->begin, m->end, m->sums, m->figures);
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
		choose_scale(t, notes_of(t, t->first_step + t->measured_steps++), ls_norm_combine(figures, count));
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

/* The short cut: a layer's gradient is final, and so is the step's. */
static void update_ready(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	ls_device *d = context;
	ls_trainer *t = d->trainer;
	double began = ls_clock_seconds(), start = ls_clock_thread();
	ls_optimizer_pass pass = pass_of(t, t->step, grads, begin);
	apply_share(&pass, begin, end, member);
	t->update_s[member.rank] += ls_clock_thread() - start;
	if (t->act != NULL)
		t->act(t->trace_context, LS_ACT_UPDATE, member.rank, -1, began, ls_clock_seconds());
}

static void give_ready(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	ls_device *d = context;
	(void)grads;
	ls_exchange_ready(d->trainer->exchange, d->index, d->leaf, begin, end, member);
}

static void wait_needed(void *context, size_t begin, size_t end, ls_member member)
{
	ls_device *d = context;
	double start = member.rank == 0 ? ls_clock_seconds() : 0;
	ls_exchange_need(d->trainer->exchange, d->index, begin, end, member);
	if (member.rank == 0)
		d->need_s += ls_clock_seconds() - start;
}

static void tell_span(void *context, const char *node, int is_backward, double begin_s, double end_s)
{
	ls_device *d = context;
	d->trainer->span(d->trainer->trace_context, d->index, node, is_backward, begin_s, end_s);
}

void ls_trainer_act(void *context, ls_exchange_act act, int participant, int64_t number, double begin_s, double end_s)
{
	ls_trainer *t = context;
	t->act(t->trace_context, act, participant, number, begin_s, end_s);
}

/* What makes sums over a step's tokens to be predicted means, once they are divided by its samples. */
static double token_weight(const ls_leaf *leaf)
{
	if (leaf->text == NULL || leaf->text->step_picks == 0)
		return 0;
	return (double)leaf->step_samples / (double)leaf->text->step_picks;
}

static ls_exec_leaf job_of(ls_device *d, const ls_leaf *leaf, float *grads)
{
	const ls_trainer *t = d->trainer;
	return (ls_exec_leaf){ .count = leaf->count,
			       .images = leaf->images,
			       .text = leaf->text,
			       .token_weight = token_weight(leaf),
			       .labels = leaf->labels,
			       .samples = leaf->samples,
			       .params = t->params,
			       .buffers = t->buffers,
			       .grads = grads,
			       .stats = d->stats,
			       .seed = t->seed,
			       .step = t->step,
			       .need = t->nodes > 1 ? wait_needed : NULL,
			       .need_context = d,
			       .ready = t->update_early ? update_ready : give_ready,
			       .ready_context = d,
			       .share_grads = t->share_grads,
			       .span = t->span != NULL ? tell_span : NULL,
			       .span_context = d };
}

static void fill_sums(const ls_exec_leaf *job, float *sums)
{
	sums[LS_EXTRA_LOSS] = (float)job->loss;
	sums[LS_EXTRA_CORRECT] = (float)job->correct;
	sums[LS_EXTRA_SAMPLES] = (float)job->count;
	sums[LS_EXTRA_TOKENS] = job->text != NULL ? (float)job->text->start[job->count] : 0;
	sums[LS_EXTRA_PICKS] = job->text != NULL ? (float)job->text->pick_start[job->count] : 0;
	sums[LS_EXTRA_TOKEN_LOSS] = (float)job->token_loss;
	sums[LS_EXTRA_TOKEN_CORRECT] = (float)job->token_correct;
}

/* What a leaf adds to the sums that ride along. */
static void fill_extra(const ls_trainer *t, const ls_device *d, const ls_exec_leaf *job, double seconds, float *extra)
{
	size_t buffers = t->graph->params.buffers;
	float *sums = extra + buffers;

	float weight = (float)job->count;
	if (t->staleness > 0) /* servers take means */
		weight /= (float)t->notes[t->step % 4].own_samples;
	for (size_t i = 0; i < buffers; i++)
		extra[i] = weight * d->stats[i];
	memset(sums, 0, (LS_EXTRA_NODES + (size_t)t->nodes) * sizeof(float));
	fill_sums(job, sums);
	sums[LS_EXTRA_NODES + t->node] = (float)seconds;
}

/* The step's sums are in `state` until the next step's are: keep them. */
static void take_notes(ls_trainer *t, uint64_t step)
{
	ls_step_notes *n = notes_of(t, step);
	const float *sums = t->state + t->graph->params.buffers;

	memcpy(n->sums, sums, sizeof(n->sums));
	for (int i = 0; i < t->nodes; i++)
		n->node_s[i] = sums[LS_EXTRA_NODES + i];
	n->taken = 1;
}

static ls_status complete(ls_trainer *t, uint64_t step)
{
	if (notes_of(t, step)->taken)
		return LS_OK;
	if (t->exchange != NULL)
		LS_TRY(ls_exchange_await(t->exchange, step));
	take_notes(t, step);
	return LS_OK;
}

static void keep_failure(ls_device *d, ls_status status)
{
	if (d->status != LS_OK)
		return;
	d->status = status;
	snprintf(d->message, sizeof(d->message), "%s", ls_last_error());
}

/* Hand in the leaf's extra floats; before the step's last ones the sums of the step before are taken down. */
static void give_extra(ls_device *d, int64_t k, int64_t leaves)
{
	ls_trainer *t = d->trainer;
	size_t begin = ls_exchange_extra_begin(t->exchange);

	if (d->takes_note && k == leaves - 1) {
		ls_status status = complete(t, t->step - 1);
		if (status != LS_OK)
			keep_failure(d, status);
	}
	ls_exchange_ready(t->exchange, d->index, k, begin, begin + t->extra, (ls_member){ .rank = 0, .size = 1 });
}

/* There is no leaf: others must not wait for it, and a loss that is no number keeps everybody from using the step. */
static void give_nothing(ls_device *d, int64_t k, int64_t leaves)
{
	ls_trainer *t = d->trainer;
	size_t live = t->graph->params.live;

	memset(ls_exchange_slot(t->exchange, d->index, k), 0, live * sizeof(float));
	ls_exchange_ready(t->exchange, d->index, k, 0, live, (ls_member){ .rank = 0, .size = 1 });
	float *extra = ls_exchange_extra(t->exchange, d->index, k);
	memset(extra, 0, t->extra * sizeof(float));
	extra[t->graph->params.buffers + LS_EXTRA_LOSS] = NAN;
	give_extra(d, k, leaves);
}

static void run_leaf(ls_device *d, int64_t k, int64_t leaves, int wants_stop)
{
	ls_trainer *t = d->trainer;
	const ls_leaf *leaf = NULL;
	ls_status status = d->status == LS_OK ? t->next(t->next_context, d->index, &leaf) : d->status;

	d->leaf = k;
	d->need_s = 0;
	if (status != LS_OK) {
		keep_failure(d, status);
		give_nothing(d, k, leaves);
		return;
	}
	ls_exec_leaf job = job_of(d, leaf, ls_exchange_slot(t->exchange, d->index, k));
	double start = ls_clock_seconds();
	d->work.kind->train(d->work.self, &job);
	double seconds = ls_clock_seconds() - start - d->need_s;
	float *extra = ls_exchange_extra(t->exchange, d->index, k);
	fill_extra(t, d, &job, seconds, extra);
	extra[t->graph->params.buffers + LS_EXTRA_STOPS] = (float)wants_stop;
	give_extra(d, k, leaves);
}

static void finish(void *context, ls_member member)
{
	const ls_device *d = context;
	ls_exchange_finish(d->trainer->exchange, d->index, member);
}

typedef struct drive_job {
	ls_trainer *trainer;
	int wants_stop;
} drive_job;

static void drive(void *context, ls_member driver)
{
	const drive_job *job = context;
	ls_device *d = &job->trainer->device[driver.rank];
	const int64_t *index;
	int64_t leaves = ls_exchange_leaves(job->trainer->exchange, d->index, &index);

	for (int64_t k = 0; k < leaves; k++)
		run_leaf(d, k, leaves, job->wants_stop);
	ls_team_run(d->team, finish, d);
}

/* Without an exchange: the leaf is the step. */
static ls_status run_alone(ls_trainer *t, const ls_trainer_deal *deal)
{
	ls_device *d = &t->device[0];
	const ls_leaf *leaf = NULL;

	LS_TRY(t->next(t->next_context, 0, &leaf));
	ls_exec_leaf job = job_of(d, leaf, t->grads);
	double start = ls_clock_seconds();
	d->work.kind->train(d->work.self, &job);
	float *sums = d->stats; /* scaled in place; the rest goes straight into `state` */
	float *state = t->state + t->graph->params.buffers;
	for (size_t i = 0; i < t->graph->params.buffers; i++)
		sums[i] *= (float)job.count;
	fill_sums(&job, state);
	state[LS_EXTRA_STOPS] = (float)deal->wants_stop;
	state[LS_EXTRA_NODES] = (float)(ls_clock_seconds() - start);
	update_extra(t, (double)job.count, -1, 0, t->graph->params.buffers, sums);
	return LS_OK;
}

/* Contiguous runs, for a caller that leaves it to the trainer. */
static void deal_evenly(ls_trainer *t, int64_t leaves)
{
	for (int d = 0; d < t->devices; d++)
		for (int64_t i = leaves * d / t->devices; i < leaves * (d + 1) / t->devices; i++) {
			t->deal_node[i] = 0;
			t->deal_device[i] = d;
		}
}

/* What is known of a step before it begins; returns the lowest of this node's devices that has a leaf, or -1. */
static int begin_notes(ls_trainer *t, const ls_trainer_deal *deal, const int *node, const int *device)
{
	ls_step_notes *n = notes_of(t, t->step);
	int lowest = -1;

	n->step = t->step;
	n->samples = deal->samples;
	n->scale = 1.0 / (double)deal->samples;
	n->own_samples = 0;
	n->gradient_norm = NAN;
	n->exposed_s = n->wait_s = 0;
	n->taken = 0;
	memset(n->leaves, 0, (size_t)t->nodes * sizeof(*n->leaves));
	for (int64_t i = 0; i < deal->leaves; i++) {
		n->leaves[node[i]]++;
		if (node[i] == t->node)
			n->own_samples += i < deal->leaves - 1 ? t->leaf : deal->samples - (deal->leaves - 1) * t->leaf;
		if (node[i] == t->node && (lowest < 0 || device[i] < lowest))
			lowest = device[i];
	}
	return lowest;
}

static ls_status collect_failures(ls_trainer *t)
{
	if (t->exchange != NULL)
		LS_TRY(ls_exchange_status(t->exchange));
	for (int i = 0; i < t->devices; i++)
		if (t->device[i].status != LS_OK)
			return ls_fail(t->device[i].status, "%s", t->device[i].message);
	return LS_OK;
}

static ls_status run_devices(ls_trainer *t, const ls_trainer_deal *deal)
{
	if (deal->node == NULL)
		deal_evenly(t, deal->leaves);
	const int *node = deal->node != NULL ? deal->node : t->deal_node;
	const int *device = deal->node != NULL ? deal->device : t->deal_device;
	int lowest = begin_notes(t, deal, node, device), late = t->nodes > 1 && t->step > t->first_step;
	int64_t own = notes_of(t, t->step)->own_samples;
	ls_exchange_deal x = { .step = t->step,
			       .leaves = deal->leaves,
			       .node = node,
			       .device = device,
			       .scale = own > 0 ? 1.0f / (float)own : 0 };
	drive_job job = { .trainer = t, .wants_stop = deal->wants_stop };

	if (late && lowest < 0) /* nothing of this node holds this step's sums back */
		LS_TRY(complete(t, t->step - 1));
	for (int i = 0; i < t->devices; i++)
		t->device[i].takes_note = late && i == lowest;
	ls_exchange_begin(t->exchange, &x);
	if (t->devices > 0) {
		ls_team_run(t->crew.drivers, drive, &job);
		ls_exchange_times times = ls_exchange_take_times(t->exchange);
		notes_of(t, t->step)->exposed_s = times.need_s;
		notes_of(t, t->step)->wait_s = times.finish_s;
	}
	return collect_failures(t);
}

/* By every node for itself. The step's scale has no part in it, and on several nodes may be yet to come. */
static void decay_dead(ls_trainer *t)
{
	ls_optimizer_pass pass = { .kind = t->kind,
				   .hyper = &t->hyper,
				   .table = &t->graph->params,
				   .params = t->params,
				   .lr = ls_schedule_rate(&t->schedule, t->step) };
	ls_optimizer_decay_dead(&pass);
}

ls_status ls_trainer_step(ls_trainer *t, const ls_trainer_deal *deal)
{
	static const int only[1] = { 0 };

	if (!t->pinned)
		ls_crew_join(&t->crew);
	t->pinned = 1;
	if (t->update_early) {
		begin_notes(t, deal, only, only);
		LS_TRY(run_alone(t, deal));
	} else {
		LS_TRY(run_devices(t, deal));
	}
	decay_dead(t);
	t->step++;
	t->batches_tracked++;
	return t->nodes == 1 ? complete(t, t->step - 1) : LS_OK;
}

ls_status ls_trainer_report_of(ls_trainer *t, uint64_t step, ls_trainer_report *out)
{
	const ls_step_notes *n = notes_of(t, step);

	LS_TRY(complete(t, step));
	*out = (ls_trainer_report){ .step = step,
				    .loss = n->sums[LS_EXTRA_LOSS],
				    .correct = (int64_t)n->sums[LS_EXTRA_CORRECT],
				    .samples = (int64_t)n->sums[LS_EXTRA_SAMPLES],
				    .stops = n->sums[LS_EXTRA_STOPS] > 0,
				    .tokens = (int64_t)n->sums[LS_EXTRA_TOKENS],
				    .picks = (int64_t)n->sums[LS_EXTRA_PICKS],
				    .token_loss = (double)n->sums[LS_EXTRA_TOKEN_LOSS],
				    .token_correct = (int64_t)n->sums[LS_EXTRA_TOKEN_CORRECT],
				    .gradient_norm = n->gradient_norm,
				    .exposed_s = n->exposed_s,
				    .wait_s = n->wait_s,
				    .node_s = n->node_s,
				    .leaves = n->leaves };
	return LS_OK;
}

ls_status ls_trainer_settle(ls_trainer *t)
{
	if (t->pinned)
		ls_crew_leave(&t->crew);
	t->pinned = 0;
	return t->step > t->first_step ? complete(t, t->step - 1) : LS_OK;
}
