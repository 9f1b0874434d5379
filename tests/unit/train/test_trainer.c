/*
 * Steps and whole runs: early and late updates, leaves, threads, clipping, running statistics, a loss that is not a
 * number, the user's own model and data, stop and resume.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lockstep/train.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/rng.h"
#include "data/permute.h"
#include "train/trainer.h"

enum { SEED = 20240617, SIDE = 6, IMAGE = SIDE * SIDE, CLASSES = 4 };

static void check_status(ls_status status)
{
	if (status != LS_OK)
		fail_msg("%s: %s", ls_status_name(status), ls_last_error());
}

/* Samples with a bright quadrant, which is the label, in noise. */
static void draw(uint64_t index, float *image, int32_t *label)
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
 * A small residual net (batch statistics), or one whose samples do not meet. Of b's 5x5 taps 16 never meet its 3x3 map;
 * a is as large as b, so that memory they take turns in has a's gradients where b's dead taps are.
 */
static ls_graph *make_graph(int coupled)
{
	ls_graph *g = NULL;
	check_status(ls_graph_new(&g));
	ls_value x = ls_input(g, 1, SIDE, SIDE);
	x = ls_conv2d(g, x, "stem",
		      (ls_conv_options){ .out_channels = 20, .kernel = 3, .stride = 2, .padding = 1, .bias = 1 });
	if (coupled) {
		x = ls_relu(g, ls_batch_norm(g, x, "n0", (ls_norm_options){ 0 }));
		ls_value y = ls_conv2d(g, x, "a",
				       (ls_conv_options){ .out_channels = 20, .kernel = 5, .stride = 1, .padding = 2 });
		x = ls_relu(g, ls_add(g, ls_batch_norm(g, y, "n1", (ls_norm_options){ 0 }), x));
		x = ls_conv2d(g, x, "b",
			      (ls_conv_options){ .out_channels = 32, .kernel = 5, .stride = 4, .padding = 2 });
		x = ls_batch_norm(g, x, "n2", (ls_norm_options){ 0 });
	}
	x = ls_dropout(g, ls_relu(g, x), 0.1f);
	x = ls_linear(g, x, "fc", (ls_linear_options){ .out_features = CLASSES, .bias = 1 });
	check_status(ls_graph_finish(g, x));
	return g;
}

typedef struct batch {
	float *images;
	int32_t *labels;
	uint64_t *samples;
	int64_t count;
} batch;

static batch make_batch(uint64_t first, int64_t count)
{
	batch b = { calloc((size_t)count * IMAGE, sizeof(float)), calloc((size_t)count, sizeof(int32_t)),
		    calloc((size_t)count, sizeof(uint64_t)), count };
	for (int64_t i = 0; i < count; i++) {
		b.samples[i] = first + (uint64_t)i;
		draw(b.samples[i], b.images + i * IMAGE, &b.labels[i]);
	}
	return b;
}

static void free_batch(batch *b)
{
	free(b->images);
	free(b->labels);
	free(b->samples);
}

static ls_leaf leaf_of(const batch *b, int64_t first, int64_t count)
{
	return (ls_leaf){ .count = count,
			  .images = b->images + first * IMAGE,
			  .labels = b->labels + first,
			  .samples = b->samples + first,
			  .step_samples = b->count };
}

/* What devices are given in the step under way: one trainer at a time is at work. */
enum { DEVICES_MAX = 4, LEAVES_MAX = 40 };
static struct {
	const batch *batch;
	int64_t leaf, leaves, fails; /* samples; how many; this one cannot be read */
	int device[LEAVES_MAX];
	int64_t next[DEVICES_MAX];
	ls_leaf given[DEVICES_MAX];
} hand;

static ls_status next_leaf(void *context, int device, const ls_leaf **leaf)
{
	int64_t i = hand.next[device];
	(void)context;
	while (hand.device[i] != device)
		i++;
	hand.next[device] = i + 1;
	if (i == hand.fails)
		return ls_fail(LS_EIO, "leaf %lld is lost", (long long)i);
	int64_t left = hand.batch->count - i * hand.leaf;
	hand.given[device] = leaf_of(hand.batch, i * hand.leaf, left < hand.leaf ? left : hand.leaf);
	*leaf = &hand.given[device];
	return LS_OK;
}

