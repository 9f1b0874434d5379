/*
 * forecast.c - rows of a forecast: all combinations of the lists in the options, each simulated.
 */
#include <lockstep/plan.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/names.h"
#include "exchange/codec.h"
#include "exchange/strategy.h"
#include "tools/forecast/failures.h"
#include "tools/forecast/simulate.h"

enum { LIST_MAX = 64, TEXT_MAX = 32, ROWS_MOST = 1000 };

/* Where options.servers is 0: one server per 8 nodes. */
enum { NODES_PER_SERVER = 8 };

typedef struct list {
	int count;
	char text[LIST_MAX][TEXT_MAX];
} list;

static ls_status split(list *out, const char *name, const char *text)
{
	*out = (list){ 0 };
	for (const char *at = text; *at != '\0' || at == text;) {
		size_t length = strcspn(at, ",");
		if (length == 0 || length >= TEXT_MAX)
			return ls_fail(LS_EINVALID, "%s '%s' is not a list like a,b,c of short words", name, text);
		if (out->count == LIST_MAX)
			return ls_fail(LS_EINVALID, "%s '%s' has more than %d entries", name, text, LIST_MAX);
		memcpy(out->text[out->count++], at, length);
		at += length;
		if (*at == ',' && *++at == '\0')
			return ls_fail(LS_EINVALID, "%s '%s' ends with a comma", name, text);
	}
	return LS_OK;
}

static ls_status whole(const char *name, const char *text, double most, int64_t *out)
{
	uint64_t number;
	LS_TRY(ls_parse_count(text, name, &number));
	if (number < 1 || (double)number > most)
		return ls_fail(LS_EINVALID, "%s '%s' is not a whole number from 1 to %.0f", name, text, most);
	*out = (int64_t)number;
	return LS_OK;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

typedef struct request {
	const ls_forecast_options *o;
	ls_profile profile;
	ls_cluster cluster;
	int described; /* by a file */
	list nodes, rates, strategies, wires, buckets;
} request;

/* "allreduce,ps": what options.strategy is where it is not given. */
static const char *all_planned(char *out, size_t size)
{
	const ls_strategy_info *row;
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; (row = ls_strategy_at(i)) && used < size; i++)
		if (!row->unplanned)
			used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? "," : "", row->name);
	return out;
}

static ls_status check_strategies(const list *names, const char *planned)
{
	const ls_strategy *row = NULL;
	for (int i = 0; i < names->count; i++) {
		LS_TRY(ls_strategy_find(names->text[i], &row));
		if (row->info.unplanned)
			return ls_fail(LS_EINVALID, "strategy %s cannot be planned: %s; options.strategy can be %s",
				       row->info.name, row->info.unplanned, planned);
	}
	return LS_OK;
}

static ls_status check_wires(const list *names)
{
	const ls_codec *codec = NULL;
	for (int i = 0; i < names->count; i++)
		LS_TRY(ls_wire_find(names->text[i], &codec));
	return LS_OK;
}

static ls_status read_lists(request *r)
{
	const ls_forecast_options *o = r->o;
	char cluster_nodes[TEXT_MAX], cluster_rate[TEXT_MAX], planned[LIST_MAX * TEXT_MAX];

	snprintf(cluster_nodes, sizeof(cluster_nodes), "%" PRId64, ls_cluster_nodes(&r->cluster));
	ls_rate_text(cluster_rate, sizeof(cluster_rate), r->cluster.kind[0].gbit_per_s);
	LS_TRY(split(&r->nodes, "nodes", o->nodes ? o->nodes : r->described ? cluster_nodes : "1,2,4,8,16"));
	LS_TRY(split(&r->rates, "rate", o->rate ? o->rate : r->described ? cluster_rate : "1gbit"));
	all_planned(planned, sizeof(planned));
	LS_TRY(split(&r->strategies, "strategy", o->strategy ? o->strategy : planned));
	LS_TRY(split(&r->wires, "wire", o->wire ? o->wire : "fp32"));
	LS_TRY(split(&r->buckets, "bucket", o->bucket ? o->bucket : "1048576"));
	LS_TRY(check_strategies(&r->strategies, planned));
	return check_wires(&r->wires);
}

