/*
 * step.c - one step of a node, from micro-batches to new parameters:
 *
 *     ls_trainer_step()          records the step and gives the exchange its assignment
 *       drive()                  on every device's driver, for each micro-batch of the device:
 *         run_microbatch()         data -> forward and backward on the device -> statistics of the micro-batch
 *           wait_params()            before a layer's forward: its parameters have arrived
 *           deliver_gradient()       after a layer's backward: its gradient goes into the exchange
 *         finish_device()          help to sum and update what is left
 *     update_block()             the exchange has the sum of a block over all micro-batches: optimizer
 *     ls_trainer_report_of()     the step is complete on this node
 *
 * On several nodes the last blocks of one step are updated while the next step's forward pass goes on: the exchange
 * says which step an update belongs to.
 *
 * Where there is no exchange, a micro-batch is a step: update_layer() takes the place of deliver_gradient(), and the
 * statistics are the step's at once. Both ways end in apply() and update_stats().
 */
#include "trainer/step.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static const ls_member alone = { .rank = 0, .size = 1 };

static ls_step_record *record_of(ls_trainer *t, uint64_t step)
{
	return &t->records[step % 4];
}

static void keep_failure(ls_driver *d, ls_status status)
{
	if (d->status != LS_OK)
		return;
	d->status = status;
	snprintf(d->message, sizeof(d->message), "%s", ls_last_error());
}

/* Wait until the step is complete. Its statistics are in `state` until the next step's are: keep them. */
static ls_status complete(ls_trainer *t, uint64_t step)
{
	ls_step_record *r = record_of(t, step);
	const float *stats = t->state + t->graph->params.buffers;

	if (r->is_complete)
		return LS_OK;
	if (t->exchange)
		LS_TRY(ls_exchange_await(t->exchange, step));
	memcpy(r->stats, stats, sizeof(r->stats));
	for (int i = 0; i < t->nodes; i++)
		r->node_s[i] = stats[LS_STAT_NODES + i];
	r->is_complete = 1;
	return LS_OK;
}

/* ---- sums become parameters ---- */

static ls_optimizer_pass pass_of(ls_trainer *t, uint64_t step, const float *grads, size_t grads_begin)
{
	return (ls_optimizer_pass){ .kind = t->kind,
				    .hyper = &t->options.hyper,
				    .table = &t->graph->params,
				    .params = t->master,
				    .grads = grads,
				    .grads_begin = grads_begin,
				    .slots = { t->slots[0], t->slots[1] },
				    .scale = (float)record_of(t, step)->scale,
				    .step = step + 1,
				    .lr = ls_schedule_rate(&t->options.schedule, step),
				    .ratios = t->ratios };
}

/* Update [begin, end) with the step's gradient, whose float `grads_begin` is at `grads`. */
static void apply(ls_trainer *t, uint64_t step, const float *grads, size_t grads_begin, size_t begin, size_t end)
{
	ls_optimizer_pass pass = pass_of(t, step, grads, grads_begin);
	ls_optimizer_apply(&pass, begin, end);
}

/* A server without a common step replies with the statistics of all workers since the worker's last message. */
static void update_stat_since(ls_trainer *t, int node, size_t i, float sum)
{
	double *all = t->all_stats + i, *last = t->all_stats + (size_t)(1 + node) * LS_STAT_NODES + i;

	*all += sum;
	t->state[t->graph->params.buffers + i] = (float)(*all - *last);
	*last = *all;
}

/* Sums [begin, end) over the statistics of micro-batches, of `samples` samples: running statistics move, step
 * statistics are kept as they are. `node`: whose they are, -1 all nodes'. */
static void update_stats(ls_trainer *t, double samples, int node, size_t begin, size_t end, const float *sums)
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
static int is_void(const ls_trainer *t)
{
	return t->nodes == 1 && atomic_load(&t->data_failed);
}

