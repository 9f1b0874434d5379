/*
 * step.c - one step of a node, from micro-batches to new parameters:
 *
 *     ls_node_trainer_step()          records the step and gives the exchange its assignment
 *       drive()                  on every device's driver, for each micro-batch of the device:
 *         run_microbatch()         data -> forward and backward on the device -> statistics of the micro-batch
 *           wait_params()            before a layer's forward: its parameters have arrived
 *           deliver_gradient()       after a layer's backward: its gradient goes into the exchange
 *         finish_device()          help to sum and update what is left (update.c)
 *     ls_node_trainer_report_of()     the step is complete on this node
 *
 * Where there is no exchange, a micro-batch is a step: ls_node_trainer_update_layer() takes the place of
 * deliver_gradient(), and the statistics are the step's at once.
 */
#include "trainer/update.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static const ls_member alone = { .rank = 0, .size = 1 };

static void keep_failure(ls_driver *d, ls_status status)
{
	if (d->status != LS_OK)
		return;
	d->status = status;
	snprintf(d->message, sizeof(d->message), "%s", ls_last_error());
}

/* Wait until the step is complete. Its statistics are in `state` until the next step's are: keep them. */
static ls_status complete(ls_node_trainer *t, uint64_t step)
{
	ls_step_record *r = ls_node_trainer_record_of(t, step);
	const float *stats = t->state + t->graph->params.buffers;

	if (r->is_complete)
		return LS_OK;
	if (t->exchange)
		LS_TRY(ls_exchange_await(t->exchange, step));
	pthread_mutex_lock(&t->stats_lock);
	memcpy(r->stats, stats, sizeof(r->stats));
	for (int i = 0; i < t->nodes; i++)
		r->node_s[i] = stats[LS_STAT_NODES + i];
	pthread_mutex_unlock(&t->stats_lock);
	r->is_complete = 1;
	return LS_OK;
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
	const ls_node_trainer_options *o = &d->trainer->options;
	o->span(o->trace_context, d->device, node, is_backward, begin_s, end_s);
}

static ls_exec_microbatch job_of(ls_driver *d, const ls_microbatch *microbatch)
{
	ls_node_trainer *t = d->trainer;
	int64_t masked = microbatch->text ? microbatch->text->step_masked : 0;

	return (ls_exec_microbatch){
		.count = microbatch->count,
		.images = microbatch->images,
		.text = microbatch->text,
		/* makes sums over a step's masked positions means, once they are divided by its samples */
		.token_weight = masked > 0 ? (double)microbatch->step_samples / (double)masked : 0,
		.labels = microbatch->labels,
		.targets = microbatch->targets,
		.target_count = microbatch->target_count,
		.samples = microbatch->samples,
		.seed = t->options.seed,
		.step = ls_node_trainer_updates(t),
		.grads = t->exchange ? ls_exchange_slot(t->exchange, d->device, d->microbatch) : t->early_grads,
		.share_grads = t->share_grads,
		.stats = d->stats,
		.need = t->nodes > 1 ? wait_params : NULL,
		.need_context = d,
		.ready = t->exchange     ? deliver_gradient
			 : t->is_holding ? ls_node_trainer_hold_layer
					 : ls_node_trainer_update_layer,
		.ready_context = d,
		.span = t->options.span ? trace_layer : NULL,
		.span_context = d
	};
}

/* What a micro-batch adds to the running statistics and to the step statistics. */
static void fill_stats(const ls_driver *d, const ls_exec_microbatch *job, double seconds, int wants_stop, float *out)
{
	ls_node_trainer *t = d->trainer;
	size_t buffers = t->graph->params.buffers;
	float *stats = out + buffers, weight = (float)job->count;

	if (t->nodes > 1 && !t->options.strategy->synchronous) /* servers take means */
		weight /= (float)ls_node_trainer_record_of(t, t->step)->own_samples;
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
	ls_node_trainer *t = d->trainer;
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
	ls_node_trainer *t = d->trainer;
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
	ls_node_trainer *t = d->trainer;
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
		ls_node_trainer_update_stats(t, (double)job.count, -1, 0, t->stats_floats, stats);
}

