/*
 * advice.c - a few sentences about a row of a forecast: what limits it, and what else would give.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "base/options.h"
#include "exchange/strategy.h"
#include "tools/forecast/request.h"

typedef struct what_if {
	const char *words;
	double links; /* speed factor */
	double nodes; /* factor */
	const char *wire;
} what_if;

static ls_status predict_case(const ls_forecast_request *r, const ls_forecast_row *row, const what_if *w,
			      ls_forecast_row *out)
{
	ls_cluster c;

	*out = *row;
	out->nodes = llround((double)row->nodes * w->nodes);
	out->servers = row->servers > 0 ? llround((double)row->servers * w->nodes) : 0;
	if (row->nodes == 1)
		snprintf(out->strategy, sizeof(out->strategy), "%s", ls_strategy_at(0)->name);
	if (w->wire)
		snprintf(out->wire, sizeof(out->wire), "%s", w->wire);
	LS_TRY(ls_cluster_resize(&c, &r->cluster, out->nodes));
	ls_status status = ls_forecast_request_rate(r, &c, row->rate);
	for (size_t k = 0; k < c.kinds; k++) {
		c.kind[k].gbit_per_s *= w->links;
		c.kind[k].both_gbit_per_s *= w->links;
	}
	if (status == LS_OK)
		status = ls_forecast_simulate(r, &c, out);
	ls_cluster_release(&c);
	return status;
}

/* What snapshots save, and when they do not: a node's optimizer state is on itself and on the next one. */
static void write_snapshots(const ls_cluster *c, const ls_forecast_row *row, FILE *to)
{
	double every_s = (double)row->snapshot_every * row->step_ms / 1000;

	fprintf(to,
		"With snapshots in memory every %" PRId64 " step%s (--snapshot-every %" PRId64
		", %.3g s) of %g s: a failure loses %.3g s of work. When two neighbours are lost before the next "
		"snapshot, one "
		"failure in %.3g, the run goes on from the checkpoint on disk and loses %.3g s.\n",
		row->snapshot_every, ls_plural((uint64_t)row->snapshot_every, "s"), row->snapshot_every, every_s,
		c->snapshot_s, (every_s + c->snapshot_s) / 2, 1 / row->fallback,
		(row->interval_s + c->checkpoint_s) / 2);
}

static void write_failures(const ls_cluster *c, const ls_forecast_row *row, FILE *to)
{
	double steps = fmax(1, round(row->interval_s * 1000 / row->step_ms));

	fprintf(to,
		"With failures: one of %" PRId64
		" node%s every %.3g hours. A checkpoint every %.0f s (%.0f step%s) of %g s, and "
		"%g s per restart, leave %.1f %% of the time: %.1f samples/s.\n",
		row->nodes, ls_plural((uint64_t)row->nodes, "s"), c->mtbf_hours / (double)row->nodes, row->interval_s,
		steps, ls_plural((uint64_t)steps, "s"), c->checkpoint_s, c->restart_s, 100 * row->goodput,
		row->goodput * row->samples_per_s);
	if (row->snapshot_every > 0)
		write_snapshots(c, row, to);
}

static ls_status write_advice(const ls_forecast_request *r, const ls_forecast_row *row, FILE *to)
{
	static const what_if cases[] = {
		{ "Links ten times as fast", 10, 1, NULL },
		{ "Links twice as fast", 2, 1, NULL },
		{ "--wire bf16", 1, 1, "bf16" },
		{ "Twice the nodes", 1, 2, NULL },
	};

	fprintf(to, "Best of these: %s, %s wire", row->strategy, row->wire);
	if (row->servers > 0)
		fprintf(to, ", %" PRId64 " server%s", row->servers, ls_plural((uint64_t)row->servers, "s"));
	int is_small = row->bucket_bytes < 1024;
	fprintf(to, ", buckets of %" PRId64 " %s: %.1f samples/s (%.1f to %.1f), %.0f %% of ideal. Limited by: %s.\n",
		is_small ? row->bucket_bytes : row->bucket_bytes / 1024,
		!is_small               ? "kB"
		: row->bucket_bytes > 1 ? "bytes"
					: "byte",
		row->samples_per_s, row->samples_per_s_low, row->samples_per_s_high, 100 * row->efficiency,
		row->bottleneck);
	for (size_t i = 0; i < LS_COUNT(cases); i++) {
		ls_forecast_row other;
		if ((cases[i].wire && !strcmp(row->wire, cases[i].wire)) || (row->nodes == 1 && cases[i].nodes == 1))
			continue;
		LS_TRY(predict_case(r, row, &cases[i], &other));
		double more = 100 * (other.samples_per_s / row->samples_per_s - 1);
		if (fabs(more) < 0.5)
			fprintf(to, "%s would change nothing.\n", cases[i].words);
		else
			fprintf(to, "%s would give %.1f samples/s (%+.0f %%), %.0f %% of ideal.\n", cases[i].words,
				other.samples_per_s, more, 100 * other.efficiency);
	}
	if (row->interval_s > 0)
		write_failures(&r->cluster, row, to);
	return LS_OK;
}

ls_status ls_forecast_advise(const ls_forecast_options *options, const ls_forecast *forecast, int row, char **out)
{
	ls_forecast_options own = LS_FORECAST_OPTIONS_INIT;

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, unused, "LS_FORECAST_OPTIONS_INIT"));
	size_t bytes;
	char *text = NULL;
	FILE *to = open_memstream(&text, &bytes);
	ls_forecast_request r = { 0 };
	if (!to)
		return ls_fail(LS_EMEMORY, "no memory for advice");
	ls_status status = ls_forecast_request_open(&r, &own);
	if (status == LS_OK)
		status = write_advice(&r, &forecast->row[row], to);
	ls_forecast_request_close(&r);
	if (fclose(to) != 0 && status == LS_OK)
		status = ls_fail(LS_EMEMORY, "no memory for advice");
	if (status == LS_OK)
		*out = text;
	else
		free(text);
	return status;
}
