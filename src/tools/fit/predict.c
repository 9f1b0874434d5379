/*
 * predict.c - a row becomes a cluster, whose nodes have the speeds that their hosts showed alone, and is simulated.
 *
 * Other trainers are assumed to exchange after backward, in buckets of 25 MB as PyTorch does, to send all weights, and
 * to compute with devices that have their own memory. Rows of a sweep are Lockstep's own: overlap, its buckets, CPUs.
 */
#include "tools/fit/predict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fit/calibration.h"
#include "tools/fit/shape.h"
#include "tools/forecast/interval.h"
#include "tools/forecast/simulate.h"

/* Other trainers' buckets, and links of accelerators that are this fast have little latency. */
enum { OTHERS_BUCKET = 25 << 20 };
#define FAST_GBIT 10
#define FAST_LATENCY_US 5

/* A cost that is known to be none: 0 would be "not known". */
#define NOTHING_S 1e-9

/* A rate beyond what the slowest host does alone, by far. */
#define BY_FAR 1.2

typedef struct prediction {
	const ls_fit_table *t;
	const ls_fit_point *p;
	const ls_fit_settings *s;
	ls_fit_prediction *out;
	const char **host;         /* (named) */
	int64_t named;             /* 1: all nodes are hosts of one kind */
	const ls_fit_point **base; /* (named) */
	ls_cluster cluster;
} prediction;

static ls_status give_up(prediction *g, const char *reason)
{
	g->out->why = reason ? reason : "no memory";
	return LS_OK;
}

#define GIVE_UP(g, ...) give_up(g, ls_arena_format((g)->t->arena, __VA_ARGS__))

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

static ls_status find_hosts(prediction *g)
{
	static const char *nameless[] = { "" };
	const ls_fit_point *p = g->p;

	g->host = nameless;
	g->named = 1;
	if (p->hosts[0] != '\0')
		g->named = ls_fit_hosts(g->t->arena, p->hosts, &g->host);
	if (g->named == 0)
		return GIVE_UP(g, "hosts '%s' is not a list of names", p->hosts);
	if (g->named != 1 && g->named != p->nodes)
		return GIVE_UP(g, "hosts '%s' are %" PRId64 ", devices '%s' are of %" PRId64 " nodes", p->hosts,
			       g->named, p->shape, p->nodes);
	return LS_OK;
}

static ls_status find_bases(prediction *g)
{
	const ls_fit_point *p = g->p;

	g->base = ls_arena_alloc(g->t->arena, (size_t)g->named * sizeof(*g->base));
	if (!g->base)
		return LS_EMEMORY;
	for (int64_t i = 0; i < g->named; i++) {
		g->base[i] = ls_fit_base(g->t, p, g->host[i]);
		if (!g->base[i])
			return GIVE_UP(g, "no row of one node for %s%s%s", ls_fit_job_name(g->t, p),
				       g->host[i][0] ? " on " : "", g->host[i]);
	}
	return LS_OK;
}

static const ls_fit_point *base_of(const prediction *g, int64_t node)
{
	return g->base[g->named > 1 ? node : 0];
}

/* Every device computes the same number of samples, so the slowest decides. */
static ls_status check_rate(prediction *g)
{
	double slowest = INFINITY;

	for (int64_t i = 0; i < g->named; i++)
		slowest = fmin(slowest, ls_fit_device_rate(g->base[i]));
	double ideal = slowest * (double)g->p->devices;
	if (g->p->rate <= BY_FAR * ideal)
		return LS_OK;
	return GIVE_UP(g,
		       "%s samples/s are %.2f times what %" PRId64 " devices as fast as its slowest do, %s each by "
		       "themselves: one of the rows is wrong",
		       ls_fit_rate_text(g->t, g->p->rate), g->p->rate / ideal, g->p->devices,
		       ls_fit_rate_text(g->t, slowest));
}

/* ---- cluster ----------------------------------------------------------------------------------------------------- */

static void set_link(const prediction *g, ls_machine_kind *kind, double gbit)
{
	kind->gbit_per_s = gbit * LS_RATE_PAYLOAD;
	kind->both_gbit_per_s = gbit * LS_RATE_BOTH;
	if (!g->t->is_sweep && gbit >= FAST_GBIT)
		kind->latency_us = FAST_LATENCY_US;
	if (g->s->latency_us >= 0)
		kind->latency_us = g->s->latency_us;
}

