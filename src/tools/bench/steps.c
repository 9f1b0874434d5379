#include "tools/bench/steps.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"

ls_status ls_bench_steps_init(ls_bench_steps *s, int follows)
{
	const ls_layout *l = s->layout;
	size_t nodes = (size_t)l->nodes, microbatches = (size_t)s->microbatches;

	s->cut = calloc(LS_BENCH_RING * (nodes + 1), sizeof(*s->cut));
	s->device_cut = calloc((size_t)l->devices + 1, sizeof(*s->device_cut));
	s->node = calloc(microbatches, sizeof(*s->node));
	s->device = calloc(microbatches, sizeof(*s->device));
	if (!s->cut || !s->device_cut || !s->node || !s->device)
		return ls_fail(LS_EMEMORY, "no memory to assign %lld micro-batches", (long long)s->microbatches);
	LS_TRY(ls_assigner_init(&s->assigner, l->nodes, l->devices_of, l->weight, follows));
	s->mark = ls_clock_seconds();
	return LS_OK;
}

void ls_bench_steps_release(ls_bench_steps *s)
{
	ls_assigner_release(&s->assigner);
	free(s->device);
	free(s->node);
	free(s->device_cut);
	free(s->cut);
	*s = (ls_bench_steps){ 0 };
}

static int64_t *cut_of(const ls_bench_steps *s, uint64_t step)
{
	return s->cut + (step % LS_BENCH_RING) * ((size_t)s->layout->nodes + 1);
}

static int is_timed(const ls_bench_steps *s, uint64_t step)
{
	return (int64_t)(step % (uint64_t)(s->warmup + s->steps)) >= s->warmup;
}

/* From what all nodes know by now; returns how many micro-batches the first device of this one has. */
static int64_t assign(ls_bench_steps *s)
{
	const ls_layout *l = s->layout;
	int64_t *cut = cut_of(s, s->trainer->step);

	ls_assigner_assign(&s->assigner, s->microbatches, cut);
	ls_layout_assign(l, cut, s->device_cut, s->node, s->device);
	return l->devices > 0 ? s->device_cut[1] - s->device_cut[0] : 0;
}

/* The next step that is not accounted for. Without a common step (ps-async) nodes do not follow each other's speed. */
static ls_status account(ls_bench_steps *s)
{
	const ls_layout *l = s->layout;
	ls_node_trainer_report r;

	LS_TRY(ls_node_trainer_report_of(s->trainer, s->accounted, &r));
	if (l->strategy->synchronous)
		ls_assigner_learn(&s->assigner, cut_of(s, s->accounted), r.node_s);
	if (is_timed(s, s->accounted)) {
		s->counted++;
		s->compute_s += l->devices > 0 ? r.node_s[l->node] / l->devices : 0;
		s->exposed_s += r.exposed_s;
		s->wait_s += r.wait_s;
	}
	if (r.samples > 0)
		s->last_loss = r.loss / (double)r.samples;
	s->accounted++;
	return LS_OK;
}

/* The step that is just over. Without an exchange a device updates what it delivers; else the exchange does more than
 * that, and waits.
 */
static void record(ls_bench_steps *s, int64_t microbatches, double seconds)
{
	const ls_node_trainer *t = s->trainer;
	double updated = ls_node_trainer_update_s(t), given = t->driver[0].deliver_s;
	double update = !t->exchange ? given : fmin(updated - s->updated_s, given);

	ls_profiler_end_step(s->profiler,
			     &(ls_profiler_step){ .microbatches = microbatches,
						  .seconds = seconds,
						  .update_s = update,
						  .exchange_s = given - update },
			     is_timed(s, t->step - 1));
	s->updated_s = updated;
}

ls_status ls_bench_steps_run(ls_bench_steps *s, double *seconds)
{
	ls_node_trainer *t = s->trainer;
	int64_t first = assign(s);
	ls_node_trainer_assignment assigned = { .microbatches = s->microbatches,
						.samples = s->microbatches * s->microbatch,
						.node = s->node,
						.device = s->device };

	LS_TRY(ls_node_trainer_step(t, &assigned));
	while (s->accounted < (t->nodes == 1 ? t->step : t->step - 1))
		LS_TRY(account(s));
	double now = ls_clock_seconds();
	*seconds = now - s->mark;
	s->mark = now;
	if (s->profiler)
		record(s, first, *seconds);
	return LS_OK;
}

ls_traffic ls_bench_traffic(const ls_layout *l)
{
	ls_traffic sum = { 0 };

	for (int i = 0; i < l->nodes; i++) {
		if (i == l->node)
			continue;
		ls_traffic t = ls_comm_traffic(l->comm, i);
		sum.bytes_sent += t.bytes_sent;
		sum.bytes_received += t.bytes_received;
		sum.messages_sent += t.messages_sent;
		sum.messages_received += t.messages_received;
	}
	return sum;
}
