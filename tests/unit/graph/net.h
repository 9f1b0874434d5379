/*
 * net.h - what the tests of the graph share: a graph with stores, data and an executor around it.
 */
#ifndef LS_TESTS_NET_H
#define LS_TESTS_NET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lockstep/graph.h>

#include "backends/cpu/exec.h"
#include "base/memory.h"
#include "base/rng.h"
#include "unit/assert_status.h"

#define NET_SEED 20240611
#define NET_CLASSES 7

typedef struct net {
	ls_graph *graph; /* owned */
	ls_team *team;
	ls_exec *exec;
	int64_t count;                 /* samples of the micro-batch */
	float *images;                 /* (count, C, H, W) */
	int32_t *labels;               /* (count) */
	float *targets;                /* (count, outputs) of random probabilities; NULL: labels */
	uint64_t *samples;             /* (count) */
	float *params, *grads;         /* (total), (reachable) */
	float *buffers, *stats;        /* (buffers) each */
	float *logical, *scratch;      /* the largest parameter, twice */
	ls_exec_microbatch microbatch; /* the last one run */
} net;

static inline void *net_take(size_t bytes)
{
	void *p = NULL;
	assert_int_equal(posix_memalign(&p, 64, bytes ? bytes : 1), 0);
	memset(p, 0, bytes);
	return p;
}

static inline float *net_random(size_t count, uint64_t stream, float deviation)
{
	float *p = net_take(count * sizeof(float));
	ls_rng_fill_normal(ls_rng_make(NET_SEED, LS_RNG_TEST, stream), 0, 0, count, deviation, p);
	return p;
}

/* Random parameters of sensible size, norms' scales around one, unreachable weights included. */
static inline void net_fill_params(net *t)
{
	const ls_param_table *table = &t->graph->params;
	for (size_t i = 0; i < table->count; i++) {
		const ls_param *p = &table->rows[i];
		size_t count = ls_param_elements(p);
		float deviation = p->role == LS_ROLE_WEIGHT ? 1.0f / (float)(1 + p->fan_in / 8) + 0.1f : 0.3f;
		if (p->role == LS_ROLE_COUNTER)
			continue;
		ls_rng_fill_normal(ls_rng_make(NET_SEED, LS_RNG_TEST, 100 + i), 0, 0, count, deviation, t->logical);
		for (size_t k = 0; k < count && p->init == LS_INIT_ONE; k++)
			t->logical[k] = 1 + t->logical[k] * t->logical[k];
		ls_param_import(p, LS_STORE_WHOLE, t->logical, p->role == LS_ROLE_BUFFER ? t->buffers : t->params);
	}
}

static inline void net_fill_data(net *t, const ls_tensor *in, int classes)
{
	size_t floats = (size_t)t->count * (size_t)(in->channels * in->height * in->width);
	t->images = net_random(floats, 1, 1);
	t->labels = net_take((size_t)t->count * sizeof(int32_t));
	t->samples = net_take((size_t)t->count * sizeof(uint64_t));
	for (int64_t i = 0; i < t->count; i++) {
		uint32_t words[4];
		ls_rng_words(ls_rng_make(NET_SEED, LS_RNG_TEST, 2), 0, (uint64_t)i, words);
		t->labels[i] = (int32_t)ls_rng_below(words[0], (uint32_t)classes);
		t->samples[i] = words[1] % 100000;
	}
}

/* Float targets in place of labels: probabilities that add up to one per sample, some of them 0. */
static inline void net_use_targets(net *t)
{
	int outputs = t->graph->values[t->graph->logits].channels;
	t->targets = net_random((size_t)(t->count * outputs), 3, 1);
	for (int64_t i = 0; i < t->count; i++) {
		float *row = t->targets + i * outputs, sum = 0;
		row[i % outputs] += 3;
		for (int c = 0; c < outputs; c++)
			sum += row[c] = row[c] > 0 ? row[c] : 0;
		for (int c = 0; c < outputs; c++)
			row[c] /= sum;
	}
}

