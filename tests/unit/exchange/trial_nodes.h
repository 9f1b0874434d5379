/*
 * trial_nodes.h - the nodes of a trial: threads of this process that take a case (trial.h) through a real exchange.
 */
#ifndef LS_TESTS_TRIAL_NODES_H
#define LS_TESTS_TRIAL_NODES_H

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "comm/collectives.h"
#include "exchange/exchange_internal.h"
#include "support/transport_threads.h"
#include "unit/exchange/trial.h"

/* All nodes are threads of this process, far more than cores: a wait is for a thread that has none. */
enum { CROWD = 1000 };

/* One node of a trial. */
typedef struct node {
	const trial *t;
	int rank, devices;
	ls_transport *transport;
	ls_comm *comm;
	ls_exchange *exchange;
	ls_team *team[DEVICES];
	float params[LIVE], master[LIVE], state[STATISTICS];
	float scale, ratios[LAYERS];
	int step;
	uint64_t sent; /* bytes */
	ls_status status;
} node;

/* Exact values apart from those that are read. */
static inline int has_master(const trial *t)
{
	return t->nodes > 1 && ls_strategy_needs_master(t->strategy, t->codec);
}

static inline void update(void *context, size_t begin, size_t end, const float *sums, int participant)
{
	node *n = context;
	size_t extra = ls_exchange_statistics_begin(n->exchange);
	float *master = has_master(n->t) ? n->master : n->params;

	(void)participant;
	for (size_t i = begin; i < end; i++) {
		if (i < n->t->reachable)
			master[i] -=
				(n->t->phased ? ratio_at(n->t, n->ratios, i) : n->scale) * bent(n->t, sums[i - begin]);
		else if (i >= extra && i - extra < n->t->statistics)
			n->state[i - extra] = 0.5f * n->state[i - extra] + sums[i - begin];
	}
}

static inline int is_clipping(const trial *t, int pass)
{
	return t->clipped && pass == 0;
}

static inline size_t count_norms(void *context, int pass, size_t begin, size_t end)
{
	const node *n = context;
	return is_clipping(n->t, pass) ? 1 : norms_of_runs(n->t, NULL, 0, begin, end, NULL, NULL);
}

static inline void take_norms(void *context, const ls_norm_block *b)
{
	const node *n = context;
	const float *master = has_master(n->t) ? n->master : n->params;
	if (is_clipping(n->t, b->pass))
		*b->norms = sum_squares(b->sums, b->end - b->begin);
	else
		norms_of_runs(n->t, master, n->scale, b->begin, b->end, b->sums, b->norms);
}

static inline void norms_complete(void *context, int pass, const double *norms, size_t count)
{
	node *n = context;
	if (is_clipping(n->t, pass))
		n->scale = scale_of(norms, count);
	else
		choose_ratios(n->t, norms, n->ratios);
}

static inline void dawdle(const trial *t, uint64_t what)
{
	uint64_t z = mix(t->seed ^ what);
	if (z % 16 == 0)
		usleep((unsigned)(z >> 8) % 60);
}

/* One micro-batch on one device: layers forward, then backward. */
typedef struct pass {
	node *n;
	int device;
	int64_t k, microbatch;
	float read[LIVE];
} pass;

static inline void compute(void *context, ls_member member)
{
	pass *p = context;
	const trial *t = p->n->t;
	float *grads = ls_exchange_slot(p->n->exchange, p->device, p->k);

	for (int l = 0; l < t->layers; l++) {
		size_t begin = t->cut[l], end = t->cut[l + 1];
		ls_exchange_need(p->n->exchange, p->device, begin, end, member);
		if (member.rank == 0)
			memcpy(p->read + begin, p->n->params + begin, (end - begin) * sizeof(float));
		dawdle(t, (uint64_t)(p->microbatch * 100 + l));
		ls_team_barrier(member);
	}
	for (int l = t->layers - 1; l >= 0; l--) {
		size_t begin = t->cut[l], end = t->cut[l + 1];
		int64_t first, last;
		ls_team_range(member, (int64_t)(end - begin), &first, &last);
		for (size_t i = begin + (size_t)first; i < begin + (size_t)last; i++)
			grads[i] = gradient(t, p->n->step, p->microbatch, i, p->read[i]);
		dawdle(t, (uint64_t)(p->microbatch * 1000 + l));
		ls_team_barrier(member);
		ls_exchange_ready(p->n->exchange, p->device, p->k, begin, end, member);
	}
}

