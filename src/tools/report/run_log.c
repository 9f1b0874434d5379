#include "tools/report/run_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

static double number_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Of classes, or of several labels. */
static double f1_of(const json_t *object)
{
	double of_classes = number_of(object, "f1");
	return isnan(of_classes) ? number_of(object, "macro_f1") : of_classes;
}

static ls_status add(ls_run_rows *list, const ls_metrics_line *line, const json_t *object)
{
	size_t count = list->count;

	if ((count & (count - 1)) == 0) { /* full: 0, 1, 2, 4, ... rows */
		ls_run_row *rows = realloc(list->rows, (count > 0 ? 2 * count : 1) * sizeof(*rows));
		if (!rows)
			return ls_fail(LS_EMEMORY, "no memory for the metrics of a run");
		list->rows = rows;
	}
	list->rows[list->count++] = (ls_run_row){ .step = line->step,
						  .epoch = line->epoch,
						  .loss = line->loss,
						  .accuracy = line->accuracy,
						  .perplexity = number_of(object, "perplexity"),
						  .f1 = f1_of(object),
						  .mae = number_of(object, "mae"),
						  .r2 = number_of(object, "r2"),
						  .lr = number_of(object, "lr"),
						  .is_best = number_of(object, "is_best") > 0 };
	return LS_OK;
}

static ls_status take_line(void *context, const ls_metrics_line *line, const json_t *object)
{
	ls_run_log *log = context;

	LS_TRY(ls_memberships_take(&log->nodes, line, object));
	if (line->step > log->stopped_step) /* it went on after a resume */
		log->stopped_step = 0;
	if (!strcmp(line->kind, "step"))
		return add(&log->steps, line, object);
	if (!strcmp(line->kind, "epoch"))
		return add(&log->epochs, line, object);
	if (!strcmp(line->kind, "test"))
		return add(&log->tests, line, object);
	if (!strcmp(line->kind, "early_stop"))
		log->stopped_step = line->step;
	return LS_OK;
}

static ls_status read_metrics(ls_run_log *log, const char *run)
{
	char path[4096];
	ls_file_map map;

	LS_TRY(ls_path_join(path, sizeof(path), run, "metrics.jsonl"));
	if (!ls_path_exists(path))
		return LS_OK;
	LS_TRY(ls_file_map_open(&map, path));
	return ls_file_map_end(&map, ls_metrics_log_read((const char *)map.data, map.bytes, path, take_line, log));
}

static ls_status read_classes(ls_run_log *log, const char *run)
{
	char path[4096];

	LS_TRY(ls_path_join(path, sizeof(path), run, "eval.json"));
	return ls_path_exists(path) ? ls_class_metrics_read(&log->classes, path) : LS_OK;
}

/* Whether every test ends an epoch. */
static int is_by_steps(const ls_run_log *log)
{
	size_t e = 0;

	for (size_t i = 0; i < log->tests.count; i++) {
		while (e < log->epochs.count && log->epochs.rows[e].step < log->tests.rows[i].step)
			e++;
		if (e == log->epochs.count || log->epochs.rows[e].step != log->tests.rows[i].step)
			return 1;
	}
	return 0;
}

ls_status ls_run_log_read(ls_run_log *out, const char *run)
{
	ls_run_log log = { 0 };
	ls_status status = read_metrics(&log, run);

	if (status == LS_OK)
		status = read_classes(&log, run);
	if (status != LS_OK) {
		ls_run_log_release(&log);
		return status;
	}
	log.by_steps = is_by_steps(&log);
	*out = log;
	return LS_OK;
}

void ls_run_log_release(ls_run_log *log)
{
	free(log->steps.rows);
	free(log->epochs.rows);
	free(log->tests.rows);
	ls_memberships_release(&log->nodes);
	ls_class_metrics_release(&log->classes);
	*log = (ls_run_log){ 0 };
}

size_t ls_run_log_best(const ls_run_log *log)
{
	size_t best = SIZE_MAX;
	for (size_t i = 0; i < log->tests.count; i++)
		best = log->tests.rows[i].is_best ? i : best;
	return best;
}
