/*
 * trainer.c - making a trainer: stores, devices, the exchange between them.
 */
#include "trainer/update.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Floats of gradient that are worked on together on one node. */
enum { BUCKET_ALONE = 256 * 1024 };

static int node_count(const ls_node_trainer_options *o)
{
	return o->comm ? ls_comm_size(o->comm) : 1;
}

size_t ls_node_trainer_stats_floats(const ls_node_trainer_options *o)
{
	return o->graph->params.buffers + LS_STAT_NODES + (size_t)node_count(o);
}

/* A micro-batch is a step, and no update waits for norms: there is nothing to exchange. */
static int updates_early(const ls_node_trainer_options *o, const ls_optimizer_kind *kind)
{
	return !o->comm && o->devices == 1 && o->microbatches == 1 && ls_node_trainer_norm_passes(o, kind) == 0;
}

/* Exact values apart from those that go over the wire. */
static int has_master(const ls_node_trainer_options *o)
{
	return o->comm && ls_strategy_needs_master(o->strategy, o->codec);
}

static void choose_reachable(const ls_node_trainer_options *o, const ls_optimizer_kind *kind)
{
	ls_graph_keep_unreachable(o->graph, ls_optimizer_needs_unreachable(kind, &o->hyper));
}

static size_t early_floats(const ls_node_trainer_options *o)
{
	size_t shared = o->backend->shared_grads(o->graph, o->microbatch);
	return shared > 0 ? shared : o->graph->params.reachable;
}

static ls_exchange_options exchange_options(const ls_node_trainer_options *o, const ls_optimizer_kind *kind)
{
	size_t bucket = o->comm ? LS_BUCKET_NODES : BUCKET_ALONE;
	ls_exchange_options x = { .comm = o->comm,
				  .strategy = o->strategy,
				  .codec = o->codec,
				  .servers = o->servers,
				  .staleness = o->staleness,
				  .devices = o->devices,
				  .threads = o->threads,
				  .reachable = o->graph->params.reachable,
				  .statistics = ls_node_trainer_stats_floats(o),
				  .block = LS_NORM_BLOCK,
				  .bucket = o->bucket > 0 ? o->bucket : bucket,
				  .microbatches = o->microbatches,
				  .sum_buffers = o->sum_buffers,
				  .norm_passes = ls_node_trainer_norm_passes(o, kind) };
	ls_node_trainer_set_hooks(&x, o);
	return x;
}

static ls_status make_stores(ls_node_trainer *t, const ls_node_trainer_options *o)
{
	const ls_param_table *table = &t->graph->params;

	t->stats_floats = ls_node_trainer_stats_floats(o);
	t->params = o->params;
	t->state = o->state;
	if (!t->params)
		LS_TRY(ls_floats_new(&t->params, table->total, "parameters"));
	if (!t->state)
		LS_TRY(ls_floats_new(&t->state, t->stats_floats, "running statistics"));
	t->buffers = t->state;
	t->master = t->params;
	if (has_master(o))
		LS_TRY(ls_floats_new(&t->master, table->total, "exact parameters"));
	for (int i = 0; i < t->kind->slots; i++)
		LS_TRY(ls_floats_new(&t->slots[i], table->reachable, "optimizer state"));
	if (o->ema > 0)
		LS_TRY(ls_floats_new(&t->average, table->total, "averaged parameters"));
	t->ratios = calloc(table->count + 1, sizeof(*t->ratios));
	return t->ratios ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the ratios of %zu parameters", table->count);
}

static ls_status make_records(ls_node_trainer *t, const ls_node_trainer_options *o)
{
	size_t nodes = (size_t)t->nodes, microbatches = (size_t)o->microbatches;

	for (int i = 0; i < 4; i++) {
		t->records[i].node_s = calloc(nodes, sizeof(double));
		t->records[i].microbatches = calloc(nodes, sizeof(int64_t));
		if (!t->records[i].node_s || !t->records[i].microbatches)
			return ls_fail(LS_EMEMORY, "no memory for the record of a step");
	}
	t->participants = o->devices * o->threads + 2;
	t->update_s = calloc((size_t)t->participants, sizeof(double));
	t->even_node = calloc(microbatches, sizeof(int));
	t->even_device = calloc(microbatches, sizeof(int));
	t->all_stats = calloc((1 + nodes) * LS_STAT_NODES, sizeof(*t->all_stats));
	if (!t->update_s || !t->even_node || !t->even_device || !t->all_stats)
		return ls_fail(LS_EMEMORY, "no memory for the record of a step");
	return LS_OK;
}