static inline void finish(void *context, ls_member member)
{
	pass *p = context;
	ls_exchange_finish(p->n->exchange, p->device, member);
}

static inline void device_step(void *context, ls_member nodes)
{
	node *n = context;
	const int64_t *index;
	int64_t count = ls_exchange_microbatches(n->exchange, nodes.rank, &index);
	size_t begin = ls_exchange_statistics_begin(n->exchange);
	pass p = { .n = n, .device = nodes.rank };

	for (p.k = 0; p.k < count; p.k++) {
		p.microbatch = index[p.k];
		ls_team_run(n->team[nodes.rank], compute, &p);
		float *extra = ls_exchange_statistics(n->exchange, nodes.rank, p.k);
		for (size_t i = 0; i < n->t->statistics; i++)
			extra[i] = statistic(n->t, n->step, p.microbatch, i);
		ls_exchange_ready(n->exchange, nodes.rank, p.k, begin, begin + n->t->statistics,
				  (ls_member){ .size = 1 });
	}
	ls_team_run(n->team[nodes.rank], finish, &p);
}

/* What the steps of the trial take, and no more, in every other trial; else buffers for any steps. */
static inline ls_summation_buffers buffers_of(const node *n)
{
	const trial *t = n->t;
	ls_summation_buffers most = { 0 };
	ls_summation sum;

	if (t->seed % 2 == 0)
		return most;
	assert_int_equal(ls_summation_init(&sum, t->most, t->nodes, n->rank, n->devices, t->strategy->in_order), LS_OK);
	for (int s = 0; s < STEPS; s++) {
		ls_summation_assign(&sum, (uint64_t)s, t->microbatches[s], t->node_of[s], t->device_of[s]);
		most = ls_summation_buffers_max(most, ls_summation_buffers_of(&sum));
	}
	ls_summation_release(&sum);
	return most;
}

static inline ls_exchange_options options_of(node *n)
{
	const trial *t = n->t;
	return (ls_exchange_options){ .comm = n->comm,
				      .strategy = t->strategy,
				      .codec = t->codec,
				      .servers = t->servers,
				      .devices = n->devices,
				      .threads = t->threads,
				      .reachable = t->reachable,
				      .statistics = t->statistics,
				      .block = t->block,
				      .bucket = t->bucket,
				      .microbatches = t->most,
				      .scattered = t->scattered,
				      .sum_buffers = buffers_of(n),
				      .staleness = t->stale,
				      .norm_passes = t->clipped + t->phased,
				      .params = n->params,
				      .master = has_master(t) ? n->master : n->params,
				      .state = n->state,
				      .update = update,
				      .norm_count = t->phased ? count_norms : NULL,
				      .norms = take_norms,
				      .norms_complete = norms_complete,
				      .context = n };
}

/* How far this worker is ahead of the slowest one as it begins a step. */
static inline void note_step(node *n)
{
	trial *t = (trial *)n->t;
	int least = n->step;

	if (n->rank >= t->nodes - t->servers)
		return;
	atomic_store(&t->at[n->rank], n->step);
	for (int w = 0; w < t->nodes - t->servers; w++) {
		int at = atomic_load(&t->at[w]);
		least = at < least ? at : least;
	}
	int most = atomic_load(&t->most_ahead);
	while (n->step - least > most && !atomic_compare_exchange_weak(&t->most_ahead, &most, n->step - least))
		;
	if (t->stale && n->rank == 0)
		usleep(20000); /* the slow one */
}

/* All messages of a step can be awaited at once, or nodes could wait for each other in a circle. */
static inline ls_status check_incoming(const node *n)
{
	const ls_exchange *x = n->exchange;
	int messages = x->partition.buckets * (x->inputs + x->owners);

	if (!n->comm || messages <= ls_comm_incoming(n->comm))
		return LS_OK;
	return ls_fail(LS_EINVALID, "%d messages may be awaited, at most %d can be", messages,
		       ls_comm_incoming(n->comm));
}

