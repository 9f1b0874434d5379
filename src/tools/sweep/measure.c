/*
 * measure.c - one point.
 *
 * The profile of a device is kept in the output directory and used by all points that replay it. A bench of one device
 * records it at the same time, where other points replay it.
 */
#include "tools/sweep/measure.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/launch.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/names.h"
#include "tools/sweep/command.h"
#include "tools/sweep/outcome.h"
#include "tools/sweep/quiet.h"

typedef struct measure {
	ls_sweep_environment *environment;
	const ls_sweep_point *point;
	ls_point *result;
	ls_arena arena;
	ls_sweep_target target;
	char profile[4096], run[4096];
} measure;

/* ---- result of a point ------------------------------------------------------------------------------------------- */

static ls_status end_as(measure *m, ls_point_state state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static ls_status end_as(measure *m, ls_point_state state, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(m->result->reason, sizeof(m->result->reason), format, arguments);
	va_end(arguments);
	m->result->state = state;
	return LS_OK;
}

static int has_ended(const measure *m)
{
	return m->result->state == LS_POINT_SKIPPED || m->result->state == LS_POINT_FAILED;
}

/* Processes that may still run in an emulated cluster are removed with it. */
static ls_status fail_child(measure *m, const ls_child *child)
{
	char why[LS_RESULTS_TEXT];

	if (m->target.lab)
		ls_lab_down(&m->environment->lab);
	return end_as(m, LS_POINT_FAILED, "%s", ls_child_reason(child, why, sizeof(why)));
}

/* ---- cores ------------------------------------------------------------------------------------------------------- */

/* Number of cores needed, where there are too few; else 0. Emulated hosts get equal numbers of cores. */
static int64_t cores_missing(const ls_sweep_environment *environment, const ls_sweep_point *p)
{
	int64_t hosts = ls_lab_is_for(p) ? ls_lab_hosts(p) : 1, most = 0;

	for (int64_t i = 0; i < p->job.nodes; i++) {
		int64_t threads = ls_shape_devices(p->job.shape, (size_t)i) * p->job.threads;
		most = threads > most ? threads : most;
	}
	return most > environment->cores / hosts ? most * hosts : 0;
}

int ls_measure_replays(const ls_sweep_environment *environment, const ls_sweep_point *p)
{
	int missing = p->replayed || cores_missing(environment, p) > 0;
	return !environment->hosts && !strcmp(p->job.kind, "bench") && missing;
}

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

static ls_status use_hosts(measure *m)
{
	const ls_sweep_point *p = m->point;
	int64_t need = ls_sweep_point_highest(p);
	ls_host *named = NULL;
	size_t count = 0;

	LS_TRY(ls_hosts_parse(&named, &count, m->environment->hosts));
	ls_hosts_free(named);
	m->target.hosts = m->environment->hosts;
	if ((int64_t)count < need)
		return end_as(m, LS_POINT_SKIPPED, "needs %" PRId64 " host%s; --hosts names %zu", need,
			      ls_plural((uint64_t)need, "s"), count);
	return LS_OK;
}

static ls_status use_lab(measure *m)
{
	ls_lab *lab = &m->environment->lab;

	if (!ls_lab_is_for(m->point))
		return LS_OK;
	if (!ls_lab_possible(lab))
		return ls_sweep_stopped() ? ls_fail(LS_EINTERRUPTED, "stopped on request")
					  : end_as(m, LS_POINT_SKIPPED, "%s", lab->reason);
	ls_status status = ls_lab_need(lab, m->point);
	if (status == LS_EIO)
		return end_as(m, LS_POINT_FAILED, "%.200s", ls_last_error());
	m->target.lab = lab;
	return status;
}

/* ---- profiles ---------------------------------------------------------------------------------------------------- */

/* Named by the work of one device, not by hosts or the number of devices. */
static ls_status name_profile(const ls_sweep_environment *environment, const ls_sweep_point *p, char *out, size_t size)
{
	char what[4096], name[2 * LS_RESULTS_NAME], directory[4096];
	const ls_point_job *j = &p->job;

	snprintf(what, sizeof(what), "%s|%s|%s|%" PRId64 "|%" PRId64 "|%" PRId64 "|%" PRId64 "|%s", j->model, j->data,
		 j->optimizer, j->batch, j->threads, j->warmup, j->steps, j->arguments);
	snprintf(name, sizeof(name), "%.60s-b%" PRId64 "-%08" PRIx32 ".json", j->model, j->batch,
		 (uint32_t)ls_text_hash(what));
	LS_TRY(ls_path_join(directory, sizeof(directory), environment->out, "profiles"));
	LS_TRY(ls_path_make(directory));
	return ls_path_join(out, size, directory, name);
}

/* Whether another point replays the profile that this one can record. */
static int is_wanted(const measure *m)
{
	const ls_sweep_list *list = m->environment->list;
	char other[4096];

	for (size_t i = 0; i < list->count; i++)
		if (ls_measure_replays(m->environment, &list->points[i]) &&
		    name_profile(m->environment, &list->points[i], other, sizeof(other)) == LS_OK &&
		    !strcmp(other, m->profile))
			return 1;
	return 0;
}

static ls_status run_child(measure *m, char *const *argv, ls_child *child)
{
	return ls_child_run(child, &(ls_child_options){ .argv = argv,
							.limit_s = (double)m->environment->list->limit_s,
							.tick = m->environment->tick,
							.context = m->environment->context });
}

static ls_status record_profile(measure *m)
{
	ls_sweep_target target = { .program = m->environment->program, .profile = m->profile };
	char **argv;
	ls_child child;

	LS_TRY(ls_sweep_record_command(&m->arena, m->point, &target, &argv));
	LS_TRY(run_child(m, argv, &child));
	ls_status status = LS_OK;
	if (child.code != 0)
		status = fail_child(m, &child);
	else if (!ls_path_exists(m->profile))
		status = end_as(m, LS_POINT_FAILED, "the bench of one device left no profile at %.160s", m->profile);
	ls_child_release(&child);
	return status;
}

static ls_status ensure_profile(measure *m)
{
	int alone = m->point->job.devices == 1 && !ls_lab_is_for(m->point) && !m->environment->hosts;

	LS_TRY(name_profile(m->environment, m->point, m->profile, sizeof(m->profile)));
	if (ls_measure_replays(m->environment, m->point)) {
		m->result->job.replay = 1;
		m->target.profile = m->profile;
		return ls_path_exists(m->profile) ? LS_OK : record_profile(m);
	}
	if (alone && is_wanted(m)) {
		m->target.profile = m->profile;
		m->target.records = 1;
	}
	return LS_OK;
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

/* Processes that may still run in an emulated cluster are removed with it. */
static void fail_launch(measure *m, const ls_child *child, ls_point_launch *launch)
{
	if (m->target.lab)
		ls_lab_down(&m->environment->lab);
	ls_child_reason(child, launch->reason, sizeof(launch->reason));
}

static ls_status launch_bench(measure *m, ls_point_launch *launch)
{
	char **argv;
	ls_child child;

	LS_TRY(ensure_profile(m));
	if (has_ended(m))
		return LS_OK;
	m->target.repeat = ls_sweep_list_repeat(m->environment->list, m->point);
	LS_TRY(ls_sweep_bench_command(&m->arena, m->point, &m->target, &argv));
	LS_TRY(run_child(m, argv, &child));
	if (child.code != 0)
		fail_launch(m, &child, launch);
	else if (ls_outcome_bench(m->result, &child) != LS_OK)
		snprintf(launch->reason, sizeof(launch->reason), "%.200s", ls_last_error());
	launch->wall_s = child.seconds;
	ls_child_release(&child);
	return LS_OK;
}

/* Nodes of a run are those it was started on. */
static void name_nodes(measure *m)
{
	ls_host *named = NULL;
	size_t count = 0;

	if (!m->target.lab && m->target.hosts)
		(void)ls_hosts_parse(&named, &count, m->target.hosts);
	for (size_t i = 0; i < m->result->node_count; i++) {
		char *host = m->result->nodes[i].host;
		size_t at = (size_t)ls_sweep_point_node(m->point, (int64_t)i) - 1,
		       size = sizeof(m->result->nodes[i].host);
		if (named && at < count)
			snprintf(host, size, "%.63s", named[at].name);
		else if (m->target.lab)
			snprintf(host, size, LS_LAB_HOST "%zu", at + 1);
		else
			gethostname(host, size - 1);
	}
	ls_hosts_free(named);
}

static ls_status name_run(measure *m, int64_t repeat)
{
	char directory[4096], name[64];

	snprintf(name, sizeof(name), "%016" PRIx64 "-%" PRId64, ls_text_hash(m->point->key), repeat);
	LS_TRY(ls_path_join(directory, sizeof(directory), m->environment->out, "runs"));
	LS_TRY(ls_path_make(directory));
	LS_TRY(ls_path_join(m->run, sizeof(m->run), directory, name));
	m->target.run = m->run;
	return ls_path_remove_tree(m->run); /* left by a measurement that was stopped */
}

/* 1, 2, ... for jobs with a target; a launch that repeats another has its seed. */
static int64_t seed_of(const ls_point *p, const ls_point_launch *launch)
{
	int64_t seed = launch->again ? 0 : 1;

	for (size_t i = 0; i < p->launch_count; i++)
		seed += !p->launches[i].again;
	return seed;
}

static ls_status launch_train(measure *m, ls_point_launch *launch)
{
	double started = ls_clock_wall();
	char **argv;
	ls_child child;

	if (m->point->job.target > 0)
		m->target.seed = launch->seed = seed_of(m->result, launch);
	LS_TRY(name_run(m, (int64_t)m->result->launch_count));
	LS_TRY(ls_sweep_train_command(&m->arena, m->point, &m->target, &argv));
	LS_TRY(run_child(m, argv, &child));
	if (child.code != 0)
		fail_launch(m, &child, launch);
	else if (ls_outcome_train(m->result, &child, m->run) != LS_OK ||
		 (m->point->job.target > 0 && ls_outcome_target(m->result, launch, m->run, started) != LS_OK))
		snprintf(launch->reason, sizeof(launch->reason), "%.200s", ls_last_error());
	else
		name_nodes(m);
	launch->wall_s = child.seconds;
	ls_child_release(&child);
	return LS_OK;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* One launch, kept whatever comes of it. */
static ls_status launch(measure *m, int again)
{
	ls_point *p = m->result;
	ls_point_launch *grown = realloc(p->launches, (p->launch_count + 1) * sizeof(*grown));
	ls_quiet quiet;

	if (!grown)
		return ls_fail(LS_EMEMORY, "no memory for %zu launches", p->launch_count + 1);
	p->launches = grown;
	ls_point_launch *row = &grown[p->launch_count];
	*row = (ls_point_launch){ .again = again };
	if (m->target.lab && m->environment->lab.hosts == 0) /* removed with a launch that died */
		LS_TRY(use_lab(m));
	if (has_ended(m))
		return LS_OK;
	ls_quiet_begin(&quiet);
	LS_TRY(!strcmp(m->point->job.kind, "train") ? launch_train(m, row) : launch_bench(m, row));
	if (has_ended(m))
		return LS_OK;
	ls_quiet_end(&quiet, row);
	p->launch_count++;
	return LS_OK;
}

static int is_last_busy(const ls_point *p)
{
	const ls_point_launch *last = &p->launches[p->launch_count - 1];
	return last->busy && last->reason[0] == '\0';
}

/* Where nothing has come of two launches, nothing will come of more. */
static int is_hopeless(const ls_point *p)
{
	return p->repeat_count == 0 && p->launch_count >= 2;
}

static ls_status measure_launches(measure *m)
{
	int64_t count = ls_sweep_list_launches(m->environment->list, m->point);
	ls_point *p = m->result;

	for (int64_t k = 0; k < count && !is_hopeless(p); k++) {
		LS_TRY(launch(m, 0));
		if (has_ended(m))
			return LS_OK;
		if (is_last_busy(p) && ls_sweep_list_retries(m->environment->list, m->point))
			LS_TRY(launch(m, 1));
	}
	if (p->repeat_count == 0)
		return end_as(m, LS_POINT_FAILED, "%s", p->launches[0].reason);
	p->state = LS_POINT_DONE;
	return ls_point_summarize(p);
}

/* Checks before anything is started. */
static ls_status check_point(measure *m)
{
	const ls_point_job *job = &m->point->job;
	int64_t missing = cores_missing(m->environment, m->point);
	const char *lacking = "";

	if (m->point->on[0] != '\0' && !m->environment->hosts && m->point->speeds[0] == '\0')
		return end_as(m, LS_POINT_SKIPPED, "points on chosen nodes need --hosts with the names of all nodes");
	if (!strcmp(job->kind, "train") && !m->environment->hosts && missing > 0)
		return end_as(m, LS_POINT_SKIPPED,
			      "training on %s devices needs %" PRId64
			      " cores, this machine has %d; only a bench can have simulated compute",
			      job->shape, missing, m->environment->cores);
	if (!strstr(job->arguments, "--data-dir"))
		LS_TRY(ls_datasets_find(&m->environment->datasets, job->data, &lacking));
	return lacking[0] != '\0' ? end_as(m, LS_POINT_SKIPPED, "%s", lacking) : LS_OK;
}

static ls_status measure_point(measure *m)
{
	LS_TRY(check_point(m));
	if (!has_ended(m))
		LS_TRY(m->environment->hosts ? use_hosts(m) : use_lab(m));
	if (has_ended(m))
		return LS_OK;
	return measure_launches(m);
}

ls_status ls_measure(ls_sweep_environment *environment, const ls_sweep_point *point, ls_point *result)
{
	measure m = {
		.environment = environment, .point = point, .result = result, .target.program = environment->program
	};

	ls_status status = measure_point(&m);
	ls_arena_release(&m.arena);
	return status;
}
