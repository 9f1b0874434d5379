/*
 * forecast.c - rows of a forecast: all combinations of the lists in the options, each simulated.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "exchange/strategy.h"
#include "tools/forecast/calibrate.h"
#include "tools/forecast/failures.h"
#include "tools/forecast/interval.h"
#include "tools/forecast/request.h"
#include "tools/forecast/simulate.h"

enum { ROWS_MOST = 1000 };

/* Where options.servers is 0: one server per 8 nodes. */
enum { NODES_PER_SERVER = 8 };

static int has_servers(const char *strategy)
{
	const ls_strategy_info *row = ls_strategy_of(strategy);
	return row && row->has_servers;
}

static int64_t servers_of(const ls_forecast_request *r, int64_t nodes)
{
	int64_t servers = r->o->servers > 0 ? r->o->servers : nodes / NODES_PER_SERVER;
	return servers > 0 ? servers : 1;
}

/* A profile that varies counts as far as the step is computing. */
static void set_interval(const ls_profile *profile, ls_forecast_row *row)
{
	double computing = fmin(1, row->compute_ms / row->step_ms);
	double half = hypot(ls_interval_simulation(row->bottleneck),
			    computing * ls_interval_repeats(profile->step_spread, profile->repeats));

	row->samples_per_s_low = row->samples_per_s * exp(-half);
	row->samples_per_s_high = row->samples_per_s * exp(half);
}

/* Links as fast as the probe's exchange was, unless options.rate asks for other links. */
static ls_status calibrate(const ls_forecast_request *r, const ls_forecast_row *row, ls_cluster *c)
{
	double factor = 1;

	if (row->nodes > 1 && !r->o->rate)
		LS_TRY(ls_cluster_calibrate(&r->cluster, row->servers, !strcmp(row->wire, "bf16"), &factor));
	ls_cluster_scale_links(c, factor);
	return LS_OK;
}

ls_status ls_forecast_simulate(const ls_forecast_request *r, ls_cluster *c, ls_forecast_row *row)
{
	ls_scenario_options o = { .profile = &r->profile,
				  .cluster = c,
				  .servers = row->servers,
				  .bf16 = !strcmp(row->wire, "bf16"),
				  .bucket_bytes = row->bucket_bytes,
				  .microbatches = r->o->microbatches,
				  .follow = !strcmp(r->o->share, "auto"),
				  .replayed = r->o->replayed,
				  .after = r->o->after };
	ls_simulated result;
	ls_scenario scenario;

	LS_TRY(calibrate(r, row, c));
	LS_TRY(ls_scenario_make(&scenario, &o));
	row->devices = 0;
	for (int p = 0; p < scenario.groups; p++)
		if (scenario.group[p].worker)
			row->devices += scenario.group[p].kind.count * scenario.group[p].kind.devices;
	ls_status status = ls_simulate(&scenario, &result);
	ls_scenario_release(&scenario);
	if (status != LS_OK)
		return status;
	row->step_ms = result.step_s * 1e3;
	row->compute_ms = result.compute_s * 1e3;
	row->exposed_ms = result.exposed_s * 1e3;
	row->samples_per_s = result.samples_per_s;
	row->efficiency = result.efficiency;
	row->sent_bytes = result.sent_bytes;
	row->link_busy = result.link_busy;
	snprintf(row->bottleneck, sizeof(row->bottleneck), "%s", result.bottleneck);
	set_interval(&r->profile, row);
	return LS_OK;
}

/* Fill in a row that has its nodes, rate, strategy, wire and bucket. */
static ls_status predict(const ls_forecast_request *r, ls_forecast_row *row)
{
	ls_cluster c;

	LS_TRY(ls_cluster_resize(&c, &r->cluster, row->nodes));
	ls_status status = ls_forecast_request_rate(r, &c, row->rate);
	if (status == LS_OK)
		status = ls_forecast_simulate(r, &c, row);
	if (status == LS_OK) {
		ls_goodput kept = ls_goodput_of(&c, row->nodes, row->step_ms / 1000);
		row->goodput = kept.part;
		row->snapshot_every = kept.snapshot_every;
		row->fallback = kept.fallback;
		row->interval_s = kept.interval_s;
	}
	ls_cluster_release(&c);
	return status;
}