static ls_status load_driver(ls_driver *d)
{
	ls_node_trainer *t = d->trainer;
	ls_load_options load = { .profile = t->options.profile };

	memcpy(load.sizes, d->sizes, sizeof(load.sizes));
	return ls_devices_load(t->devices, d->device, t->graph, &load, &d->executor);
}

static ls_status make_driver(ls_node_trainer *t, int device)
{
	const ls_node_trainer_options *o = &t->options;
	ls_driver *d = &t->driver[device];

	d->trainer = t;
	d->device = device;
	d->sizes[0] = o->microbatch;
	d->sizes[1] = o->tails[0];
	d->sizes[o->tails[0] > 0 ? 2 : 1] = o->tails[1]; /* the list ends at its first zero */
	LS_TRY(ls_floats_new(&d->stats, t->graph->params.buffers, "micro-batch statistics"));
	return load_driver(d);
}

/* Where the list is full the oldest of the other sizes makes room. */
static void add_size(ls_driver *d, int64_t size)
{
	int count = 1;

	while (count < LS_SIZES_MAX && d->sizes[count] > 0)
		count++;
	if (count == LS_SIZES_MAX)
		memmove(d->sizes + 1, d->sizes + 2, (size_t)(--count - 1) * sizeof(*d->sizes));
	d->sizes[count] = size;
}

static int has_size(const ls_driver *d, int64_t size)
{
	for (int i = 0; i < LS_SIZES_MAX; i++)
		if (d->sizes[i] == size)
			return 1;
	return 0;
}

ls_status ls_node_trainer_expect(ls_node_trainer *t, int64_t microbatch)
{
	for (int i = 0; i < t->options.devices; i++) {
		ls_driver *d = &t->driver[i];
		if (has_size(d, microbatch) && d->executor)
			continue;
		if (!has_size(d, microbatch))
			add_size(d, microbatch);
		ls_executor_free(d->executor);
		d->executor = NULL;
		LS_TRY(load_driver(d));
	}
	return LS_OK;
}

static ls_status make_devices(ls_node_trainer *t, const ls_node_trainer_options *o)
{
	ls_devices_options devices = {
		.count = o->devices, .threads = o->threads, .pin = o->pin, .backend_options = o->backend_options
	};

	if (o->devices == 0)
		return LS_OK;
	LS_TRY(ls_devices_open(&t->devices, o->backend, &devices));
	t->driver = calloc((size_t)o->devices, sizeof(*t->driver));
	if (!t->driver)
		return ls_fail(LS_EMEMORY, "no memory for %d devices", o->devices);
	for (int i = 0; i < o->devices; i++)
		LS_TRY(make_driver(t, i));
	return LS_OK;
}

static ls_status make_early(ls_node_trainer *t, const ls_node_trainer_options *o)
{
	t->share_grads = o->backend->shared_grads(t->graph, o->microbatch) > 0;
	t->early_floats = early_floats(o);
	LS_TRY(ls_floats_new(&t->early_stats, t->stats_floats, "step statistics"));
	return ls_floats_new(&t->early_grads, t->early_floats, "gradients");
}

static ls_status make_exchange(ls_node_trainer *t, const ls_node_trainer_options *o)
{
	ls_exchange_options x = exchange_options(o, t->kind);

	x.params = t->params;
	x.master = t->master;
	x.state = t->state;
	x.context = t;
	return ls_exchange_new(&t->exchange, &x); /* last: from here on the communication thread works for it */
}

static ls_status make(ls_node_trainer *t, const ls_node_trainer_options *o)
{
	LS_TRY(ls_optimizer_find(o->optimizer, &t->kind));
	LS_TRY(ls_schedule_check(&o->schedule));
	choose_reachable(o, t->kind);
	LS_TRY(make_stores(t, o));
	LS_TRY(make_records(t, o));
	LS_TRY(make_devices(t, o));
	return updates_early(o, t->kind) ? make_early(t, o) : make_exchange(t, o);
}

ls_status ls_node_trainer_new(ls_node_trainer **out, const ls_node_trainer_options *o)
{
	ls_node_trainer *t = calloc(1, sizeof(*t));
	if (!t)
		return ls_fail(LS_EMEMORY, "no memory for a trainer");
	*t = (ls_node_trainer){ .options = *o,
				.graph = o->graph,
				.node = o->comm ? ls_comm_rank(o->comm) : 0,
				.nodes = node_count(o),
				.workers = node_count(o) - o->servers,
				.stats_lock = PTHREAD_MUTEX_INITIALIZER };
	ls_status status = make(t, o);
	if (status != LS_OK) {
		ls_node_trainer_free(t);
		return status;
	}
	*out = t;
	return LS_OK;
}

