/*
 * The contract, on random cases: however leaves are dealt to nodes and devices, whoever owns what, and however the
 * threads and letters happen to run, every worker ends with the bits of a plain serial run.
 *
 * A case is a little model of layers whose gradients depend on the parameters as they were read, so that a stale
 * parameter, a lost piece or a sum in another order all show. Its update may be scaled by the norm of the gradient
 * (`clipped`), and depend on norms of whole layers (`phased`): one round of measuring for each.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exchange/collect.h"
#include "exchange/exchange.h"

enum { NODES = 7, DEVICES = 4, LEAVES = 33, STEPS = 4, LAYERS = 6, LIVE = 1200, EXTRA = 40 };

typedef struct trial {
	uint64_t seed;
	int nodes, servers, devices[NODES], threads, layers, clipped, phased, scattered, wire_bf16, library, stale;
	int sparse; /* eighths of the gradient that are zero, and one; 0: gradients are not made so */
	int alike;  /* and of all leaves the same ones */
	int nans, plain;
	size_t span;                        /* floats that are zero together */
	_Atomic(int) at[NODES], most_ahead; /* stale: rounds begun; how far apart they were */
	int64_t most, leaves[STEPS];
	size_t live, extra, block, bucket, cut[LAYERS + 1];
	int node_of[STEPS][LEAVES], device_of[STEPS][LEAVES];
	float initial[LIVE];
	float params[LIVE], state[EXTRA]; /* of the serial run */
} trial;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ (x >> 32);
}

