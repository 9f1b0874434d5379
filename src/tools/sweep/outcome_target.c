/*
 * outcome_target.c - a run of `lockstep train --to-accuracy`: its evaluations, and whether and when it reached the
 * target, from metrics.jsonl.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "tools/results/metrics_log.h"
#include "tools/sweep/outcome.h"

typedef struct reading {
	ls_point *point;
	ls_point_launch *launch;
	double started; /* wall clock, as in the file */
} reading;

static double number(const json_t *object, const char *name)
{
	double value = json_number_value(json_object_get(object, name));
	return isfinite(value) && value > 0 ? value : 0;
}

static ls_status add_test(reading *r, const ls_metrics_line *line, const json_t *object)
{
	ls_point *p = r->point;
	ls_point_test *grown = realloc(p->tests, (p->test_count + 1) * sizeof(*grown));
	double elapsed = number(object, "elapsed_s"); /* the clock of day may have jumped; older runs have no other */

	if (!grown)
		return ls_fail(LS_EMEMORY, "no memory for the evaluations of a run");
	p->tests = grown;
	p->tests[p->test_count++] =
		(ls_point_test){ .launch = (int64_t)p->launch_count,
				 .epochs = (double)line->epoch + 1,
				 .elapsed_s = elapsed > 0 ? elapsed : fmax(0, number(object, "time") - r->started),
				 .accuracy = isfinite(line->accuracy) ? line->accuracy : 0 };
	return LS_OK;
}

static ls_status take_line(void *context, const ls_metrics_line *line, const json_t *object)
{
	reading *r = context;

	if (!strcmp(line->kind, "test"))
		return add_test(r, line, object);
	if (!strcmp(line->kind, "target")) {
		r->launch->target_s = number(object, "seconds");
		r->launch->target_epochs = number(object, "epochs");
	}
	return LS_OK;
}

ls_status ls_outcome_target(ls_point *point, ls_point_launch *launch, const char *run, double started)
{
	reading r = { .point = point, .launch = launch, .started = started };
	char path[4096];
	ls_file_map map;

	LS_TRY(ls_path_join(path, sizeof(path), run, "metrics.jsonl"));
	LS_TRY(ls_file_map_open(&map, path));
	return ls_file_map_end(&map, ls_metrics_log_read((const char *)map.data, map.bytes, path, take_line, &r));
}