static void take_in_hand(const ls_trainer *t, const batch *b, int64_t leaf)
{
	memset(&hand, 0, sizeof hand);
	hand.batch = b;
	hand.leaf = leaf;
	hand.leaves = (b->count + leaf - 1) / leaf;
	hand.fails = -1;
	assert_true(hand.leaves <= LEAVES_MAX && t->devices <= DEVICES_MAX);
	for (int d = 0; d < t->devices; d++)
		for (int64_t i = hand.leaves * d / t->devices; i < hand.leaves * (d + 1) / t->devices; i++)
			hand.device[i] = d;
}

/* One step over a batch cut into leaves. */
static double step(ls_trainer *t, const batch *b, int64_t leaf)
{
	take_in_hand(t, b, leaf);
	ls_trainer_deal deal = { .leaves = hand.leaves, .samples = b->count };
	ls_trainer_report report;
	check_status(ls_trainer_step(t, &deal));
	check_status(ls_trainer_report_of(t, t->step - 1, &report));
	assert_int_equal(report.samples, b->count);
	assert_int_equal(report.step, t->step - 1);
	return report.loss / (double)report.samples;
}

static ls_trainer_options base_options(ls_graph *g, int64_t leaf, int64_t leaves)
{
	return (ls_trainer_options){
		.graph = g,
		.leaf = leaf,
		.leaves = leaves,
		.devices = 1,
		.threads = 1,
		.next = next_leaf,
		.optimizer = "adam",
		.hyper = { .lr = 0.01, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8 },
		.schedule = { .name = "constant", .lr = 0.01, .total = 100 },
		.seed = SEED
	};
}

/* `steps` steps of `count` samples; the fingerprint. */
static uint64_t fingerprint_after(const ls_trainer_options *o, int steps, int64_t count, double *last_loss)
{
	ls_trainer *t = NULL;
	uint64_t fingerprint = 0;
	check_status(ls_trainer_new(&t, o));
	check_status(ls_trainer_init(t));
	for (int s = 0; s < steps; s++) {
		batch b = make_batch((uint64_t)(s * count), count);
		double loss = step(t, &b, o->leaf);
		if (last_loss != NULL)
			*last_loss = loss;
		free_batch(&b);
	}
	assert_int_equal(t->step, steps);
	check_status(ls_trainer_fingerprint(t, &fingerprint));
	ls_trainer_free(t);
	return fingerprint;
}

/* Updating while backward goes gives the bits of updating after it: every optimizer, weight decay and dead weights too.
 * (lamb always updates after it; here its own round of measuring is compared with one behind that of clipping.) */
static void test_early_update(void **state)
{
	static const struct {
		const char *optimizer;
		double weight_decay;
	} rows[] = { { "adam", 0 },   { "adam", 0.01 }, { "adamw", 0.01 }, { "sgd", 0 },
		     { "sgd", 0.05 }, { "lamb", 0 },    { "lamb", 0.01 } };
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (int coupled = 0; coupled < 2; coupled++)
			for (int threads = 1; threads <= 2; threads++) {
				ls_graph *g = make_graph(coupled), *h = make_graph(coupled);
				ls_trainer_options early = base_options(g, 20, 1), late;
				early.optimizer = rows[i].optimizer;
				early.hyper.weight_decay = rows[i].weight_decay;
				early.threads = threads;
				late = early;
				late.graph = h;
				late.clip_norm = 1e30;
				uint64_t a = fingerprint_after(&early, 4, 20, NULL);
				uint64_t b = fingerprint_after(&late, 4, 20, NULL);
				if (a != b)
					fail_msg("%s, weight decay %g, %s, %d threads: early %016llx, late %016llx",
						 rows[i].optimizer, rows[i].weight_decay,
						 coupled ? "coupled" : "sliced", threads, (unsigned long long)a,
						 (unsigned long long)b);
				ls_graph_free(g);
				ls_graph_free(h);
			}
}

