/*
 * quadrants.h - what the tests of training share: samples with a bright quadrant, a small net for them, and a trainer
 * that is taken through batches of them by hand.
 */
#ifndef LS_TESTS_QUADRANTS_H
#define LS_TESTS_QUADRANTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "trainer/trainer.h"
#include "unit/assert_status.h"

enum { SEED = 20240617, SIDE = 6, IMAGE = SIDE * SIDE, CLASSES = 4 };

/* Samples with a bright quadrant, which is the label, in noise. */
static inline void draw(uint64_t index, float *image, int32_t *label)
{
	uint32_t words[4];
	ls_rng rng = ls_rng_make(SEED, LS_RNG_TEST, 5);
	ls_rng_words(rng, index, 1u << 20, words);
	*label = (int32_t)(words[0] % CLASSES);
	ls_rng_fill_normal(rng, index, 0, IMAGE, 1.0f, image);
	for (int p = 0; p < IMAGE; p++)
		if (p / SIDE / (SIDE / 2) * 2 + p % SIDE / (SIDE / 2) == *label)
			image[p] += 2;
}

/*
 * A small residual net (batch statistics), or one with independent samples. Of b's 5x5 taps 16 never fall inside its
 * 3x3 map; a is as large as b, so that memory they take turns in has a's gradients where b's unreachable taps are.
 */
static inline ls_graph *make_graph(int coupled)
{
	ls_graph *g = NULL;
	assert_ok(ls_graph_new(&g));
	ls_value x = ls_input(g, 1, SIDE, SIDE);
	x = ls_conv2d(g, x, "stem", (ls_conv_options){ .out_channels = 20, .kernel = 3, .stride = 2, .padding = 1 });
	if (coupled) {
		x = ls_relu(g, ls_batch_norm(g, x, "n0", (ls_batch_norm_options){ 0 }));
		ls_value y = ls_conv2d(
			g, x, "a",
			(ls_conv_options){ .out_channels = 20, .kernel = 5, .stride = 1, .padding = 2, .no_bias = 1 });
		x = ls_relu(g, ls_add(g, ls_batch_norm(g, y, "n1", (ls_batch_norm_options){ 0 }), x));
		x = ls_conv2d(
			g, x, "b",
			(ls_conv_options){ .out_channels = 32, .kernel = 5, .stride = 4, .padding = 2, .no_bias = 1 });
		x = ls_batch_norm(g, x, "n2", (ls_batch_norm_options){ 0 });
	}
	x = ls_dropout(g, ls_relu(g, x), (ls_dropout_options){ .p = 0.1f });
	x = ls_linear(g, x, "fc", (ls_linear_options){ .out_features = CLASSES });
	assert_ok(ls_graph_finish(g, x));
	return g;
}

typedef struct batch {
	float *images;
	int32_t *labels;
	uint64_t *samples;
	int64_t count;
} batch;

static inline batch make_batch(uint64_t first, int64_t count)
{
	batch b = { calloc((size_t)count * IMAGE, sizeof(float)), calloc((size_t)count, sizeof(int32_t)),
		    calloc((size_t)count, sizeof(uint64_t)), count };
	for (int64_t i = 0; i < count; i++) {
		b.samples[i] = first + (uint64_t)i;
		draw(b.samples[i], b.images + i * IMAGE, &b.labels[i]);
	}
	return b;
}

static inline void free_batch(batch *b)
{
	free(b->images);
	free(b->labels);
	free(b->samples);
}

static inline ls_microbatch microbatch_of(const batch *b, int64_t first, int64_t count)
{
	return (ls_microbatch){ .count = count,
				.images = b->images + first * IMAGE,
				.labels = b->labels + first,
				.samples = b->samples + first,
				.step_samples = b->count };
}

/* What devices are given in the step under way: one trainer at a time is at work. */
enum { DEVICES_MAX = 4, MICROBATCHES_MAX = 40 };
static struct {
	const batch *batch;
	int64_t microbatch, microbatches, fails; /* samples; how many; this one cannot be read */
	int device[MICROBATCHES_MAX];
	int64_t next[DEVICES_MAX];
	ls_microbatch given[DEVICES_MAX];
} hand;

static inline ls_status next_microbatch(void *context, int device, const ls_microbatch **microbatch)
{
	int64_t i = hand.next[device];
	(void)context;
	while (hand.device[i] != device)
		i++;
	hand.next[device] = i + 1;
	if (i == hand.fails)
		return ls_fail(LS_EIO, "micro-batch %lld is lost", (long long)i);
	int64_t left = hand.batch->count - i * hand.microbatch;
	hand.given[device] =
		microbatch_of(hand.batch, i * hand.microbatch, left < hand.microbatch ? left : hand.microbatch);
	*microbatch = &hand.given[device];
	return LS_OK;
}

static inline void take_in_hand(const ls_node_trainer *t, const batch *b, int64_t microbatch)
{
	memset(&hand, 0, sizeof(hand));
	hand.batch = b;
	hand.microbatch = microbatch;
	hand.microbatches = (b->count + microbatch - 1) / microbatch;
	hand.fails = -1;
	assert_true(hand.microbatches <= MICROBATCHES_MAX && t->options.devices <= DEVICES_MAX);
	for (int d = 0; d < t->options.devices; d++)
		for (int64_t i = hand.microbatches * d / t->options.devices;
		     i < hand.microbatches * (d + 1) / t->options.devices; i++)
			hand.device[i] = d;
}

/* One step over a batch cut into micro-batches. */
static inline double step(ls_node_trainer *t, const batch *b, int64_t microbatch)
{
	take_in_hand(t, b, microbatch);
	ls_node_trainer_assignment assign = { .microbatches = hand.microbatches, .samples = b->count };
	ls_node_trainer_report report;
	assert_ok(ls_node_trainer_step(t, &assign));
	assert_ok(ls_node_trainer_report_of(t, t->step - 1, &report));
	assert_int_equal(report.samples, b->count);
	assert_int_equal(report.step, t->step - 1);
	return report.loss / (double)report.samples;
}

static inline ls_node_trainer_options base_options(ls_graph *g, int64_t microbatch, int64_t microbatches)
{
	return (ls_node_trainer_options){
		.graph = g,
		.microbatch = microbatch,
		.microbatches = microbatches,
		.backend = &ls_backend_cpu,
		.devices = 1,
		.threads = 1,
		.next = next_microbatch,
		.optimizer = "adam",
		.hyper = { .lr = 0.01, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8 },
		.schedule = { .name = "constant", .lr = 0.01, .total = 100 },
		.seed = SEED
	};
}

/* `steps` steps of `count` samples; the fingerprint. */
static inline uint64_t fingerprint_after(const ls_node_trainer_options *o, int steps, int64_t count, double *last_loss)
{
	ls_node_trainer *t = NULL;
	uint64_t fingerprint = 0;
	assert_ok(ls_node_trainer_new(&t, o));
	assert_ok(ls_node_trainer_init(t));
	for (int s = 0; s < steps; s++) {
		batch b = make_batch((uint64_t)(s * count), count);
		double loss = step(t, &b, o->microbatch);
		if (last_loss)
			*last_loss = loss;
		free_batch(&b);
	}
	assert_int_equal(t->step, steps);
	assert_ok(ls_node_trainer_fingerprint(t, &fingerprint));
	ls_node_trainer_free(t);
	return fingerprint;
}

#endif
