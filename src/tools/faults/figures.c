#include "tools/faults/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "tools/forecast/failures.h"

/* Clocks of two hosts: that of the first node, which writes starts, and that of the supervisor. */
static const double CLOCKS_S = 1;

double ls_fault_samples(double steps, double batch, double epoch)
{
	if (!(epoch > 0) || !(batch > 0))
		return steps * batch;
	double per_epoch = ceil(epoch / batch), epochs = floor(steps / per_epoch);
	return epochs * epoch + (steps - epochs * per_epoch) * batch;
}

/* The name of node i in "a:1,b:1". */
static int is_node(const char *hosts, int64_t i, const char *name)
{
	char found[256] = "";

	for (; hosts && i >= 0; i--)
		hosts = ls_memberships_host(hosts, found, sizeof(found));
	return hosts && !strcmp(found, name);
}

/* Whom the supervisor named as lost when start i ended; NULL: nobody. */
static const char *lost_of(const ls_memberships *m, size_t i)
{
	double until = i + 1 < m->count ? m->starts[i + 1].begin : m->latest;

	for (size_t k = 0; k < m->event_count; k++)
		if (!strcmp(m->events[k].event, "lost") && m->events[k].at >= m->starts[i].end &&
		    m->events[k].at <= until)
			return m->events[k].host;
	return NULL;
}

static int has_fault(const ls_memberships *m, size_t i)
{
	const ls_start *s = &m->starts[i];
	const char *lost = lost_of(m, i);

	if (s->fault_node < 0 || strcmp(s->outcome, "lost") != 0 || s->end < s->begin + s->fault_s - CLOCKS_S)
		return 0;
	return !lost || is_node(s->hosts, s->fault_node, lost);
}

/* Seconds from the kill of start i to the first new step; NaN: another loss came first, or that step does not count. */
static double recovery_of(const ls_memberships *m, size_t i)
{
	return m->starts[i + 1].first_s - (m->starts[i].begin + m->starts[i].fault_s);
}

static double samples_between(const ls_start *s, int64_t from, int64_t to)
{
	return ls_fault_samples((double)to, (double)s->batch, (double)s->samples) -
	       ls_fault_samples((double)from, (double)s->batch, (double)s->samples);
}

static void add_undisturbed(const ls_fault_log *log, ls_fault_bench_result *out)
{
	double samples = 0, seconds = 0, steps = 0, every = 0, cost = 0, snapshots = 0;

	for (size_t i = 0; i < log->nodes.count; i++) {
		const ls_fault_stretch *s = &log->stretches[i];
		if (s->from_step > 0 && s->to_step > s->from_step) {
			samples += samples_between(&log->nodes.starts[i], s->from_step, s->to_step);
			steps += (double)(s->to_step - s->from_step);
			seconds += s->to_s - s->from_s;
		}
		if (s->snapshot_every > 0) {
			every += s->snapshot_every;
			cost += s->snapshot_s;
			snapshots++;
		}
	}
	out->undisturbed = seconds > 0 ? samples / seconds : NAN;
	out->step_s = steps > 0 && seconds > 0 ? seconds / steps : NAN;
	out->snapshot_every = snapshots > 0 ? every / snapshots : NAN;
	out->snapshot_s = snapshots > 0 ? cost / snapshots : NAN;
}

static ls_status add_recoveries(const ls_memberships *m, ls_fault_bench_result *out)
{
	double *times = calloc(m->count, sizeof(*times)), sum = 0;
	size_t count = 0;

	if (!times)
		return ls_fail(LS_EMEMORY, "no memory for %zu recoveries", m->count);
	for (size_t i = 0; i + 1 < m->count; i++) {
		double seconds = recovery_of(m, i);
		if (!has_fault(m, i)) {
			out->interruptions++;
			continue;
		}
		out->faults++;
		if (isnan(seconds)) {
			out->overtaken++;
			continue;
		}
		times[count++] = seconds;
		sum += seconds;
	}
	out->recovery_median = count > 0 ? ls_median(times, count) : NAN; /* sorts */
	out->recovery_worst = count > 0 ? times[count - 1] : NAN;
	out->recovery_mean = count > 0 ? sum / (double)count : NAN;
	free(times);
	return LS_OK;
}

ls_status ls_fault_figures(const ls_fault_log *log, ls_fault_bench_result *out)
{
	const ls_memberships *m = &log->nodes;

	if (m->count < 2 || !(m->starts[m->count - 1].begin > m->starts[0].begin))
		return ls_fail(LS_EINVALID, "the run has %zu start%s: no fault was survived, and nothing is measured",
			       m->count, m->count == 1 ? "" : "s");
	const ls_start *first = &m->starts[0], *last = &m->starts[m->count - 1];
	*out = (ls_fault_bench_result){ .nodes = first->nodes,
					.batch = first->batch,
					.seconds = last->begin - first->begin,
					.steps = last->step - first->step,
					.fingerprint = log->fingerprint,
					.fingerprint_step = log->fingerprint_step };
	for (size_t i = 1; i < m->count; i++)
		out->steps_again += m->starts[i].again;
	out->samples_per_s = samples_between(first, first->step, last->step) / out->seconds;
	add_undisturbed(log, out);
	LS_TRY(add_recoveries(m, out));
	out->work_kept = out->samples_per_s / out->undisturbed;
	out->restart_s = fmax(0, out->recovery_mean - out->step_s);
	if (isnan(out->recovery_mean) || isnan(out->step_s)) /* which fmax() takes for 0 */
		out->restart_s = NAN;
	return LS_OK;
}

void ls_fault_predict(ls_fault_bench_result *r, double every)
{
	ls_cluster cluster = { .mtbf_hours = every * (double)r->nodes / 3600,
			       .snapshot_s = r->snapshot_s,
			       .restart_s = r->restart_s };

	r->predicted_work_kept = r->predicted_samples_per_s = NAN;
	if (isnan(r->restart_s) || isnan(r->snapshot_every) || r->nodes < 2)
		return;
	ls_goodput model = ls_goodput_with_snapshots(&cluster, r->nodes, r->step_s, r->snapshot_every);
	r->predicted_work_kept = model.part * (1 + r->snapshot_s / (r->snapshot_every * r->step_s));
	r->predicted_samples_per_s = r->predicted_work_kept * r->undisturbed;
}
