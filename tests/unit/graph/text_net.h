/*
 * text_net.h - what the tests of text graphs share: a net (net.h) on a packed micro-batch of random sentences.
 *
 * Sample 0 is one token, sample 1 as long as samples get, the others anything between; some samples have no token to be
 * predicted, some as many as there may be. What a sample is depends on its index alone, never on its neighbours.
 */
#ifndef LS_TESTS_TEXT_NET_H
#define LS_TESTS_TEXT_NET_H

#include <math.h>

#include "unit/graph/net.h"

#define TEXT_VOCABULARY 37 /* odd, and less than a panel */
#define TEXT_WEIGHT 0.37   /* of the tokens' loss; exact in neither float nor double */
#define TEXT_FULL                                                                                                      \
	1000000 /* samples from here on are as long as samples get, with all the masked positions there may be */

typedef struct text_net {
	net net;
	ls_packed packed;
	int32_t *start, *masked_start, *token, *segment, *masked_at, *target;
	double token_weight;
} text_net;

static inline uint32_t text_random(uint64_t stream, uint64_t i, uint32_t below)
{
	uint32_t words[4];
	ls_rng_words(ls_rng_make(NET_SEED, LS_RNG_TEST, stream), 1, i, words);
	return ls_rng_below(words[0], below);
}

static inline int32_t text_length(uint64_t sample, int longest)
{
	if (sample < 2 || sample >= TEXT_FULL)
		return sample == 0 ? 1 : longest;
	return 1 + (int32_t)text_random(31, sample, (uint32_t)longest);
}

/* Sample `sample` behind what the micro-batch has: its tokens and masked positions. */
static inline void text_add_sample(text_net *t, int64_t i, uint64_t sample, int vocabulary)
{
	const ls_graph *g = t->net.graph;
	int32_t begin = t->start[i], length = text_length(sample, g->tokens_max), masked = t->masked_start[i];
	int32_t wanted =
		sample >= TEXT_FULL ? g->masked_max : (int32_t)text_random(32, sample, (uint32_t)g->masked_max + 1);

	for (int32_t p = 0; p < length; p++) {
		uint64_t at = sample * 4096 + (uint64_t)p;
		t->token[begin + p] = (int32_t)text_random(33, at, (uint32_t)vocabulary);
		t->segment[begin + p] = p > length / 2;
		/* mask `wanted` of the tokens that are left */
		if (text_random(34, at, (uint32_t)(length - p)) >= (uint32_t)(wanted < 0 ? 0 : wanted))
			continue;
		t->masked_at[masked] = begin + p;
		t->target[masked++] = (int32_t)text_random(35, at, (uint32_t)vocabulary);
		wanted--;
	}
	t->start[i + 1] = begin + length;
	t->masked_start[i + 1] = masked;
}

/* The micro-batch is samples[0 .. count). */
static inline void text_fill(text_net *t, const uint64_t *samples, int64_t count)
{
	const ls_graph *g = t->net.graph;
	int classes = g->values[g->logits].channels;

	t->start[0] = t->masked_start[0] = 0;
	for (int64_t i = 0; i < count; i++) {
		t->net.samples[i] = samples[i];
		t->net.labels[i] = (int32_t)text_random(36, samples[i], (uint32_t)classes);
		text_add_sample(t, i, samples[i], ls_graph_vocabulary(g));
	}
	t->packed = (ls_packed){ .start = t->start,
				 .masked_start = t->masked_start,
				 .token = t->token,
				 .segment = t->segment,
				 .masked_at = t->masked_at,
				 .target = t->target,
				 .step_masked = t->masked_start[count] };
}

/* Takes the graph, like net_init(); samples 0 .. count-1. Arrays are no longer than the micro-batch needs at most. */
static inline void text_init(text_net *t, ls_graph *graph, int64_t count, int64_t other, int threads, int inference)
{
	size_t tokens = (size_t)(count * graph->tokens_max), masked = (size_t)(count * graph->masked_max);

	*t = (text_net){ .token_weight = TEXT_WEIGHT };
	net_init(&t->net, graph, count, other, threads, inference);
	t->start = net_take(sizeof(int32_t) * (size_t)(count + 1));
	t->masked_start = net_take(sizeof(int32_t) * (size_t)(count + 1));
	t->token = net_take(sizeof(int32_t) * tokens);
	t->segment = net_take(sizeof(int32_t) * tokens);
	t->masked_at = net_take(sizeof(int32_t) * masked);
	t->target = net_take(sizeof(int32_t) * masked);
	uint64_t *samples = net_take(sizeof(uint64_t) * (size_t)count);
	for (int64_t i = 0; i < count; i++)
		samples[i] = (uint64_t)i;
	text_fill(t, samples, count);
	free(samples);
}

static inline void text_release(text_net *t)
{
	void *all[] = { t->start, t->masked_start, t->token, t->segment, t->masked_at, t->target };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
	net_release(&t->net);
}

static inline ls_exec_microbatch text_microbatch(text_net *t, int64_t count)
{
	ls_exec_microbatch microbatch = net_microbatch(&t->net, count);
	microbatch.images = NULL;
	microbatch.text = &t->packed;
	microbatch.token_weight = t->token_weight;
	return microbatch;
}

/* Forward and backward; gradients start as NaN, so that all must be written. */
static inline double text_train(text_net *t, int64_t count)
{
	memset(t->net.grads, 0xff, t->net.graph->params.reachable * sizeof(float));
	t->net.microbatch = text_microbatch(t, count);
	ls_exec_train(t->net.exec, &t->net.microbatch);
	return t->net.microbatch.loss;
}

static inline double text_infer(text_net *t, int64_t count, float *logits)
{
	t->net.microbatch = text_microbatch(t, count);
	ls_exec_infer(t->net.exec, &t->net.microbatch, logits);
	return t->net.microbatch.loss;
}

/* Short forms of the layers. */
static inline ls_value text_embed(ls_graph *g, int longest, int masked, int width, const char *segments)
{
	return ls_embedding(g, ls_text_input(g, longest, masked),
			    (ls_embedding_options){ .words = "words",
						    .positions = "positions",
						    .segments = segments,
						    .vocabulary = TEXT_VOCABULARY,
						    .longest = longest + 3,
						    .width = width });
}

static inline ls_value text_attend(ls_graph *g, ls_value x, const char *name, int width, int heads, float dropout)
{
	char names[3][32];
	for (int i = 0; i < 3; i++)
		snprintf(names[i], sizeof(names[i]), "%s.%c", name, "qkv"[i]);
	ls_value q = net_linear(g, x, names[0], width), k = net_linear(g, x, names[1], width);
	ls_value v = net_linear(g, x, names[2], width);
	return ls_attention(g, q, k, v, (ls_attention_options){ .num_heads = heads, .dropout = dropout });
}

#endif
