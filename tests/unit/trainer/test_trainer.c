/*
 * Steps on one device: early and late updates, unreachable weights, threads, micro-batches against a batch, clipping,
 * running statistics, planned bytes, what a profile counts.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "backends/cpu/exec.h"
#include "unit/test_main.h"
#include "unit/trainer/quadrants.h"

/* Updating while backward goes gives the bits of updating after it: every optimizer, weight decay and unreachable
 * weights too. (lamb always updates after it; here its own round of measuring is compared with one behind that of
 * clipping.) */
static void test_early_update(void **state)
{
	static const struct {
		const char *optimizer;
		double weight_decay;
	} rows[] = { { "adam", 0 },   { "adam", 0.01 }, { "adamw", 0.01 }, { "sgd", 0 },
		     { "sgd", 0.05 }, { "lamb", 0 },    { "lamb", 0.01 } };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int coupled = 0; coupled < 2; coupled++)
			for (int threads = 1; threads <= 2; threads++) {
				ls_graph *g = make_graph(coupled), *h = make_graph(coupled);
				ls_node_trainer_options early = base_options(g, 20, 1), late;
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
	ls_node_trainer *t = NULL;
	ls_node_trainer_options o = base_options(g, 20, 1);
	(void)state;
	o.optimizer = "sgd";
	o.hyper.momentum = 0;
	o.hyper.weight_decay = 0.5;
	assert_ok(ls_node_trainer_new(&t, &o));
	assert_ok(ls_node_trainer_init(t));
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
	assert_true(p->layout.reachable_taps == 9);
	free_batch(&b);
	free(before);
	free(after);
	ls_node_trainer_free(t);
	ls_graph_free(g);
}

/* Four micro-batches and a short one, whatever the number of threads. */
static void test_threads(void **state)
{
	(void)state;
	for (int coupled = 0; coupled < 2; coupled++) {
		uint64_t first = 0;
		for (int threads = 1; threads <= 3; threads++) {
			ls_graph *g = make_graph(coupled);
			ls_node_trainer_options o = base_options(g, 9, 5);
			o.tails[0] = 2;
			o.threads = threads;
			uint64_t f = fingerprint_after(&o, 3, 4 * 9 + 2, NULL);
			first = threads == 1 ? f : first;
			assert_int_equal(f, first);
			ls_graph_free(g);
		}
	}
}

/* Where samples do not meet, four micro-batches are one batch up to rounding. */
static void test_microbatches_are_a_batch(void **state)
{
	ls_graph *g = make_graph(0), *h = make_graph(0);
	ls_node_trainer_options four = base_options(g, 10, 4), one = base_options(h, 40, 1);
	ls_node_trainer *a = NULL, *b = NULL;
	batch data = make_batch(7, 40);
	(void)state;
	four.optimizer = one.optimizer = "sgd";
	assert_ok(ls_node_trainer_new(&a, &four));
	assert_ok(ls_node_trainer_new(&b, &one));
	assert_ok(ls_node_trainer_init(a));
	assert_ok(ls_node_trainer_init(b));
	double loss_a = step(a, &data, 10), loss_b = step(b, &data, 40);
	assert_true(fabs(loss_a - loss_b) < 1e-6);
	for (size_t i = 0; i < g->params.total; i++)
		assert_true(fabsf(a->params[i] - b->params[i]) < 1e-6f);
	free_batch(&data);
	ls_node_trainer_free(a);
	ls_node_trainer_free(b);
	ls_graph_free(g);
	ls_graph_free(h);
}

static void test_loss_falls(void **state)
{
	(void)state;
	for (int coupled = 0; coupled < 2; coupled++) {
		ls_graph *g = make_graph(coupled);
		ls_node_trainer_options o = base_options(g, 32, 1);
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
		ls_node_trainer *t = NULL;
		ls_node_trainer_options o = base_options(g, 20, 2);
		o.optimizer = "sgd";
		o.hyper.momentum = 0;
		o.clip_norm = clipped ? limit : 1e9;
		assert_ok(ls_node_trainer_new(&t, &o));
		assert_ok(ls_node_trainer_init(t));
		float *before = calloc(g->params.reachable, sizeof(float));
		memcpy(before, t->params, g->params.reachable * sizeof(float));
		batch b = make_batch(0, 40);
		step(t, &b, 20);
		for (size_t i = 0; i < g->params.reachable; i++)
			length[clipped] += pow((double)t->params[i] - before[i], 2);
		length[clipped] = sqrt(length[clipped]);
		norm = t->records[0].gradient_norm;
		free_batch(&b);
		free(before);
		ls_node_trainer_free(t);
		ls_graph_free(g);
	}
	assert_true(norm > 2 * limit);
	assert_true(fabs(length[0] - 0.01 * norm) < 1e-4 * length[0]);
	assert_true(fabs(length[1] - 0.01 * limit) < 1e-3 * length[1]);
}