/* Dead weights under coupled decay shrink by the formula and nothing else: w (1 - lr decay) a step of plain SGD. */
static void test_dead_weights_decay(void **state)
{
	ls_graph *g = make_graph(1);
	ls_trainer *t = NULL;
	ls_trainer_options o = base_options(g, 20, 1);
	(void)state;
	o.optimizer = "sgd";
	o.hyper.momentum = 0;
	o.hyper.weight_decay = 0.5;
	check_status(ls_trainer_new(&t, &o));
	check_status(ls_trainer_init(t));
	const ls_param *p = NULL;
	for (size_t i = 0; i < g->params.count; i++)
		if (strcmp(g->params.rows[i].name, "b.weight") == 0)
			p = &g->params.rows[i];
	size_t count = ls_param_elements(p);
	float *before = calloc(count, sizeof(float)), *after = calloc(count, sizeof(float));
	ls_param_export(p, LS_STORE_WHOLE, t->params, before);
	batch b = make_batch(0, 20);
	step(t, &b, 20);
	step(t, &b, 20);
	ls_param_export(p, LS_STORE_WHOLE, t->params, after);
	/* The one output position has padding 2 around a 3x3 map: tap (0, 0) looks at (-2, -2). */
	for (size_t i = 0; i < count; i += 25)
		assert_true(fabsf(after[i] - before[i] * 0.995f * 0.995f) <= 1e-6f * fabsf(before[i]));
	assert_true(p->layout.live_taps == 9);
	free_batch(&b);
	free(before);
	free(after);
	ls_trainer_free(t);
	ls_graph_free(g);
}

/* Four leaves and a short one, whatever the number of threads. */
static void test_threads(void **state)
{
	(void)state;
	for (int coupled = 0; coupled < 2; coupled++) {
		uint64_t first = 0;
		for (int threads = 1; threads <= 3; threads++) {
			ls_graph *g = make_graph(coupled);
			ls_trainer_options o = base_options(g, 9, 5);
			o.tails[0] = 2;
			o.threads = threads;
			uint64_t f = fingerprint_after(&o, 3, 4 * 9 + 2, NULL);
			first = threads == 1 ? f : first;
			assert_int_equal(f, first);
			ls_graph_free(g);
		}
	}
}

/* A trainer's parameter, as PyTorch has it; to be freed. */
static float *exported(const ls_trainer *t, const ls_param *p)
{
	float *values = calloc(ls_param_elements(p), sizeof(float));
	ls_param_export(p, LS_STORE_WHOLE, t->params, values);
	return values;
}

/* The first step of LAMB on one parameter: m and v, corrected, are the gradient and its square. */
static void check_lamb(const ls_param *p, const float *before, const float *grads, const float *after, double lr,
		       const ls_hyper *h)
{
	size_t count = ls_param_elements(p), still = 0;
	double params = 0, direction = 0, *u = calloc(count, sizeof *u);
	int weight = p->role == LS_ROLE_WEIGHT;
	for (size_t i = 0; i < count; i++) {
		u[i] = grads[i] / (fabs(grads[i]) + h->epsilon) + (weight ? h->weight_decay * before[i] : 0);
		params += (double)before[i] * before[i];
		direction += u[i] * u[i];
		still += grads[i] == 0;
	}
	double ratio = weight && params > 0 && direction > 0 ? sqrt(params / direction) : 1;
	for (size_t i = 0; i < count; i++)
		if (!(fabs(after[i] - (before[i] - lr * ratio * u[i])) < 2e-5 * lr * ratio + 1e-7))
			fail_msg("%s, element %zu: %.9g, expected %.9g", p->name, i, after[i],
				 before[i] - lr * ratio * u[i]);
	if (strcmp(p->name, "b.weight") == 0 && p->rank == 4)
		assert_true(still >= count * 16 / 25); /* dead taps count in the norms, and shrink */
	free(u);
}

/* Weights of several blocks, which begin and end inside of them. */
static ls_graph *make_wide_graph(void)
{
	ls_graph *g = NULL;
	check_status(ls_graph_new(&g));
	ls_value x = ls_linear(g, ls_input(g, 1, SIDE, SIDE), "a", (ls_linear_options){ .out_features = 250 });
	x = ls_linear(g, ls_relu(g, x), "b", (ls_linear_options){ .out_features = 300 });
	check_status(ls_graph_finish(g, ls_linear(g, x, "c", (ls_linear_options){ .out_features = CLASSES })));
	return g;
}

