/*
 * sweep.c - all points of a sweep, one after another.
 *
 * Invariants
 *  1. results.json is complete after every point: a sweep that is killed loses only its current point.
 *  2. Points that are done, with enough launches and repeats, are not measured again. Points of earlier sweeps in the
 *     same directory are kept.
 *  3. One sweep at a time per directory, and one machine: measurements of different machines are not mixed.
 *  4. No emulated cluster outlives the call.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "metrics/progress.h"
#include "tools/sweep/estimate.h"
#include "tools/sweep/machine.h"
#include "tools/sweep/measure.h"
#include "tools/sweep/original.h"
#include "tools/sweep/recipe.h"
#include "tools/sweep/rows.h"

typedef struct sweep {
	const ls_sweep_options *options;
	ls_sweep_list list;
	ls_results results; /* points of the list first, in its order */
	ls_sweep_environment environment;
	char program[4096], path[4096];
	int lock;
	ls_progress *progress;
	char label[256];
	size_t at, measured;                  /* current point; points measured since the start */
	double measured_s, measured_estimate; /* seconds of those points */
	double point_begun;
	double *estimate; /* (list.count) seconds, see estimate.h */
	int estimated;    /* at least one is known */
} sweep;

/* ---- the directory ----------------------------------------------------------------------------------------------- */

static ls_status lock_directory(sweep *s)
{
	char path[4096];

	LS_TRY(ls_path_join(path, sizeof(path), s->environment.out, "lock"));
	LS_TRY(ls_file_open_own(&s->lock, path, O_RDWR));
	if (flock(s->lock, LOCK_EX | LOCK_NB) != 0)
		return ls_fail(LS_EINVALID,
			       "another sweep is running in %s; wait for it, or choose another options.out",
			       s->environment.out);
	return LS_OK;
}

/* Not the directory of a training run: lockstep report would show that run among the results of the sweep. */
static ls_status check_directory(const char *out)
{
	char run[4096];

	LS_TRY(ls_path_join(run, sizeof(run), out, "run.json"));
	return ls_path_exists(run)
		       ? ls_fail(LS_EINVALID, "%s is the directory of a training run; choose another options.out", out)
		       : LS_OK;
}

static ls_status open_directory(sweep *s)
{
	const char *out = s->options->out, *form = ls_recipe_form_name(s->list.form);
	int plain = s->list.form == LS_RECIPE_DEFAULT;
	char here[4096];
	int length = !out ? snprintf(here, sizeof(here), "runs/bench-%s%s%s", s->list.name, plain ? "" : "-",
				     plain ? "" : form)
			  : snprintf(here, sizeof(here), "%s", out);

	if (length <= 0 || (size_t)length >= sizeof(here))
		return ls_fail(LS_EINVALID, "options.out is empty or too long");
	LS_TRY(check_directory(here));
	LS_TRY(ls_path_make(here));
	char *whole = realpath(here, NULL); /* nodes may have a different working directory */
	if (!whole)
		return ls_fail_errno(LS_EIO, "cannot find %s", here);
	snprintf(s->environment.out, sizeof(s->environment.out), "%s", whole);
	free(whole);
	LS_TRY(ls_path_join(s->path, sizeof(s->path), s->environment.out, "results.json"));
	return lock_directory(s);
}

/* ---- earlier results --------------------------------------------------------------------------------------------- */

static ls_status check_earlier(const sweep *s, const ls_results *earlier)
{
	const ls_results_machine *old = &earlier->machine, *now = &s->results.machine;

	if (strcmp(earlier->sweep, s->results.sweep) != 0)
		return ls_fail(LS_EMISMATCH, "%s holds the sweep '%s', not '%s'; choose another options.out", s->path,
			       earlier->sweep, s->results.sweep);
	if (earlier->point_count > 0 && (strcmp(old->cpu, now->cpu) != 0 || old->cores != now->cores))
		return ls_fail(LS_EMISMATCH,
			       "%s was measured on %" PRId64 " cores of %s, this machine has %" PRId64
			       " of %s; choose another options.out, or set options.again",
			       s->path, old->cores, old->cpu, now->cores, now->cpu);
	return LS_OK;
}