/* running = 0.9 running + 0.1 batch, the variance unbiased; over micro-batches the mean, weighted by samples. */
static void check_running(int64_t microbatch, int64_t count)
{
	ls_graph *g = NULL;
	ls_node_trainer *t = NULL;
	batch b = make_batch(11, count);
	double mean = 0, variance = 0;

	assert_ok(ls_graph_new(&g));
	ls_value x = ls_batch_norm(g, ls_input(g, 1, SIDE, SIDE), "n", (ls_batch_norm_options){ 0 });
	assert_ok(ls_graph_finish(g,
				  ls_linear(g, x, "fc", (ls_linear_options){ .out_features = CLASSES, .no_bias = 1 })));
	ls_node_trainer_options o = base_options(g, microbatch, (count + microbatch - 1) / microbatch);
	o.tails[0] = count % microbatch;
	assert_ok(ls_node_trainer_new(&t, &o));
	assert_ok(ls_node_trainer_init(t));
	for (int64_t first = 0; first < count; first += microbatch) {
		int64_t n = count - first < microbatch ? count - first : microbatch;
		double sum = 0, squares = 0, elements = (double)(n * IMAGE);
		for (int64_t i = first * IMAGE; i < (first + n) * IMAGE; i++)
			sum += b.images[i];
		for (int64_t i = first * IMAGE; i < (first + n) * IMAGE; i++)
			squares += pow(b.images[i] - sum / elements, 2);
		mean += (double)n / (double)count * sum / elements;
		variance += (double)n / (double)count * squares / (elements - 1);
	}
	step(t, &b, microbatch);
	float got[2];
	for (size_t i = 0; i < g->params.count; i++)
		if (g->params.rows[i].role == LS_ROLE_BUFFER)
			ls_param_export(&g->params.rows[i], LS_STORE_WHOLE, t->buffers,
					&got[strcmp(g->params.rows[i].name, "n.running_var") == 0]);
	assert_true(fabs(got[0] - 0.1 * mean) < 1e-6);
	assert_true(fabs(got[1] - (0.9 + 0.1 * variance)) < 1e-6);
	assert_int_equal(t->batches_tracked, 1);
	free_batch(&b);
	ls_node_trainer_free(t);
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
	for (int64_t microbatches = 1; microbatches <= 3; microbatches++) {
		ls_graph *g = make_graph(1);
		ls_node_trainer_options o = base_options(g, 20, microbatches);
		ls_node_trainer_bytes bytes;
		ls_node_trainer *t = NULL;
		assert_ok(ls_node_trainer_plan(&o, &bytes));
		assert_ok(ls_node_trainer_new(&t, &o));
		assert_int_equal(bytes.workspace, ls_exec_workspace((ls_exec *)t->driver[0].executor));
		if (microbatches == 1)
			assert_int_equal(bytes.gradients, ls_backend_shared_grads(g, 20) * sizeof(float));
		else
			assert_true(bytes.gradients >= 2 * g->params.reachable * sizeof(float));
		assert_int_equal(bytes.state, 2 * g->params.reachable * sizeof(float));
		ls_node_trainer_free(t);
		ls_graph_free(g);
	}
}

static void slow_update(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	(void)context, (void)begin, (void)end, (void)grads, (void)member;
	usleep(10000);
}

static double backward_seconds(const ls_exec *exec)
{
	double sum = 0;
	ls_layer_times times;
	for (int i = 0; ls_exec_layer_times(exec, i, &times); i++)
		sum += times.backward_s;
	return sum;
}

/* Updates that run while backward goes belong to no layer's time. */
static void test_profile_leaves_updates_out(void **state)
{
	(void)state;
	ls_graph *g = make_graph(0);
	batch b = make_batch(0, 8);
	ls_node_trainer_options o = base_options(g, 8, 1);
	ls_node_trainer *t = NULL;
	o.profile = 1;
	assert_ok(ls_node_trainer_new(&t, &o));
	assert_ok(ls_node_trainer_init(t));
	float *grads = calloc(g->params.reachable + 16, sizeof(float));
	ls_exec_microbatch job = { .count = 8,
				   .images = b.images,
				   .labels = b.labels,
				   .samples = b.samples,
				   .grads = grads,
				   .stats = t->driver[0].stats,
				   .ready = slow_update };
	ls_exec *exec = (ls_exec *)t->driver[0].executor;
	ls_exec_set_params(exec, t->params, t->buffers);
	double fastest = INFINITY; /* others may be busy on this machine, but not all the time */
	for (int run = 0; run < 200 && fastest >= 0.02; run++) {
		double before = backward_seconds(exec);
		ls_exec_train(exec, &job);
		fastest = fmin(fastest, backward_seconds(exec) - before);
	}
	assert_true(fastest < 0.02); /* fc's two gradients alone took that long */
	free(grads);
	ls_node_trainer_free(t);
	free_batch(&b);
	ls_graph_free(g);
}

TEST_MAIN(test_early_update, test_dead_weights_decay, test_threads, test_microbatches_are_a_batch, test_loss_falls,
	  test_clipping, test_running_statistics, test_planned_bytes, test_profile_leaves_updates_out)
