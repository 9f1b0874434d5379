/*
 * outcome_train.c - a run of `lockstep train`: rates from its output ("Step200: 100.71 data/sec", the mean over the
 * steps since the previous line), everything else from metrics.jsonl.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/median.h"
#include "tools/results/metrics_log.h"
#include "tools/sweep/outcome.h"
#include "tools/sweep/point.h"

enum { SKIPPED = 3 }; /* first lines of a run, whose steps touch memory for the first time */

/* A growing list of numbers. */
typedef struct numbers {
	double *value;
	size_t count;
} numbers;

typedef struct curve {
	ls_point *point;
	numbers rates, waits, exposed, tokens;
	numbers epoch_rates;            /* for runs that are too short to log a step */
	int64_t epoch_step;             /* the last one of the epoch before */
	double compute[LS_SWEEP_NODES]; /* sums over lines of steps */
	size_t lines;
} curve;

static ls_status keep_number(numbers *n, double value)
{
	if (n->count % 256 == 0) {
		double *grown = realloc(n->value, (n->count + 256) * sizeof(*grown));
		if (!grown)
			return ls_fail(LS_EMEMORY, "no memory for the steps of a run");
		n->value = grown;
	}
	n->value[n->count++] = value;
	return LS_OK;
}

/* Append a zeroed row to a list of a point. NULL: no memory. */
static void *grow(void **list, size_t *count, size_t bytes)
{
	char *grown = realloc(*list, (*count + 1) * bytes);

	if (!grown)
		return NULL;
	*list = grown;
	return memset(grown + (*count)++ * bytes, 0, bytes);
}

static ls_status no_memory(void)
{
	return ls_fail(LS_EMEMORY, "no memory for the curves of a run");
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static ls_status read_lines(ls_point *p, const char *text)
{
	for (const char *line = text, *end; line && *line != '\0'; line = end ? end + 1 : NULL) {
		int64_t step;
		double rate;
		end = strchr(line, '\n');
		if (sscanf(line, "Step%" SCNd64 ": %lf data/sec", &step, &rate) != 2 || step < 0 || !(rate >= 0))
			continue;
		LS_TRY(ls_point_add_rate(p, (ls_point_rate){ .step = step, .samples_per_s = rate, .loss = NAN }));
	}
	return LS_OK;
}

/* ---- metrics ----------------------------------------------------------------------------------------------------- */

static ls_status take_step(curve *c, const ls_metrics_line *line, const json_t *object)
{
	char name[48];

	for (size_t i = 0; i < c->point->rate_count; i++)
		if (c->point->rates[i].step == line->step)
			c->point->rates[i].loss = line->loss;
	if (line->samples_per_s > 0)
		LS_TRY(keep_number(&c->rates, line->samples_per_s));
	if (line->tokens_per_s > 0)
		LS_TRY(keep_number(&c->tokens, line->tokens_per_s));
	if (line->wait_s >= 0)
		LS_TRY(keep_number(&c->waits, line->wait_s));
	if (line->exposed_s >= 0)
		LS_TRY(keep_number(&c->exposed, line->exposed_s));
	for (int64_t i = 0; i < c->point->job.nodes && i < LS_SWEEP_NODES; i++) {
		snprintf(name, sizeof(name), "node%" PRId64 "_compute_s", i);
		double seconds = json_number_value(json_object_get(object, name));
		c->compute[i] += seconds >= 0 ? seconds : 0;
	}
	c->lines++;
	return LS_OK;
}

static ls_status take_line(void *context, const ls_metrics_line *line, const json_t *object)
{
	curve *c = context;

	if (!strcmp(line->kind, "step"))
		return take_step(c, line, object);
	if (!strcmp(line->kind, "epoch") && line->seconds > 0) {
		double samples = (double)((line->step - c->epoch_step) * c->point->job.batch * c->point->job.devices);
		c->epoch_step = line->step;
		LS_TRY(keep_number(&c->epoch_rates, samples / line->seconds));
	}
	if (!strcmp(line->kind, "epoch") || !strcmp(line->kind, "test"))
		return ls_point_add_epoch(c->point, line);
	if (!strcmp(line->kind, "end"))
		ls_point_end(c->point, line);
	return LS_OK;
}

static ls_status read_metrics(curve *c, const char *run)
{
	char path[4096];
	ls_file_map map;

	LS_TRY(ls_path_join(path, sizeof(path), run, "metrics.jsonl"));
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_metrics_log_read((const char *)map.data, map.bytes, path, take_line, c);
	return ls_file_map_end(&map, status);
}

/* ---- summary ----------------------------------------------------------------------------------------------------- */

/* Median without the first few, where there are more. */
static double median_of(numbers *n)
{
	size_t skip = n->count > 2 * SKIPPED ? SKIPPED : 0;
	return ls_median(n->value + skip, n->count - skip);
}

static ls_status keep_nodes(curve *c)
{
	ls_point *p = c->point;
	double sum = 0, lines = c->lines > 0 ? (double)c->lines : 1;

	for (int64_t i = 0; i < p->job.nodes && i < LS_SWEEP_NODES; i++) {
		ls_point_node *row = grow((void **)&p->nodes, &p->node_count, sizeof(*row));
		if (!row)
			return no_memory();
		row->devices = ls_shape_devices(p->job.shape, (size_t)i);
		row->compute_ms = 1e3 * c->compute[i] / lines;
		row->exposed_ms = p->exposed_ms;
		row->wait_ms = p->wait_ms;
		sum += row->compute_ms * (double)row->devices;
	}
	p->compute_ms = sum / (double)p->job.devices;
	return LS_OK;
}

/* The epochs of a worker: `passes` of the data each. */
static void fold_epochs(ls_point *p, int64_t passes)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->epoch_count; i++) {
		ls_point_epoch pass = p->epochs[i];
		if (pass.epoch % passes == 0 || kept == 0)
			p->epochs[kept++] =
				(ls_point_epoch){ .epoch = pass.epoch / passes, .accuracy = NAN, .test_loss = NAN };
		ls_point_epoch *row = &p->epochs[kept - 1];
		row->seconds += pass.seconds;
		row->test_seconds += pass.test_seconds;
		if (!isnan(pass.accuracy)) {
			row->accuracy = pass.accuracy;
			row->test_loss = pass.test_loss;
		}
	}
	p->epoch_count = kept;
}