static uint64_t draw(uint64_t *state)
{
	return mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

static int below(uint64_t *state, int limit)
{
	return (int)(draw(state) % (uint64_t)limit);
}

/* A number in (-1, 1) with a full mantissa. */
static float noise(uint64_t a, uint64_t b, uint64_t c)
{
	return (float)((double)(mix(mix(mix(a) ^ b) ^ c) >> 11) / 4503599627370496.0 - 1.0);
}

/* What a sparse gradient has instead of a number here: zero, -0.0 of all leaves, or NaN; 1: nothing. */
static float hole(const trial *t, int step, int64_t leaf, size_t at)
{
	uint64_t where = mix(t->seed ^ (uint64_t)step << 32 ^ at / t->span);
	if (t->nans && mix(t->seed + at + (uint64_t)(leaf * 4096)) % 400 == 0)
		return NAN;
	if ((int)(mix(where + (t->alike ? 0 : (uint64_t)leaf)) % 8) >= t->sparse - 1)
		return 1;
	return mix(t->seed + 5 * at) % 64 == 0 ? -0.0f : 0.0f;
}

static float gradient(const trial *t, int step, int64_t leaf, size_t at, float param)
{
	if (t->sparse && hole(t, step, leaf, at) != 1)
		return hole(t, step, leaf, at);
	return noise(t->seed + (uint64_t)step, (uint64_t)leaf, at) + (t->stale ? 0 : 0.25f * param);
}

/* An update for which -0.0 is not 0. */
static float bent(const trial *t, float sum)
{
	return t->sparse && !t->stale && signbit(sum) ? sum - 0.125f : sum;
}

static float extra_sum(const trial *t, int step, int64_t leaf, size_t at)
{
	return noise(t->seed + 77 + (uint64_t)step, (uint64_t)leaf, at);
}

static double sum_squares(const float *sums, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += (double)sums[i] * sums[i];
	return sum;
}

/* What a block has of a layer. */
static int run_of(const trial *t, int layer, size_t begin, size_t end, size_t *first, size_t *last)
{
	*first = t->cut[layer] > begin ? t->cut[layer] : begin;
	*last = t->cut[layer + 1] < end ? t->cut[layer + 1] : end;
	return *first < *last;
}

/* The round of layers: sums become directions, and every run two figures. */
static size_t measure_runs(const trial *t, const float *params, float scale, size_t begin, size_t end, float *sums,
			   double *figures)
{
	size_t first, last, count = 0;
	for (int l = 0; l < t->layers; l++) {
		if (!run_of(t, l, begin, end, &first, &last))
			continue;
		for (size_t i = first; sums != NULL && i < last; i++)
			sums[i - begin] = scale * sums[i - begin] + 0.125f * params[i];
		if (sums != NULL) {
			figures[count] = sum_squares(params + first, last - first);
			figures[count + 1] = sum_squares(sums + (first - begin), last - first);
		}
		count += 2;
	}
	return count;
}

/* How far each layer goes, from the figures of all runs in block order. */
static void choose_ratios(const trial *t, const double *figures, float *ratios)
{
	double norms[LAYERS][2] = { { 0 } };
	size_t first, last;
	for (size_t begin = 0; begin < t->live; begin += t->block)
		for (int l = 0; l < t->layers; l++)
			if (run_of(t, l, begin, begin + t->block, &first, &last)) {
				norms[l][0] += *figures++;
				norms[l][1] += *figures++;
			}
	for (int l = 0; l < t->layers; l++)
		ratios[l] = (float)(0.05 * norms[l][0] / (norms[l][0] + norms[l][1]));
}

static float ratio_at(const trial *t, const float *ratios, size_t at)
{
	int layer = 0;
	while (at >= t->cut[layer + 1])
		layer++;
	return ratios[layer];
}

static float scale_of(const double *norms, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += norms[i];
	return (float)(1.0 / (1.0 + sum));
}

static float tree_sum(const trial *t, int step, int64_t first, int64_t width, size_t at, int extra)
{
	int64_t leaves = t->leaves[step];
	if (width == 1)
		return extra ? extra_sum(t, step, first, at) : gradient(t, step, first, at, t->params[at]);
	float left = tree_sum(t, step, first, width / 2, at, extra);
	return first + width / 2 < leaves ? left + tree_sum(t, step, first + width / 2, width / 2, at, extra) : left;
}

static void serial_step(trial *t, int step)
{
	int64_t width = 1;
	static float sums[LIVE], ratios[LAYERS];
	static double norms[LIVE], figures[4 * LIVE];
	size_t blocks = 0, runs = 0;

	while (width < t->leaves[step])
		width *= 2;
	for (size_t i = 0; i < t->live; i++)
		sums[i] = tree_sum(t, step, 0, width, i, 0);
	for (size_t i = 0; i < t->live; i += t->block)
		norms[blocks++] = sum_squares(sums + i, t->live - i < t->block ? t->live - i : t->block);
	float scale = t->clipped ? scale_of(norms, blocks) : 0.01f;
	for (size_t i = 0; t->phased && i < t->live; i += t->block)
		runs += measure_runs(t, t->params, scale, i, i + t->block < t->live ? i + t->block : t->live, sums + i,
				     figures + runs);
	choose_ratios(t, figures, ratios);
	for (size_t i = 0; i < t->live; i++)
		t->params[i] -= (t->phased ? ratio_at(t, ratios, i) : scale) * bent(t, sums[i]);
	for (size_t i = 0; i < t->extra; i++)
		t->state[i] = 0.5f * t->state[i] + tree_sum(t, step, 0, width, i, 1);
}

static void serial_run(trial *t)
{
	memcpy(t->params, t->initial, sizeof(t->params));
	memset(t->state, 0, sizeof(t->state));
	for (int step = 0; step < STEPS; step++)
		serial_step(t, step);
}

/* One node of a trial. */
typedef struct node {
	const trial *t;
	int rank, devices;
	ls_transport *transport;
	ls_courier *courier;
	ls_exchange *exchange;
	ls_team *team[DEVICES];
	float params[LIVE], master[LIVE], state[EXTRA];
	float scale, ratios[LAYERS];
	int step;
	uint64_t sent; /* bytes */
	ls_status status;
} node;

/* Exact values apart from those that are read. */
static int has_master(const trial *t)
{
	return t->wire_bf16 && !t->stale;
}

static void update(void *context, size_t begin, size_t end, const float *sums, int participant)
{
	node *n = context;
	size_t extra = ls_exchange_extra_begin(n->exchange);
	float *master = has_master(n->t) ? n->master : n->params;

	(void)participant;
	for (size_t i = begin; i < end; i++) {
		if (i < n->t->live)
			master[i] -=
				(n->t->phased ? ratio_at(n->t, n->ratios, i) : n->scale) * bent(n->t, sums[i - begin]);
		else if (i >= extra && i - extra < n->t->extra)
			n->state[i - extra] = 0.5f * n->state[i - extra] + sums[i - begin];
	}
}

static int is_clipping(const trial *t, int round)
{
	return t->clipped && round == 0;
}

static size_t count_figures(void *context, int round, size_t begin, size_t end)
{
	const node *n = context;
	return is_clipping(n->t, round) ? 1 : measure_runs(n->t, NULL, 0, begin, end, NULL, NULL);
}

static void measure(void *context, const ls_measuring *m)
{
	const node *n = context;
	const float *master = has_master(n->t) ? n->master : n->params;
	if (is_clipping(n->t, m->round))
		*m->figures = sum_squares(m->sums, m->end - m->begin);
	else
		measure_runs(n->t, master, n->scale, m->begin, m->end, m->sums, m->figures);
}

static void measured_all(void *context, int round, const double *figures, size_t count)
{
	node *n = context;
	if (is_clipping(n->t, round))
		n->scale = scale_of(figures, count);
	else
		choose_ratios(n->t, figures, n->ratios);
}

static void dawdle(const trial *t, uint64_t what)
{
	uint64_t z = mix(t->seed ^ what);
	if (z % 16 == 0)
		usleep((unsigned)(z >> 8) % 60);
}

/* One leaf on one device: layers forward, then backward. */
typedef struct pass {
	node *n;
	int device;
	int64_t k, leaf;
	float read[LIVE];
} pass;

static void compute(void *context, ls_member member)
{
	pass *p = context;
	const trial *t = p->n->t;
	float *grads = ls_exchange_slot(p->n->exchange, p->device, p->k);

	for (int l = 0; l < t->layers; l++) {
		size_t begin = t->cut[l], end = t->cut[l + 1];
		ls_exchange_need(p->n->exchange, p->device, begin, end, member);
		if (member.rank == 0)
			memcpy(p->read + begin, p->n->params + begin, (end - begin) * sizeof(float));
		dawdle(t, (uint64_t)(p->leaf * 100 + l));
		ls_team_barrier(member);
	}
	for (int l = t->layers - 1; l >= 0; l--) {
		size_t begin = t->cut[l], end = t->cut[l + 1];
		int64_t first, last;
		ls_team_range(member, (int64_t)(end - begin), &first, &last);
		for (size_t i = begin + (size_t)first; i < begin + (size_t)last; i++)
			grads[i] = gradient(t, p->n->step, p->leaf, i, p->read[i]);
		dawdle(t, (uint64_t)(p->leaf * 1000 + l));
		ls_team_barrier(member);
		ls_exchange_ready(p->n->exchange, p->device, p->k, begin, end, member);
	}
}

static void finish(void *context, ls_member member)
{
	pass *p = context;
	ls_exchange_finish(p->n->exchange, p->device, member);
}

static void device_step(void *context, ls_member crew)
{
	node *n = context;
	const int64_t *index;
	int64_t count = ls_exchange_leaves(n->exchange, crew.rank, &index);
	size_t begin = ls_exchange_extra_begin(n->exchange);
	pass p = { .n = n, .device = crew.rank };

	for (p.k = 0; p.k < count; p.k++) {
		p.leaf = index[p.k];
		ls_team_run(n->team[crew.rank], compute, &p);
		float *extra = ls_exchange_extra(n->exchange, crew.rank, p.k);
		for (size_t i = 0; i < n->t->extra; i++)
			extra[i] = extra_sum(n->t, n->step, p.leaf, i);
		ls_exchange_ready(n->exchange, crew.rank, p.k, begin, begin + n->t->extra, (ls_member){ .size = 1 });
	}
	ls_team_run(n->team[crew.rank], finish, &p);
}

static ls_exchange_options options_of(node *n)
{
	const trial *t = n->t;
	return (ls_exchange_options){ .courier = n->courier,
				      .servers = t->servers,
				      .devices = n->devices,
				      .threads = t->threads,
				      .live = t->live,
				      .extra = t->extra,
				      .block = t->block,
				      .bucket = t->bucket,
				      .leaves = t->most,
				      .scattered = t->scattered,
				      .wire = t->wire_bf16 ? LS_WIRE_BF16 : LS_WIRE_FP32,
				      .library_sum = t->library,
				      .staleness = t->stale,
				      .plain = t->plain,
				      .rounds = t->clipped + t->phased,
				      .params = n->params,
				      .master = has_master(t) ? n->master : n->params,
				      .state = n->state,
				      .update = update,
				      .figures = t->phased ? count_figures : NULL,
				      .measure = measure,
				      .measured_all = measured_all,
				      .context = n };
}

/* How far this worker is ahead of the slowest one as it begins a round. */
static void note_step(node *n)
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

static ls_status run_steps(node *n)
{
	ls_team *crew = NULL;
	ls_exchange_options options = options_of(n);

	n->scale = 0.01f;
	memcpy(n->params, n->t->initial, sizeof(n->params));
	memcpy(n->master, n->t->initial, sizeof(n->master));
	LS_TRY(ls_exchange_new(&n->exchange, &options));
	if (n->devices > 0)
		LS_TRY(ls_team_new(&crew, n->devices));
	for (int d = 0; d < n->devices; d++)
		LS_TRY(ls_team_new(&n->team[d], n->t->threads));
	for (n->step = 0; n->step < STEPS; n->step++) {
		note_step(n);
		ls_exchange_deal deal = { .step = (uint64_t)n->step + 5,
					  .leaves = n->t->leaves[n->step],
					  .node = n->t->node_of[n->step],
					  .device = n->t->device_of[n->step],
					  .scale = 1 };
		ls_exchange_begin(n->exchange, &deal);
		if (crew != NULL)
			ls_team_run(crew, device_step, n);
		else
			LS_TRY(ls_exchange_await(n->exchange, deal.step));
	}
	ls_status status = ls_exchange_await(n->exchange, STEPS - 1 + 5);
	if (status == LS_OK)
		status = ls_collect_meet(n->courier, "the end");
	for (int peer = 0; n->courier != NULL && peer < n->t->nodes; peer++)
		n->sent += ls_courier_traffic(n->courier, peer).bytes_sent;
	for (int d = 0; d < n->devices; d++)
		ls_team_free(n->team[d]);
	ls_team_free(crew);
	return status;
}

static void *live(void *argument)
{
	node *n = argument;
	ls_courier_options options = { .transport = n->transport, .timeout = 20 };

	n->status = n->transport != NULL ? ls_courier_new(&n->courier, &options) : LS_OK;
	if (n->status == LS_OK)
		n->status = run_steps(n);
	if (n->status != LS_OK)
		fprintf(stderr, "node %d: %s\n", n->rank, ls_last_error());
	if (n->courier != NULL)
		ls_courier_free(n->courier, n->status != LS_OK ? ls_last_error() : NULL);
	ls_exchange_free(n->exchange);
	return NULL;
}

/* Runs of leaves of random length, or leaves dealt one by one. */
static void deal(trial *t, uint64_t *rng, int step)
{
	int workers = t->nodes - t->servers;
	int64_t leaves = t->leaves[step];

	if (t->scattered) {
		for (int64_t i = 0; i < leaves; i++) {
			t->node_of[step][i] = below(rng, workers);
			t->device_of[step][i] = below(rng, t->devices[t->node_of[step][i]]);
		}
		return;
	}
	int cuts[NODES * DEVICES], total = 0, at = 0, who[NODES * DEVICES][2];
	for (int n = 0; n < workers; n++)
		for (int d = 0; d < t->devices[n]; d++) {
			who[total][0] = n;
			who[total][1] = d;
			cuts[total++] = below(rng, (int)leaves + 1);
		}
	for (int i = 0; i < total; i++)
		for (int j = i + 1; j < total; j++)
			if (cuts[j] < cuts[i]) {
				int swap = cuts[i];
				cuts[i] = cuts[j];
				cuts[j] = swap;
			}
	for (int64_t i = 0; i < leaves; i++) {
		while (at < total - 1 && cuts[at] <= i)
			at++;
		t->node_of[step][i] = who[at][0];
		t->device_of[step][i] = who[at][1];
	}
}

static void draw_trial(trial *t, uint64_t seed)
{
	uint64_t rng = seed;

	memset(t, 0, sizeof(*t));
	t->seed = seed;
	t->nodes = 1 + below(&rng, NODES);
	t->servers = below(&rng, 2) ? below(&rng, t->nodes < 4 ? t->nodes : 4) : 0;
	for (int n = 0; n < t->nodes - t->servers; n++)
		t->devices[n] = 1 + below(&rng, DEVICES);
	t->threads = 1 + (below(&rng, 4) == 0);
	t->scattered = below(&rng, 2);
	t->clipped = below(&rng, 3) == 0;
	t->phased = below(&rng, 3) == 0;
	t->block = 16u << below(&rng, 3);
	t->bucket = t->block * (1 + (size_t)below(&rng, 5));
	t->layers = 1 + below(&rng, LAYERS);
	for (int l = 0; l < t->layers; l++)
		t->cut[l + 1] = t->cut[l] + 16 * (1 + (size_t)below(&rng, 10));
	t->live = t->cut[t->layers] - (size_t)below(&rng, 16);
	t->cut[t->layers] = t->live;
	t->extra = 1 + (size_t)below(&rng, EXTRA);
	t->most = 1 + below(&rng, LEAVES);
	for (int s = 0; s < STEPS; s++) {
		t->leaves[s] = s == STEPS - 1 ? 1 + below(&rng, (int)t->most) : t->most; /* a tail */
		deal(t, &rng, s);
	}
	for (size_t i = 0; i < t->live; i++)
		t->initial[i] = noise(seed, 999, i);
}

static void describe(const trial *t)
{
	fprintf(stderr,
		"seed %llu: %d nodes, %d servers, %d threads, %lld leaves, live %zu, block %zu, bucket %zu, sparse "
		"%d%s%s%s\n",
		(unsigned long long)t->seed, t->nodes, t->servers, t->threads, (long long)t->most, t->live, t->block,
		t->bucket, t->sparse, t->scattered ? ", scattered" : "", t->clipped ? ", clipped" : "",
		t->phased ? ", two phases" : "");
}

static node *run_trial(trial *t)
{
	node *nodes = calloc((size_t)t->nodes, sizeof(*nodes));
	ls_transport *transports[NODES] = { NULL };
	pthread_t threads[NODES];

	if (t->nodes > 1)
		assert_int_equal(ls_threads_transports(transports, t->nodes, 4096, t->seed), LS_OK);
	for (int n = 0; n < t->nodes; n++) {
		nodes[n] = (node){ .t = t, .rank = n, .devices = t->devices[n], .transport = transports[n] };
		assert_int_equal(pthread_create(&threads[n], NULL, live, &nodes[n]), 0);
	}
	for (int n = 0; n < t->nodes; n++)
		pthread_join(threads[n], NULL);
	return nodes;
}

static uint64_t first_seed(void)
{
	const char *text = getenv("LS_TEST_SEED");
	return text != NULL ? strtoull(text, NULL, 10) : 20261115;
}

static int trial_count(void)
{
	const char *text = getenv("LS_TEST_TRIALS");
	return text != NULL ? atoi(text) : 300;
}

/* Returns the bytes all nodes sent. */
static uint64_t check_same_bits(trial *t)
{
	uint64_t sent = 0;
	node *nodes = run_trial(t);

	for (int n = 0; n < t->nodes - t->servers; n++) {
		if (nodes[n].status != LS_OK || memcmp(nodes[n].params, t->params, t->live * sizeof(float)) ||
		    memcmp(nodes[n].state, t->state, t->extra * sizeof(float))) {
			describe(t);
			fail_msg("node %d differs from the serial run", n);
		}
	}
	for (int n = t->nodes - t->servers; n < t->nodes; n++)
		assert_memory_equal(nodes[n].state, t->state, t->extra * sizeof(float)); /* servers know, too */
	for (int n = 0; n < t->nodes; n++)
		sent += nodes[n].sent;
	free(nodes);
	return sent;
}

static void test_same_bits(void **state)
{
	static trial t;
	uint64_t seed = first_seed();

	(void)state;
	print_message("seeds from %llu, %d cases\n", (unsigned long long)seed, trial_count());
	for (int i = 0; i < trial_count(); i++) {
		draw_trial(&t, seed + (uint64_t)i);
		serial_run(&t);
		check_same_bits(&t);
	}
}

/* Gradients with no, some, many and nothing but zeros, a few of them -0.0, and NaN. */
static void draw_sparse(trial *t, uint64_t seed)
{
	uint64_t rng = seed + 17;
	int zeros[] = { 0, 3, 6, 7, 8 };

	draw_trial(t, seed);
	t->sparse = 1 + zeros[below(&rng, 5)];
	t->alike = below(&rng, 3) > 0;
	t->nans = !t->clipped && !t->phased && below(&rng, 3) == 0;
	t->span = 16u << below(&rng, 4);
	t->block = 16u << below(&rng, 5);
	t->bucket = t->block * (1 + (size_t)below(&rng, 40));
}

static void test_sparse(void **state)
{
	static trial t;
	uint64_t seed = first_seed() + 4000, packed = 0, plain = 0;

	(void)state;
	print_message("seeds from %llu, %d cases\n", (unsigned long long)seed, trial_count() / 2);
	for (int i = 0; i < trial_count() / 2; i++) {
		draw_sparse(&t, seed + (uint64_t)i);
		serial_run(&t);
		uint64_t sent = check_same_bits(&t);
		if (i % 10 != 0)
			continue;
		t.plain = 1;
		packed += sent;
		plain += check_same_bits(&t);
	}
	print_message("%llu bytes, plain %llu\n", (unsigned long long)packed, (unsigned long long)plain);
	assert_true(packed < plain * 9 / 10);
}

/* bf16 has bits of its own: the same, packed or not. */
static void test_sparse_bf16(void **state)
{
	static trial t;
	(void)state;
	for (uint64_t i = 0; i < 60; i++) {
		draw_sparse(&t, first_seed() + 5000 + i);
		t.wire_bf16 = t.nodes > 1;
		node *packed = run_trial(&t);
		t.plain = 1;
		node *plain = run_trial(&t);
		for (int n = 0; n < t.nodes - t.servers; n++) {
			assert_int_equal(packed[n].status, LS_OK);
			if (memcmp(packed[n].params, plain[n].params, t.live * sizeof(float)) != 0) {
				describe(&t);
				fail_msg("bf16: node %d differs when letters are packed", n);
			}
		}
		free(packed);
		free(plain);
	}
}

/* Not the bits, but near, and the same on all workers. */
static void check_near(trial *t, float tolerance, const char *what)
{
	node *nodes = run_trial(t);
	for (int n = 0; n < t->nodes - t->servers; n++) {
		assert_int_equal(nodes[n].status, LS_OK);
		if (memcmp(nodes[n].params, nodes[0].params, t->live * sizeof(float)) != 0) {
			describe(t);
			fail_msg("%s: node %d differs from node 0", what, n);
		}
	}
	for (size_t i = 0; i < t->live; i++)
		if (!(nodes[0].params[i] - t->params[i] < tolerance && t->params[i] - nodes[0].params[i] < tolerance)) {
			describe(t);
			fail_msg("%s: parameter %zu is %g, expected %g", what, i, (double)nodes[0].params[i],
				 (double)t->params[i]);
		}
	free(nodes);
}

static void test_bf16(void **state)
{
	static trial t;
	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		draw_trial(&t, first_seed() + 1000 + i);
		t.wire_bf16 = t.nodes > 1;
		t.clipped = 0;
		serial_run(&t);
		check_near(&t, 0.01f, "bf16");
	}
}