static void free_devices(ls_node_trainer *t)
{
	for (int i = 0; t->driver && i < t->options.devices; i++) {
		ls_executor_free(t->driver[i].executor);
		ls_floats_free(t->driver[i].stats, t->graph->params.buffers);
	}
	free(t->driver);
	ls_devices_close(t->devices);
}

static void free_stores(ls_node_trainer *t)
{
	const ls_param_table *table = &t->graph->params;

	free(t->ratios);
	ls_floats_free(t->average, table->total);
	for (int i = 0; i < LS_SLOTS_MAX; i++)
		ls_floats_free(t->slots[i], table->reachable);
	if (t->master != t->params)
		ls_floats_free(t->master, table->total);
	if (!t->options.state)
		ls_floats_free(t->state, t->stats_floats);
	if (!t->options.params)
		ls_floats_free(t->params, table->total);
}

void ls_node_trainer_free(ls_node_trainer *t)
{
	if (!t)
		return;
	ls_exchange_free(t->exchange);
	ls_floats_free(t->early_grads, t->early_floats);
	ls_floats_free(t->early_stats, t->stats_floats);
	free_devices(t);
	ls_floats_free(t->held, t->graph->params.reachable);
	free(t->held_norms_at);
	free(t->held_norms);
	free(t->all_stats);
	free(t->even_device);
	free(t->even_node);
	free(t->update_s);
	for (int i = 0; i < 4; i++) {
		free(t->records[i].microbatches);
		free(t->records[i].node_s);
	}
	free_stores(t);
	pthread_mutex_destroy(&t->stats_lock);
	free(t);
}

ls_status ls_node_trainer_init(ls_node_trainer *t)
{
	return ls_params_init(&t->graph->params, t->options.seed, t->params, t->buffers);
}

void ls_node_trainer_start_at(ls_node_trainer *t, uint64_t step, int64_t batches_tracked)
{
	t->step = t->first_step = step;
	t->batches_tracked = batches_tracked;
	if (t->master != t->params)
		memcpy(t->master, t->params, t->graph->params.total * sizeof(float));
	if (t->average && step == 0)
		memcpy(t->average, t->params, t->graph->params.total * sizeof(float));
}

ls_status ls_node_trainer_fingerprint(const ls_node_trainer *t, uint64_t *out)
{
	return ls_params_fingerprint(&t->graph->params, t->params, t->buffers, out);
}

/* x - x is 0 for a finite x and NaN for any other; their sums need no branch. */
static int all_finite(const float *x, size_t count)
{
	float sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += x[i] - x[i];
	return sum == 0;
}

int ls_node_trainer_finite(const ls_node_trainer *t)
{
	return all_finite(t->params, t->graph->params.total) && all_finite(t->buffers, t->graph->params.buffers);
}

double ls_node_trainer_update_s(const ls_node_trainer *t)
{
	int threads = t->options.devices * t->options.threads;
	double sum = 0;
	for (int i = 0; i < t->participants; i++)
		sum += t->update_s[i];
	return sum / (threads > 0 ? threads : 1);
}

/* A worker of servers has room for the optimizer's state, and uses it where it gathers a checkpoint. */
static int updates_nothing(const ls_node_trainer_options *o)
{
	return o->servers > 0 && ls_comm_rank(o->comm) < node_count(o) - o->servers;
}

ls_status ls_node_trainer_plan(const ls_node_trainer_options *o, ls_node_trainer_bytes *out)
{
	const ls_optimizer_kind *kind;
	const ls_param_table *table = &o->graph->params;

	LS_TRY(ls_optimizer_find(o->optimizer, &kind));
	choose_reachable(o, kind);
	ls_exchange_options x = exchange_options(o, kind);
	size_t stores = (has_master(o) ? 2 : 1) * table->total + ls_node_trainer_stats_floats(o);
	*out = (ls_node_trainer_bytes){ .params = (stores + (size_t)o->devices * table->buffers) * sizeof(float),
					.state = (size_t)kind->slots * table->reachable * sizeof(float),
					.average = o->ema > 0 ? table->total * sizeof(float) : 0 };
	if (updates_nothing(o) && !o->keeps)
		out->state = 0;
	if (updates_early(o, kind)) {
		out->params += ls_node_trainer_stats_floats(o) * sizeof(float);
		out->gradients = early_floats(o) * sizeof(float);
	} else {
		LS_TRY(ls_exchange_bytes(&x, &out->gradients));
	}
	if (o->devices == 0)
		return LS_OK;
	LS_TRY(o->backend->plan(o->graph, o->microbatch, o->threads, 0, &out->workspace));
	out->workspace *= (size_t)o->devices;
	return LS_OK;
}
