/*
 * make.c - an exchange, from options to memory: everything a step will need is taken here.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "exchange/inside.h"

/* Members wait for each other microseconds on one node, milliseconds for other nodes, whose communication thread needs
 * the core. */
enum { SPINS_ALONE = 20000, SPINS_SHARED = 50 };

/* A node's partial sums are all added up, where nothing depends on the tree any more. */
int ls_exchange_is_flat(const ls_exchange *x)
{
	return x->o.library_sum || x->o.staleness > 0;
}

/* Stores for the steps that were announced, or for any. */
static ls_round_room room_of(const ls_exchange *x)
{
	const ls_exchange_options *o = &x->o;
	int microbatches = (int)o->microbatches;

	if (o->room.stores > 0 || o->room.others > 0)
		return o->room;
	if (o->scattered)
		return (ls_round_room){ .stores = microbatches + 1, .outputs = microbatches, .others = microbatches };
	ls_round_room any = ls_round_room_any(o->microbatches, 1, 1);
	any.others = microbatches;
	return any;
}

static void count_parts(ls_exchange *x)
{
	const ls_exchange_options *o = &x->o;

	x->nodes = o->comm ? ls_comm_size(o->comm) : 1;
	x->node = o->comm ? ls_comm_rank(o->comm) : 0;
	x->o.library_sum = o->library_sum && x->nodes > 1;
	x->workers = x->nodes - o->servers;
	int flat = ls_exchange_is_flat(x);
	x->first_owner = o->library_sum ? x->node : o->servers > 0 ? x->workers : 0;
	x->owner = x->node >= x->first_owner ? x->node - x->first_owner : -1;
	x->members = o->devices * o->threads;
	x->participants = x->members + 2;
	ls_round_room room = room_of(x);
	int64_t partials = o->scattered ? o->microbatches : ls_round_room_any(o->microbatches, 1, 1).outputs;
	x->slots = room.stores;
	x->outputs = flat ? 1 : room.outputs;
	x->grain = x->nodes > 1 && !o->plain && !x->o.library_sum ? ls_pack_grain(o->block) : 0;
	x->rows = o->staleness > 0 ? x->workers : flat ? 0 : room.others;
	x->inputs = o->staleness > 0                          ? x->workers
		    : flat                                    ? 1
		    : o->microbatches < partials * x->workers ? (int)o->microbatches
							      : (int)(partials * x->workers);
}

static int owner_count(const ls_exchange *x)
{
	return x->o.library_sum ? 1 : x->o.servers > 0 ? x->o.servers : x->nodes;
}

/* Whether the node's partial sums can ever need stores of their own: else they are made in the devices'. */
static int has_outgoing(const ls_exchange *x)
{
	return x->nodes > 1 && x->node < x->workers && (x->o.wire == LS_WIRE_BF16 || ls_exchange_is_flat(x));
}

/* New values go back as differences. */
static int has_deltas(const ls_exchange *x)
{
	return x->o.wire == LS_WIRE_BF16 && x->nodes > 1 && !x->o.library_sum;
}

/* Partial sums must become floats, and all of them, before they are added. */
static int expands(const ls_exchange *x)
{
	return x->nodes > 1 && (x->o.wire == LS_WIRE_BF16 || x->grain > 0);
}

static void count_floats(ls_exchange *x)
{
	int owns_others = x->nodes > 1 && x->own > 0;

	x->size = (ls_exchange_sizes){ .stores = (size_t)(x->o.devices * x->slots),
				       .outgoing = has_outgoing(x) ? (size_t)x->outputs : 0,
				       .incoming = owns_others ? (size_t)x->rows * x->own : 0,
				       .summed = x->o.rounds > 0 ? x->own : 0,
				       .delta_out = has_deltas(x) ? x->own + 1 : 0,
				       .delta_in = has_deltas(x) ? x->plan.width + (size_t)x->plan.owners : 0,
				       .replies = ls_exchange_is_stale_server(x) ? (size_t)x->workers : 0,
				       .scratch = x->plan.block + ls_fold_scratch(x->o.microbatches),
				       .expanded = expands(x) ? (size_t)(x->rows + x->outputs) * x->plan.block : 0 };
}