/* ls_exchange_options.update: the sums of a block are complete. In ps-async they are one worker's, and means. */
static void update_block(void *context, size_t begin, size_t end, const float *sums, int participant)
{
	ls_trainer *t = context;
	size_t stats_begin = ls_exchange_statistics_begin(t->exchange);
	double start = ls_clock_thread();
	ls_exchange_source source = ls_exchange_source_of(t->exchange, begin);

	if (is_void(t))
		return;
	if (begin >= stats_begin) {
		double samples = source.node >= 0 ? 1 : (double)record_of(t, source.step)->samples;
		update_stats(t, samples, source.node, begin - stats_begin, end - stats_begin, sums);
	} else if (source.node >= 0) {
		ls_optimizer_pass pass = pass_of(t, source.step, sums, begin);
		pass.scale = 1;
		pass.step = t->first_step * (uint64_t)t->workers + source.updates + 1;
		ls_optimizer_apply(&pass, begin, end);
	} else {
		apply(t, source.step, sums, begin, begin, end);
	}
	t->update_s[participant] += ls_clock_thread() - start;
}

/* ls_exec_microbatch.ready without an exchange: a layer's gradient is final, and so is the step's. Host threads share
 * it in whole cache lines, on which parameters start. */
static void update_layer(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	ls_driver *d = context;
	ls_trainer *t = d->trainer;
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

/* Weights that no input reaches only decay: by every node for itself, and without the step's scale, which on several
 * nodes may be yet to come. */
static void decay_unreachable(ls_trainer *t)
{
	ls_optimizer_pass pass = { .kind = t->kind,
				   .hyper = &t->options.hyper,
				   .table = &t->graph->params,
				   .params = t->params,
				   .lr = ls_schedule_rate(&t->options.schedule, t->step) };
	ls_optimizer_decay_unreachable(&pass);
}

/* ---- norms, where an update waits for them: clipping, then the optimizer's own (LAMB) ---- */

int ls_trainer_norm_passes(const ls_trainer_options *o, const ls_optimizer_kind *kind)
{
	return (o->clip_norm > 0) + (kind->direction != NULL);
}

static int is_clipping(const ls_trainer *t, int pass)
{
	return t->options.clip_norm > 0 && pass == 0;
}

static size_t count_norms(void *context, int pass, size_t begin, size_t end)
{
	const ls_trainer *t = context;
	return is_clipping(t, pass) ? 1 : 2 * ls_optimizer_runs(&t->graph->params, begin, end);
}

static void sum_squares(void *context, const ls_norm_block *b)
{
	ls_trainer *t = context;
	double start = ls_clock_thread();

	if (is_clipping(t, b->pass)) {
		ls_norm_block_sums(b->sums, b->end - b->begin, 0, 1, b->norms);
		return;
	}
	if (is_void(t))
		return;
	ls_optimizer_pass pass = pass_of(t, ls_exchange_source_of(t->exchange, b->begin).step, NULL, 0);
	ls_optimizer_norm_pass(&pass, b->begin, b->end, b->sums, b->norms);
	t->update_s[b->participant] += ls_clock_thread() - start;
}

/* The norms of all blocks are here. Clipping: 1/samples, and less when the mean gradient is longer than the limit, as
 * PyTorch's clip_grad_norm_. */
static void use_norms(void *context, int pass, const double *squares, size_t count)
{
	ls_trainer *t = context;

	if (!is_clipping(t, pass)) {
		ls_optimizer_ratios(&t->graph->params, LS_NORM_BLOCK, squares, t->ratios);
		return;
	}
	ls_step_record *r = record_of(t, t->first_step + t->clipped_steps++);
	double mean = 1.0 / (double)r->samples;
	r->gradient_norm = mean * sqrt(ls_norm_combine(squares, count));
	double factor = t->options.clip_norm / (r->gradient_norm + 1e-6);
	r->scale = factor < 1 ? mean * factor : mean;
}

static void trace_exchange(void *context, ls_exchange_event event, int participant, int64_t number, double begin_s,
			   double end_s)
{
	const ls_trainer *t = context;
	t->options.act(t->options.trace_context, event, participant, number, begin_s, end_s);
}

void ls_trainer_set_hooks(ls_exchange_options *x, const ls_trainer_options *o)
{
	x->update = update_block;
	x->norm_count = count_norms;
	x->norms = sum_squares;
	x->norms_complete = use_norms;
	x->trace = o->act ? trace_exchange : NULL;
}

/* ---- a micro-batch goes through the model ---- */

static void wait_params(void *context, size_t begin, size_t end, ls_member member)
{
	ls_driver *d = context;
	double start = member.rank == 0 ? ls_clock_seconds() : 0;
	ls_exchange_need(d->trainer->exchange, d->device, begin, end, member);
	if (member.rank == 0)
		d->need_s += ls_clock_seconds() - start;
}

static void deliver_gradient(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	ls_driver *d = context;
	(void)grads; /* the exchange gave the slot that they are in */
	double start = member.rank == 0 ? ls_clock_seconds() : 0;
	double waited = ls_exchange_ready(d->trainer->exchange, d->device, d->microbatch, begin, end, member);
	if (member.rank == 0) {
		d->need_s += waited;
		d->deliver_s += ls_clock_seconds() - start;
	}
}

static void trace_layer(void *context, const char *node, int is_backward, double begin_s, double end_s)
{
	const ls_driver *d = context;
	const ls_trainer_options *o = &d->trainer->options;
	o->span(o->trace_context, d->device, node, is_backward, begin_s, end_s);
}

static ls_exec_microbatch job_of(ls_driver *d, const ls_microbatch *microbatch)
{
	ls_trainer *t = d->trainer;
	int64_t masked = microbatch->text ? microbatch->text->step_masked : 0;

	return (ls_exec_microbatch){
		.count = microbatch->count,
		.images = microbatch->images,
		.text = microbatch->text,
		/* makes sums over a step's masked positions means, once they are divided by its samples */
		.token_weight = masked > 0 ? (double)microbatch->step_samples / (double)masked : 0,
		.labels = microbatch->labels,
		.samples = microbatch->samples,
		.seed = t->options.seed,
		.step = t->step,
		.grads = t->exchange ? ls_exchange_slot(t->exchange, d->device, d->microbatch) : t->early_grads,
		.share_grads = t->share_grads,
		.stats = d->stats,
		.need = t->nodes > 1 ? wait_params : NULL,
		.need_context = d,
		.ready = t->exchange ? deliver_gradient : update_layer,
		.ready_context = d,
		.span = t->options.span ? trace_layer : NULL,
		.span_context = d
	};
}

/* What a micro-batch adds to the running statistics and to the step statistics. */
static void fill_stats(const ls_driver *d, const ls_exec_microbatch *job, double seconds, int wants_stop, float *out)
{
	ls_trainer *t = d->trainer;
	size_t buffers = t->graph->params.buffers;
	float *stats = out + buffers, weight = (float)job->count;

	if (t->nodes > 1 && !t->options.strategy->synchronous) /* servers take means */
		weight /= (float)record_of(t, t->step)->own_samples;
	for (size_t i = 0; i < buffers; i++)
		out[i] = weight * d->stats[i];
	memset(stats, 0, (t->stats_floats - buffers) * sizeof(float));
	stats[LS_STAT_LOSS] = (float)job->loss;
	stats[LS_STAT_STOPS] = (float)wants_stop;
	stats[LS_STAT_TOKEN_LOSS] = (float)job->token_loss;
	ls_count_put(stats + LS_STAT_CORRECT, job->correct);
	ls_count_put(stats + LS_STAT_SAMPLES, job->count);
	ls_count_put(stats + LS_STAT_TOKENS, job->text ? job->text->start[job->count] : 0);
	ls_count_put(stats + LS_STAT_MASKED, job->text ? job->text->masked_start[job->count] : 0);
	ls_count_put(stats + LS_STAT_TOKEN_CORRECT, job->token_correct);
	stats[LS_STAT_NODES + t->node] = (float)seconds;
}

/* The statistics of a micro-batch go into the exchange; before the step's last ones the last step's are recorded, which
 * they will replace. */
static void deliver_stats(ls_driver *d, int is_last)
{
	ls_trainer *t = d->trainer;
	size_t begin = ls_exchange_statistics_begin(t->exchange);

	if (d->completes_last && is_last) {
		ls_status status = complete(t, t->step - 1);
		if (status != LS_OK)
			keep_failure(d, status);
	}
	double start = ls_clock_seconds();
	ls_exchange_ready(t->exchange, d->device, d->microbatch, begin, begin + t->stats_floats, alone);
	d->deliver_s += ls_clock_seconds() - start;
}

/* There is no micro-batch: others must not wait for it, and a loss that is not a number keeps every node from using the
 * step. */
static void deliver_nothing(ls_driver *d, int is_last)
{
	ls_trainer *t = d->trainer;
	size_t reachable = t->graph->params.reachable;

	/* A gradient is sent after the last step's values came. */
	ls_exchange_need(t->exchange, d->device, 0, reachable, alone);
	memset(ls_exchange_slot(t->exchange, d->device, d->microbatch), 0, reachable * sizeof(float));
	ls_exchange_ready(t->exchange, d->device, d->microbatch, 0, reachable, alone);
	float *stats = ls_exchange_statistics(t->exchange, d->device, d->microbatch);
	memset(stats, 0, t->stats_floats * sizeof(float));
	stats[t->graph->params.buffers + LS_STAT_LOSS] = NAN;
	deliver_stats(d, is_last);
}

static void run_microbatch(ls_driver *d, int64_t k, int is_last, int wants_stop)
{
	ls_trainer *t = d->trainer;
	const ls_microbatch *microbatch = NULL;
	ls_status status = d->status;

	d->microbatch = k;
	d->need_s = 0;
	if (status == LS_OK)
		status = t->options.next(t->options.next_context, d->device, &microbatch);
	if (status != LS_OK) {
		keep_failure(d, status);
		atomic_store(&t->data_failed, 1); /* before the update, which waits for what is delivered here */
		if (t->exchange)
			deliver_nothing(d, is_last);
		return;
	}
	ls_exec_microbatch job = job_of(d, microbatch);
	double start = ls_clock_seconds();
	d->executor->backend->train(d->executor, &job);
	double seconds = ls_clock_seconds() - start - d->need_s;
	float *stats = t->exchange ? ls_exchange_statistics(t->exchange, d->device, k) : t->early_stats;
	fill_stats(d, &job, seconds, wants_stop, stats);
	if (t->exchange)
		deliver_stats(d, is_last);
	else
		update_stats(t, (double)job.count, -1, 0, t->stats_floats, stats);
}

/* ---- the step ---- */

typedef struct step_job {
	ls_trainer *trainer;
	int wants_stop;
} step_job;

static void finish_device(void *context, ls_member member)
{
	ls_driver *d = context;
	double start = ls_clock_seconds();
	ls_exchange_finish(d->trainer->exchange, d->device, member);
	if (member.rank == 0)
		d->deliver_s += ls_clock_seconds() - start;
}

static void drive(void *context, int device)
{
	const step_job *job = context;
	ls_trainer *t = job->trainer;
	ls_driver *d = &t->driver[device];
	const int64_t *index;
	int64_t count = t->exchange ? ls_exchange_microbatches(t->exchange, device, &index) : 1;

	d->deliver_s = 0;
	d->executor->backend->set_params(d->executor, t->params, t->buffers);
	for (int64_t k = 0; k < count; k++)
		run_microbatch(d, k, k == count - 1, job->wants_stop);
	if (t->exchange)
		ls_devices_host_run(t->devices, device, finish_device, d);
}

/* Contiguous runs, for a caller that leaves it to the trainer. */
static void assign_evenly(ls_trainer *t, ls_trainer_assignment *assign)
{
	int64_t count = assign->microbatches;
	int devices = t->options.devices;

	for (int d = 0; d < devices; d++)
		for (int64_t i = count * d / devices; i < count * (d + 1) / devices; i++) {
			t->even_node[i] = 0;
			t->even_device[i] = d;
		}
	assign->node = t->even_node;
	assign->device = t->even_device;
}

/* The record of a step; returns the lowest of this node's devices that has a micro-batch, or -1. */
static int begin_record(ls_trainer *t, const ls_trainer_assignment *assign)
{
	ls_step_record *r = record_of(t, t->step);
	int64_t size = t->options.microbatch, last = assign->microbatches - 1;
	int lowest = -1;

	*r = (ls_step_record){ .samples = assign->samples,
			       .scale = 1.0 / (double)assign->samples,
			       .gradient_norm = NAN,
			       .node_s = r->node_s,
			       .microbatches = r->microbatches };
	memset(r->microbatches, 0, (size_t)t->nodes * sizeof(*r->microbatches));
	for (int64_t i = 0; i <= last; i++) {
		r->microbatches[assign->node[i]]++;
		if (assign->node[i] != t->node)
			continue;
		r->own_samples += i < last ? size : assign->samples - last * size;
		if (lowest < 0 || assign->device[i] < lowest)
			lowest = assign->device[i];
	}
	return lowest;
}

/* On several nodes the step before may still be under way: its statistics are recorded before this step's replace
 * them, by the first device that has some to deliver, or now where this node has none. */
static ls_status begin_exchange(ls_trainer *t, const ls_trainer_assignment *assign, int lowest)
{
	int64_t own = record_of(t, t->step)->own_samples;
	int is_late = t->nodes > 1 && t->step > t->first_step;

	if (is_late && lowest < 0)
		LS_TRY(complete(t, t->step - 1));
	for (int i = 0; i < t->options.devices; i++)
		t->driver[i].completes_last = is_late && i == lowest;
	ls_exchange_begin(t->exchange, &(ls_exchange_assignment){ .step = t->step,
								  .microbatches = assign->microbatches,
								  .node = assign->node,
								  .device = assign->device,
								  .scale = own > 0 ? 1.0f / (float)own : 0 });
	return LS_OK;
}

static ls_status end_devices(ls_trainer *t)
{
	if (t->exchange && t->devices) {
		ls_exchange_times times = ls_exchange_take_times(t->exchange);
		record_of(t, t->step)->exposed_s = times.need_s;
		record_of(t, t->step)->wait_s = times.finish_s;
	}
	if (t->exchange)
		LS_TRY(ls_exchange_status(t->exchange));
	for (int i = 0; i < t->options.devices; i++)
		if (t->driver[i].status != LS_OK)
			return ls_fail(t->driver[i].status, "%s", t->driver[i].message);
	return LS_OK;
}

ls_status ls_trainer_step(ls_trainer *t, const ls_trainer_assignment *assign)
{
	ls_trainer_assignment a = *assign;
	step_job job = { .trainer = t, .wants_stop = assign->wants_stop };

	if (!a.node)
		assign_evenly(t, &a);
	int lowest = begin_record(t, &a);
	if (t->exchange)
		LS_TRY(begin_exchange(t, &a, lowest));
	if (t->devices)
		ls_devices_run(t->devices, t->options.devices, drive, &job);
	LS_TRY(end_devices(t));
	decay_unreachable(t);
	t->step++;
	t->batches_tracked++;
	return t->nodes == 1 ? complete(t, t->step - 1) : LS_OK;
}

ls_status ls_trainer_report_of(ls_trainer *t, uint64_t step, ls_trainer_report *out)
{
	const ls_step_record *r = record_of(t, step);

	LS_TRY(complete(t, step));
	*out = (ls_trainer_report){ .step = step,
				    .loss = r->stats[LS_STAT_LOSS],
				    .correct = ls_count_get(r->stats + LS_STAT_CORRECT),
				    .samples = ls_count_get(r->stats + LS_STAT_SAMPLES),
				    .stops = r->stats[LS_STAT_STOPS] > 0,
				    .tokens = ls_count_get(r->stats + LS_STAT_TOKENS),
				    .masked = ls_count_get(r->stats + LS_STAT_MASKED),
				    .token_loss = (double)r->stats[LS_STAT_TOKEN_LOSS],
				    .token_correct = ls_count_get(r->stats + LS_STAT_TOKEN_CORRECT),
				    .gradient_norm = r->gradient_norm,
				    .exposed_s = r->exposed_s,
				    .wait_s = r->wait_s,
				    .node_s = r->node_s,
				    .microbatches = r->microbatches };
	return LS_OK;
}

ls_status ls_trainer_drain(ls_trainer *t)
{
	if (t->devices)
		ls_devices_leave(t->devices);
	return t->step > t->first_step ? complete(t, t->step - 1) : LS_OK;
}
