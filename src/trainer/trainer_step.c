/*
 * trainer_step.c - one step: who computes what, and what is noted of it. What becomes of a micro-batch is in
 * trainer_microbatch.c, what becomes of its gradient in trainer_update.c.
 */
#include <math.h>
#include <string.h>

#include "trainer/trainer_inside.h"

void ls_trainer_act(void *context, ls_exchange_act act, int participant, int64_t number, double begin_s, double end_s)
{
	ls_trainer *t = context;
	t->act(t->trace_context, act, participant, number, begin_s, end_s);
}

/* The step's sums are in `state` until the next step's are: keep them. */
static void take_notes(ls_trainer *t, uint64_t step)
{
	ls_step_notes *n = ls_trainer_notes(t, step);
	const float *sums = t->state + t->graph->params.buffers;

	memcpy(n->sums, sums, sizeof(n->sums));
	for (int i = 0; i < t->nodes; i++)
		n->node_s[i] = sums[LS_EXTRA_NODES + i];
	n->taken = 1;
}

ls_status ls_trainer_complete(ls_trainer *t, uint64_t step)
{
	if (ls_trainer_notes(t, step)->taken)
		return LS_OK;
	if (t->exchange)
		LS_TRY(ls_exchange_await(t->exchange, step));
	take_notes(t, step);
	return LS_OK;
}

/* Contiguous runs, for a caller that leaves it to the trainer. */
static void assign_evenly(ls_trainer *t, int64_t microbatches)
{
	for (int d = 0; d < t->devices; d++)
		for (int64_t i = microbatches * d / t->devices; i < microbatches * (d + 1) / t->devices; i++) {
			t->assign_node[i] = 0;
			t->assign_device[i] = d;
		}
}

/* What is known of a step before it begins; returns the lowest of this node's devices that has a micro-batch, or -1. */
static int begin_notes(ls_trainer *t, const ls_trainer_assignment *assign, const int *node, const int *device)
{
	ls_step_notes *n = ls_trainer_notes(t, t->step);
	int lowest = -1;

	n->step = t->step;
	n->samples = assign->samples;
	n->scale = 1.0 / (double)assign->samples;
	n->own_samples = 0;
	n->gradient_norm = NAN;
	n->exposed_s = n->wait_s = 0;
	n->taken = 0;
	memset(n->microbatches, 0, (size_t)t->nodes * sizeof(*n->microbatches));
	for (int64_t i = 0; i < assign->microbatches; i++) {
		n->microbatches[node[i]]++;
		if (node[i] == t->node)
			n->own_samples += i < assign->microbatches - 1
						  ? t->microbatch
						  : assign->samples - (assign->microbatches - 1) * t->microbatch;
		if (node[i] == t->node && (lowest < 0 || device[i] < lowest))
			lowest = device[i];
	}
	return lowest;
}

static ls_status collect_failures(ls_trainer *t)
{
	if (t->exchange)
		LS_TRY(ls_exchange_status(t->exchange));
	for (int i = 0; i < t->devices; i++)
		if (t->device[i].status != LS_OK)
			return ls_fail(t->device[i].status, "%s", t->device[i].message);
	return LS_OK;
}

static ls_status run_devices(ls_trainer *t, const ls_trainer_assignment *assign)
{
	if (!assign->node)
		assign_evenly(t, assign->microbatches);
	const int *node = assign->node ? assign->node : t->assign_node;
	const int *device = assign->node ? assign->device : t->assign_device;
	int lowest = begin_notes(t, assign, node, device), late = t->nodes > 1 && t->step > t->first_step;
	int64_t own = ls_trainer_notes(t, t->step)->own_samples;
	ls_exchange_assignment x = { .step = t->step,
				     .microbatches = assign->microbatches,
				     .node = node,
				     .device = device,
				     .scale = own > 0 ? 1.0f / (float)own : 0 };
	ls_drive_job job = { .trainer = t, .wants_stop = assign->wants_stop };

	if (late && lowest < 0) /* nothing of this node holds this step's sums back */
		LS_TRY(ls_trainer_complete(t, t->step - 1));
	for (int i = 0; i < t->devices; i++)
		t->device[i].takes_note = late && i == lowest;
	ls_exchange_begin(t->exchange, &x);
	if (t->devices > 0) {
		ls_team_run(t->teams.drivers, ls_trainer_drive, &job);
		ls_exchange_times times = ls_exchange_take_times(t->exchange);
		ls_trainer_notes(t, t->step)->exposed_s = times.need_s;
		ls_trainer_notes(t, t->step)->wait_s = times.finish_s;
	}
	return collect_failures(t);
}

ls_status ls_trainer_step(ls_trainer *t, const ls_trainer_assignment *assign)
{
	static const int only[1] = { 0 };

	if (!t->pinned)
		ls_teams_join(&t->teams);
	t->pinned = 1;
	for (int i = 0; i < t->devices; i++)
		t->device[i].give_s = 0;
	if (t->update_early) {
		begin_notes(t, assign, only, only);
		LS_TRY(ls_trainer_run_alone(t, assign));
	} else {
		LS_TRY(run_devices(t, assign));
	}
	ls_trainer_decay_dead(t);
	t->step++;
	t->batches_tracked++;
	return t->nodes == 1 ? ls_trainer_complete(t, t->step - 1) : LS_OK;
}

ls_status ls_trainer_report_of(ls_trainer *t, uint64_t step, ls_trainer_report *out)
{
	const ls_step_notes *n = ls_trainer_notes(t, step);

	LS_TRY(ls_trainer_complete(t, step));
	*out = (ls_trainer_report){ .step = step,
				    .loss = n->sums[LS_EXTRA_LOSS],
				    .correct = ls_count_get(n->sums + LS_EXTRA_CORRECT),
				    .samples = ls_count_get(n->sums + LS_EXTRA_SAMPLES),
				    .stops = n->sums[LS_EXTRA_STOPS] > 0,
				    .tokens = ls_count_get(n->sums + LS_EXTRA_TOKENS),
				    .masked = ls_count_get(n->sums + LS_EXTRA_MASKED),
				    .token_loss = (double)n->sums[LS_EXTRA_TOKEN_LOSS],
				    .token_correct = ls_count_get(n->sums + LS_EXTRA_TOKEN_CORRECT),
				    .gradient_norm = n->gradient_norm,
				    .exposed_s = n->exposed_s,
				    .wait_s = n->wait_s,
				    .node_s = n->node_s,
				    .microbatches = n->microbatches };
	return LS_OK;
}

ls_status ls_trainer_drain(ls_trainer *t)
{
	if (t->pinned)
		ls_teams_leave(&t->teams);
	t->pinned = 0;
	return t->step > t->first_step ? ls_trainer_complete(t, t->step - 1) : LS_OK;
}