/* One step of LAMB against the formula, with gradients that a step of SGD tells. */
static void test_lamb(void **state)
{
	(void)state;
	for (int round = 0; round < 4; round++) {
		int wide = round / 2, devices = 1 + round % 2;
		ls_graph *graph[2];
		for (int i = 0; i < 2; i++)
			graph[i] = wide ? make_wide_graph() : make_graph(1);
		ls_trainer *t[2];
		batch b = make_batch(3, 40);
		float *before[64], *grads[64];
		const ls_param_table *table = &graph[1]->params;
		ls_hyper h = { .beta1 = 0.9, .beta2 = 0.999, .epsilon = 0.02, .weight_decay = 0.3 };
		assert_true(table->count <= 64);
		assert_true(!wide || table->live > 4 * LS_NORM_BLOCK);
		for (int i = 0; i < 2; i++) {
			ls_trainer_options o = base_options(graph[i], 20, 2);
			o.optimizer = i == 0 ? "sgd" : "lamb";
			o.hyper = i == 0 ? (ls_hyper){ 0 } : h;
			o.schedule.lr = i == 0 ? 1 : 0.05;
			o.devices = devices;
			check_status(ls_trainer_new(&t[i], &o));
			check_status(ls_trainer_init(t[i]));
			for (size_t r = 0; i == 0 && r < table->count; r++)
				if (ls_param_is_trained(&table->rows[r]))
					before[r] = exported(t[0], &graph[0]->params.rows[r]);
			step(t[i], &b, 20);
		}
		for (size_t r = 0; r < table->count; r++) {
			const ls_param *p = &table->rows[r];
			if (!ls_param_is_trained(p))
				continue;
			grads[r] = exported(t[0], &graph[0]->params.rows[r]);
			for (size_t i = 0; i < ls_param_elements(p); i++)
				grads[r][i] = before[r][i] - grads[r][i];
			float *after = exported(t[1], p);
			check_lamb(p, before[r], grads[r], after, 0.05, &h);
			free(after);
			free(grads[r]);
			free(before[r]);
		}
		free_batch(&b);
		for (int i = 0; i < 2; i++) {
			ls_trainer_free(t[i]);
			ls_graph_free(graph[i]);
		}
	}
}

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Any number of devices and threads, any number of leaves, tails: the bits of one device. */
static void test_devices(void **state)
{
	(void)state;
	for (int64_t leaves = 1; leaves <= 9; leaves++)
		for (int coupled = 0; coupled < 2; coupled++) {
			uint64_t first = 0;
			for (int devices = 1; devices <= 4; devices++)
				for (int threads = 1; threads <= 2; threads++) {
					ls_graph *g = make_graph(coupled);
					ls_trainer_options o = base_options(g, 5, leaves);
					int64_t tail = leaves % 3; /* 0: none */
					o.tails[0] = tail;
					o.devices = devices;
					o.threads = threads;
					o.clip_norm = leaves % 4 == 2 ? 0.1 : 0;
					if (leaves == 1 || leaves == 6 || leaves == 7) /* 6: with clipping */
						o.optimizer = "lamb", o.hyper.weight_decay = 0.01;
					uint64_t f =
						fingerprint_after(&o, 3, leaves * 5 - (tail > 0 ? 5 - tail : 0), NULL);
					first = devices == 1 && threads == 1 ? f : first;
					if (f != first)
						fail_msg("%lld leaves, %s, %d devices of %d threads: %016llx, not "
							 "%016llx",
							 (long long)leaves, coupled ? "coupled" : "sliced", devices,
							 threads, (unsigned long long)f, (unsigned long long)first);
					ls_graph_free(g);
				}
		}
}

