#include "trainer/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/names.h"
#include "cluster/launched.h"
#include "comm/collectives.h"
#include "comm/transport.h"
#include "optim/optimizer.h"

/* Steps that a worker of ps-async may be ahead of the slowest. */
enum { DEFAULT_STALENESS = 4 };

static const ls_setting_value pins[] = {
	[LS_PIN_AUTO] = { "auto", "when the threads are just as many as the cores" },
	[LS_PIN_ON] = { "on", "always" },
	[LS_PIN_OFF] = { "off", "never" },
};

static const ls_setting_value shares[] = {
	[LS_SHARE_AUTO] = { "auto", "by measured speeds" },
	[LS_SHARE_EQUAL] = { "equal", "by the number of devices" },
};

const ls_setting_value *ls_layout_pin_at(size_t i)
{
	return i < sizeof(pins) / sizeof(pins[0]) ? &pins[i] : NULL;
}

const ls_setting_value *ls_layout_share_at(size_t i)
{
	return i < sizeof(shares) / sizeof(shares[0]) ? &shares[i] : NULL;
}

static const char *pin_name_at(size_t i)
{
	const ls_setting_value *pin = ls_layout_pin_at(i);
	return pin ? pin->name : NULL;
}

static const char *share_name_at(size_t i)
{
	const ls_setting_value *share = ls_layout_share_at(i);
	return share ? share->name : NULL;
}

/* One number of "3:2:1"; *text moves behind it. */
static int parse_weight(const char **text, double *out)
{
	const char *end = *text + ls_decimal_span(*text);
	*out = strtod(*text, NULL);
	int good = end != *text && *out > 0 && *out <= 1e6 && (*end == '\0' || (*end == ':' && end[1] != '\0'));
	*text = *end == ':' ? end + 1 : end;
	return good;
}

/* "auto", "equal" or one positive number per worker; weight may be NULL. */
static ls_status parse_share(const char *text, ls_share *way, double *weight, int workers)
{
	const char *at = text;
	int count = 0;

	size_t named = ls_name_row(text, share_name_at);
	*way = named == LS_NO_ROW ? LS_SHARE_GIVEN : (ls_share)named;
	if (*way != LS_SHARE_GIVEN)
		return LS_OK;
	while (*at != '\0' || count == 0) {
		double number;
		if (!parse_weight(&at, &number))
			return ls_fail(
				LS_EINVALID,
				"options.share %s: give auto, equal, or one positive number per worker as in 3:2",
				text);
		if (weight && count < workers)
			weight[count] = number;
		count++;
	}
	if (weight && count != workers)
		return ls_fail(LS_EINVALID, "options.share %s has %d number%s for %d worker%s", text, count,
			       ls_plural((uint64_t)count, "s"), workers, ls_plural((uint64_t)workers, "s"));
	return LS_OK;
}

typedef struct choices {
	const ls_strategy *strategy;
	const ls_codec *codec;
	int pin;
	ls_share share;
} choices;

/* Workers of ps-async have no common step: there are no norms of its whole gradient, which clipping and LAMB need. */
static ls_status check_async(const ls_train_options *o)
{
	const ls_optimizer_kind *kind = NULL;

	if (o->clip_norm > 0)
		return ls_fail(LS_EINVALID,
			       "options.clip_norm does not work with options.strategy ps-async: workers have no common "
			       "gradient whose norm could be clipped; use strategy ps");
	LS_TRY(ls_optimizer_find(o->optimizer, &kind));
	if (!kind->direction)
		return LS_OK;
	return ls_fail(LS_EINVALID,
		       "options.optimizer %s does not work with options.strategy ps-async: workers have no common step "
		       "to take norms of; use strategy ps, or optimizer adamw",
		       kind->name);
}

static ls_status read_choices(const ls_train_options *o, choices *c)
{
	size_t pin = 0;

	LS_TRY(ls_strategy_find(o->strategy, &c->strategy));
	LS_TRY(ls_wire_find(o->wire, &c->codec));
	LS_TRY(ls_name_find("way to pin", o->pin, pin_name_at, &pin));
	LS_TRY(parse_share(o->share, &c->share, NULL, 0));
	c->pin = (int)pin;
	if (c->strategy->synchronous && o->staleness > 0)
		return ls_fail(LS_EINVALID, "options.staleness needs options.strategy ps-async: %s waits for all nodes",
			       o->strategy);
	if (!c->strategy->info.has_servers && o->servers > 0)
		return ls_fail(LS_EINVALID,
			       "options.servers needs options.strategy ps or ps-async: %s has no parameter servers",
			       o->strategy);
	if (!c->strategy->encodes && !c->codec->exact)
		return ls_fail(LS_EINVALID, "options.strategy %s sums fp32; leave out options.wire %s", o->strategy,
			       o->wire);
	return c->strategy->synchronous ? LS_OK : check_async(o);
}

ls_status ls_layout_check(const ls_train_options *options)
{
	choices ignored = { 0 };
	return read_choices(options, &ignored);
}

