/*
 * trainer.c - making a trainer: stores, devices, the exchange between them.
 */
#include "trainer/trainer_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Floats of gradient that go out together on several nodes, and are worked on together on one. */
enum { BUCKET_NODES = 256 * 1024, BUCKET_ALONE = 256 * 1024 };

static int node_count(const ls_trainer_options *o)
{
	return o->comm ? ls_comm_size(o->comm) : 1;
}

static size_t extra_floats(const ls_trainer_options *o)
{
	return o->graph->params.buffers + LS_EXTRA_NODES + (size_t)node_count(o);
}

/* Clipping measures the gradient, an optimizer with a norm pass what it makes of the gradient: in this order. */
static int rounds_of(const ls_trainer_options *o, const ls_optimizer_kind *kind)
{
	return (o->clip_norm > 0) + (kind->direction != NULL);
}

static int updates_early(const ls_trainer_options *o, const ls_optimizer_kind *kind)
{
	return !o->comm && o->devices == 1 && o->microbatches == 1 && rounds_of(o, kind) == 0;
}

/* Exact values apart from those that go over the wire. */
static int has_master(const ls_trainer_options *o)
{
	return o->comm && o->wire != LS_WIRE_FP32 && o->staleness == 0;
}

static void choose_live(const ls_trainer_options *o, const ls_optimizer_kind *kind)
{
	ls_graph_keep_dead(o->graph, ls_optimizer_needs_unreachable(kind, &o->hyper));
}

static size_t early_floats(const ls_trainer_options *o)
{
	size_t shared = ls_exec_shared_grads(o->graph, o->microbatch);
	return shared > 0 ? shared : o->graph->params.live;
}

static ls_exchange_options exchange_options(const ls_trainer_options *o, const ls_optimizer_kind *kind)
{
	size_t bucket = o->comm ? BUCKET_NODES : BUCKET_ALONE;
	return (ls_exchange_options){ .comm = o->comm,
				      .servers = o->servers,
				      .devices = o->devices,
				      .threads = o->threads,
				      .live = o->graph->params.live,
				      .extra = extra_floats(o),
				      .block = LS_NORM_BLOCK,
				      .bucket = o->bucket > 0 ? o->bucket : bucket,
				      .microbatches = o->microbatches,
				      .room = o->room,
				      .wire = o->wire,
				      .staleness = o->staleness,
				      .library_sum = o->library_sum,
				      .rounds = rounds_of(o, kind),
				      .update = ls_trainer_update,
				      .figures = ls_trainer_figures,
				      .measure = ls_trainer_measure,
				      .measured_all = ls_trainer_measured };
}

static ls_status make_stores(ls_trainer *t, const ls_trainer_options *o)
{
	const ls_param_table *table = &t->graph->params;

	t->extra = extra_floats(o);
	LS_TRY(ls_floats_new(&t->params, table->total, "parameters"));
	LS_TRY(ls_floats_new(&t->state, t->extra, "running statistics"));
	t->buffers = t->state;
	t->master = t->params;
	if (has_master(o))
		LS_TRY(ls_floats_new(&t->master, table->total, "exact parameters"));
	for (int i = 0; i < t->kind->slots; i++)
		LS_TRY(ls_floats_new(&t->slots[i], table->live, "optimizer state"));
	t->ratios = calloc(table->count + 1, sizeof(*t->ratios));
	return t->ratios ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the ratios of %zu parameters", table->count);
}

static ls_status make_notes(ls_trainer *t, const ls_trainer_options *o)
{
	size_t nodes = (size_t)t->nodes;

	for (int i = 0; i < 4; i++) {
		t->notes[i].node_s = calloc(nodes, sizeof(double));
		t->notes[i].microbatches = calloc(nodes, sizeof(int64_t));
		if (!t->notes[i].node_s || !t->notes[i].microbatches)
			return ls_fail(LS_EMEMORY, "no memory for the notes of a step");
	}
	t->participants = t->devices * t->threads + 2;
	t->update_s = calloc((size_t)t->participants, sizeof(double));
	t->assign_node = calloc((size_t)o->microbatches, sizeof(int));
	t->assign_device = calloc((size_t)o->microbatches, sizeof(int));
	if (!t->update_s || !t->assign_node || !t->assign_device)
		return ls_fail(LS_EMEMORY, "no memory for the notes of a step");
	return LS_OK;
}