/* Takes the graph; its executor can run micro-batches of `count` samples and of `other` (0: no other). */
static inline void net_init(net *t, ls_graph *graph, int64_t count, int64_t other, int threads, int inference)
{
	const ls_param_table *table = &graph->params;
	size_t largest = 1;

	*t = (net){ .graph = graph, .count = count };
	for (size_t i = 0; i < table->count; i++)
		if (ls_param_elements(&table->rows[i]) > largest)
			largest = ls_param_elements(&table->rows[i]);
	t->logical = net_take(largest * sizeof(float));
	t->scratch = net_take(largest * sizeof(float));
	t->params = net_take(table->total * sizeof(float));
	t->grads = net_take(table->reachable * sizeof(float));
	t->buffers = net_take(table->buffers * sizeof(float));
	t->stats = net_take(table->buffers * sizeof(float));
	net_fill_params(t);
	net_fill_data(t, &graph->values[graph->input], graph->values[graph->logits].channels);
	assert_ok(ls_team_new(&t->team, threads));
	ls_exec_options options = { .sizes = { count, other }, .team = t->team, .inference = inference };
	assert_ok(ls_exec_new(&t->exec, graph, &options));
	ls_exec_set_params(t->exec, t->params, t->buffers);
}

static inline void net_release(net *t)
{
	ls_exec_free(t->exec);
	ls_team_free(t->team);
	void *all[] = { t->images, t->labels,  t->targets, t->samples, t->params,
			t->grads,  t->buffers, t->stats,   t->logical, t->scratch };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
	ls_graph_free(t->graph);
}

static inline ls_exec_microbatch net_microbatch(net *t, int64_t count)
{
	return (ls_exec_microbatch){ .count = count,
				     .images = t->images,
				     .labels = t->labels,
				     .targets = t->targets,
				     .target_count = t->targets ? t->graph->values[t->graph->logits].channels : 0,
				     .samples = t->samples,
				     .grads = t->grads,
				     .stats = t->stats,
				     .seed = NET_SEED,
				     .step = 3 };
}

/* Forward and backward of the first `count` samples; gradients start as NaN, so that all must be written. */
static inline double net_train(net *t, int64_t count)
{
	memset(t->grads, 0xff, t->graph->params.reachable * sizeof(float));
	t->microbatch = net_microbatch(t, count);
	ls_exec_train(t->exec, &t->microbatch);
	return t->microbatch.loss;
}

static inline const ls_param *net_param(const ls_graph *g, const char *name)
{
	for (size_t i = 0; i < g->params.count; i++)
		if (strcmp(g->params.rows[i].name, name) == 0)
			return &g->params.rows[i];
	fail_msg("no parameter %s", name);
	return NULL;
}

static inline void net_same_floats(const char *what, const float *got, const float *expected, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (memcmp(&got[i], &expected[i], sizeof(float)) != 0)
			fail_msg("%s: float %zu of %zu is %.9g, expected exactly %.9g", what, i, count, (double)got[i],
				 (double)expected[i]);
}

static inline ls_graph *net_graph(void)
{
	ls_graph *graph = NULL;
	assert_ok(ls_graph_new(&graph));
	return graph;
}

/* Short forms of the layers, for nets written in one expression. */
static inline ls_value net_conv(ls_graph *g, ls_value x, const char *name, int channels, int kernel, int bias)
{
	return ls_conv2d(g, x, name,
			 (ls_conv_options){
				 .out_channels = channels, .kernel = kernel, .padding = kernel / 2, .no_bias = !bias });
}

static inline ls_value net_norm(ls_graph *g, ls_value x, const char *name)
{
	return ls_batch_norm(g, x, name, (ls_batch_norm_options){ 0 });
}

static inline ls_value net_linear(ls_graph *g, ls_value x, const char *name, int features)
{
	return ls_linear(g, x, name, (ls_linear_options){ .out_features = features });
}

/* Of images: each position by itself. */
static inline ls_value net_per_position(ls_graph *g, ls_value x, const char *name, int features)
{
	return ls_linear(g, x, name, (ls_linear_options){ .out_features = features, .per_position = 1 });
}

static inline ls_value net_layer_norm(ls_graph *g, ls_value x, const char *name, float eps)
{
	return ls_layer_norm(g, x, name, (ls_layer_norm_options){ .eps = eps });
}

static inline ls_value net_gelu(ls_graph *g, ls_value x, int approximate)
{
	return ls_gelu(g, x, (ls_gelu_options){ .approximate = approximate });
}

static inline ls_value net_dropout(ls_graph *g, ls_value x, float p)
{
	return ls_dropout(g, x, (ls_dropout_options){ .p = p });
}

static inline ls_value net_head(ls_graph *g, ls_value x)
{
	return net_linear(g, x, "head", NET_CLASSES);
}

#endif