/* Whoever computes which leaf: random dealings give the bits of the even one. */
static void test_dealing(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 12; round++) {
		uint32_t words[4];
		ls_rng_words(ls_rng_make(SEED, LS_RNG_TEST, 9), round, 0, words);
		int devices = 2 + (int)(words[0] % 3), leaves = 2 + (int)(words[1] % 8), node[LEAVES_MAX] = { 0 };
		uint64_t fingerprint[2];
		for (int dealt = 0; dealt < 2; dealt++) {
			ls_graph *g = make_graph(1);
			ls_trainer_options o = base_options(g, 4, leaves);
			ls_trainer *t = NULL;
			o.devices = dealt ? devices : 1;
			check_status(ls_trainer_new(&t, &o));
			check_status(ls_trainer_init(t));
			for (uint64_t s = 0; s < 3; s++) {
				batch b = make_batch(100 * s, 4 * leaves);
				take_in_hand(t, &b, 4);
				/* runs in random order of devices, some of them empty */
				ls_rng_words(ls_rng_make(SEED, LS_RNG_TEST, 10), round, s, words);
				for (int i = 0; dealt && i < leaves; i++)
					hand.device[i] =
						(int)((words[2] + words[3] % 3 * (uint32_t)i / 3) % (uint32_t)devices);
				qsort(hand.device, (size_t)leaves, sizeof(int), compare_ints);
				ls_trainer_deal deal = {
					.leaves = leaves, .samples = b.count, .node = node, .device = hand.device
				};
				check_status(ls_trainer_step(t, &deal));
				free_batch(&b);
			}
			check_status(ls_trainer_fingerprint(t, &fingerprint[dealt]));
			ls_trainer_free(t);
			ls_graph_free(g);
		}
		if (fingerprint[0] != fingerprint[1])
			fail_msg("seed %d, round %llu: %d devices, %d leaves differ", SEED, (unsigned long long)round,
				 devices, leaves);
	}
}

/* A leaf that cannot be read ends the step with its reason, on every number of devices, and nobody hangs. */
static void test_lost_leaf(void **state)
{
	(void)state;
	for (int devices = 1; devices <= 3; devices++)
		for (int64_t lost = 0; lost < 4; lost++) {
			ls_graph *g = make_graph(1);
			ls_trainer_options o = base_options(g, 5, 4);
			ls_trainer *t = NULL;
			batch b = make_batch(0, 20);
			o.devices = devices;
			check_status(ls_trainer_new(&t, &o));
			check_status(ls_trainer_init(t));
			take_in_hand(t, &b, 5);
			hand.fails = lost;
			ls_trainer_deal deal = { .leaves = 4, .samples = 20 };
			assert_int_equal(ls_trainer_step(t, &deal), LS_EIO);
			assert_non_null(strstr(ls_last_error(), "is lost"));
			free_batch(&b);
			ls_trainer_free(t);
			ls_graph_free(g);
		}
}

/* Where samples do not meet, four leaves are one batch up to rounding. */
static void test_leaves_are_a_batch(void **state)
{
	ls_graph *g = make_graph(0), *h = make_graph(0);
	ls_trainer_options four = base_options(g, 10, 4), one = base_options(h, 40, 1);
	ls_trainer *a = NULL, *b = NULL;
	batch data = make_batch(7, 40);
	(void)state;
	four.optimizer = one.optimizer = "sgd";
	check_status(ls_trainer_new(&a, &four));
	check_status(ls_trainer_new(&b, &one));
	check_status(ls_trainer_init(a));
	check_status(ls_trainer_init(b));
	double loss_a = step(a, &data, 10), loss_b = step(b, &data, 40);
	assert_true(fabs(loss_a - loss_b) < 1e-6);
	for (size_t i = 0; i < g->params.total; i++)
		assert_true(fabsf(a->params[i] - b->params[i]) < 1e-6f);
	free_batch(&data);
	ls_trainer_free(a);
	ls_trainer_free(b);
	ls_graph_free(g);
	ls_graph_free(h);
}

static void test_loss_falls(void **state)
{
	(void)state;
	for (int coupled = 0; coupled < 2; coupled++) {
		ls_graph *g = make_graph(coupled);
		ls_trainer_options o = base_options(g, 32, 1);
		double first = 0, last = 0;
		fingerprint_after(&o, 1, 32, &first);
		fingerprint_after(&o, 60, 32, &last);
		if (!(last < 0.4 * first && last < 0.5))
			fail_msg("seed %d: the loss went from %g to %g", SEED, first, last);
		ls_graph_free(g);
	}
}

