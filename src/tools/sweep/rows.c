/*
 * rows.c - rows and the speedup over one device.
 */
#include "tools/sweep/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same job on one device, measured the same way: bench or training, real or simulated compute. */
static int is_base(const ls_point *base, const ls_point *p)
{
	return base->state == LS_POINT_DONE && base->job.devices == 1 && base->job.nodes == 1 &&
	       ls_point_comparable(base, p) && base->job.servers == 0 && base->job.batch == p->job.batch &&
	       base->job.threads == p->job.threads && !strcmp(base->job.kind, p->job.kind) &&
	       !strcmp(base->job.model, p->job.model) && !strcmp(base->job.data, p->job.data) &&
	       !strcmp(base->job.optimizer, p->job.optimizer) && !strcmp(base->job.arguments, p->job.arguments);
}

static double speedup_of(const ls_results *results, const ls_point *p)
{
	if (is_base(p, p))
		return 1;
	for (size_t i = 0; i < results->point_count; i++)
		if (is_base(&results->points[i], p))
			return p->samples_per_s / results->points[i].samples_per_s;
	return 0;
}

#define COPY(to, from) snprintf(to, sizeof(to), "%s", from)

static void fill(ls_sweep_row *row, const ls_results *results, const ls_point *p)
{
	static const char *const states[] = { "pending", "done", "skipped", "failed" };
	const ls_point_job *j = &p->job;

	*row = (ls_sweep_row){ .nodes = j->nodes,
			       .devices = j->devices,
			       .servers = j->servers,
			       .batch = j->batch,
			       .replay = (int)j->replay,
			       .state = states[p->state],
			       .samples_per_s = p->samples_per_s,
			       .samples_per_s_min = p->samples_per_s_min,
			       .samples_per_s_max = p->samples_per_s_max,
			       .launches = (int64_t)p->launch_count,
			       .spread_within = p->spread_within,
			       .spread_between = p->spread_between };
	for (size_t k = 0; k < p->launch_count; k++) {
		row->launches_failed += p->launches[k].reason[0] != '\0';
		row->launches_busy += p->launches[k].busy;
	}
	COPY(row->key, p->key);
	COPY(row->kind, j->kind);
	COPY(row->model, j->model);
	COPY(row->shape, j->shape);
	COPY(row->strategy, j->strategy);
	COPY(row->wire, j->wire);
	COPY(row->precision, j->precision[0] ? j->precision : "fp32");
	COPY(row->rate, j->rate);
	COPY(row->reason, p->reason);
	if (p->state == LS_POINT_DONE)
		row->speedup = speedup_of(results, p);
}

ls_status ls_sweep_rows(const ls_results *results, size_t count, const char *path, ls_sweep_result *out)
{
	ls_sweep_result r = { .row_count = count };

	r.rows = calloc(r.row_count + 1, sizeof(*r.rows));
	if (!r.rows)
		return ls_fail(LS_EMEMORY, "no memory for %zu rows", r.row_count);
	snprintf(r.path, sizeof(r.path), "%s", path);
	for (size_t i = 0; i < r.row_count; i++) {
		fill(&r.rows[i], results, &results->points[i]);
		r.done += results->points[i].state == LS_POINT_DONE;
		r.skipped += results->points[i].state == LS_POINT_SKIPPED;
		r.failed += results->points[i].state == LS_POINT_FAILED;
	}
	*out = r;
	return LS_OK;
}

void ls_sweep_result_release(ls_sweep_result *result)
{
	free(result->rows);
	*result = (ls_sweep_result){ 0 };
}