static inline ls_status run_steps(node *n)
{
	ls_team *nodes = NULL;
	ls_exchange_options options = options_of(n);

	n->scale = 0.01f;
	memcpy(n->params, n->t->initial, sizeof(n->params));
	memcpy(n->master, n->t->initial, sizeof(n->master));
	LS_TRY(ls_exchange_new(&n->exchange, &options));
	LS_TRY(check_incoming(n));
	if (n->devices > 0)
		LS_TRY(ls_team_new_with(&nodes, &(ls_team_options){ .threads = n->devices, .crowd = CROWD }));
	for (int d = 0; d < n->devices; d++)
		LS_TRY(ls_team_new_with(&n->team[d], &(ls_team_options){ .threads = n->t->threads, .crowd = CROWD }));
	for (n->step = 0; n->step < STEPS; n->step++) {
		note_step(n);
		ls_exchange_assignment assign = { .step = (uint64_t)n->step + 5,
						  .microbatches = n->t->microbatches[n->step],
						  .node = n->t->node_of[n->step],
						  .device = n->t->device_of[n->step],
						  .scale = 1 };
		ls_exchange_begin(n->exchange, &assign);
		if (nodes)
			ls_team_run(nodes, device_step, n);
		if (!nodes || n->t->awaits & 1 << n->rank)
			LS_TRY(ls_exchange_await(n->exchange, assign.step));
	}
	ls_status status = ls_exchange_await(n->exchange, STEPS - 1 + 5);
	if (status == LS_OK)
		status = ls_comm_barrier(n->comm, "the end");
	for (int peer = 0; n->comm && peer < n->t->nodes; peer++)
		n->sent += ls_comm_traffic(n->comm, peer).bytes_sent;
	for (int d = 0; d < n->devices; d++)
		ls_team_free(n->team[d]);
	ls_team_free(nodes);
	return status;
}

static inline void *live(void *argument)
{
	node *n = argument;
	ls_comm_options options = { .transport = n->transport, .timeout = 20, .window = n->t->narrow };

	n->status = n->transport ? ls_comm_new(&n->comm, &options) : LS_OK;
	if (n->status == LS_OK)
		n->status = run_steps(n);
	if (n->status != LS_OK)
		fprintf(stderr, "node %d: %s\n", n->rank, ls_last_error());
	if (n->comm)
		ls_comm_free(n->comm, n->status != LS_OK ? ls_last_error() : NULL);
	ls_exchange_free(n->exchange);
	return NULL;
}

static inline node *run_trial(trial *t)
{
	node *nodes = calloc(NODES, sizeof(*nodes));
	ls_transport *transports[NODES] = { NULL };
	pthread_t threads[NODES];

	assert_in_range(t->nodes, 1, NODES);
	if (t->nodes > 1)
		assert_int_equal(ls_threads_transports(transports, t->nodes, t->narrow ? 400 : 4096, t->seed), LS_OK);
	for (int n = 0; n < t->nodes; n++) {
		nodes[n] = (node){ .t = t, .rank = n, .devices = t->devices[n], .transport = transports[n] };
		assert_int_equal(pthread_create(&threads[n], NULL, live, &nodes[n]), 0);
	}
	for (int n = 0; n < t->nodes; n++)
		pthread_join(threads[n], NULL);
	return nodes;
}

/* Returns the bytes all nodes sent. */
static inline uint64_t check_same_bits(trial *t)
{
	uint64_t sent = 0;
	node *nodes = run_trial(t);

	for (int n = 0; n < t->nodes - t->servers; n++) {
		if (nodes[n].status != LS_OK || memcmp(nodes[n].params, t->params, t->reachable * sizeof(float)) ||
		    memcmp(nodes[n].state, t->state, t->statistics * sizeof(float))) {
			describe(t);
			fail_msg("node %d differs from the serial run", n);
		}
	}
	for (int n = t->nodes - t->servers; n < t->nodes; n++)
		assert_memory_equal(nodes[n].state, t->state, t->statistics * sizeof(float)); /* servers know, too */
	for (int n = 0; n < t->nodes; n++)
		sent += nodes[n].sent;
	free(nodes);
	return sent;
}

/* Not the bits, but near, and the same on all workers. */
static inline void check_near(trial *t, float tolerance, const char *what)
{
	node *nodes = run_trial(t);
	for (int n = 0; n < t->nodes - t->servers; n++) {
		assert_int_equal(nodes[n].status, LS_OK);
		if (memcmp(nodes[n].params, nodes[0].params, t->reachable * sizeof(float)) != 0) {
			describe(t);
			fail_msg("%s: node %d differs from node 0", what, n);
		}
	}
	for (size_t i = 0; i < t->reachable; i++)
		if (!(nodes[0].params[i] - t->params[i] < tolerance && t->params[i] - nodes[0].params[i] < tolerance)) {
			describe(t);
			fail_msg("%s: parameter %zu is %g, expected %g", what, i, (double)nodes[0].params[i],
				 (double)t->params[i]);
		}
	free(nodes);
}

#endif