static ls_status check_options(const ls_forecast_options *o)
{
	if (!o->profile)
		return ls_fail(
			LS_EINVALID,
			"options.profile is missing; record one with 'lockstep bench --model M --profile-out FILE'");
	if (!o->share || (strcmp(o->share, "equal") != 0 && strcmp(o->share, "auto") != 0))
		return ls_fail(LS_EINVALID, "share '%s' is neither equal nor auto", o->share ? o->share : "");
	if (o->microbatches < 1 || o->microbatches > 10000 || o->devices < 0 || o->devices > 100000)
		return ls_fail(LS_EINVALID, "options.microbatches must be 1 to 10000, options.devices 0 to 100000");
	return LS_OK;
}

/* Options override the cluster file. */
static void override(request *r)
{
	const ls_forecast_options *o = r->o;
	ls_cluster *c = &r->cluster;

	for (size_t k = 0; k < c->kinds; k++) {
		if (o->devices > 0 && c->kind[k].devices > 0)
			c->kind[k].devices = o->devices;
		if (o->replayed && c->kind[k].probed) /* simulated compute does not depend on the machine */
			c->kind[k].speed = 1;
		if (o->latency_us >= 0)
			c->kind[k].latency_us = o->latency_us;
	}
	c->spread = o->spread >= 0 ? o->spread : c->spread;
	c->mtbf_hours = o->mtbf_hours >= 0 ? o->mtbf_hours : c->mtbf_hours;
	c->interval_s = o->interval_s >= 0 ? o->interval_s : c->interval_s;
	c->shared_cores = o->shared_cores > 0 ? o->shared_cores : c->shared_cores;
}

static int has_servers(const char *strategy)
{
	const ls_strategy_info *row = ls_strategy_of(strategy);
	return row && row->has_servers;
}

static int any_has_servers(const list *strategies)
{
	for (int i = 0; i < strategies->count; i++)
		if (has_servers(strategies->text[i]))
			return 1;
	return 0;
}

static void warn_of_idle_options(const request *r)
{
	const ls_forecast_options *o = r->o;

	if (o->servers > 0 && !any_has_servers(&r->strategies))
		ls_log_warning("options.servers has no effect with options.strategy %s: it has no servers",
			       o->strategy);
	if (o->interval_s >= 0 && r->cluster.mtbf_hours <= 0)
		ls_log_warning("--checkpoint-every has no effect: nodes do not fail without --mtbf");
}

static ls_status open_request(request *r, const ls_forecast_options *options)
{
	*r = (request){ .o = options };
	LS_TRY(check_options(options));
	LS_TRY(ls_profile_read(&r->profile, options->profile));
	if (!(ls_profile_compute(&r->profile) > 0 && r->profile.step_s > 0))
		return ls_fail(LS_EFORMAT, "%s: layers or step_s take no time; record the profile again",
			       options->profile);
	r->described = options->cluster != NULL;
	if (r->described)
		LS_TRY(ls_cluster_read(&r->cluster, options->cluster));
	else
		LS_TRY(ls_cluster_of(&r->cluster, 1, options->devices > 0 ? options->devices : 1, LS_RATE_PAYLOAD));
	override(r);
	return read_lists(r);
}

static void close_request(request *r)
{
	ls_profile_release(&r->profile);
	ls_cluster_release(&r->cluster);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* options.rate is nominal and the same for all nodes; rates of the cluster file are payload rates. */
static ls_status set_rate(const request *r, ls_cluster *c, const char *rate)
{
	double nominal;
	LS_TRY(ls_rate_parse(rate, &nominal));
	int asked = r->o->rate || !r->described;
	for (size_t k = 0; asked && k < c->kinds; k++) {
		c->kind[k].gbit_per_s = nominal * LS_RATE_PAYLOAD;
		c->kind[k].both_gbit_per_s = nominal * LS_RATE_BOTH;
	}
	return LS_OK;
}

static int64_t servers_of(const request *r, int64_t nodes)
{
	int64_t servers = r->o->servers > 0 ? r->o->servers : nodes / NODES_PER_SERVER;
	return servers > 0 ? servers : 1;
}

static ls_status simulate(const request *r, const ls_cluster *c, ls_forecast_row *row)
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
	return LS_OK;
}