/* SGD moves by lr * gradient; clipped, by lr * limit. */
static void test_clipping(void **state)
{
	double length[2] = { 0, 0 }, norm = 0;
	const double limit = 0.05;
	(void)state;
	for (int clipped = 0; clipped < 2; clipped++) {
		ls_graph *g = make_graph(0);
		ls_trainer *t = NULL;
		ls_trainer_options o = base_options(g, 20, 2);
		o.optimizer = "sgd";
		o.hyper.momentum = 0;
		o.clip_norm = clipped ? limit : 1e9;
		check_status(ls_trainer_new(&t, &o));
		check_status(ls_trainer_init(t));
		float *before = calloc(g->params.live, sizeof(float));
		memcpy(before, t->params, g->params.live * sizeof(float));
		batch b = make_batch(0, 40);
		step(t, &b, 20);
		for (size_t i = 0; i < g->params.live; i++)
			length[clipped] += pow((double)t->params[i] - before[i], 2);
		length[clipped] = sqrt(length[clipped]);
		norm = t->notes[0].gradient_norm;
		free_batch(&b);
		free(before);
		ls_trainer_free(t);
		ls_graph_free(g);
	}
	assert_true(norm > 2 * limit);
	assert_true(fabs(length[0] - 0.01 * norm) < 1e-4 * length[0]);
	assert_true(fabs(length[1] - 0.01 * limit) < 1e-3 * length[1]);
}

/* running = 0.9 running + 0.1 batch, the variance unbiased; over leaves the mean, weighted by samples. */
static void check_running(int64_t leaf, int64_t count)
{
	ls_graph *g = NULL;
	ls_trainer *t = NULL;
	batch b = make_batch(11, count);
	double mean = 0, variance = 0;

	check_status(ls_graph_new(&g));
	ls_value x = ls_batch_norm(g, ls_input(g, 1, SIDE, SIDE), "n", (ls_norm_options){ 0 });
	check_status(ls_graph_finish(g, ls_linear(g, x, "fc", (ls_linear_options){ .out_features = CLASSES })));
	ls_trainer_options o = base_options(g, leaf, (count + leaf - 1) / leaf);
	o.tails[0] = count % leaf;
	check_status(ls_trainer_new(&t, &o));
	check_status(ls_trainer_init(t));
	for (int64_t first = 0; first < count; first += leaf) {
		int64_t n = count - first < leaf ? count - first : leaf;
		double sum = 0, squares = 0, elements = (double)(n * IMAGE);
		for (int64_t i = first * IMAGE; i < (first + n) * IMAGE; i++)
			sum += b.images[i];
		for (int64_t i = first * IMAGE; i < (first + n) * IMAGE; i++)
			squares += pow(b.images[i] - sum / elements, 2);
		mean += (double)n / (double)count * sum / elements;
		variance += (double)n / (double)count * squares / (elements - 1);
	}
	step(t, &b, leaf);
	float got[2];
	for (size_t i = 0; i < g->params.count; i++)
		if (g->params.rows[i].role == LS_ROLE_BUFFER)
			ls_param_export(&g->params.rows[i], LS_STORE_WHOLE, t->buffers,
					&got[strcmp(g->params.rows[i].name, "n.running_var") == 0]);
	assert_true(fabs(got[0] - 0.1 * mean) < 1e-6);
	assert_true(fabs(got[1] - (0.9 + 0.1 * variance)) < 1e-6);
	assert_int_equal(t->batches_tracked, 1);
	free_batch(&b);
	ls_trainer_free(t);
	ls_graph_free(g);
}

static void test_running_statistics(void **state)
{
	(void)state;
	check_running(30, 30);
	check_running(10, 40);
	check_running(16, 37);
}

static void test_planned_bytes(void **state)
{
	(void)state;
	for (int64_t leaves = 1; leaves <= 3; leaves++) {
		ls_graph *g = make_graph(1);
		ls_trainer_options o = base_options(g, 20, leaves);
		ls_trainer_bytes bytes;
		ls_trainer *t = NULL;
		check_status(ls_trainer_plan(&o, &bytes));
		check_status(ls_trainer_new(&t, &o));
		assert_int_equal(bytes.workspace, ls_exec_workspace(t->device[0].exec));
		if (leaves == 1)
			assert_int_equal(bytes.gradients, ls_exec_shared_grads(g, 20) * sizeof(float));
		else
			assert_true(bytes.gradients >= 2 * g->params.live * sizeof(float));
		assert_int_equal(bytes.state, 2 * g->params.live * sizeof(float));
		ls_trainer_free(t);
		ls_graph_free(g);
	}
}

