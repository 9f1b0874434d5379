/*
 * outcome_train.c - a run of `lockstep train`: its lines ("Step200: 100.71 data/sec"), which are means over the steps
 * since the last, and metrics.jsonl for all else.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "metrics/rate.h"
#include "sweep/outcome.h"
#include "sweep/point.h"
#include "json/fields.h"

enum { SKIPPED = 3 }; /* first lines of a run, whose steps touch memory for the first time */

/* Numbers of one kind, growing. */
typedef struct numbers {
	double *value;
	size_t count;
} numbers;

typedef struct curve {
	ls_point *point;
	numbers rates, waits, exposed, tokens;
	double compute[LS_SWEEP_NODES]; /* sums over lines of steps */
	size_t lines;
} curve;

static ls_status keep_number(numbers *n, double value)
{
	if (n->count % 256 == 0) {
		double *grown = realloc(n->value, (n->count + 256) * sizeof(*grown));
		if (grown == NULL)
			return ls_fail(LS_EMEMORY, "no memory for the steps of a run");
		n->value = grown;
	}
	n->value[n->count++] = value;
	return LS_OK;
}

/* One row more of a point's list; zeroed. NULL: no memory. */
static void *grow(void **list, size_t *count, size_t bytes)
{
	char *grown = realloc(*list, (*count + 1) * bytes);

	if (grown == NULL)
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
	for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL) {
		int64_t step;
		double rate;
		if (sscanf(line, "Step%" SCNd64 ": %lf data/sec", &step, &rate) != 2 || step < 0 || !(rate >= 0))
			continue;
		ls_point_rate *row = grow((void **)&p->rates, &p->rate_count, sizeof(*row));
		if (row == NULL)
			return no_memory();
		*row = (ls_point_rate){ .step = step, .samples_per_s = rate, .loss = NAN };
	}
	return LS_OK;
}

/* ---- metrics ----------------------------------------------------------------------------------------------------- */

static double number_of(const json_t *line, const char *name)
{
	const json_t *value = json_object_get(line, name);
	return json_is_number(value) ? json_number_value(value) : NAN;
}

static ls_status take_step(curve *c, const json_t *line)
{
	int64_t step = json_integer_value(json_object_get(line, "step"));
	char name[48];

	for (size_t i = 0; i < c->point->rate_count; i++)
		if (c->point->rates[i].step == step)
			c->point->rates[i].loss = number_of(line, "loss");
	if (number_of(line, "samples_per_s") > 0)
		LS_TRY(keep_number(&c->rates, number_of(line, "samples_per_s")));
	if (number_of(line, "tokens_per_s") > 0)
		LS_TRY(keep_number(&c->tokens, number_of(line, "tokens_per_s")));
	if (number_of(line, "wait_s") >= 0)
		LS_TRY(keep_number(&c->waits, number_of(line, "wait_s")));
	if (number_of(line, "exposed_s") >= 0)
		LS_TRY(keep_number(&c->exposed, number_of(line, "exposed_s")));
	for (int64_t i = 0; i < c->point->job.nodes && i < LS_SWEEP_NODES; i++) {
		snprintf(name, sizeof(name), "node%" PRId64 "_compute_s", i);
		double seconds = number_of(line, name);
		c->compute[i] += seconds >= 0 ? seconds : 0;
	}
	c->lines++;
	return LS_OK;
}

static ls_point_epoch *epoch_row(ls_point *p, int64_t epoch)
{
	for (size_t i = 0; i < p->epoch_count; i++)
		if (p->epochs[i].epoch == epoch)
			return &p->epochs[i];
	ls_point_epoch *row = grow((void **)&p->epochs, &p->epoch_count, sizeof(*row));
	if (row != NULL)
		*row = (ls_point_epoch){ .epoch = epoch, .accuracy = NAN, .test_loss = NAN };
	return row;
}

static ls_status take_epoch(curve *c, const json_t *line, int is_test)
{
	double epoch = number_of(line, "epoch"), seconds = number_of(line, "seconds");
	ls_point_epoch *row = epoch >= 0 ? epoch_row(c->point, (int64_t)epoch) : NULL;

	if (row == NULL)
		return epoch >= 0 ? no_memory() : LS_OK;
	if (!is_test) {
		row->seconds = seconds >= 0 ? seconds : 0;
		return LS_OK;
	}
	row->test_seconds = seconds >= 0 ? seconds : 0;
	row->accuracy = number_of(line, "accuracy");
	row->test_loss = number_of(line, "loss");
	if (row->accuracy >= 0)
		c->point->accuracy = row->accuracy;
	return LS_OK;
}

static ls_status take_line(curve *c, const char *text, size_t bytes, const char *path, size_t number)
{
	json_error_t error;
	json_t *line = json_loadb(text, bytes, 0, &error);
	const char *kind = json_string_value(json_object_get(line, "kind"));
	ls_status status = LS_OK;

	if (line == NULL)
		status = ls_fail(LS_EFORMAT, "%s:%zu: not acceptable JSON: %s", path, number, error.text);
	else if (kind != NULL && !strcmp(kind, "step"))
		status = take_step(c, line);
	else if (kind != NULL && (!strcmp(kind, "epoch") || !strcmp(kind, "test")))
		status = take_epoch(c, line, kind[0] == 't');
	json_decref(line);
	return status;
}

static ls_status read_metrics(curve *c, const char *run)
{
	char path[4096];
	ls_file_map map;
	ls_status status = LS_OK;

	LS_TRY(ls_path_join(path, sizeof(path), run, "metrics.jsonl"));
	LS_TRY(ls_file_map_open(&map, path));
	const char *text = (const char *)map.data, *end = text + map.bytes;
	for (size_t number = 1; text < end && status == LS_OK; number++) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		line_end = line_end != NULL ? line_end : end;
		status = take_line(c, text, (size_t)(line_end - text), path, number);
		text = line_end + 1;
	}
	ls_file_map_close(&map);
	return status;
}

/* ---- what it comes to -------------------------------------------------------------------------------------------- */

/* Of all but the first few, where there are more. */
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
		if (row == NULL)
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

static ls_status conclude(curve *c, const ls_child *child, const char *run)
{
	ls_point *p = c->point;
	double rate = median_of(&c->rates);

	if (!(rate > 0))
		return ls_fail(LS_EFORMAT, "%s/metrics.jsonl has no step with a rate; is --log-every 0?", run);
	p->tokens_per_s = median_of(&c->tokens);
	p->wait_ms = 1e3 * median_of(&c->waits);
	p->exposed_ms = 1e3 * median_of(&c->exposed);
	LS_TRY(keep_nodes(c));
	ls_point_repeat *row = grow((void **)&p->repeats, &p->repeat_count, sizeof(*row));
	if (row == NULL)
		return no_memory();
	*row = (ls_point_repeat){ .samples_per_s = rate,
				  .step_ms = 1e3 * (double)(p->job.batch * p->job.devices) / rate,
				  .wall_s = child->seconds };
	return ls_point_summarize(p);
}

ls_status ls_outcome_train(ls_point *point, const ls_child *child, const char *run)
{
	curve c = { .point = point };

	point->rate_count = point->epoch_count = point->node_count = 0; /* those of the last repeat */
	ls_status status = read_lines(point, child->out);
	if (status == LS_OK)
		status = read_metrics(&c, run);
	if (status == LS_OK)
		status = conclude(&c, child, run);
	free(c.rates.value);
	free(c.waits.value);
	free(c.exposed.value);
	free(c.tokens.value);
	return status;
}