static ls_status make_device(ls_trainer *t, int index, const ls_trainer_options *o)
{
	ls_device *d = &t->device[index];
	ls_exec_options exec = { .sizes = { o->microbatch, o->tails[0], o->tails[1] }, .profile = o->profile };

	d->trainer = t;
	d->index = index;
	d->team = t->teams.team[index];
	if (exec.sizes[1] == 0) { /* the list ends at its first zero */
		exec.sizes[1] = exec.sizes[2];
		exec.sizes[2] = 0;
	}
	LS_TRY(ls_floats_new(&d->stats, t->graph->params.buffers, "micro-batch statistics"));
	if (o->make_work)
		return o->make_work(o->work_context, d->team, o->microbatch, &d->work);
	exec.team = d->team;
	LS_TRY(ls_exec_new(&d->exec, t->graph, &exec));
	d->work = ls_work_of_exec(d->exec);
	return LS_OK;
}

static ls_status make_devices(ls_trainer *t, const ls_trainer_options *o)
{
	if (o->devices == 0)
		return LS_OK;
	LS_TRY(ls_teams_init(&t->teams, o->devices, o->threads, o->pin));
	t->device = calloc((size_t)o->devices, sizeof(*t->device));
	if (!t->device)
		return ls_fail(LS_EMEMORY, "no memory for %d devices", o->devices);
	for (int i = 0; i < o->devices; i++)
		LS_TRY(make_device(t, i, o));
	return LS_OK;
}

static ls_status make_exchange(ls_trainer *t, const ls_trainer_options *o)
{
	ls_exchange_options x = exchange_options(o, t->kind);

	if (t->update_early) {
		t->share_grads = ls_exec_shared_grads(t->graph, o->microbatch) > 0;
		t->grads_floats = early_floats(o);
		return ls_floats_new(&t->grads, t->grads_floats, "gradients");
	}
	x.params = t->params;
	x.master = t->master;
	x.state = t->state;
	x.act = o->act ? ls_trainer_act : NULL;
	x.context = t;
	t->all_sums = calloc((size_t)(1 + t->nodes) * LS_EXTRA_NODES, sizeof(*t->all_sums));
	if (!t->all_sums)
		return ls_fail(LS_EMEMORY, "no memory for the sums of nodes");
	return ls_exchange_new(&t->exchange, &x); /* last: from here on the communication thread works for it */
}

static ls_status make(ls_trainer *t, const ls_trainer_options *o)
{
	LS_TRY(ls_optimizer_find(o->optimizer, &t->kind));
	LS_TRY(ls_schedule_check(&o->schedule));
	choose_live(o, t->kind);
	t->update_early = updates_early(o, t->kind);
	LS_TRY(make_stores(t, o));
	LS_TRY(make_notes(t, o));
	LS_TRY(make_devices(t, o));
	return make_exchange(t, o);
}

ls_status ls_trainer_new(ls_trainer **out, const ls_trainer_options *o)
{
	ls_trainer *t = calloc(1, sizeof(*t));
	if (!t)
		return ls_fail(LS_EMEMORY, "no memory for a trainer");
	*t = (ls_trainer){ .graph = o->graph,
			   .node = o->comm ? ls_comm_rank(o->comm) : 0,
			   .nodes = node_count(o),
			   .devices = o->devices,
			   .threads = o->threads,
			   .library_sum = o->library_sum,
			   .staleness = o->staleness,
			   .workers = node_count(o) - o->servers,
			   .microbatch = o->microbatch,
			   .hyper = o->hyper,
			   .schedule = o->schedule,
			   .clip_norm = o->clip_norm,
			   .seed = o->seed,
			   .next = o->next,
			   .next_context = o->next_context,
			   .span = o->span,
			   .act = o->act,
			   .trace_context = o->trace_context };
	ls_status status = make(t, o);
	if (status != LS_OK) {
		ls_trainer_free(t);
		return status;
	}
	*out = t;
	return LS_OK;
}

