/*
 * trial.h - a case for the exchange, drawn at random, and what a plain serial run of it comes to.
 *
 * A case is a little model of layers whose gradients depend on the parameters as they were read, so that a stale
 * parameter, a lost partial sum or a sum in another order all show. Its update may be scaled by the norm of the
 * gradient (`clipped`), and depend on norms of whole layers (`phased`): one norm pass for each.
 */
#ifndef LS_TESTS_TRIAL_H
#define LS_TESTS_TRIAL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exchange/exchange.h"

enum { NODES = 7, DEVICES = 4, MICROBATCHES = 33, STEPS = 4, LAYERS = 6, LIVE = 1200, STATISTICS = 40 };

typedef struct trial {
	uint64_t seed;
	int nodes, servers, devices[NODES], threads, layers, clipped, phased, scattered;
	const ls_strategy *strategy; /* between nodes */
	const ls_codec *codec;
	int stale;  /* ps-async: staleness */
	int sparse; /* eighths of the gradient that are zero, and one; 0: gradients are not made so */
	int alike;  /* and of all micro-batches the same ones */
	int nans;
	int narrow;                         /* one message at a time is under way to a peer, and few can be awaited */
	int awaits;                         /* bits: nodes that wait for a step to be complete before the next */
	size_t span;                        /* floats that are zero together */
	_Atomic(int) at[NODES], most_ahead; /* ps-async: steps begun; how far apart they were */
	int64_t most, microbatches[STEPS];
	size_t reachable, statistics, block, bucket, cut[LAYERS + 1];
	int node_of[STEPS][MICROBATCHES], device_of[STEPS][MICROBATCHES];
	float initial[LIVE];
	float params[LIVE], state[STATISTICS]; /* of the serial run */
} trial;

static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ (x >> 32);
}