static ls_status add_row(const ls_forecast_request *r, ls_forecast *f, const int at[5], int is_first)
{
	ls_forecast_row row = { 0 };

	LS_TRY(ls_list_number("nodes", r->nodes.text[at[0]], 1e7, &row.nodes));
	LS_TRY(ls_list_number("bucket", r->buckets.text[at[4]], 1e12, &row.bucket_bytes));
	snprintf(row.rate, sizeof(row.rate), "%s", r->rates.text[at[1]]);
	snprintf(row.strategy, sizeof(row.strategy), "%s", row.nodes > 1 ? r->strategies.text[at[2]] : "local");
	snprintf(row.wire, sizeof(row.wire), "%s", r->wires.text[at[3]]);
	row.servers = has_servers(row.strategy) ? servers_of(r, row.nodes) : 0;
	if (row.nodes == 1 && !is_first) /* nothing is sent: all rows of one node are the same */
		return LS_OK;
	LS_TRY(predict(r, &row));
	f->row[f->count++] = row;
	return LS_OK;
}

static ls_status make_rows(const ls_forecast_request *r, ls_forecast *f)
{
	const int counts[5] = { r->nodes.count, r->rates.count, r->strategies.count, r->wires.count, r->buckets.count };
	size_t all = 1;

	for (int i = 0; i < 5; i++)
		all *= (size_t)counts[i];
	if (all > ROWS_MOST)
		return ls_fail(LS_EINVALID, "%zu combinations are more than %d; shorten the lists", all, ROWS_MOST);
	f->row = calloc(all, sizeof(*f->row));
	if (!f->row)
		return ls_fail(LS_EMEMORY, "no memory for a forecast of %zu rows", all);
	for (size_t n = 0; n < all; n++) {
		size_t rest = n;
		int at[5];
		for (int i = 4; i >= 0; rest /= (size_t)counts[i], i--)
			at[i] = (int)(rest % (size_t)counts[i]);
		LS_TRY(add_row(r, f, at, at[1] + at[2] + at[3] + at[4] == 0));
	}
	return LS_OK;
}

static int any_has_servers(const ls_list *strategies)
{
	for (int i = 0; i < strategies->count; i++)
		if (has_servers(strategies->text[i]))
			return 1;
	return 0;
}

static void warn_of_idle_options(const ls_forecast_request *r)
{
	const ls_forecast_options *o = r->o;

	if (o->servers > 0 && !any_has_servers(&r->strategies))
		ls_log_warning("options.servers has no effect with options.strategy %s: it has no servers",
			       o->strategy);
	const struct {
		const char *name;
		double value;
	} of_failures[] = { { "--checkpoint-every", o->interval_s },
			    { "--checkpoint-cost", o->checkpoint_s },
			    { "--snapshot-cost", o->snapshot_s },
			    { "--restart-cost", o->restart_s } };
	for (size_t i = 0; i < LS_COUNT(of_failures) && r->cluster.mtbf_hours <= 0; i++)
		if (of_failures[i].value >= 0)
			ls_log_warning("%s has no effect: nodes do not fail without --mtbf", of_failures[i].name);
}

static void describe(const ls_forecast_request *r, ls_forecast *f)
{
	const ls_profile *p = &r->profile;
	ls_text_printable(f->model, sizeof(f->model), p->model);
	ls_text_printable(f->optimizer, sizeof(f->optimizer), p->optimizer);
	ls_text_printable(f->precision, sizeof(f->precision), p->precision[0] != '\0' ? p->precision : "fp32");
	ls_text_printable(f->cluster, sizeof(f->cluster), r->cluster.name);
	f->batch = p->batch * r->o->microbatches;
	f->device_per_s = (double)f->batch / ((double)r->o->microbatches * (p->step_s - p->update_s) + p->update_s);
	f->gradient_bytes = (double)p->reachable * sizeof(float);
}

ls_status ls_forecast_make(ls_forecast *out, const ls_forecast_options *options)
{
	ls_forecast_options own = LS_FORECAST_OPTIONS_INIT;
	ls_forecast f = { 0 };
	ls_forecast_request r;

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, unused, "LS_FORECAST_OPTIONS_INIT"));
	ls_status status = ls_forecast_request_open(&r, &own);
	if (status == LS_OK) {
		warn_of_idle_options(&r);
		describe(&r, &f);
		status = make_rows(&r, &f);
	}
	ls_forecast_request_close(&r);
	if (status == LS_OK)
		*out = f;
	else
		ls_forecast_release(&f);
	return status;
}

void ls_forecast_release(ls_forecast *f)
{
	free(f->row);
	*f = (ls_forecast){ 0 };
}

int ls_forecast_best(const ls_forecast *f, int64_t nodes, const char *rate)
{
	int best = -1;
	for (size_t i = 0; i < f->count; i++) {
		const ls_forecast_row *row = &f->row[i];
		if (row->nodes == nodes && (nodes == 1 || !strcmp(row->rate, rate)) &&
		    (best < 0 || row->samples_per_s * row->goodput > f->row[best].samples_per_s * f->row[best].goodput))
			best = (int)i;
	}
	return best;
}