/* Emulated nodes that compute have cores of their own. */
static int64_t cores_of(const prediction *g)
{
	int64_t each = g->t->cores / (g->p->nodes + g->p->servers);
	return !g->p->emulated || g->p->replayed ? 0 : each > 0 ? each : 1;
}

static ls_machine_kind kind_of(const prediction *g, int64_t node, double gbit)
{
	const ls_fit_point *base = base_of(g, node);
	ls_machine_kind kind = ls_machine_kind_default();
	double inside;

	kind.devices = ls_fit_devices(g->p, node);
	kind.speed = ls_fit_device_rate(base) / ls_fit_device_rate(base_of(g, 0));
	inside = ls_fit_inside(g->t, base, kind.devices);
	/* in seconds of the profile's device, whose rate has the exchange in it where there is no row of one device */
	kind.inside_ms = 1e3 * fmax(inside, base->devices > 1 ? NOTHING_S : 0) * kind.speed;
	kind.cores = cores_of(g);
	set_link(g, &kind, gbit);
	return kind;
}

static int same_kind(const ls_machine_kind *a, const ls_machine_kind *b)
{
	return a->devices == b->devices && fabs(a->speed - b->speed) <= 1e-12 &&
	       fabs(a->inside_ms - b->inside_ms) <= 1e-12;
}

static void add_kind(ls_cluster *c, const ls_machine_kind *kind)
{
	if (c->kinds > 0 && same_kind(&c->kind[c->kinds - 1], kind))
		c->kind[c->kinds - 1].count++;
	else
		c->kind[c->kinds++] = *kind;
}

/* Kinds of nodes in order, and servers behind them. */
static ls_status make_cluster(prediction *g)
{
	ls_cluster *c = &g->cluster;
	double gbit = 1;

	if (g->p->nodes + g->p->servers > 1)
		LS_TRY(ls_rate_parse(g->p->link, &gbit));
	ls_cluster_init(c);
	LS_TRY(ls_cluster_make_kinds(c, (size_t)g->p->nodes + 1));
	c->kinds = 0;
	for (int64_t i = 0; i < g->p->nodes; i++) {
		ls_machine_kind kind = kind_of(g, i, gbit);
		add_kind(c, &kind);
	}
	if (g->p->servers > 0) {
		ls_machine_kind server = c->kind[0];
		server.count = g->p->servers;
		server.devices = 0;
		c->kind[c->kinds++] = server;
	}
	c->spread = g->named == 1 && g->p->nodes > 1 ? g->s->spread : 0;
	c->shared_cores = g->p->emulated && g->p->replayed ? g->t->cores : 0;
	if (!g->t->is_sweep) {
		c->copy_gb_per_s = 400;
		c->net_ns_per_byte = 0.01;
		c->message_us = 1;
	}
	return LS_OK;
}

/* ---- profile ----------------------------------------------------------------------------------------------------- */

/* The number behind an option of the command, "--seq-len 64"; 0: it was not given. */
static int option_of(const char *arguments, const char *option)
{
	const char *at = strstr(arguments, option);
	size_t length = strlen(option);

	while (at && at[length] != ' ' && at[length] != '=')
		at = strstr(at + length, option);
	return at ? atoi(at + length + 1) : 0;
}

static void set_if(int *field, int value)
{
	if (value > 0)
		*field = value;
}

/* Sweeps of earlier versions have it as --size. */
static int image_size(const char *arguments)
{
	int size = option_of(arguments, "--image-size");
	return size > 0 ? size : option_of(arguments, "--size");
}

static ls_model_options model_of(const prediction *g)
{
	ls_model_options m = g->t->model;
	const char *arguments = g->p->arguments;

	m.name = g->p->model;
	set_if(&m.channels, option_of(arguments, "--channels"));
	set_if(&m.height, image_size(arguments));
	set_if(&m.width, image_size(arguments));
	set_if(&m.classes, option_of(arguments, "--classes"));
	set_if(&m.text.tokens, option_of(arguments, "--seq-len"));
	set_if(&m.text.layers, option_of(arguments, "--layers"));
	set_if(&m.text.hidden, option_of(arguments, "--width"));
	set_if(&m.text.heads, option_of(arguments, "--heads"));
	set_if(&m.text.ffn, option_of(arguments, "--ffn"));
	return m;
}