static inline uint64_t draw(uint64_t *state)
{
	return mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

static inline int below(uint64_t *state, int limit)
{
	return (int)(draw(state) % (uint64_t)limit);
}

/* A number in (-1, 1) with a full mantissa. */
static inline float noise(uint64_t a, uint64_t b, uint64_t c)
{
	return (float)((double)(mix(mix(mix(a) ^ b) ^ c) >> 11) / 4503599627370496.0 - 1.0);
}

/* What a sparse gradient has instead of a number here: zero, -0.0 of all micro-batches, or NaN; 1: nothing. */
static inline float hole(const trial *t, int step, int64_t microbatch, size_t at)
{
	uint64_t where = mix(t->seed ^ (uint64_t)step << 32 ^ at / t->span);
	if (t->nans && mix(t->seed + at + (uint64_t)(microbatch * 4096)) % 400 == 0)
		return NAN;
	if ((int)(mix(where + (t->alike ? 0 : (uint64_t)microbatch)) % 8) >= t->sparse - 1)
		return 1;
	return mix(t->seed + 5 * at) % 64 == 0 ? -0.0f : 0.0f;
}

static inline float gradient(const trial *t, int step, int64_t microbatch, size_t at, float param)
{
	if (t->sparse && hole(t, step, microbatch, at) != 1)
		return hole(t, step, microbatch, at);
	return noise(t->seed + (uint64_t)step, (uint64_t)microbatch, at) + (t->stale ? 0 : 0.25f * param);
}

/* An update for which -0.0 is not 0. */
static inline float bent(const trial *t, float sum)
{
	return t->sparse && !t->stale && signbit(sum) ? sum - 0.125f : sum;
}

static inline float statistic(const trial *t, int step, int64_t microbatch, size_t at)
{
	return noise(t->seed + 77 + (uint64_t)step, (uint64_t)microbatch, at);
}

static inline double sum_squares(const float *sums, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += (double)sums[i] * sums[i];
	return sum;
}

/* What a block has of a layer. */
static inline int run_of(const trial *t, int layer, size_t begin, size_t end, size_t *first, size_t *last)
{
	*first = t->cut[layer] > begin ? t->cut[layer] : begin;
	*last = t->cut[layer + 1] < end ? t->cut[layer + 1] : end;
	return *first < *last;
}

/* The norm pass of layers: sums become directions, and every run has two norms. */
static inline size_t norms_of_runs(const trial *t, const float *params, float scale, size_t begin, size_t end,
				   float *sums, double *norms)
{
	size_t first, last, count = 0;
	for (int l = 0; l < t->layers; l++) {
		if (!run_of(t, l, begin, end, &first, &last))
			continue;
		for (size_t i = first; sums && i < last; i++)
			sums[i - begin] = scale * sums[i - begin] + 0.125f * params[i];
		if (sums) {
			norms[count] = sum_squares(params + first, last - first);
			norms[count + 1] = sum_squares(sums + (first - begin), last - first);
		}
		count += 2;
	}
	return count;
}

/* How far each layer goes, from the norms of all runs in block order. */
static inline void choose_ratios(const trial *t, const double *norms, float *ratios)
{
	double layer_norms[LAYERS][2] = { { 0 } };
	size_t first, last;
	for (size_t begin = 0; begin < t->reachable; begin += t->block)
		for (int l = 0; l < t->layers; l++)
			if (run_of(t, l, begin, begin + t->block, &first, &last)) {
				layer_norms[l][0] += *norms++;
				layer_norms[l][1] += *norms++;
			}
	for (int l = 0; l < t->layers; l++)
		ratios[l] = (float)(0.05 * layer_norms[l][0] / (layer_norms[l][0] + layer_norms[l][1]));
}

static inline float ratio_at(const trial *t, const float *ratios, size_t at)
{
	int layer = 0;
	while (at >= t->cut[layer + 1])
		layer++;
	return ratios[layer];
}

static inline float scale_of(const double *norms, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += norms[i];
	return (float)(1.0 / (1.0 + sum));
}

static inline float tree_sum(const trial *t, int step, int64_t first, int64_t width, size_t at, int is_statistic)
{
	int64_t microbatches = t->microbatches[step];
	if (width == 1)
		return is_statistic ? statistic(t, step, first, at) : gradient(t, step, first, at, t->params[at]);
	float left = tree_sum(t, step, first, width / 2, at, is_statistic);
	return first + width / 2 < microbatches
		       ? left + tree_sum(t, step, first + width / 2, width / 2, at, is_statistic)
		       : left;
}

static inline void serial_step(trial *t, int step)
{
	int64_t width = 1;
	static float sums[LIVE], ratios[LAYERS];
	static double norms[LIVE], run_norms[4 * LIVE];
	size_t blocks = 0, runs = 0;

	while (width < t->microbatches[step])
		width *= 2;
	for (size_t i = 0; i < t->reachable; i++)
		sums[i] = tree_sum(t, step, 0, width, i, 0);
	for (size_t i = 0; i < t->reachable; i += t->block)
		norms[blocks++] = sum_squares(sums + i, t->reachable - i < t->block ? t->reachable - i : t->block);
	float scale = t->clipped ? scale_of(norms, blocks) : 0.01f;
	for (size_t i = 0; t->phased && i < t->reachable; i += t->block)
		runs += norms_of_runs(t, t->params, scale, i, i + t->block < t->reachable ? i + t->block : t->reachable,
				      sums + i, run_norms + runs);
	choose_ratios(t, run_norms, ratios);
	for (size_t i = 0; i < t->reachable; i++)
		t->params[i] -= (t->phased ? ratio_at(t, ratios, i) : scale) * bent(t, sums[i]);
	for (size_t i = 0; i < t->statistics; i++)
		t->state[i] = 0.5f * t->state[i] + tree_sum(t, step, 0, width, i, 1);
}

static inline void serial_run(trial *t)
{
	memcpy(t->params, t->initial, sizeof(t->params));
	memset(t->state, 0, sizeof(t->state));
	for (int step = 0; step < STEPS; step++)
		serial_step(t, step);
}

/* Runs of micro-batches of random length, or micro-batches assigned one by one. */
static inline void assign(trial *t, uint64_t *rng, int step)
{
	int workers = t->nodes - t->servers;
	int64_t microbatches = t->microbatches[step];

	if (t->scattered) {
		for (int64_t i = 0; i < microbatches; i++) {
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
			cuts[total++] = below(rng, (int)microbatches + 1);
		}
	for (int i = 0; i < total; i++)
		for (int j = i + 1; j < total; j++)
			if (cuts[j] < cuts[i]) {
				int swap = cuts[i];
				cuts[i] = cuts[j];
				cuts[j] = swap;
			}
	for (int64_t i = 0; i < microbatches; i++) {
		while (at < total - 1 && cuts[at] <= i)
			at++;
		t->node_of[step][i] = who[at][0];
		t->device_of[step][i] = who[at][1];
	}
}

static inline void draw_trial(trial *t, uint64_t seed)
{
	uint64_t rng = seed;

	memset(t, 0, sizeof(*t));
	t->seed = seed;
	t->nodes = 1 + below(&rng, NODES);
	t->servers = below(&rng, 2) ? below(&rng, t->nodes < 4 ? t->nodes : 4) : 0;
	for (int n = 0; n < t->nodes - t->servers; n++)
		t->devices[n] = 1 + below(&rng, DEVICES);
	t->strategy = t->servers > 0 ? &ls_strategy_ps : &ls_strategy_allreduce;
	t->codec = &ls_codec_sparse_fp32;
	t->threads = 1 + (below(&rng, 4) == 0);
	t->scattered = below(&rng, 2);
	t->clipped = below(&rng, 3) == 0;
	t->phased = below(&rng, 3) == 0;
	t->block = 16u << below(&rng, 3);
	t->bucket = t->block * (1 + (size_t)below(&rng, 5));
	t->layers = 1 + below(&rng, LAYERS);
	for (int l = 0; l < t->layers; l++)
		t->cut[l + 1] = t->cut[l] + 16 * (1 + (size_t)below(&rng, 10));
	t->reachable = t->cut[t->layers] - (size_t)below(&rng, 16);
	t->cut[t->layers] = t->reachable;
	t->statistics = 1 + (size_t)below(&rng, STATISTICS);
	t->most = 1 + below(&rng, MICROBATCHES);
	for (int s = 0; s < STEPS; s++) {
		t->microbatches[s] = s == STEPS - 1 ? 1 + below(&rng, (int)t->most) : t->most; /* a tail */
		assign(t, &rng, s);
	}
	for (size_t i = 0; i < t->reachable; i++)
		t->initial[i] = noise(seed, 999, i);
	t->narrow = below(&rng, 2);
	t->awaits = below(&rng, 1 << NODES);
}

/* Gradients with no, some, many and nothing but zeros, a few of them -0.0, and NaN. */
static inline void draw_sparse(trial *t, uint64_t seed)
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

static inline void describe(const trial *t)
{
	fprintf(stderr,
		"seed %llu: %s, %s, %d nodes, %d servers, %d threads, %lld micro-batches, reachable %zu, block %zu, "
		"bucket "
		"%zu, "
		"sparse "
		"%d%s%s%s%s\n",
		(unsigned long long)t->seed, t->strategy->info.name, t->codec->name, t->nodes, t->servers, t->threads,
		(long long)t->most, t->reachable, t->block, t->bucket, t->sparse, t->scattered ? ", scattered" : "",
		t->clipped ? ", clipped" : "", t->phased ? ", two phases" : "", t->narrow ? ", narrow" : "");
}

static inline uint64_t first_seed(void)
{
	const char *text = getenv("LS_TEST_SEED");
	return text ? strtoull(text, NULL, 10) : 20261115;
}

static inline int trial_count(void)
{
	const char *text = getenv("LS_TEST_TRIALS");
	return text ? atoi(text) : 300;
}

#endif
