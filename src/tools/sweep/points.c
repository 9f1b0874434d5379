/*
 * points.c - options to points: lists choose among the points of a recipe, or are multiplied out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/names.h"
#include "tools/sweep/block.h"
#include "tools/sweep/points.h"
#include "tools/sweep/recipe.h"

enum { WARMUP = 20, STEPS = 100, REPEAT = 7, LAUNCH_REPEAT = 3, LIMIT_S = 86400 };
enum { TARGET_SEEDS = 5, TARGET_EPOCHS = 20 };
enum { QUICK_WARMUP = 5, QUICK_STEPS = 20, QUICK_REPEAT = 3 };

/* ---- points ------------------------------------------------------------------------------------------------------ */

/* Among the first `count`. */
static int is_there(const ls_sweep_list *list, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list->points[i].key, key))
			return 1;
	return 0;
}

ls_status ls_sweep_list_add(ls_sweep_list *list, const ls_sweep_point *point)
{
	if (is_there(list, list->count, point->key))
		return LS_OK;
	if (list->count == LS_SWEEP_POINTS)
		return ls_fail(LS_EINVALID, "the sweep has more than %d points; shorten the lists", LS_SWEEP_POINTS);
	ls_sweep_point *grown = realloc(list->points, (list->count + 1) * sizeof(*grown));
	if (!grown)
		return ls_fail(LS_EMEMORY, "no memory for %zu points", list->count + 1);
	list->points = grown;
	list->points[list->count++] = *point;
	return LS_OK;
}

void ls_sweep_list_deduplicate(ls_sweep_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (!is_there(list, kept, list->points[i].key))
			list->points[kept++] = list->points[i];
	list->count = kept;
}

void ls_sweep_list_release(ls_sweep_list *list)
{
	free(list->points);
	*list = (ls_sweep_list){ 0 };
}

/* ---- points of lists --------------------------------------------------------------------------------------------- */

static ls_status take_lists(const ls_sweep_options *o, ls_sweep_block *block)
{
	const struct {
		ls_axis_kind kind;
		const char *list;
	} lists[] = { { LS_AXIS_MODEL, o->model },       { LS_AXIS_DATA, o->data },
		      { LS_AXIS_THREADS, o->threads },   { LS_AXIS_BATCH, o->batch },
		      { LS_AXIS_WIRE, o->wire },         { LS_AXIS_RATE, o->rate },
		      { LS_AXIS_STRATEGY, o->strategy }, { LS_AXIS_SERVERS, o->servers },
		      { LS_AXIS_NODES, o->nodes },       { LS_AXIS_DEVICES, o->devices } };

	for (size_t i = 0; i < LS_COUNT(lists); i++)
		if (lists[i].list)
			LS_TRY(ls_axis_split(&block->axes[lists[i].kind], lists[i].kind, lists[i].list));
	return LS_OK;
}

/* Training to a target: a launch per seed. */
static ls_status take_target(const ls_sweep_options *o, ls_sweep_list *list, ls_point_job *job)
{
	if (!(o->to_accuracy < 1))
		return ls_fail(LS_EINVALID, "options.to_accuracy must be between 0 and 1, not %g", o->to_accuracy);
	snprintf(list->name, sizeof(list->name), "accuracy");
	snprintf(list->table, sizeof(list->table), "accuracy");
	snprintf(job->kind, sizeof(job->kind), "train");
	job->warmup = job->steps = 0;
	job->target = o->to_accuracy;
	job->epochs = o->epochs > 0 ? o->epochs : TARGET_EPOCHS;
	job->samples = o->samples > 0 ? o->samples : 0;
	list->repeat = 1;
	list->launches = o->seeds > 0 ? o->seeds : TARGET_SEEDS;
	return LS_OK;
}

