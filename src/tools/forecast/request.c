#include "tools/forecast/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exchange/codec.h"
#include "exchange/strategy.h"

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

static ls_status check_strategies(const ls_list *names, const char *planned)
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

static ls_status check_wires(const ls_list *names)
{
	const ls_codec *codec = NULL;
	for (int i = 0; i < names->count; i++)
		LS_TRY(ls_wire_find(names->text[i], &codec));
	return LS_OK;
}

static ls_status read_lists(ls_forecast_request *r)
{
	const ls_forecast_options *o = r->o;
	char cluster_nodes[LS_LIST_TEXT], cluster_rate[LS_LIST_TEXT], planned[LS_LIST_MAX * LS_LIST_TEXT];

	snprintf(cluster_nodes, sizeof(cluster_nodes), "%" PRId64, ls_cluster_nodes(&r->cluster));
	ls_rate_text(cluster_rate, sizeof(cluster_rate), r->cluster.kind[0].gbit_per_s);
	LS_TRY(ls_list_split(&r->nodes, "nodes", o->nodes ? o->nodes : r->described ? cluster_nodes : "1,2,4,8,16"));
	LS_TRY(ls_list_split(&r->rates, "rate", o->rate ? o->rate : r->described ? cluster_rate : "1gbit"));
	all_planned(planned, sizeof(planned));
	LS_TRY(ls_list_split(&r->strategies, "strategy", o->strategy ? o->strategy : planned));
	LS_TRY(ls_list_split(&r->wires, "wire", o->wire ? o->wire : "fp32"));
	LS_TRY(ls_list_split(&r->buckets, "bucket", o->bucket ? o->bucket : "1048576"));
	LS_TRY(check_strategies(&r->strategies, planned));
	return check_wires(&r->wires);
}

static ls_status check_options(const ls_forecast_options *o)
{
	if (!o->profile && !o->profile_text)
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
static void override(ls_forecast_request *r)
{
	const ls_forecast_options *o = r->o;
	ls_cluster *c = &r->cluster;

	for (size_t k = 0; k < c->kinds; k++) {
		if (o->devices > 0 && c->kind[k].devices > 0)
			c->kind[k].devices = o->devices;
		if (o->replayed && c->kind[k].probed) /* simulated compute does not depend on the machine */
			c->kind[k].speed = c->kind[k].replay_speed;
		if (o->latency_us >= 0)
			c->kind[k].latency_us = o->latency_us;
	}
	c->spread = o->spread >= 0 ? o->spread : c->spread;
	c->mtbf_hours = o->mtbf_hours >= 0 ? o->mtbf_hours : c->mtbf_hours;
	c->interval_s = o->interval_s >= 0 ? o->interval_s : c->interval_s;
	c->checkpoint_s = o->checkpoint_s >= 0 ? o->checkpoint_s : c->checkpoint_s;
	c->snapshot_s = o->snapshot_s >= 0 ? o->snapshot_s : c->snapshot_s;
	c->restart_s = o->restart_s >= 0 ? o->restart_s : c->restart_s;
	c->shared_cores = o->shared_cores > 0 ? o->shared_cores : c->shared_cores;
}

static ls_status read_profile(ls_forecast_request *r)
{
	const char *text = r->o->profile_text, *label = text ? "the measured profile" : r->o->profile;

	if (text)
		LS_TRY(ls_profile_parse(&r->profile, text, strlen(text), label));
	else
		LS_TRY(ls_profile_read(&r->profile, label));
	if (!(ls_profile_compute(&r->profile) > 0 && r->profile.step_s > 0))
		return ls_fail(LS_EFORMAT, "%s: layers or step_s take no time; record the profile again", label);
	return LS_OK;
}

ls_status ls_forecast_request_open(ls_forecast_request *r, const ls_forecast_options *options)
{
	*r = (ls_forecast_request){ .o = options };
	LS_TRY(check_options(options));
	LS_TRY(read_profile(r));
	r->described = options->cluster != NULL;
	if (r->described)
		LS_TRY(ls_cluster_read(&r->cluster, options->cluster));
	else
		LS_TRY(ls_cluster_of(&r->cluster, 1, options->devices > 0 ? options->devices : 1, LS_RATE_PAYLOAD));
	override(r);
	return read_lists(r);
}

void ls_forecast_request_close(ls_forecast_request *r)
{
	ls_profile_release(&r->profile);
	ls_cluster_release(&r->cluster);
}

ls_status ls_forecast_request_rate(const ls_forecast_request *r, ls_cluster *c, const char *rate)
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
