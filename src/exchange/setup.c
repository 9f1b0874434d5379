/*
 * setup.c - an exchange, from options to memory: everything a step will need is allocated here.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "exchange/exchange_internal.h"

/* Looks before a wait sleeps: other nodes take milliseconds, and the communication thread needs the core. */
enum { SPINS = 50 };

/* Stores for the steps that were announced, or for any. */
static ls_summation_buffers buffers_of(const ls_exchange_options *o)
{
	int microbatches = (int)o->microbatches;

	if (o->sum_buffers.stores > 0 || o->sum_buffers.others > 0)
		return o->sum_buffers;
	if (o->scattered)
		return (ls_summation_buffers){ .stores = microbatches + 1,
					       .outputs = microbatches,
					       .others = microbatches };
	ls_summation_buffers any = ls_summation_buffers_any(o->microbatches, 1, 1);
	any.others = microbatches;
	return any;
}

static void arrange(ls_exchange *x)
{
	const ls_exchange_options *o = &x->o;
	ls_summation_buffers most = buffers_of(o);

	x->nodes = o->comm ? ls_comm_size(o->comm) : 1;
	x->node = o->comm ? ls_comm_rank(o->comm) : 0;
	x->strategy = x->nodes > 1 ? o->strategy : &ls_strategy_local;
	x->codec = x->strategy->encodes ? o->codec : &ls_codec_fp32;
	x->workers = x->nodes - o->servers;
	x->members = o->devices * o->threads;
	x->participants = x->updaters = x->members + 2;
	x->waiter = x->members + 1;
	x->spins = SPINS;
	x->slots = most.stores;
	x->outputs = most.outputs;
	x->rows = most.others;
	x->strategy->arrange(x);
	x->owner = ls_exchange_owner_index(x, x->node);
}

/*
 * Cut the vector. Buckets have the floats that were asked for, or more where the communication thread could not await
 * all partial sums and new values of a step at once. It must: a peer sends what is most urgent to it, and would wait
 * for messages to be taken that are not expected yet while those that are stay behind them. The same on all nodes.
 */
static ls_status cut(ls_exchange *x)
{
	enum { OTHERS = 64 }; /* norms, collectives, rounding */
	const ls_exchange_options *o = &x->o;
	size_t bucket = o->bucket > o->block ? o->bucket : o->block;

	if (x->nodes > 1) {
		int per_bucket = x->inputs + x->owners, most = ls_comm_incoming(o->comm) - OTHERS - x->nodes;
		int buckets = most / per_bucket - 3;
		if (buckets < 1)
			return ls_fail(LS_EUNSUPPORTED, "%d messages per bucket are more than can be awaited at once",
				       per_bucket);
		size_t least = o->reachable / (size_t)buckets + 1;
		bucket = bucket > least ? bucket : least;
	}
	LS_TRY(ls_partition_init(&x->partition, o->reachable, o->statistics, o->block, bucket, x->owners));
	if (x->nodes > 1 && x->partition.buckets > LS_BUCKETS_MAX)
		return ls_fail(LS_EINVALID,
			       "the gradient has %d buckets, and at most %d are possible: raise options.bucket_bytes",
			       x->partition.buckets, LS_BUCKETS_MAX);
	return LS_OK;
}

/* Whether new values of owner o's shard come to this node. Parameters are for workers; results of step statistics are
 * for servers, too, where there is a common step. */
static int values_come(const ls_exchange *x, int bucket, int o)
{
	return o == x->owner || x->node < x->workers ||
	       (ls_exchange_is_statistics(x, bucket) && x->strategy->synchronous);
}

static ls_status make_buckets(ls_exchange *x)
{
	size_t owners = (size_t)x->owners, shards = (size_t)x->partition.buckets * owners;

	x->bucket = calloc((size_t)x->partition.buckets, sizeof(*x->bucket));
	x->arrivals = calloc(shards, sizeof(*x->arrivals));
	x->comes = calloc(shards, 1);
	if (!x->bucket || !x->arrivals || !x->comes)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's buckets");
	for (int b = 0; b < x->partition.buckets; b++) {
		ls_bucket_state *s = &x->bucket[b];
		s->codec = ls_exchange_is_statistics(x, b) ? &ls_codec_fp32 : x->codec;
		s->arrivals = x->arrivals + (size_t)b * owners;
		s->comes = x->comes + (size_t)b * owners;
		for (int o = 0; o < x->owners; o++) {
			size_t begin, end;
			ls_partition_shard(&x->partition, b, o, &begin, &end);
			s->comes[o] = begin < end && values_come(x, b, o);
			if (o == x->owner) {
				s->begin = begin;
				s->end = end;
				s->own_offset = x->own;
				x->own += end - begin;
			}
		}
	}
	return LS_OK;
}

static void count_floats(ls_exchange *x)
{
	int computes = x->node < x->workers, expands = x->codec->decode || x->codec->unpack;
	int changes = x->all_gather.codec->encode_change != NULL;
	int sends = x->codec->encode || x->strategy->in_order; /* partial sums may need stores of their own */

	x->size = (ls_exchange_sizes){
		.stores = (size_t)(x->o.devices * x->slots),
		.outgoing = computes && sends ? (size_t)x->outputs : 0,
		.incoming = (size_t)x->rows * x->own,
		.kept = x->o.norm_passes > 0 ? x->own : 0,
		.change_out = changes ? x->own + 1 : 0,
		.change_in = changes ? x->partition.width + (size_t)x->owners : 0,
		.scratch = x->partition.block + ls_fold_scratch(x->o.microbatches),
		.expanded = expands ? (size_t)(x->rows + x->outputs) * x->partition.block : 0,
	};
}