static ls_status count_nodes(ls_layout *l, const ls_train_options *o)
{
	l->nodes = l->comm ? ls_comm_size(l->comm) : 1;
	l->node = l->comm ? ls_comm_rank(l->comm) : 0;
	l->servers = !l->strategy->info.has_servers ? 0 : o->servers > 0 ? (int)o->servers : 1;
	if (l->servers >= l->nodes)
		return ls_fail(LS_EINVALID,
			       "%d parameter server%s on %d node%s: no node would be left to compute; start more nodes "
			       "or use options.strategy allreduce",
			       l->servers, ls_plural((uint64_t)l->servers, "s"), l->nodes,
			       ls_plural((uint64_t)l->nodes, "s"));
	return LS_OK;
}

/* A launcher that was given "a:3,b:2" passes all numbers to every node; else each has its own options.devices. 0: not
 * known before ls_layout_fit(). */
static ls_status asked_devices(const ls_layout *l, const ls_train_options *o, int *out)
{
	int given = 0;

	if (l->comm)
		LS_TRY(ls_mpi_launched_devices(l->node, &given));
	*out = ls_layout_is_server(l) ? 0 : given > 0 ? given : (int)o->devices;
	return LS_OK;
}

/* Devices: one per core, but no more than have a micro-batch when workers get equal shares, and none cut by a border
 * between NUMA domains where that can be. Threads: what is left of the cores. Neither changes the trained bits. */
static void choose_devices(ls_layout *l, int64_t micro_batches)
{
	int cores = ls_pin_cores(), workers = l->nodes - l->servers;

	if (l->devices == 0 && micro_batches > 0) {
		ls_pin_default_here((micro_batches + workers - 1) / workers, &l->devices, &l->threads);
		return;
	}
	int64_t devices = l->devices > 0 ? l->devices : cores / (l->threads > 0 ? l->threads : 1);
	if (micro_batches > 0 && devices > micro_batches) {
		l->unused_devices = (int)(devices - micro_batches);
		devices = micro_batches;
	}
	l->devices = devices < 1 ? 1 : (int)devices;
	if (l->threads == 0)
		l->threads = cores > l->devices ? cores / l->devices : 1;
}

void ls_layout_fit(ls_layout *l, int64_t micro_batches)
{
	if (ls_layout_is_server(l)) {
		l->threads = l->threads > 0 ? l->threads : 1;
		return;
	}
	choose_devices(l, micro_batches);
	l->threads = l->threads < LS_THREADS_MAX ? l->threads : LS_THREADS_MAX;
}

static ls_status count_devices(ls_layout *l, const ls_train_options *o)
{
	LS_TRY(asked_devices(l, o, &l->devices));
	l->devices_of = calloc((size_t)l->nodes, sizeof(*l->devices_of));
	l->weight = calloc((size_t)l->nodes, sizeof(*l->weight));
	if (!l->devices_of || !l->weight)
		return ls_fail(LS_EMEMORY, "no memory for the layout of %d nodes", l->nodes);
	return parse_share(o->share, &l->share, l->weight, l->nodes - l->servers);
}

ls_status ls_layout_init(ls_layout *out, const ls_train_options *options, ls_comm *comm)
{
	choices c = { 0 };
	*out = (ls_layout){ .comm = comm, .threads = (int)options->threads };
	ls_status status = read_choices(options, &c);
	out->strategy = c.strategy;
	if (status == LS_OK)
		status = count_nodes(out, options);
	if (status == LS_OK)
		status = count_devices(out, options);
	if (status != LS_OK) {
		ls_layout_release(out);
		return status;
	}
	out->pin = (ls_pin_mode)c.pin;
	out->codec = c.codec;
	out->strategy = comm ? c.strategy : &ls_strategy_local;
	out->staleness = options->staleness > 0 ? (int)options->staleness : DEFAULT_STALENESS;
	return LS_OK;
}

ls_status ls_layout_meet(ls_layout *l)
{
	LS_TRY(ls_comm_allgather(l->comm, &l->devices, sizeof(l->devices), l->devices_of, "number of devices"));
	for (int i = 0; i < l->nodes; i++) {
		l->all_devices += l->devices_of[i];
		if (l->share != LS_SHARE_GIVEN)
			l->weight[i] = l->devices_of[i];
	}
	return LS_OK;
}

void ls_layout_assign(const ls_layout *l, const int64_t *cut, int64_t *device_cut, int *node, int *device)
{
	for (int n = 0; n < l->nodes; n++)
		for (int64_t i = cut[n]; i < cut[n + 1]; i++) {
			node[i] = n;
			device[i] = 0;
		}
	if (l->devices > 0)
		ls_assign_devices(cut[l->node], cut[l->node + 1], l->devices, device_cut);
	for (int d = 0; d < l->devices; d++)
		for (int64_t i = device_cut[d]; i < device_cut[d + 1]; i++)
			device[i] = d;
}