static ls_status multiply(const ls_sweep_options *o, ls_sweep_list *list, ls_sweep_block *block)
{
	ls_point_job *job = &block->common.job;

	snprintf(list->name, sizeof(list->name), "sweep");
	snprintf(list->table, sizeof(list->table), "throughput");
	snprintf(job->kind, sizeof(job->kind), "bench");
	snprintf(job->optimizer, sizeof(job->optimizer), "%s", o->optimizer ? o->optimizer : "adam");
	job->warmup = list->warmup;
	job->steps = list->steps;
	if (o->to_accuracy > 0)
		LS_TRY(take_target(o, list, job));
	LS_TRY(ls_point_job_add_arguments(job, o->arguments));
	LS_TRY(take_lists(o, block));
	if (o->precision)
		LS_TRY(ls_axis_split(&block->axes[LS_AXIS_PRECISION], LS_AXIS_PRECISION, o->precision));
	if (o->to_accuracy > 0 && block->axes[LS_AXIS_DATA].count == 0)
		LS_TRY(ls_axis_add(&block->axes[LS_AXIS_DATA], LS_AXIS_DATA, "mnist"));
	if (block->axes[LS_AXIS_MODEL].count == 0)
		LS_TRY(ls_axis_add(&block->axes[LS_AXIS_MODEL], LS_AXIS_MODEL, "resnet18"));
	return ls_sweep_block_expand(block, list);
}

/* ---- points of a recipe ------------------------------------------------------------------------------------------ */

static int fits_number(const ls_axis *axis, int64_t number)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRId64, number);
	return axis->count == 0 || ls_axis_has(axis, text);
}

/* "8" also matches "8+8": devices per node. A row of one node whose servers are among its devices is named by all. */
static int fits_devices(const ls_axis *axis, const ls_point_job *job)
{
	char each[32];
	int64_t first = ls_shape_devices(job->shape, 0);

	if (job->nodes == 1 && !strcmp(job->servers_count, "inside"))
		return fits_number(axis, job->devices + job->servers);
	if (axis->count == 0 || ls_axis_has(axis, job->shape))
		return 1;
	for (int64_t i = 1; i < job->nodes; i++)
		if (ls_shape_devices(job->shape, (size_t)i) != first)
			return 0;
	snprintf(each, sizeof(each), "%" PRId64, first);
	return ls_axis_has(axis, each);
}

static int fits_text(const ls_axis *axis, const char *text)
{
	return axis->count == 0 || ls_axis_has(axis, text);
}

/* One node has no links, whatever rate is given. */
static int fits(const ls_sweep_block *wanted, const ls_sweep_point *p)
{
	const ls_axis *a = wanted->axes;
	const ls_point_job *j = &p->job;
	int alone = ls_sweep_point_processes(p) == 1;

	return fits_text(&a[LS_AXIS_MODEL], j->model) && fits_text(&a[LS_AXIS_DATA], j->data) &&
	       fits_number(&a[LS_AXIS_THREADS], j->threads) && fits_number(&a[LS_AXIS_BATCH], j->batch) &&
	       fits_number(&a[LS_AXIS_NODES], j->nodes) && fits_devices(&a[LS_AXIS_DEVICES], j) &&
	       (alone ||
		(fits_text(&a[LS_AXIS_WIRE], j->wire) && fits_text(&a[LS_AXIS_RATE], j->rate) &&
		 fits_text(&a[LS_AXIS_STRATEGY], j->strategy) && fits_number(&a[LS_AXIS_SERVERS], j->servers)));
}

static ls_status set_epoch(ls_point_job *job, const char *epoch)
{
	if (strcmp(epoch, "data") != 0 && strcmp(epoch, "worker") != 0)
		return ls_fail(LS_EINVALID, "options.epoch is '%s': expected data or worker", epoch);
	snprintf(job->epoch, sizeof(job->epoch), "%s", epoch);
	return LS_OK;
}

static ls_status adapt(const ls_sweep_options *o, ls_sweep_point *p)
{
	if (strcmp(p->job.kind, "train") != 0) {
		p->job.warmup = o->warmup >= 0 ? o->warmup : p->job.warmup;
		p->job.steps = o->steps > 0 ? o->steps : p->job.steps;
	}
	if (o->repeat > 0)
		p->repeat = 0;
	if (o->launches > 0)
		p->launches = 0;
	if (o->epoch)
		LS_TRY(set_epoch(&p->job, o->epoch));
	if (o->optimizer)
		snprintf(p->job.optimizer, sizeof(p->job.optimizer), "%s", o->optimizer);
	if (o->precision)
		LS_TRY(ls_sweep_point_precision(p, o->precision));
	LS_TRY(ls_point_job_add_arguments(&p->job, o->arguments));
	return ls_sweep_point_normalise(p);
}