static ls_status make_stores(ls_exchange *x)
{
	x->store = calloc(x->size.stores + 1, sizeof(*x->store));
	x->outgoing = calloc(x->size.outgoing + 1, sizeof(*x->outgoing));
	if (!x->store || !x->outgoing)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's stores");
	for (size_t i = 0; i < x->size.stores; i++)
		LS_TRY(ls_floats_new(&x->store[i], x->plan.width, "gradients of a device"));
	for (size_t i = 0; i < x->size.outgoing; i++)
		LS_TRY(ls_floats_new(&x->outgoing[i], x->plan.width, "gradients of a node"));
	if (x->size.incoming > 0)
		LS_TRY(ls_floats_new(&x->incoming, x->size.incoming, "gradients of other nodes"));
	if (x->size.summed > 0)
		LS_TRY(ls_floats_new(&x->summed, x->size.summed, "sums of gradients"));
	return LS_OK;
}

/* What `update` left for the extra floats is for everybody, servers included; but a server that answers workers one by
 * one has nothing to tell another. */
int ls_exchange_gets_results(const ls_exchange *x, int bucket)
{
	return bucket == x->plan.buckets - 1 && x->o.staleness == 0;
}

/* What this node owns of every bucket, and how many shards of new values come to it in a step. */
static ls_status make_buckets(ls_exchange *x)
{
	int owners = x->plan.owners, worker = x->node < x->workers;
	size_t shards = (size_t)x->plan.buckets * (size_t)owners;

	x->bucket = calloc((size_t)x->plan.buckets, sizeof(*x->bucket));
	x->begin_of = calloc(shards, sizeof(*x->begin_of));
	x->arrivals = calloc(shards, sizeof(*x->arrivals));
	x->comes = calloc(shards, 1);
	x->delta_floats = calloc((size_t)owners, sizeof(*x->delta_floats));
	if (!x->bucket || !x->begin_of || !x->arrivals || !x->comes || !x->delta_floats)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's buckets");
	for (int b = 0; b < x->plan.buckets; b++) {
		ls_bucket_state *s = &x->bucket[b];
		s->begin_of = x->begin_of + (size_t)b * (size_t)owners;
		s->arrivals = x->arrivals + (size_t)b * (size_t)owners;
		s->comes = x->comes + (size_t)b * (size_t)owners;
		for (int o = 0; o < owners; o++) {
			size_t begin, end;
			ls_partition_shard(&x->plan, b, o, &begin, &end);
			if (o == x->owner) {
				s->begin = begin;
				s->end = end;
				s->own_offset = x->own;
				x->own += end - begin;
				x->own_buckets += begin < end && b < x->plan.buckets - 1;
			}
			s->comes[o] = begin < end && (worker || o == x->owner || ls_exchange_gets_results(x, b));
			s->begin_of[o] = x->delta_floats[o];
			x->delta_floats[o] += end - begin;
		}
	}
	return LS_OK;
}

static ls_status make_deltas(ls_exchange *x)
{
	if (!has_deltas(x))
		return LS_OK;
	x->delta_out = calloc(x->own + 1, sizeof(*x->delta_out));
	x->delta_in = calloc((size_t)x->plan.owners, sizeof(*x->delta_in));
	if (!x->delta_out || !x->delta_in)
		return ls_fail(LS_EMEMORY, "no memory for the bf16 wire");
	for (int o = 0; o < x->plan.owners; o++) {
		x->delta_in[o] = calloc(x->delta_floats[o] + 1, sizeof(**x->delta_in));
		if (!x->delta_in[o])
			return ls_fail(LS_EMEMORY, "no memory for the bf16 wire");
	}
	return LS_OK;
}