/* Memory to assign one step, as it is assigned at the beginning. */
typedef struct trial_step {
	ls_assigner assigner;
	ls_summation sum;
	int64_t *cut, *device_cut;
	int *node, *device;
} trial_step;

static ls_status trial_init(trial_step *t, const ls_layout *l, int64_t microbatches)
{
	*t = (trial_step){ .cut = calloc((size_t)l->nodes + 1, sizeof(*t->cut)),
			   .device_cut = calloc((size_t)l->devices + 1, sizeof(*t->device_cut)),
			   .node = calloc((size_t)microbatches + 1, sizeof(*t->node)),
			   .device = calloc((size_t)microbatches + 1, sizeof(*t->device)) };
	if (!t->cut || !t->device_cut || !t->node || !t->device)
		return ls_fail(LS_EMEMORY, "no memory to plan steps of %lld micro-batches", (long long)microbatches);
	LS_TRY(ls_assigner_init(&t->assigner, l->nodes, l->devices_of, l->weight, 0));
	return ls_summation_init(&t->sum, microbatches, l->nodes, l->node, l->devices, l->strategy->in_order);
}

static void trial_release(trial_step *t)
{
	ls_summation_release(&t->sum);
	ls_assigner_release(&t->assigner);
	free(t->device);
	free(t->node);
	free(t->device_cut);
	free(t->cut);
}

static ls_summation_buffers trial_buffers(trial_step *t, const ls_layout *l, int64_t microbatches)
{
	if (microbatches == 0)
		return (ls_summation_buffers){ 0 };
	ls_assigner_assign(&t->assigner, microbatches, t->cut);
	ls_layout_assign(l, t->cut, t->device_cut, t->node, t->device);
	ls_summation_assign(&t->sum, 0, microbatches, t->node, t->device);
	return ls_summation_buffers_of(&t->sum);
}

ls_status ls_layout_sum_buffers(const ls_layout *l, int64_t microbatches, int64_t last, ls_summation_buffers *first,
				ls_summation_buffers *most)
{
	trial_step t;
	int workers = l->nodes - l->servers;
	ls_status status = trial_init(&t, l, microbatches);

	if (status == LS_OK) {
		*first = ls_summation_buffers_max(trial_buffers(&t, l, microbatches), trial_buffers(&t, l, last));
		*most = *first;
		if (l->share == LS_SHARE_AUTO && workers > 1)
			*most = ls_summation_buffers_max(*first,
							 ls_summation_buffers_any(microbatches, workers, l->devices));
	}
	trial_release(&t);
	return status;
}

/* The largest micro-batch that divides the global batch and keeps all devices busy in steps of `step` samples. 0: none
 * has more than one sample, which would be too few for batch normalisation. */
static int64_t find_microbatch(int64_t global_batch, int64_t step, int64_t devices)
{
	for (int64_t microbatch = step / devices + 1; microbatch > 1; microbatch--)
		if (global_batch % microbatch == 0 && (step + microbatch - 1) / microbatch >= devices)
			return microbatch;
	return 0;
}

void ls_layout_warn_idle(const ls_layout *l, int64_t global_batch, int64_t microbatch, uint64_t samples, int resumed)
{
	int64_t step = samples < (uint64_t)global_batch ? (int64_t)samples : global_batch;
	int64_t microbatches = (step + microbatch - 1) / microbatch, devices = l->all_devices + l->unused_devices,
		idle = devices - microbatches;
	char advice[80];

	if (idle <= 0)
		return;
	int64_t better = resumed ? 0 : find_microbatch(global_batch, step, devices);
	if (better > 0)
		snprintf(advice, sizeof(advice), "use options.micro_batch %lld, which changes the trained bits",
			 (long long)better);
	else
		snprintf(advice, sizeof(advice), "use fewer devices%s", resumed ? "" : " or a larger batch");
	ls_log_warning(
		"%lld of %lld devices %s no micro-batch to compute: a step of %lld sample%s is %lld micro-batch%s of "
		"%lld; %s",
		(long long)idle, (long long)devices, idle == 1 ? "has" : "have", (long long)step,
		ls_plural((uint64_t)step, "s"), (long long)microbatches, ls_plural((uint64_t)microbatches, "es"),
		(long long)(step < microbatch ? step : microbatch), advice);
}

void ls_layout_release(ls_layout *layout)
{
	free(layout->weight);
	free(layout->devices_of);
	*layout = (ls_layout){ 0 };
}

void ls_layout_note_modes(const ls_layout *l)
{
	static const char same[] = "the trained bits are not those of other layouts";

	if (!l->comm)
		return;
	if (!l->codec->exact)
		ls_log_note("wire %s rounds what goes between nodes: %s", l->codec->wire, same);
	if (!l->strategy->synchronous)
		ls_log_note("strategy ps-async lets workers run up to %d steps ahead: %s, nor of another run",
			    l->staleness, same);
	else if (!l->strategy->info.keeps_bits)
		ls_log_note("strategy mpi sums in the MPI library's order: %s", same);
}