static void free_devices(ls_trainer *t)
{
	for (int i = 0; t->device && i < t->devices; i++) {
		if (t->device[i].work.kind)
			t->device[i].work.kind->free(t->device[i].work.self);
		ls_floats_free(t->device[i].stats, t->graph->params.buffers);
	}
	free(t->device);
	ls_teams_release(&t->teams);
}

static void free_stores(ls_trainer *t)
{
	const ls_param_table *table = &t->graph->params;

	free(t->ratios);
	for (int i = 0; i < LS_SLOTS_MAX; i++)
		ls_floats_free(t->slots[i], table->live);
	if (t->master != t->params)
		ls_floats_free(t->master, table->total);
	ls_floats_free(t->state, t->extra);
	ls_floats_free(t->params, table->total);
}

void ls_trainer_free(ls_trainer *t)
{
	if (!t)
		return;
	free(t->all_sums);
	ls_exchange_free(t->exchange);
	ls_floats_free(t->grads, t->grads_floats);
	free_devices(t);
	free(t->assign_device);
	free(t->assign_node);
	free(t->update_s);
	for (int i = 0; i < 4; i++) {
		free(t->notes[i].microbatches);
		free(t->notes[i].node_s);
	}
	free_stores(t);
	free(t);
}

ls_status ls_trainer_init(ls_trainer *t)
{
	return ls_params_init(&t->graph->params, t->seed, t->params, t->buffers);
}

void ls_trainer_start_at(ls_trainer *t, uint64_t step, int64_t batches_tracked)
{
	t->step = t->first_step = step;
	t->batches_tracked = batches_tracked;
	if (t->master != t->params)
		memcpy(t->master, t->params, t->graph->params.total * sizeof(float));
}

ls_status ls_trainer_fingerprint(const ls_trainer *t, uint64_t *out)
{
	return ls_params_fingerprint(&t->graph->params, t->params, t->buffers, out);
}

/* x - x is 0 for a finite x and NaN for any other; sums of it need no branch. */
static int all_finite(const float *x, size_t count)
{
	float sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += x[i] - x[i];
	return sum == 0;
}

int ls_trainer_finite(const ls_trainer *t)
{
	return all_finite(t->params, t->graph->params.total) && all_finite(t->buffers, t->graph->params.buffers);
}

double ls_trainer_update_s(const ls_trainer *t)
{
	int threads = t->devices * t->threads;
	double sum = 0;
	for (int i = 0; i < t->participants; i++)
		sum += t->update_s[i];
	return sum / (threads > 0 ? threads : 1);
}

/* A worker of servers has room for the optimizer's state, and uses it where it gathers a checkpoint. */
static int updates_nothing(const ls_trainer_options *o)
{
	return o->servers > 0 && ls_comm_rank(o->comm) < node_count(o) - o->servers;
}

ls_status ls_trainer_plan(const ls_trainer_options *o, ls_trainer_bytes *out)
{
	const ls_optimizer_kind *kind;
	const ls_param_table *table = &o->graph->params;

	LS_TRY(ls_optimizer_find(o->optimizer, &kind));
	choose_live(o, kind);
	ls_exchange_options x = exchange_options(o, kind);
	size_t stores = (has_master(o) ? 2 : 1) * table->total + extra_floats(o);
	*out = (ls_trainer_bytes){ .params = (stores + (size_t)o->devices * table->buffers) * sizeof(float),
				   .gradients = early_floats(o) * sizeof(float),
				   .state = (size_t)kind->slots * table->live * sizeof(float) };
	if (updates_nothing(o) && !o->keeps)
		out->state = 0;
	if (!updates_early(o, kind))
		LS_TRY(ls_exchange_bytes(&x, &out->gradients));
	if (o->make_work || o->devices == 0)
		return LS_OK;
	LS_TRY(ls_exec_bytes(o->graph, o->microbatch, o->threads, 0, &out->workspace));
	out->workspace *= (size_t)o->devices;
	return LS_OK;
}