/* ---- the step ---- */

typedef struct step_job {
	ls_node_trainer *trainer;
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
	ls_node_trainer *t = job->trainer;
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
static void assign_evenly(ls_node_trainer *t, ls_node_trainer_assignment *assign)
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
static int begin_record(ls_node_trainer *t, const ls_node_trainer_assignment *assign)
{
	ls_step_record *r = ls_node_trainer_record_of(t, t->step);
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
static ls_status begin_exchange(ls_node_trainer *t, const ls_node_trainer_assignment *assign, int lowest)
{
	int64_t own = ls_node_trainer_record_of(t, t->step)->own_samples;
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

static ls_status end_devices(ls_node_trainer *t)
{
	if (t->exchange && t->devices) {
		ls_exchange_times times = ls_exchange_take_times(t->exchange);
		ls_node_trainer_record_of(t, t->step)->exposed_s = times.need_s;
		ls_node_trainer_record_of(t, t->step)->wait_s = times.finish_s;
	}
	if (t->exchange)
		LS_TRY(ls_exchange_status(t->exchange));
	for (int i = 0; i < t->options.devices; i++)
		if (t->driver[i].status != LS_OK)
			return ls_fail(t->driver[i].status, "%s", t->driver[i].message);
	return LS_OK;
}

ls_status ls_node_trainer_step(ls_node_trainer *t, const ls_node_trainer_assignment *assign)
{
	ls_node_trainer_assignment a = *assign;
	step_job job = { .trainer = t, .wants_stop = assign->wants_stop };

	if (!a.node)
		assign_evenly(t, &a);
	int lowest = begin_record(t, &a);
	if (t->exchange)
		LS_TRY(begin_exchange(t, &a, lowest));
	if (t->devices)
		ls_devices_run(t->devices, t->options.devices, drive, &job);
	LS_TRY(end_devices(t));
	if (t->is_holding)
		t->steps_held++; /* not on several nodes, where the communication thread reads it in updates */
	else
		ls_node_trainer_decay_unreachable(t);
	t->step++;
	t->batches_tracked++;
	return t->nodes == 1 ? complete(t, t->step - 1) : LS_OK;
}

ls_status ls_node_trainer_report_of(ls_node_trainer *t, uint64_t step, ls_node_trainer_report *out)
{
	const ls_step_record *r = ls_node_trainer_record_of(t, step);

	LS_TRY(complete(t, step));
	ls_answers samples = { ls_count_get(r->stats + LS_STAT_CORRECT), ls_count_get(r->stats + LS_STAT_SAMPLES) };
	ls_answers tokens = { ls_count_get(r->stats + LS_STAT_TOKEN_CORRECT), ls_count_get(r->stats + LS_STAT_MASKED) };
	ls_answers answers = ls_answers_of(t->graph, samples, tokens);
	*out = (ls_node_trainer_report){ .step = step,
					 .loss = r->stats[LS_STAT_LOSS],
					 .correct = answers.correct,
					 .samples = samples.count,
					 .answers = answers.count,
					 .stops = r->stats[LS_STAT_STOPS] > 0,
					 .tokens = ls_count_get(r->stats + LS_STAT_TOKENS),
					 .masked = tokens.count,
					 .token_loss = (double)r->stats[LS_STAT_TOKEN_LOSS],
					 .token_correct = tokens.correct,
					 .gradient_norm = r->gradient_norm,
					 .exposed_s = r->exposed_s,
					 .wait_s = r->wait_s,
					 .node_s = r->node_s,
					 .microbatches = r->microbatches };
	return LS_OK;
}

ls_status ls_node_trainer_drain(ls_node_trainer *t)
{
	if (t->devices)
		ls_devices_leave(t->devices);
	return t->step > t->first_step ? complete(t, t->step - 1) : LS_OK;
}
