/*
 * token_sampler.c - temperature, then the k most probable, then those that have the share p together, then one of them
 * by a random number that (seed, text, place) decides.
 */
#include "predict/token_sampler.h"

#include <stdlib.h>

#include "base/exact_math.h"
#include "base/rng.h"
#include "base/topk.h"

enum { FEW = 256 }; /* tokens that are selected one by one rather than sorted */

typedef struct choice {
	float logit;
	int32_t id;
	double weight;
} choice;

struct ls_token_sampler {
	ls_token_sampler_options options;
	choice *choices; /* (vocabulary) */
};

ls_status ls_token_sampler_new(ls_token_sampler **out, const ls_token_sampler_options *options)
{
	ls_token_sampler *s = calloc(1, sizeof(*s));
	if (s)
		s->choices = calloc((size_t)options->vocabulary, sizeof(*s->choices));
	if (!s || !s->choices) {
		ls_token_sampler_free(s);
		return ls_fail(LS_EMEMORY, "no memory to draw from %lld tokens", (long long)options->vocabulary);
	}
	s->options = *options;
	*out = s;
	return LS_OK;
}

void ls_token_sampler_free(ls_token_sampler *s)
{
	if (!s)
		return;
	free(s->choices);
	free(s);
}

static int32_t most_probable(const float *logits, int64_t count)
{
	int64_t best = 0;
	for (int64_t i = 1; i < count; i++)
		best = logits[i] > logits[best] ? i : best;
	return (int32_t)best;
}

static int by_probability(const void *a, const void *b)
{
	const choice *x = a, *y = b;
	if (x->logit != y->logit)
		return x->logit > y->logit ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* The tokens to choose from, the most probable first where only some are wanted. */
static int64_t list_choices(ls_token_sampler *s, const float *logits)
{
	const ls_token_sampler_options *o = &s->options;
	int is_cut = o->top_k > 0 && o->top_k < o->vocabulary;

	if (is_cut && o->top_k <= FEW) {
		int64_t best[FEW];
		ls_topk(logits, o->vocabulary, o->top_k, best);
		for (int64_t i = 0; i < o->top_k; i++)
			s->choices[i] = (choice){ .logit = logits[best[i]], .id = (int32_t)best[i] };
		return o->top_k;
	}
	for (int64_t i = 0; i < o->vocabulary; i++)
		s->choices[i] = (choice){ .logit = logits[i], .id = (int32_t)i };
	if (is_cut || o->top_p < 1)
		qsort(s->choices, (size_t)o->vocabulary, sizeof(*s->choices), by_probability);
	return is_cut ? o->top_k : o->vocabulary;
}

/* Weights of all choices, that sum up to *sum; returns how many there are. */
static int64_t weigh(ls_token_sampler *s, const float *logits, double *sum)
{
	float most = logits[most_probable(logits, s->options.vocabulary)];
	int64_t count = list_choices(s, logits);

	*sum = 0;
	for (int64_t i = 0; i < count; i++) {
		double below = (double)s->choices[i].logit - (double)most;
		s->choices[i].weight = ls_exact_exp(below / s->options.temperature);
		*sum += s->choices[i].weight;
	}
	return count;
}

/* The first ones that have the share p of the sum together. */
static int64_t cut_tail(const ls_token_sampler *s, int64_t count, double *sum)
{
	double wanted = s->options.top_p * *sum, have = 0;

	if (s->options.top_p >= 1)
		return count;
	for (int64_t i = 0; i < count; i++) {
		have += s->choices[i].weight;
		if (have >= wanted) {
			*sum = have;
			return i + 1;
		}
	}
	return count;
}

int32_t ls_token_sampler_draw(ls_token_sampler *s, const float *logits, uint64_t text, uint64_t place)
{
	uint32_t words[4];
	double sum;

	if (s->options.temperature <= 0)
		return most_probable(logits, s->options.vocabulary);
	int64_t count = cut_tail(s, weigh(s, logits, &sum), &sum);
	ls_rng_words(ls_rng_make(s->options.seed, LS_RNG_GENERATE, text), 0, place, words);
	double at = ((double)words[0] + 0.5) / 4294967296.0 * sum;
	for (int64_t i = 0; i < count - 1; i++) {
		at -= s->choices[i].weight;
		if (at < 0)
			return s->choices[i].id;
	}
	return s->choices[count - 1].id;
}