static ls_status make_participants(ls_exchange *x)
{
	int inputs = x->inputs > x->o.devices * x->slots ? x->inputs : x->o.devices * x->slots;

	x->part = calloc((size_t)x->participants, sizeof(*x->part));
	if (!x->part)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's members");
	for (int p = 0; p < x->participants; p++) {
		ls_participant *part = &x->part[p];
		LS_TRY(ls_floats_new(&part->sums, x->plan.block, "sums of a block"));
		LS_TRY(ls_floats_new(&part->scratch, x->size.scratch - x->plan.block, "scratch of sums"));
		part->inputs = calloc((size_t)inputs + 1, sizeof(*part->inputs));
		if (!part->inputs)
			return ls_fail(LS_EMEMORY, "no memory for the exchange's members");
		if (x->size.expanded > 0)
			LS_TRY(ls_floats_new(&part->expanded, x->size.expanded, "expanded partial sums"));
	}
	return LS_OK;
}

static ls_status make_rounds(ls_exchange *x)
{
	size_t microbatches = (size_t)x->o.microbatches;

	for (int i = 0; i < 2; i++) {
		LS_TRY(ls_round_init(&x->rounds[i], x->o.microbatches, x->nodes, x->node, x->o.devices,
				     ls_exchange_is_flat(x)));
		x->node_of[i] = calloc(microbatches + 1, sizeof(int));
		x->device_of[i] = calloc(microbatches + 1, sizeof(int));
		if (!x->node_of[i] || !x->device_of[i])
			return ls_fail(LS_EMEMORY, "no memory to plan steps of %zu micro-batches", microbatches);
	}
	return LS_OK;
}

static int comm_work(void *context)
{
	ls_exchange *x = context;
	return ls_exchange_help(x, x->members);
}

static void comm_failed(void *context)
{
	ls_exchange_notify(context);
}

/*
 * Floats of a bucket: as many as asked for, or more where the communication thread could not await all partial sums and
 * new values of a step at once. It must: a peer sends what is most urgent to it, and would wait for messages to be
 * taken that are not expected yet while those that are stay behind them. The same on all nodes.
 */
static ls_status fit_bucket(const ls_exchange *x, size_t *bucket)
{
	enum { OTHERS = 64 }; /* norms, what is collected, rounding */
	int of_bucket = x->inputs + owner_count(x);
	*bucket = x->o.bucket > x->o.block ? x->o.bucket : x->o.block;
	if (x->nodes == 1 || !x->o.comm)
		return LS_OK;
	int room = ls_comm_incoming(x->o.comm) - OTHERS - x->nodes, most = room / of_bucket - 3;
	if (most < 1)
		return ls_fail(LS_EUNSUPPORTED, "%d messages for each bucket are more than can be awaited at once",
			       of_bucket);
	size_t least_floats = x->o.live / (size_t)most + 1;
	*bucket = *bucket > least_floats ? *bucket : least_floats;
	return LS_OK;
}

/* Everything that sizes follow from; takes nothing large. */
static ls_status count(ls_exchange *x)
{
	const ls_exchange_options *o = &x->o;
	size_t bucket;

	count_parts(x);
	LS_TRY(fit_bucket(x, &bucket));
	LS_TRY(ls_partition_init(&x->plan, o->live, o->extra, o->block, bucket, owner_count(x)));
	LS_TRY(make_buckets(x));
	count_floats(x);
	return LS_OK;
}