/* Fill in a row that has its nodes, rate, strategy, wire and bucket. */
static ls_status predict(const request *r, ls_forecast_row *row)
{
	ls_cluster c;

	LS_TRY(ls_cluster_resize(&c, &r->cluster, row->nodes));
	ls_status status = set_rate(r, &c, row->rate);
	if (status == LS_OK)
		status = simulate(r, &c, row);
	if (status == LS_OK) {
		ls_goodput kept = ls_goodput_of(&c, row->nodes);
		row->goodput = kept.part;
		row->interval_s = kept.interval_s;
	}
	ls_cluster_release(&c);
	return status;
}

static ls_status add_row(const request *r, ls_forecast *f, const int at[5], int is_first)
{
	ls_forecast_row row = { 0 };

	LS_TRY(whole("nodes", r->nodes.text[at[0]], 1e7, &row.nodes));
	LS_TRY(whole("bucket", r->buckets.text[at[4]], 1e12, &row.bucket_bytes));
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

static ls_status make_rows(const request *r, ls_forecast *f)
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

static void describe(const request *r, ls_forecast *f)
{
	const ls_profile *p = &r->profile;
	ls_text_printable(f->model, sizeof(f->model), p->model);
	ls_text_printable(f->optimizer, sizeof(f->optimizer), p->optimizer);
	ls_text_printable(f->cluster, sizeof(f->cluster), r->cluster.name);
	f->batch = p->batch * r->o->microbatches;
	f->device_per_s = (double)f->batch / ((double)r->o->microbatches * (p->step_s - p->update_s) + p->update_s);
	f->gradient_bytes = (double)p->reachable * sizeof(float);
}

ls_status ls_forecast_make(ls_forecast *out, const ls_forecast_options *options)
{
	ls_forecast f = { 0 };
	request r;

	ls_status status = open_request(&r, options);
	if (status == LS_OK) {
		warn_of_idle_options(&r);
		describe(&r, &f);
		status = make_rows(&r, &f);
	}
	close_request(&r);
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

/* ---- advice ------------------------------------------------------------------------------------------------------ */

typedef struct what_if {
	const char *words;
	double links; /* speed factor */
	double nodes; /* factor */
	const char *wire;
} what_if;

static ls_status predict_case(const request *r, const ls_forecast_row *row, const what_if *w, ls_forecast_row *out)
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
	ls_status status = set_rate(r, &c, row->rate);
	for (size_t k = 0; k < c.kinds; k++) {
		c.kind[k].gbit_per_s *= w->links;
		c.kind[k].both_gbit_per_s *= w->links;
	}
	if (status == LS_OK)
		status = simulate(r, &c, out);
	ls_cluster_release(&c);
	return status;
}

static ls_status write_advice(const request *r, const ls_forecast_row *row, FILE *to)
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
	fprintf(to, ", buckets of %" PRId64 " kB: %.1f samples/s, %.0f %% of ideal. Limited by: %s.\n",
		row->bucket_bytes / 1024, row->samples_per_s, 100 * row->efficiency, row->bottleneck);
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
		fprintf(to, "With failures: %.1f %% of the time is useful, with a checkpoint every %.0f s.\n",
			100 * row->goodput, row->interval_s);
	return LS_OK;
}

ls_status ls_forecast_advise(const ls_forecast_options *options, const ls_forecast *forecast, int row, char **out)
{
	size_t bytes;
	char *text = NULL;
	FILE *to = open_memstream(&text, &bytes);
	request r = { 0 };

	if (!to)
		return ls_fail(LS_EMEMORY, "no memory for advice");
	ls_status status = open_request(&r, options);
	if (status == LS_OK)
		status = write_advice(&r, &forecast->row[row], to);
	close_request(&r);
	if (fclose(to) != 0 && status == LS_OK)
		status = ls_fail(LS_EMEMORY, "no memory for advice");
	if (status == LS_OK)
		*out = text;
	else
		free(text);
	return status;
}