static ls_status make_profile(const prediction *g, ls_profile *out)
{
	const ls_fit_point *base = base_of(g, 0);
	ls_shape_options o = { .model = model_of(g),
			       .batch = g->p->batch,
			       .threads = g->p->threads,
			       .step_s = (double)g->p->batch / ls_fit_device_rate(base),
			       .bytes = g->p->bytes,
			       .whole = !g->t->is_sweep };

	if (base->devices == 1)
		o.update_s = fmin(base->update_s, o.step_s / 2);
	return ls_shape_profile(out, &o);
}

/* ---- simulation -------------------------------------------------------------------------------------------------- */

static ls_status simulate(prediction *g, const ls_profile *profile)
{
	int64_t bucket = g->s->bucket_bytes > 0 ? g->s->bucket_bytes : g->t->is_sweep ? 0 : OTHERS_BUCKET;
	ls_scenario_options o = { .profile = profile,
				  .cluster = &g->cluster,
				  .servers = g->p->servers,
				  .bf16 = !strcmp(g->p->wire, "bf16"),
				  .bucket_bytes = bucket,
				  .microbatches = 1,
				  .replayed = g->p->replayed,
				  .after = !g->t->is_sweep };
	ls_scenario scenario;
	ls_simulated result;

	LS_TRY(ls_scenario_make(&scenario, &o));
	ls_status status = ls_simulate(&scenario, &result);
	ls_scenario_release(&scenario);
	if (status != LS_OK)
		return status;
	g->out->rate = result.samples_per_s;
	snprintf(g->out->bottleneck, sizeof(g->out->bottleneck), "%s", result.bottleneck);
	return LS_OK;
}

/* The slowest of N normal variates varies less than one of them: its standard deviation, relative to theirs. */
static double slowest_varies(int64_t nodes)
{
	return nodes < 2 ? 1 : fmin(0.826, 1.283 / sqrt(2 * log((double)nodes)));
}

/* A row without repeats is as far off as one-node rows are; so is the one that it is compared with. */
static double row_half(const prediction *g, const ls_fit_point *base)
{
	double degrees, scatter = ls_fit_scatter(g->t, &degrees);

	if (base->repeats > 1)
		return ls_interval_repeats(base->spread, base->repeats);
	return degrees > 0 ? ls_interval_student(degrees) * scatter * sqrt(2) : 0;
}

/* What is known of the variation of its inputs. */
static double measured_half(const prediction *g)
{
	double half = 0;

	for (int64_t i = 0; i < g->named; i++)
		half = fmax(half, row_half(g, g->base[i]));
	if (g->cluster.spread > 0)
		half = hypot(half, LS_INTERVAL_NORMAL * g->cluster.spread * slowest_varies(g->p->nodes));
	return half;
}

/* Whether the table has what a prediction of the row needs. */
static ls_status check(prediction *g)
{
	LS_TRY(find_hosts(g));
	if (!g->out->why)
		LS_TRY(find_bases(g));
	if (!g->out->why && g->p->rate > 0)
		LS_TRY(check_rate(g));
	if (!g->out->why && g->p->nodes + g->p->servers > 1 && g->p->link[0] == '\0')
		return GIVE_UP(g, "the rate of its links is not in the table, and none was given");
	return LS_OK;
}

static ls_status predict(prediction *g)
{
	ls_profile profile = { 0 };
	ls_status status = make_profile(g, &profile);

	if (status == LS_OK)
		status = make_cluster(g);
	if (status == LS_OK)
		status = simulate(g, &profile);
	if (status == LS_OK)
		g->out->half = measured_half(g);
	g->out->spread = g->cluster.spread;
	ls_profile_release(&profile);
	ls_cluster_release(&g->cluster);
	return status;
}

ls_status ls_fit_predict(const ls_fit_table *table, const ls_fit_point *point, const ls_fit_settings *settings,
			 ls_fit_prediction *out)
{
	prediction g = { .t = table, .p = point, .s = settings, .out = out };

	*out = (ls_fit_prediction){ 0 };
	LS_TRY(check(&g));
	if (out->why)
		return LS_OK;
	ls_status status = predict(&g);
	int is_about_row = status == LS_EINVALID || status == LS_EMISMATCH || status == LS_EUNSUPPORTED;
	return is_about_row ? GIVE_UP(&g, "%s", ls_last_error()) : status;
}