/* The servers' slices together are the serial run's parameters, but for the order of additions. */
static void check_served(const trial *t, const node *nodes)
{
	ls_plan plan;
	assert_int_equal(ls_plan_init(&plan, t->live, t->extra, t->block, t->bucket, t->servers), LS_OK);
	for (int b = 0; b < plan.buckets - 1; b++)
		for (int o = 0; o < t->servers; o++) {
			size_t begin, end;
			ls_plan_slice(&plan, b, o, &begin, &end);
			for (; begin < end && begin < t->live; begin++) {
				float got = nodes[t->nodes - t->servers + o].params[begin];
				if (!(got - t->params[begin] < 1e-3f && t->params[begin] - got < 1e-3f)) {
					describe(t);
					fail_msg("stale: parameter %zu is %g, expected %g", begin, (double)got,
						 (double)t->params[begin]);
				}
			}
		}
	ls_plan_release(&plan);
}

/* Sums that do not depend on parameters come to the same whoever is first; nobody runs further ahead than allowed. */
static void test_stale(void **state)
{
	static trial t;
	int ran_ahead = 0;

	(void)state;
	for (uint64_t i = 0; i < 30; i++) {
		if (i % 2 == 0)
			draw_trial(&t, first_seed() + 3000 + i);
		else
			draw_sparse(&t, first_seed() + 3000 + i);
		t.nans = 0;
		t.nodes = 2 + (int)(i % 4);
		t.servers = t.nodes > 3 ? 1 + (int)(i % 2) : 1;
		for (int n = 0; n < t.nodes; n++)
			t.devices[n] = n < t.nodes - t.servers ? 1 + (int)((i + (uint64_t)n) % 3) : 0;
		uint64_t rng = i;
		t.leaves[2] = 1; /* most workers have none: their zeros count as a round */
		for (int s = 0; s < STEPS; s++)
			deal(&t, &rng, s);
		t.stale = 1 + (int)(i % 3);
		t.clipped = t.phased = 0;
		t.wire_bf16 = i % 3 == 0;
		serial_run(&t);
		node *nodes = run_trial(&t);
		for (int n = 0; n < t.nodes; n++)
			assert_int_equal(nodes[n].status, LS_OK);
		/* One more than allowed may show: a round counts as done before its worker has begun the next. */
		if (atomic_load(&t.most_ahead) > t.stale + 1) {
			describe(&t);
			fail_msg("a worker was %d rounds ahead, allowed are %d", atomic_load(&t.most_ahead), t.stale);
		}
		ran_ahead += atomic_load(&t.most_ahead) > 0;
		check_served(&t, nodes);
		free(nodes);
	}
	assert_true(ran_ahead > 0);
}

static void test_library_sum(void **state)
{
	static trial t;
	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		draw_trial(&t, first_seed() + 2000 + i);
		t.library = 1;
		while (t.servers > 0) { /* every node updates everything: there are none */
			t.servers--;
			t.devices[t.nodes - t.servers - 1] = 1;
		}
		serial_run(&t);
		check_near(&t, 1e-4f, "library sum");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_bits), cmocka_unit_test(test_sparse),
					    cmocka_unit_test(test_bf16),      cmocka_unit_test(test_sparse_bf16),
					    cmocka_unit_test(test_stale),     cmocka_unit_test(test_library_sum) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