/* The user's own dataset. */
typedef struct source {
	uint64_t poisoned; /* this sample is NaN */
	atomic_long reads;
	long stop_after; /* ask the run to stop at this read; 0: never */
} source;

static ls_status source_read(void *self, uint64_t index, float *image, int32_t *label)
{
	source *s = self;
	draw(index, image, label);
	if (index == s->poisoned)
		image[3] = NAN;
	if (atomic_fetch_add(&s->reads, 1) + 1 == s->stop_after)
		ls_train_stop();
	return LS_OK;
}

static ls_dataset *make_dataset(source *s, uint64_t samples)
{
	static const ls_dataset_ops ops = { .read = source_read };
	ls_dataset *d = NULL;
	ls_dataset_info info = { .name = "quadrants",
				 .samples = samples,
				 .channels = 1,
				 .height = SIDE,
				 .width = SIDE,
				 .classes = CLASSES };
	check_status(ls_dataset_new(&d, &info, &ops, s));
	return d;
}

static ls_train_options run_options(ls_graph *g, const ls_dataset *train)
{
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;
	o.graph = g;
	o.train_set = train;
	o.devices = 1;
	o.batch = 16;
	o.lr = 0.01;
	o.epochs = 3;
	o.quiet = 1;
	return o;
}

static void slow_update(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	(void)context, (void)begin, (void)end, (void)grads, (void)member;
	usleep(10000);
}

/* Updates that run while backward goes belong to no layer's time. */
static void test_profile_leaves_updates_out(void **state)
{
	(void)state;
	ls_graph *g = make_graph(0);
	batch b = make_batch(0, 8);
	ls_trainer_options o = base_options(g, 8, 1);
	ls_trainer *t = NULL;
	o.profile = 1;
	check_status(ls_trainer_new(&t, &o));
	check_status(ls_trainer_init(t));
	float *grads = calloc(g->params.live + 16, sizeof(float));
	ls_exec_leaf job = { .count = 8,
			     .images = b.images,
			     .labels = b.labels,
			     .samples = b.samples,
			     .params = t->params,
			     .buffers = t->buffers,
			     .grads = grads,
			     .stats = t->device[0].stats,
			     .ready = slow_update };
	ls_exec_train(t->device[0].exec, &job);
	double sum = 0, forward, backward, macs;
	for (int i = 0; ls_exec_profile(t->device[0].exec, i, &forward, &backward, &macs); i++)
		sum += backward;
	assert_true(sum < 0.02); /* fc's two announcements alone took that long */
	free(grads);
	ls_trainer_free(t);
	free_batch(&b);
	ls_graph_free(g);
}

static void test_nan_names_its_step(void **state)
{
	enum { SAMPLES = 160, BATCH = 16 };
	source s = { .poisoned = 77 };
	ls_graph *g = make_graph(1);
	ls_dataset *d = make_dataset(&s, SAMPLES);
	ls_train_options o = run_options(g, d);
	char expected[64];
	uint64_t place = 0;
	(void)state;
	while (ls_permute(o.seed, 0, SAMPLES, place) != s.poisoned)
		place++;
	snprintf(expected, sizeof expected, "at step %llu ", (unsigned long long)(place / BATCH + 1));
	assert_int_equal(ls_train(&o, NULL), LS_ENUMERIC);
	if (strstr(ls_last_error(), "NaN") == NULL || strstr(ls_last_error(), expected) == NULL)
		fail_msg("the message is '%s', expected '%s' in it", ls_last_error(), expected);
	ls_dataset_free(d);
	ls_graph_free(g);
}