static ls_point *find_point(ls_results *results, const char *key)
{
	for (size_t i = 0; i < results->point_count; i++)
		if (!strcmp(results->points[i].key, key))
			return &results->points[i];
	return NULL;
}

/* Whether an earlier measurement of point i of the list is as thorough as this sweep asks for. */
static int is_enough(const sweep *s, size_t i, const ls_point *old)
{
	if (i >= s->list.count)
		return 1;
	int64_t launches = ls_sweep_list_launches(&s->list, &s->list.points[i]);
	int64_t repeat = ls_sweep_list_repeat(&s->list, &s->list.points[i]);
	int trains = !strcmp(old->job.kind, "train");
	if (trains && old->launch_count == 0) /* before version 3 */
		return (int64_t)old->repeat_count >= launches;
	return (int64_t)ls_point_launches_done(old) >= launches && (trains || (int64_t)old->repeat_count >= repeat);
}

static void keep_settings(ls_point *old, ls_point *now)
{
	free(old->settings);
	old->settings = now->settings;
	old->setting_count = now->setting_count;
	now->settings = NULL;
	now->setting_count = 0;
}

/* Take over earlier points that are done: points of the list in its order, others after them. */
static ls_status take_over(sweep *s, ls_results *earlier)
{
	ls_results *r = &s->results;
	ls_point *grown = realloc(r->points, (r->point_count + earlier->point_count + 1) * sizeof(*grown));

	if (!grown)
		return ls_fail(LS_EMEMORY, "no memory for %zu more points", earlier->point_count);
	r->points = grown;
	for (size_t i = 0; i < earlier->point_count; i++) {
		ls_point *old = &earlier->points[i], *now = find_point(r, old->key);
		if (old->state != LS_POINT_DONE)
			continue;
		if (!now)
			now = &r->points[r->point_count++];
		else if (s->options->again || !is_enough(s, (size_t)(now - r->points), old))
			continue;
		if (now->settings) /* the recipe may record more of the original by now */
			keep_settings(old, now);
		*now = *old;
		*old = (ls_point){ 0 };
	}
	return LS_OK;
}

/* Results that cannot be continued are renamed, not deleted. */
static ls_status set_aside(const sweep *s)
{
	char aside[4096], why[1024];

	snprintf(why, sizeof(why), "%s", ls_last_error());
	LS_TRY(ls_path_set_aside(s->path, aside, sizeof(aside)));
	ls_log_warning("%s; the old file is now %s, and a new one is written", why, aside);
	return LS_OK;
}