static ls_status choose(const ls_sweep_options *o, ls_sweep_list *list, ls_sweep_block *wanted)
{
	size_t kept = 0;

	LS_TRY(take_lists(o, wanted));
	for (size_t i = 0; i < list->count; i++) {
		if (!fits(wanted, &list->points[i]))
			continue;
		list->points[kept] = list->points[i];
		LS_TRY(adapt(o, &list->points[kept++]));
	}
	if (kept == 0)
		return ls_fail(LS_EINVALID,
			       "no point of %s (%zu in all) matches the options; "
			       "'lockstep bench %s --list' shows them",
			       list->name, list->count, o->recipe);
	list->count = kept;
	ls_sweep_list_deduplicate(list);
	return LS_OK;
}

/* Rates and speeds of emulated nodes do not apply to real hosts. */
static ls_status clear_emulation(ls_sweep_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		list->points[i].job.rate[0] = '\0';
		list->points[i].speeds[0] = '\0';
		LS_TRY(ls_sweep_point_normalise(&list->points[i]));
	}
	ls_sweep_list_deduplicate(list);
	return LS_OK;
}

static ls_status check_options(const ls_sweep_options *o)
{
	if (o->quick && o->full)
		return ls_fail(LS_EINVALID, "options.quick and options.full are two forms of a recipe; leave one out");
	if (o->full && !o->recipe)
		return ls_fail(LS_EINVALID, "options.full is the full form of a recipe; name the recipe");
	if (o->epoch && !o->recipe)
		return ls_fail(LS_EINVALID, "options.epoch is for recipes that train; name the recipe");
	if (o->rate && o->hosts)
		return ls_fail(
			LS_EINVALID,
			"options.rate sets the link speed of emulated nodes; it cannot be used with options.hosts");
	return LS_OK;
}

/* Only nodes have links. */
static void warn_of_idle_rate(const ls_sweep_options *o, const ls_sweep_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->points[i].job.rate[0] != '\0')
			return;
	if (o->rate)
		ls_log_warning("options.rate %s has no effect: no point has several nodes; give options.nodes",
			       o->rate);
}

ls_status ls_sweep_list_make(ls_sweep_list *out, const ls_sweep_options *o)
{
	ls_sweep_list list = { .warmup = o->warmup >= 0 ? o->warmup : (o->quick ? QUICK_WARMUP : WARMUP),
			       .steps = o->steps > 0 ? o->steps : (o->quick ? QUICK_STEPS : STEPS),
			       .repeat = o->quick          ? QUICK_REPEAT
					 : o->launches > 1 ? LAUNCH_REPEAT
							   : REPEAT,
			       .launches = 1,
			       .limit_s = LIMIT_S,
			       .form = o->quick  ? LS_RECIPE_QUICK
				       : o->full ? LS_RECIPE_FULL
						 : LS_RECIPE_DEFAULT };
	ls_sweep_block *block;

	LS_TRY(check_options(o));
	if (o->recipe)
		LS_TRY(ls_recipe_open(&list, o->recipe, list.form));
	block = calloc(1, sizeof(*block));
	ls_status status = !block      ? ls_fail(LS_EMEMORY, "no memory for the lists of a sweep")
			   : o->recipe ? choose(o, &list, block)
				       : multiply(o, &list, block);
	free(block);
	if (status == LS_OK && o->hosts)
		status = clear_emulation(&list);
	if (o->repeat > 0)
		list.repeat = o->repeat;
	if (o->launches > 0)
		list.launches = o->launches;
	if (status == LS_OK)
		warn_of_idle_rate(o, &list);
	if (status == LS_OK)
		*out = list;
	else
		ls_sweep_list_release(&list);
	return status;
}