static void test_own_model_and_data(void **state)
{
	source s = { .poisoned = UINT64_MAX }, held_out = { .poisoned = UINT64_MAX };
	ls_graph *g = make_graph(1);
	ls_dataset *train = make_dataset(&s, 600), *test = make_dataset(&held_out, 900);
	ls_train_options o = run_options(g, train);
	ls_train_result result, again;
	(void)state;
	o.test_set = test;
	check_status(ls_train(&o, &result));
	assert_int_equal(result.steps, 3 * 38);
	assert_true(result.test_accuracy > 0.9);
	assert_true(result.train_loss < 0.5);
	assert_true(isfinite(result.test_loss));
	o.threads = 2;
	check_status(ls_train(&o, &again));
	assert_int_equal(again.fingerprint, result.fingerprint);
	o.seed = 2;
	check_status(ls_train(&o, &again));
	assert_int_not_equal(again.fingerprint, result.fingerprint);
	ls_dataset_free(train);
	ls_dataset_free(test);
	ls_graph_free(g);
}

/* A dataset that does not fit the model is refused before any step. */
static void test_shapes_must_fit(void **state)
{
	source s = { .poisoned = UINT64_MAX };
	ls_graph *g = NULL;
	ls_dataset *d = make_dataset(&s, 100);
	(void)state;
	check_status(ls_graph_new(&g));
	ls_value x = ls_linear(g, ls_input(g, 1, SIDE + 1, SIDE), "fc", (ls_linear_options){ .out_features = CLASSES });
	check_status(ls_graph_finish(g, x));
	ls_train_options o = run_options(g, d);
	assert_int_not_equal(ls_train(&o, NULL), LS_OK);
	assert_true(atomic_load(&s.reads) == 0);
	ls_dataset_free(d);
	ls_graph_free(g);
}

/* Stopped twice, each time when about `stop_after` samples were read, and resumed to its end. */
static uint64_t run_with_stops(const char *directory, long stop_after, int *stops)
{
	source s = { .poisoned = UINT64_MAX, .stop_after = stop_after };
	ls_dataset *d = make_dataset(&s, 150);
	ls_graph *g = make_graph(1);
	ls_train_options o = run_options(g, d);
	ls_train_result result = { 0 };
	ls_status status;

	o.run = directory;
	*stops = 0;
	while ((status = ls_train(&o, &result)) == LS_EINTERRUPTED) {
		atomic_store(&s.reads, 0);
		s.stop_after = ++*stops < 2 ? stop_after : 0;
		o.resume = 1;
	}
	check_status(status);
	assert_int_equal(result.steps, 30);
	ls_dataset_free(d);
	ls_graph_free(g);
	return result.fingerprint;
}

static int make_directory(void **state)
{
	static char root[512];
	const char *tmp = getenv("TMPDIR");
	snprintf(root, sizeof root, "%s/lockstep-trainer-XXXXXX", tmp != NULL ? tmp : "/tmp");
	*state = mkdtemp(root);
	return *state == NULL;
}

static int remove_directory(void **state)
{
	return ls_path_remove_tree(*state) != LS_OK;
}

/* A run stopped anywhere, in the middle of an epoch too, ends with the fingerprint of one never stopped. */
static void test_resume(void **state)
{
	static const long stops_after[] = { 0, 80, 115, 151, 290 };
	uint64_t whole = 0;
	for (int i = 0; i < 5; i++) {
		char directory[600];
		int stops = 0;
		snprintf(directory, sizeof directory, "%s/%d", (char *)*state, i);
		uint64_t f = run_with_stops(directory, stops_after[i], &stops);
		whole = i == 0 ? f : whole;
		assert_int_equal(f, whole);
		assert_true(i == 0 || stops > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_early_update),
		cmocka_unit_test(test_lamb),
		cmocka_unit_test(test_dead_weights_decay),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_dealing),
		cmocka_unit_test(test_lost_leaf),
		cmocka_unit_test(test_leaves_are_a_batch),
		cmocka_unit_test(test_loss_falls),
		cmocka_unit_test(test_clipping),
		cmocka_unit_test(test_running_statistics),
		cmocka_unit_test(test_planned_bytes),
		cmocka_unit_test(test_profile_leaves_updates_out),
		cmocka_unit_test(test_nan_names_its_step),
		cmocka_unit_test(test_own_model_and_data),
		cmocka_unit_test(test_shapes_must_fit),
		cmocka_unit_test_setup_teardown(test_resume, make_directory, remove_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
