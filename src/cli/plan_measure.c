/*
 * plan_measure.c - one device, measured for a few seconds.
 *
 * The first step shows how many more fit into the time. Repeats are there for their spread, which is part of the
 * intervals of the forecast.
 */
#include "plan_measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/models.h>

#define SECONDS 5.0
enum { REPEATS = 5, REPEATS_LEAST = 3, STEPS_MOST = 50 };

static void show_progress(void *context, int64_t done, int64_t repeats)
{
	(void)context;
	if (!isatty(STDERR_FILENO))
		return;
	if (done < repeats)
		fprintf(stderr, "\rrepeat %" PRId64 " of %" PRId64 " ", done + 1, repeats);
	else
		fprintf(stderr, "\r%24s\r", "");
}

/* As many steps as fit into the time, in at least three repeats. */
static void choose_length(ls_bench_options *o, double step_s)
{
	double fit = step_s > 0 ? SECONDS / step_s : 0;
	int64_t all = fit < REPEATS * STEPS_MOST ? (int64_t)fit : REPEATS * STEPS_MOST;

	o->repeat = all < 2 * REPEATS ? REPEATS_LEAST : REPEATS;
	o->warmup = 1;
	o->steps = all / o->repeat > 2 ? all / o->repeat - 1 : 1;
}

/* What the first bench has warned of, the second does not repeat. */
static void silence(ls_bench_options *o)
{
	static const ls_bench_options usual = LS_BENCH_OPTIONS_INIT;
	const ls_model_row *row = ls_model_row_of(o->job.model);

	memset(o->job.given, 0, sizeof(o->job.given));
	if (row && row->is_text)
		o->channels = usual.channels, o->height = usual.height, o->width = usual.width;
}

static double spread_of(const ls_bench_result *r)
{
	return (r->samples_per_s_max - r->samples_per_s_min) / r->samples_per_s;
}

ls_status ls_plan_measure(const char *command, const ls_bench_options *options, char **profile)
{
	ls_bench_options o = *options;
	ls_bench_result r = { 0 };

	o.warmup = o.steps = o.repeat = 1;
	o.profile_out = NULL;
	fprintf(stderr, "%s: measuring %s on one device\n", command, o.job.model);
	ls_status status = ls_bench(&o, &r);
	if (status != LS_OK)
		return status;
	choose_length(&o, r.step_ms / 1e3);
	fprintf(stderr,
		"%s: a step of %" PRId64 " samples takes about %.3g ms: %" PRId64 " repeats of %" PRId64 " steps\n",
		command, r.microbatch, r.step_ms, o.repeat, o.steps);
	ls_bench_result_release(&r);
	silence(&o);
	o.progress = show_progress;
	o.profile_out = options->profile_out;
	o.profile_text = 1;
	status = ls_bench(&o, &r);
	if (status != LS_OK)
		return status;
	fprintf(stderr, "%s: %.1f samples/s; repeats are within %.1f %%\n", command, r.samples_per_s,
		100 * spread_of(&r));
	*profile = r.profile_text;
	r.profile_text = NULL;
	ls_bench_result_release(&r);
	return LS_OK;
}
