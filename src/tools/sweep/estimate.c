#include "tools/sweep/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/data.h>

#include "base/link_rate.h"
#include "tools/sweep/command.h"
#include "tools/sweep/outcome.h"

/* Start of a process until it computes: memory, kernels and, for several nodes, the launcher. */
static const double start_s = 0.5, start_node_s = 0.5, limit_s = 600;

/* ---- one point --------------------------------------------------------------------------------------------------- */

static double wire_seconds(const ls_point_job *j, double gradient_bytes)
{
	double nodes = (double)j->nodes, rate = j->rate[0] != '\0' ? ls_link_rate(j->rate) : 0;
	double bytes = j->servers > 0 ? gradient_bytes * fmax(1, nodes / (double)j->servers)
				      : 2 * gradient_bytes * (nodes - 1) / nodes;

	return rate > 0 ? 8 * bytes * (strcmp(j->wire, "bf16") ? 1 : 0.5) / rate : 0;
}

/* Training samples of a point: the first N, or all of its dataset. 0: not known; why is reported when the point is
 * measured. */
static double samples_of(const ls_point_job *j)
{
	static double mean[] = { 0 }, deviation[] = { 1 };
	const ls_normalisation plain = { 1, mean, deviation }; /* nothing needs to be measured */
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set;

	options.name = j->data;
	options.normalisation = &plain;
	options.cache = "off";
	if (j->samples > 0)
		return (double)j->samples;
	if (j->data[0] == '\0' || ls_dataset_open(&set, &options) != LS_OK)
		return 0;
	double samples = (double)ls_dataset_describe(set)->samples;
	ls_dataset_free(set);
	return samples;
}

static double steps_of(const ls_sweep_environment *environment, const ls_sweep_point *p)
{
	const ls_point_job *j = &p->job;
	double launches = (double)ls_sweep_list_launches(environment->list, p);

	if (strcmp(j->kind, "train") != 0)
		return (double)(j->warmup + j->steps) * (double)ls_sweep_list_repeat(environment->list, p) * launches;
	if (j->steps > 0)
		return (double)j->steps * launches;
	return (double)(j->epochs * ls_point_job_passes(j)) * ceil(samples_of(j) / (double)(j->batch * j->devices)) *
	       launches;
}

double ls_estimate_point(const ls_sweep_environment *environment, const ls_sweep_point *p, double step_s,
			 double gradient_bytes)
{
	double step = fmax(step_s, wire_seconds(&p->job, gradient_bytes)), steps = steps_of(environment, p);

	if (!(step_s > 0) || !(steps > 0))
		return 0;
	double start = start_s + start_node_s * (double)(ls_sweep_point_processes(p) - 1);
	return start * (double)ls_sweep_list_launches(environment->list, p) + steps * step;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Whether one timed step serves both jobs. */
static int same_device(const ls_point_job *a, const ls_point_job *b)
{
	return !strcmp(a->kind, b->kind) && !strcmp(a->model, b->model) && !strcmp(a->data, b->data) &&
	       !strcmp(a->optimizer, b->optimizer) && !strcmp(a->arguments, b->arguments) && a->batch == b->batch &&
	       a->threads == b->threads;
}

/* Where the step cannot be timed, the point cannot be measured either, and its reason is reported then. */
static ls_status time_step(const ls_sweep_environment *environment, const ls_sweep_point *p, ls_point *timed)
{
	ls_arena arena = { 0 };
	ls_sweep_target target = { .program = environment->program };
	ls_child child;
	char **argv;

	ls_status status = ls_sweep_time_command(&arena, p, &target, &argv);
	if (status == LS_OK)
		status = ls_child_run(
			&child, &(ls_child_options){ .argv = argv,
						     .limit_s = fmin(limit_s, (double)environment->list->limit_s) });
	if (status == LS_OK) {
		if (child.code != 0 || ls_outcome_bench(timed, &child) != LS_OK || ls_point_summarize(timed) != LS_OK)
			ls_point_release(timed);
		ls_child_release(&child);
	}
	ls_arena_release(&arena);
	return status == LS_EINTERRUPTED || status == LS_OK ? status : LS_OK;
}

ls_status ls_estimate(const ls_sweep_environment *environment, const ls_results *results, double *seconds)
{
	const ls_sweep_list *list = environment->list;
	ls_status status = LS_OK;

	memset(seconds, 0, list->count * sizeof(*seconds));
	for (size_t i = 0; i < list->count && status == LS_OK; i++) {
		ls_point timed = { 0 };
		size_t before = 0;
		while (before < i && !(same_device(&list->points[before].job, &list->points[i].job) &&
				       results->points[before].state == LS_POINT_PENDING))
			before++;
		if (before < i || results->points[i].state != LS_POINT_PENDING)
			continue;
		status = time_step(environment, &list->points[i], &timed);
		for (size_t k = i; k < list->count; k++)
			if (same_device(&list->points[k].job, &list->points[i].job) &&
			    results->points[k].state == LS_POINT_PENDING)
				seconds[k] = ls_estimate_point(environment, &list->points[k], timed.step_ms / 1e3,
							       timed.gradient_bytes);
		ls_point_release(&timed);
	}
	return status;
}