static ls_status conclude(curve *c, const ls_child *child, const char *run)
{
	ls_point *p = c->point;
	double rate = c->rates.count > 0 ? median_of(&c->rates) : median_of(&c->epoch_rates);

	if (!(rate > 0))
		return ls_fail(LS_EFORMAT, "%s/metrics.jsonl has no step with a rate; is --log-every 0?", run);
	p->tokens_per_s = median_of(&c->tokens);
	p->wait_ms = 1e3 * median_of(&c->waits);
	p->exposed_ms = 1e3 * median_of(&c->exposed);
	LS_TRY(keep_nodes(c));
	if (ls_point_job_passes(&p->job) > 1)
		fold_epochs(p, ls_point_job_passes(&p->job));
	ls_point_repeat *row = grow((void **)&p->repeats, &p->repeat_count, sizeof(*row));
	if (!row)
		return no_memory();
	*row = (ls_point_repeat){ .samples_per_s = rate,
				  .step_ms = 1e3 * (double)(p->job.batch * p->job.devices) / rate,
				  .wall_s = child->seconds,
				  .launch = (int64_t)p->launch_count };
	return LS_OK;
}

/* Curves and nodes are those of the last repeat. */
static void forget(ls_point *point)
{
	free(point->rates);
	free(point->epochs);
	free(point->nodes);
	point->rates = NULL;
	point->epochs = NULL;
	point->nodes = NULL;
	point->rate_count = point->epoch_count = point->node_count = 0;
}

ls_status ls_outcome_train(ls_point *point, const ls_child *child, const char *run)
{
	curve c = { .point = point };

	forget(point);
	ls_status status = read_lines(point, child->out);
	if (status == LS_OK)
		status = read_metrics(&c, run);
	if (status == LS_OK)
		status = conclude(&c, child, run);
	free(c.rates.value);
	free(c.epoch_rates.value);
	free(c.waits.value);
	free(c.exposed.value);
	free(c.tokens.value);
	return status;
}