/* Everything that sizes follow from; allocates nothing large. */
static ls_status count(ls_exchange *x)
{
	arrange(x);
	LS_TRY(cut(x));
	LS_TRY(make_buckets(x));
	LS_TRY(ls_all_gather_count(x));
	count_floats(x);
	return LS_OK;
}

static ls_status make_stores(ls_exchange *x)
{
	x->store = calloc(x->size.stores + 1, sizeof(*x->store));
	x->outgoing = calloc(x->size.outgoing + 1, sizeof(*x->outgoing));
	if (!x->store || !x->outgoing)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's stores");
	for (size_t i = 0; i < x->size.stores; i++)
		LS_TRY(ls_floats_new(&x->store[i], x->partition.width, "gradients of a device"));
	for (size_t i = 0; i < x->size.outgoing; i++)
		LS_TRY(ls_floats_new(&x->outgoing[i], x->partition.width, "gradients of a node"));
	return LS_OK;
}

static ls_status make_participants(ls_exchange *x)
{
	int stores = x->o.devices * x->slots, inputs = x->inputs > stores ? x->inputs : stores;

	x->part = calloc((size_t)x->participants, sizeof(*x->part));
	if (!x->part)
		return ls_fail(LS_EMEMORY, "no memory for the exchange's workers");
	for (int p = 0; p < x->participants; p++) {
		ls_participant *part = &x->part[p];
		LS_TRY(ls_floats_new(&part->sums, x->partition.block, "sums of a block"));
		LS_TRY(ls_floats_new(&part->scratch, x->size.scratch - x->partition.block, "scratch of sums"));
		part->inputs = calloc((size_t)inputs + 1, sizeof(*part->inputs));
		if (!part->inputs)
			return ls_fail(LS_EMEMORY, "no memory for the exchange's workers");
		if (x->size.expanded > 0)
			LS_TRY(ls_floats_new(&part->expanded, x->size.expanded, "decoded partial sums"));
	}
	return LS_OK;
}

static ls_status make_summations(ls_exchange *x)
{
	size_t microbatches = (size_t)x->o.microbatches;

	for (int i = 0; i < 2; i++) {
		LS_TRY(ls_summation_init(&x->summation[i], x->o.microbatches, x->nodes, x->node, x->o.devices,
					 x->strategy->in_order));
		x->node_of[i] = calloc(microbatches + 1, sizeof(int));
		x->device_of[i] = calloc(microbatches + 1, sizeof(int));
		if (!x->node_of[i] || !x->device_of[i])
			return ls_fail(LS_EMEMORY, "no memory for steps of %zu micro-batches", microbatches);
	}
	return LS_OK;
}

static int comm_work(void *context)
{
	ls_exchange *x = context;
	return ls_exchange_update_any_block(x, x->members);
}

static void comm_failed(void *context)
{
	ls_exchange_notify(context);
}

static ls_status make(ls_exchange *x)
{
	LS_TRY(count(x));
	LS_TRY(make_stores(x));
	LS_TRY(make_participants(x));
	LS_TRY(make_summations(x));
	LS_TRY(ls_worklist_init(&x->node_work, x->partition.buckets, x->members > 0 ? x->members : 1));
	LS_TRY(ls_worklist_init(&x->update_work, x->partition.buckets, x->updaters));
	LS_TRY(ls_norm_pass_init(x));
	if (x->strategy->init)
		LS_TRY(x->strategy->init(x));
	if (x->o.comm) {
		ls_comm_on_failure(x->o.comm, comm_failed, x);
		ls_comm_set_work(x->o.comm, comm_work, x);
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
		ls_floats_free(x->part[p].scratch, x->size.scratch - x->partition.block);
		ls_floats_free(x->part[p].sums, x->partition.block);
	}
	free(x->part);
}

static void free_stores(ls_exchange *x)
{
	for (size_t i = 0; x->outgoing && i < x->size.outgoing; i++)
		ls_floats_free(x->outgoing[i], x->partition.width);
	for (size_t i = 0; x->store && i < x->size.stores; i++)
		ls_floats_free(x->store[i], x->partition.width);
	free(x->outgoing);
	free(x->store);
}

/* What count() allocated. */
static void free_counted(ls_exchange *x)
{
	ls_all_gather_release(x);
	free(x->comes);
	free(x->arrivals);
	free(x->bucket);
	ls_partition_release(&x->partition);
}

void ls_exchange_free(ls_exchange *x)
{
	if (!x)
		return;
	if (x->strategy_state)
		x->strategy->release(x);
	ls_norm_pass_release(x);
	ls_reduce_scatter_release(x);
	ls_worklist_release(&x->update_work);
	ls_worklist_release(&x->node_work);
	for (int i = 0; i < 2; i++) {
		free(x->device_of[i]);
		free(x->node_of[i]);
		ls_summation_release(&x->summation[i]);
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
		size_t floats = (s->stores + s->outgoing) * x.partition.width + s->incoming + s->kept +
				(size_t)x.participants * (s->scratch + s->expanded);
		*bytes = floats * sizeof(float) + (s->change_out + s->change_in) * x.all_gather.codec->width +
			 (x.strategy->bytes ? x.strategy->bytes(&x) : 0);
	}
	free_counted(&x);
	return status;
}