/* With options.again, points of the list are measured again, and results that do not match are set aside. */
static ls_status read_earlier(sweep *s)
{
	ls_results earlier = { 0 };

	if (!ls_path_exists(s->path))
		return LS_OK;
	ls_status status = ls_results_read(&earlier, s->path);
	if (status == LS_OK)
		status = check_earlier(s, &earlier);
	if (status == LS_OK) {
		memcpy(s->results.started, earlier.started, sizeof(earlier.started));
		if (earlier.point_count > 0) /* what was measured of it, until it is measured again */
			s->results.machine = earlier.machine;
		status = take_over(s, &earlier);
	} else if (s->options->again && status != LS_EMEMORY) {
		status = set_aside(s);
	}
	ls_results_release(&earlier);
	return status;
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static void begin_results(sweep *s)
{
	ls_results *r = &s->results;
	time_t seconds = (time_t)ls_clock_wall();
	struct tm utc;

	memcpy(r->sweep, s->list.name, sizeof(r->sweep));
	memcpy(r->title, s->list.title, sizeof(r->title));
	memcpy(r->note, s->list.note, sizeof(r->note));
	memcpy(r->table, s->list.table, sizeof(r->table));
	gmtime_r(&seconds, &utc);
	strftime(r->started, sizeof(r->started), "%Y-%m-%dT%H:%M:%SZ", &utc);
	snprintf(r->form, sizeof(r->form), "%s", ls_recipe_form_name(s->list.form));
	r->quick = s->list.form == LS_RECIPE_QUICK;
	ls_sweep_machine(&r->machine);
}

/* Replace "a|b" by an available dataset. The key changes: a different dataset is a different measurement. */
static ls_status choose_data(sweep *s)
{
	for (size_t i = 0; i < s->list.count; i++) {
		ls_point_job *job = &s->list.points[i].job;
		char chosen[sizeof(job->data)];
		LS_TRY(ls_datasets_choose(&s->environment.datasets, job->data, chosen, sizeof(chosen)));
		memcpy(job->data, chosen, sizeof(chosen));
		LS_TRY(ls_sweep_point_normalise(&s->list.points[i]));
	}
	ls_sweep_list_deduplicate(&s->list);
	return LS_OK;
}

/* Points with simulated compute need a baseline with simulated compute. */
static ls_status add_baselines(sweep *s)
{
	size_t count = s->list.count;
	ls_sweep_point base;

	for (size_t i = 0; i < count; i++)
		if (ls_measure_replays(&s->environment, &s->list.points[i])) {
			LS_TRY(ls_sweep_point_baseline(&s->list.points[i], &base));
			LS_TRY(ls_sweep_list_add(&s->list, &base));
		}
	return LS_OK;
}

/* Point i, pending. */
static ls_status begin_point(sweep *s, size_t i)
{
	ls_point *p = &s->results.points[i];

	memcpy(p->key, s->list.points[i].key, sizeof(p->key));
	p->job = s->list.points[i].job;
	return ls_original_settings(&s->list, &s->list.points[i], p);
}

static ls_status make_points(sweep *s)
{
	ls_results *r = &s->results;

	r->points = calloc(s->list.count + 1, sizeof(*r->points));
	if (!r->points)
		return ls_fail(LS_EMEMORY, "no memory for %zu points", s->list.count);
	r->point_count = s->list.count;
	for (size_t i = 0; i < s->list.count; i++)
		LS_TRY(begin_point(s, i));
	return LS_OK;
}

static size_t pending(const sweep *s)
{
	size_t count = 0;
	for (size_t i = 0; i < s->list.count; i++)
		count += s->results.points[i].state == LS_POINT_PENDING;
	return count;
}

/* With options.again, profiles are recorded again. */
static ls_status remove_profiles(const sweep *s)
{
	char path[4096];

	LS_TRY(ls_path_join(path, sizeof(path), s->environment.out, "profiles"));
	return s->options->again ? ls_path_remove_tree(path) : LS_OK;
}

static ls_status prepare(sweep *s)
{
	LS_TRY(ls_sweep_list_make(&s->list, s->options));
	LS_TRY(ls_path_program(s->program, sizeof(s->program), s->options->program));
	s->environment.program = s->environment.datasets.program = s->program;
	s->environment.hosts = s->options->hosts;
	s->environment.list = &s->list;
	s->environment.cores = ls_sweep_cores();
	LS_TRY(open_directory(s));
	LS_TRY(ls_lab_init(&s->environment.lab, s->program, s->environment.out));
	LS_TRY(choose_data(s));
	LS_TRY(add_baselines(s));
	begin_results(s);
	LS_TRY(make_points(s));
	LS_TRY(read_earlier(s));
	LS_TRY(remove_profiles(s));
	return pending(s) > 0 ? ls_sweep_machine_probe(&s->results.machine, s->program) : LS_OK;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* "1:05" or "2:03:20". */
static const char *clock_text(char out[32], double seconds)
{
	long whole = (long)(seconds + 0.5);

	if (whole < 3600)
		snprintf(out, 32, "%ld:%02ld", whole / 60, whole % 60);
	else
		snprintf(out, 32, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
	return out;
}

/* Points without an estimate get the mean of the others; without any estimate, all count the same. */
static void fill_gaps(sweep *s)
{
	double sum = 0;
	size_t known = 0;

	for (size_t i = 0; i < s->list.count; i++) {
		sum += s->estimate[i];
		known += s->estimate[i] > 0;
	}
	s->estimated = known > 0;
	for (size_t i = 0; i < s->list.count; i++)
		if (!(s->estimate[i] > 0))
			s->estimate[i] = known > 0 ? sum / (double)known : 1;
}

static double pending_estimate(const sweep *s)
{
	double sum = 0;
	for (size_t i = 0; i < s->list.count; i++)
		sum += s->results.points[i].state == LS_POINT_PENDING ? s->estimate[i] : 0;
	return sum;
}

/* Estimate the duration and print it, before the first point. */
static ls_status estimate(sweep *s)
{
	char text[32];

	s->estimate = calloc(s->list.count + 1, sizeof(*s->estimate));
	if (!s->estimate)
		return ls_fail(LS_EMEMORY, "no memory for the times of %zu points", s->list.count);
	LS_TRY(ls_estimate(&s->environment, &s->results, s->estimate));
	fill_gaps(s);
	if (pending(s) > 0 && s->estimated)
		ls_log_note("estimated time: %s (%s) for %zu point%s, from one timed step per model",
			    clock_text(text, pending_estimate(s)),
			    strchr(text, ':') == strrchr(text, ':') ? "m:ss" : "h:mm:ss", pending(s),
			    ls_plural(pending(s), "s"));
	return LS_OK;
}

/* Estimates, scaled by their error so far. Below 0: not known yet. */
static double seconds_left(const sweep *s)
{
	double scale = s->measured > 0 ? s->measured_s / s->measured_estimate : 1;
	int running = s->at < s->list.count && s->results.points[s->at].state == LS_POINT_PENDING;
	double this_one = running ? s->estimate[s->at] * scale : 0;

	if (s->measured == 0 && !s->estimated)
		return -1;
	return pending_estimate(s) * scale - fmin(this_one, running ? ls_clock_seconds() - s->point_begun : 0);
}

static void show(void *context)
{
	sweep *s = context;
	ls_progress_update(s->progress, "bench", s->list.count - pending(s), s->list.count, s->label, seconds_left(s));
}

/* ", 7 launches (1 failed, 2 on a busy machine)"; "" of one that was quiet. */
static const char *launches_text(const ls_point *p, char *out, size_t size)
{
	size_t failed = 0, busy = 0, used = 0;

	for (size_t k = 0; k < p->launch_count; k++) {
		failed += p->launches[k].reason[0] != '\0';
		busy += p->launches[k].busy != 0;
	}
	out[0] = '\0';
	if (p->launch_count > 1)
		used = (size_t)snprintf(out, size, ", %zu launches", p->launch_count);
	if (failed > 0)
		used += (size_t)snprintf(out + used, size - used, ", %zu failed", failed);
	if (busy > 0)
		snprintf(out + used, size - used, ", %zu on a busy machine", busy);
	return out;
}

static void report_point(const sweep *s, const ls_point *p)
{
	char left[48] = "", text[32], launches[96];
	double seconds = pending(s) > 0 ? seconds_left(s) : -1;

	if (seconds >= 0)
		snprintf(left, sizeof(left), ", %s left", clock_text(text, seconds));
	if (p->state == LS_POINT_DONE)
		ls_log_note("[%zu/%zu] %s: %.1f samples/s (%.1f to %.1f)%s%s%s", s->list.count - pending(s),
			    s->list.count, s->label, p->samples_per_s, p->samples_per_s_min, p->samples_per_s_max,
			    p->job.replay ? ", simulated compute" : "", launches_text(p, launches, sizeof(launches)),
			    left);
	else
		ls_log_note("[%zu/%zu] %s: %s: %s%s", s->list.count - pending(s), s->list.count, s->label,
			    p->state == LS_POINT_SKIPPED ? "skipped" : "failed", p->reason, left);
}

static ls_status measure_one(sweep *s, size_t i)
{
	ls_point *p = &s->results.points[i];

	s->at = i;
	s->point_begun = ls_clock_seconds();
	ls_sweep_point_label(&s->list.points[i], s->label, sizeof(s->label));
	ls_status status = ls_measure(&s->environment, &s->list.points[i], p);
	if (status != LS_OK) { /* reset the point to pending */
		ls_point_release(p);
		ls_status begun = begin_point(s, i);
		return begun != LS_OK && status != LS_EINTERRUPTED ? begun : status;
	}
	if (p->state == LS_POINT_DONE) { /* skipped points do not count for the scale of estimates */
		s->measured++;
		s->measured_s += ls_clock_seconds() - s->point_begun;
		s->measured_estimate += s->estimate[i];
	}
	LS_TRY(ls_results_write(&s->results, s->path));
	report_point(s, p);
	return LS_OK;
}

/* Before the first point: warn about points that cannot be measured here. */
static void warn_of_skipping(sweep *s)
{
	ls_lab *lab = &s->environment.lab;
	size_t count = 0;

	for (size_t i = 0; i < s->list.count && !s->options->hosts; i++)
		count += s->results.points[i].state == LS_POINT_PENDING && ls_lab_is_for(&s->list.points[i]);
	if (count > 0 && !ls_lab_possible(lab) && !ls_sweep_stopped())
		ls_log_warning("%zu of %zu point%s cannot be measured here and will be skipped: %s", count,
			       s->list.count, ls_plural(s->list.count, "s"), lab->reason);
}

static ls_status measure_all(sweep *s)
{
	ls_status status = ls_results_write(&s->results, s->path);

	if (status == LS_OK) {
		warn_of_skipping(s);
		status = estimate(s);
	}
	s->environment.tick = show;
	s->environment.context = s;
	s->progress = ls_progress_begin();
	for (size_t i = 0; i < s->list.count && status == LS_OK; i++)
		if (s->results.points[i].state == LS_POINT_PENDING)
			status =
				ls_sweep_stopped() ? ls_fail(LS_EINTERRUPTED, "stopped on request") : measure_one(s, i);
	ls_lab_down(&s->environment.lab);
	ls_progress_end(s->progress);
	s->progress = NULL;
	return status;
}

static void release(sweep *s)
{
	ls_results_release(&s->results);
	ls_sweep_list_release(&s->list);
	free(s->estimate);
	if (s->lock >= 0)
		close(s->lock);
}

ls_status ls_sweep(const ls_sweep_options *options, ls_sweep_result *result)
{
	ls_sweep_options own = LS_SWEEP_OPTIONS_INIT;

	LS_TRY(LS_OPTIONS_TAKE(&own, options, program, "LS_SWEEP_OPTIONS_INIT"));
	sweep *s = calloc(1, sizeof(*s));
	if (!s)
		return ls_fail(LS_EMEMORY, "no memory for a sweep");
	s->options = &own;
	s->lock = -1;
	ls_status status = prepare(s);
	if (status == LS_OK)
		status = measure_all(s);
	if (status == LS_OK || status == LS_EINTERRUPTED) {
		size_t rows = s->results.points ? s->list.count : 0; /* 0: stopped before the points were made */
		ls_status kept = ls_sweep_rows(&s->results, rows, s->path, result);
		status = kept != LS_OK ? kept : status;
	}
	release(s);
	free(s);
	return status;
}

ls_status ls_sweep_points(const ls_sweep_options *options, ls_sweep_result *result)
{
	ls_sweep_options own = LS_SWEEP_OPTIONS_INIT;
	sweep s = { .options = &own, .lock = -1 };

	LS_TRY(LS_OPTIONS_TAKE(&own, options, program, "LS_SWEEP_OPTIONS_INIT"));
	ls_status status = ls_sweep_list_make(&s.list, &own);

	if (status == LS_OK)
		status = make_points(&s);
	if (status == LS_OK)
		status = ls_sweep_rows(&s.results, s.list.count, "", result);
	release(&s);
	return status;
}
