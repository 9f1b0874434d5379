/*
 * trainer_microbatch.c - a device takes its micro-batches through the net, and hands in what they come to.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "trainer/trainer_inside.h"

static void give_ready(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	ls_device *d = context;
	(void)grads;
	double start = member.rank == 0 ? ls_clock_seconds() : 0;
	double waited = ls_exchange_ready(d->trainer->exchange, d->index, d->microbatch, begin, end, member);
	if (member.rank == 0) {
		d->need_s += waited;
		d->give_s += ls_clock_seconds() - start;
	}
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

/* What makes sums over a step's tokens to be predicted means, once they are divided by its samples. */
static double token_weight(const ls_microbatch *microbatch)
{
	if (!microbatch->text || microbatch->text->step_masked == 0)
		return 0;
	return (double)microbatch->step_samples / (double)microbatch->text->step_masked;
}

static ls_exec_microbatch job_of(ls_device *d, const ls_microbatch *microbatch, float *grads)
{
	const ls_trainer *t = d->trainer;
	return (ls_exec_microbatch){ .count = microbatch->count,
				     .images = microbatch->images,
				     .text = microbatch->text,
				     .token_weight = token_weight(microbatch),
				     .labels = microbatch->labels,
				     .samples = microbatch->samples,
				     .params = t->params,
				     .buffers = t->buffers,
				     .grads = grads,
				     .stats = d->stats,
				     .seed = t->seed,
				     .step = t->step,
				     .need = t->nodes > 1 ? wait_needed : NULL,
				     .need_context = d,
				     .ready = t->update_early ? ls_trainer_update_ready : give_ready,
				     .ready_context = d,
				     .share_grads = t->share_grads,
				     .span = t->span ? tell_span : NULL,
				     .span_context = d };
}

static void fill_sums(const ls_exec_microbatch *job, float *sums)
{
	sums[LS_EXTRA_LOSS] = (float)job->loss;
	sums[LS_EXTRA_TOKEN_LOSS] = (float)job->token_loss;
	ls_count_put(sums + LS_EXTRA_CORRECT, job->correct);
	ls_count_put(sums + LS_EXTRA_SAMPLES, job->count);
	ls_count_put(sums + LS_EXTRA_TOKENS, job->text ? job->text->start[job->count] : 0);
	ls_count_put(sums + LS_EXTRA_MASKED, job->text ? job->text->masked_start[job->count] : 0);
	ls_count_put(sums + LS_EXTRA_TOKEN_CORRECT, job->token_correct);
}

/* What a micro-batch adds to the sums that ride along. */
static void fill_extra(const ls_trainer *t, const ls_device *d, const ls_exec_microbatch *job, double seconds,
		       float *extra)
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

static void keep_failure(ls_device *d, ls_status status)
{
	if (d->status != LS_OK)
		return;
	d->status = status;
	snprintf(d->message, sizeof(d->message), "%s", ls_last_error());
}

/* Hand in the micro-batch's extra floats; before the step's last ones the sums of the step before are taken down. */
static void give_extra(ls_device *d, int64_t k, int64_t microbatches)
{
	ls_trainer *t = d->trainer;
	size_t begin = ls_exchange_extra_begin(t->exchange);

	if (d->takes_note && k == microbatches - 1) {
		ls_status status = ls_trainer_complete(t, t->step - 1);
		if (status != LS_OK)
			keep_failure(d, status);
	}
	double start = ls_clock_seconds();
	ls_exchange_ready(t->exchange, d->index, k, begin, begin + t->extra, (ls_member){ .rank = 0, .size = 1 });
	d->give_s += ls_clock_seconds() - start;
}

/* There is no micro-batch: others must not wait for it, and a loss that is no number keeps everybody from using the
 * step. */
static void give_nothing(ls_device *d, int64_t k, int64_t microbatches)
{
	ls_trainer *t = d->trainer;
	size_t live = t->graph->params.live;

	const ls_member alone = { .rank = 0, .size = 1 };
	ls_exchange_need(t->exchange, d->index, 0, live, alone); /* who pushes has all of the last step */
	memset(ls_exchange_slot(t->exchange, d->index, k), 0, live * sizeof(float));
	ls_exchange_ready(t->exchange, d->index, k, 0, live, alone);
	float *extra = ls_exchange_extra(t->exchange, d->index, k);
	memset(extra, 0, t->extra * sizeof(float));
	extra[t->graph->params.buffers + LS_EXTRA_LOSS] = NAN;
	give_extra(d, k, microbatches);
}

static void run_microbatch(ls_device *d, int64_t k, int64_t microbatches, int wants_stop)
{
	ls_trainer *t = d->trainer;
	const ls_microbatch *microbatch = NULL;
	ls_status status = d->status == LS_OK ? t->next(t->next_context, d->index, &microbatch) : d->status;

	d->microbatch = k;
	d->need_s = 0;
	if (status != LS_OK) {
		keep_failure(d, status);
		atomic_store(&t->data_failed, 1); /* before the update, which waits for what is given here */
		give_nothing(d, k, microbatches);
		return;
	}
	ls_exec_microbatch job = job_of(d, microbatch, ls_exchange_slot(t->exchange, d->index, k));
	double start = ls_clock_seconds();
	d->work.kind->train(d->work.self, &job);
	double seconds = ls_clock_seconds() - start - d->need_s;
	float *extra = ls_exchange_extra(t->exchange, d->index, k);
	fill_extra(t, d, &job, seconds, extra);
	extra[t->graph->params.buffers + LS_EXTRA_STOPS] = (float)wants_stop;
	give_extra(d, k, microbatches);
}

static void finish(void *context, ls_member member)
{
	ls_device *d = context;
	double start = ls_clock_seconds();
	ls_exchange_finish(d->trainer->exchange, d->index, member);
	if (member.rank == 0)
		d->give_s += ls_clock_seconds() - start;
}

void ls_trainer_drive(void *context, ls_member driver)
{
	const ls_drive_job *job = context;
	ls_device *d = &job->trainer->device[driver.rank];
	const int64_t *index;
	int64_t microbatches = ls_exchange_microbatches(job->trainer->exchange, d->index, &index);

	for (int64_t k = 0; k < microbatches; k++)
		run_microbatch(d, k, microbatches, job->wants_stop);
	ls_team_run(d->team, finish, d);
}

ls_status ls_trainer_run_alone(ls_trainer *t, const ls_trainer_assignment *assign)
{
	ls_device *d = &t->device[0];
	const ls_microbatch *microbatch = NULL;

	ls_status status = t->next(t->next_context, 0, &microbatch);
	if (status != LS_OK) {
		atomic_store(&t->data_failed, 1);
		return status;
	}
	ls_exec_microbatch job = job_of(d, microbatch, t->grads);
	double start = ls_clock_seconds();
	d->work.kind->train(d->work.self, &job);
	float *sums = d->stats; /* scaled in place; the rest goes straight into `state` */
	float *state = t->state + t->graph->params.buffers;
	for (size_t i = 0; i < t->graph->params.buffers; i++)
		sums[i] *= (float)job.count;
	fill_sums(&job, state);
	state[LS_EXTRA_STOPS] = (float)assign->wants_stop;
	state[LS_EXTRA_NODES] = (float)(ls_clock_seconds() - start);
	ls_trainer_update_extra(t, (double)job.count, -1, 0, t->graph->params.buffers, sums);
	return LS_OK;
}