static ls_status make(ls_exchange *x)
{
	const ls_exchange_options *o = &x->o;

	LS_TRY(count(x));
	LS_TRY(make_stores(x));
	LS_TRY(make_deltas(x));
	LS_TRY(make_participants(x));
	LS_TRY(make_rounds(x));
	int updaters = x->nodes > 1 ? x->participants : x->members;
	x->spins = x->nodes == 1 && x->members <= sysconf(_SC_NPROCESSORS_ONLN) ? SPINS_ALONE : SPINS_SHARED;
	LS_TRY(ls_worklist_init(&x->gather, x->plan.buckets, x->members > 0 ? x->members : 1));
	LS_TRY(ls_worklist_init(&x->update, x->plan.buckets, updaters));
	x->summable = calloc((size_t)x->plan.buckets, 1);
	if (!x->summable)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's sums");
	LS_TRY(ls_exchange_make_marks(x));
	LS_TRY(ls_exchange_make_figures(x));
	LS_TRY(ls_exchange_make_outbox(x));
	LS_TRY(ls_stale_new(x));
	if (o->comm) {
		ls_comm_on_failure(o->comm, comm_failed, x);
		ls_comm_set_work(o->comm, comm_work, x);
	}
	return LS_OK;
}

ls_status ls_exchange_new(ls_exchange **out, const ls_exchange_options *options)
{
	ls_exchange *x = calloc(1, sizeof(*x));
	if (!x)
		return ls_fail(LS_EMEMORY, "no memory for the exchange");
	x->o = *options;
	pthread_mutex_init(&x->lock, NULL);
	pthread_mutex_init(&x->event_lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&x->event, &monotonic);
	pthread_condattr_destroy(&monotonic);
	ls_status status = make(x);
	if (status != LS_OK) {
		ls_exchange_free(x);
		return status;
	}
	*out = x;
	return LS_OK;
}

static void free_participants(ls_exchange *x)
{
	for (int p = 0; x->part && p < x->participants; p++) {
		ls_floats_free(x->part[p].expanded, x->size.expanded);
		free(x->part[p].inputs);
		ls_floats_free(x->part[p].scratch, x->size.scratch - x->plan.block);
		ls_floats_free(x->part[p].sums, x->plan.block);
	}
	free(x->part);
}

static void free_stores(ls_exchange *x)
{
	for (int o = 0; x->delta_in && o < x->plan.owners; o++)
		free(x->delta_in[o]);
	free(x->delta_in);
	free(x->delta_out);
	ls_floats_free(x->summed, x->size.summed);
	ls_floats_free(x->incoming, x->size.incoming);
	for (size_t i = 0; x->outgoing && i < x->size.outgoing; i++)
		ls_floats_free(x->outgoing[i], x->plan.width);
	for (size_t i = 0; x->store && i < x->size.stores; i++)
		ls_floats_free(x->store[i], x->plan.width);
	free(x->outgoing);
	free(x->store);
}

/* What count() took. */
static void free_counted(ls_exchange *x)
{
	free(x->delta_floats);
	free(x->comes);
	free(x->arrivals);
	free(x->begin_of);
	free(x->bucket);
	ls_partition_release(&x->plan);
}

void ls_exchange_free(ls_exchange *x)
{
	if (!x)
		return;
	ls_stale_free(x);
	ls_exchange_free_outbox(x);
	free(x->marks);
	free(x->summable);
	ls_worklist_release(&x->update);
	ls_worklist_release(&x->gather);
	for (int i = 0; i < 2; i++) {
		free(x->device_of[i]);
		free(x->node_of[i]);
		ls_round_release(&x->rounds[i]);
	}
	free_participants(x);
	free_stores(x);
	free_counted(x);
	pthread_cond_destroy(&x->event);
	pthread_mutex_destroy(&x->event_lock);
	pthread_mutex_destroy(&x->lock);
	free(x);
}

ls_status ls_exchange_bytes(const ls_exchange_options *options, size_t *bytes)
{
	ls_exchange x = { .o = *options };
	ls_status status = count(&x);
	const ls_exchange_sizes *s = &x.size;

	if (status == LS_OK) {
		size_t floats = (s->stores + s->outgoing) * x.plan.width + s->incoming + s->summed +
				s->replies * x.own + (size_t)x.participants * (s->scratch + s->expanded);
		*bytes = floats * sizeof(float) + (s->delta_out + s->delta_in) * sizeof(uint16_t);
	}
	free_counted(&x);
	return status;
}
