/*
 * The executor's invariants: no allocation in a step, no dependence on threads, on what ran before or on stale memory;
 * micro-batches in tiles, tails, inference; what `ready` promises.
 */
#include <math.h>

#include "support/reference.h"
#include "unit/backends/exec_checks.h"
#include "unit/graph/net.h"
#include "unit/test_main.h"

/* Samples do not meet: runs in tiles. */
static ls_graph *tiled(void)
{
	ls_graph *g = net_graph();
	ls_value x = ls_input(g, 1, 9, 8);
	x = ls_max_pool2d(g, ls_relu(g, net_conv(g, x, "a", 20, 3, 1)), (ls_pool_options){ .kernel = 2 });
	ls_value y = net_dropout(g, ls_relu(g, net_conv(g, x, "b", 70, 3, 1)), 0.2f);
	ls_value z = ls_avg_pool2d(g, net_conv(g, x, "c", 70, 1, 0),
				   (ls_pool_options){ .kernel = 3, .stride = 1, .padding = 1 });
	x = net_dropout(g, ls_relu(g, net_linear(g, ls_add(g, y, z), "d", 40)), 0.5f);
	assert_ok(ls_graph_finish(g, net_head(g, x)));
	return g;
}

/* Batch statistics: a micro-batch runs whole. All kinds of nodes, values read more than once, unreachable taps. */
static ls_graph *coupled(void)
{
	ls_graph *g = net_graph();
	ls_value x = ls_input(g, 3, 8, 8), y;
	x = ls_conv2d(g, x, "stem",
		      (ls_conv_options){ .out_channels = 20, .kernel = 7, .stride = 2, .padding = 3, .no_bias = 1 });
	x = ls_max_pool2d(g, ls_relu(g, net_norm(g, x, "n0")),
			  (ls_pool_options){ .kernel = 3, .stride = 2, .padding = 1 });
	y = ls_relu(g, net_norm(g, net_conv(g, x, "a", 20, 3, 0), "n1"));
	x = ls_relu(g, ls_add(g, net_norm(g, net_conv(g, y, "b", 20, 3, 0), "n2"), x));
	y = ls_conv2d(g, x, "c",
		      (ls_conv_options){ .out_channels = 70, .kernel = 3, .stride = 2, .padding = 1, .no_bias = 1 });
	y = net_norm(g, net_conv(g, ls_relu(g, net_norm(g, y, "n3")), "d", 70, 3, 0), "n4");
	x = ls_conv2d(g, x, "down", (ls_conv_options){ .out_channels = 70, .kernel = 1, .stride = 2, .no_bias = 1 });
	x = ls_relu(g, ls_add(g, y, net_norm(g, x, "n5")));
	x = ls_add(g, net_dropout(g, x, 0.1f), ls_relu(g, net_norm(g, x, "n6")));
	assert_ok(ls_graph_finish(g, net_head(g, ls_global_avg_pool(g, ls_flatten(g, x)))));
	return g;
}

static const exec_maker makers[] = { tiled, coupled };

EXEC_SUBJECT(net, net_init, net_microbatch, net_release);

EXEC_TESTS(makers, 1, 33, 70, 300)

/* A micro-batch of 100 is a tile of 64 and one of 36. */
static void test_tiles(void **state)
{
	net whole, parts;
	(void)state;
	net_init(&whole, tiled(), 100, 0, 1, 0);
	net_init(&parts, tiled(), 64, 36, 1, 0);
	assert_int_equal(LS_TILE, 64);
	assert_int_equal(whole.exec->largest, 64);
	net_train(&whole, 100);

	double loss = 0;
	int64_t correct = 0;
	size_t reachable = whole.graph->params.reachable;
	float *sum = net_take(reachable * sizeof(float));
	for (int64_t first = 0; first < 100; first += 64) {
		ls_exec_microbatch microbatch = net_microbatch(&parts, first == 0 ? 64 : 36);
		microbatch.images = whole.images + first * 72;
		microbatch.labels = whole.labels + first;
		microbatch.samples = whole.samples + first;
		ls_exec_train(parts.exec, &microbatch);
		loss += microbatch.loss;
		correct += microbatch.correct;
		for (size_t i = 0; i < reachable; i++)
			sum[i] += parts.grads[i];
	}
	assert_true(fabs(loss - whole.microbatch.loss) < 1e-9 * loss);
	assert_int_equal(correct, whole.microbatch.correct);
	exec_check_tile_sums(&whole, sum);
	free(sum);
	net_release(&parts);
	net_release(&whole);
}

/* A sample's logits do not depend on the other samples of its micro-batch. */
static void test_inference_any_cut(void **state)
{
	static const int64_t cuts[] = { 1, 7, 36, 64, 65, 100 };
	(void)state;
	for (int m = 0; m < 2; m++) {
		net whole;
		net_init(&whole, makers[m](), 100, 0, 2, 1);
		const ls_tensor *in = &whole.graph->values[whole.graph->input];
		int64_t image = (int64_t)in->channels * in->height * in->width;
		float *logits = net_take(100 * NET_CLASSES * sizeof(float)),
		      *part = net_take(100 * NET_CLASSES * sizeof(float));
		ls_exec_microbatch microbatch = net_microbatch(&whole, 100);
		ls_exec_infer(whole.exec, &microbatch, logits);
		for (int c = 0; c < 6; c++) {
			net cut;
			net_init(&cut, makers[m](), cuts[c], 100 % cuts[c], 1, 1);
			for (int64_t first = 0; first < 100; first += cuts[c]) {
				int64_t count = 100 - first < cuts[c] ? 100 - first : cuts[c];
				ls_exec_microbatch few = net_microbatch(&cut, count);
				few.images = whole.images + first * image;
				few.labels = whole.labels + first;
				ls_exec_infer(cut.exec, &few, part + first * NET_CLASSES);
			}
			net_same_floats("logits", part, logits, 100 * NET_CLASSES);
			net_release(&cut);
		}
		free(logits);
		free(part);
		net_release(&whole);
	}
}

static float *params_of(net *t, const char *name, float *out)
{
	const ls_param_table *table = &t->graph->params;
	for (size_t i = 0; i < table->count; i++) {
		const ls_param *p = &table->rows[i];
		if (strcmp(p->name, name) == 0) {
			ls_param_export(p, LS_STORE_WHOLE, p->role == LS_ROLE_BUFFER ? t->buffers : t->params, out);
			return out;
		}
	}
	fail_msg("no parameter %s", name);
	return NULL;
}

/* conv 2x2 -> norm -> relu -> linear, written out. */
static void test_inference_by_hand(void **state)
{
	enum { N = 3, C = 4 };
	float w[C * 4], b[C], scale[C], shift[C], mean[C], var[C], fc[NET_CLASSES * C * 4], bias[NET_CLASSES];
	float got[N * NET_CLASSES];
	double loss = 0;
	int64_t correct = 0;
	net t;
	ls_graph *g = net_graph();
	ls_value x = ls_input(g, 1, 3, 3);
	(void)state;
	x = ls_conv2d(g, x, "conv", (ls_conv_options){ .out_channels = C, .kernel = 2 });
	assert_ok(ls_graph_finish(g, net_head(g, ls_relu(g, net_norm(g, x, "norm")))));
	net_init(&t, g, N, 0, 1, 1);
	params_of(&t, "conv.weight", w), params_of(&t, "conv.bias", b);
	params_of(&t, "norm.weight", scale), params_of(&t, "norm.bias", shift);
	params_of(&t, "norm.running_mean", mean), params_of(&t, "norm.running_var", var);
	params_of(&t, "head.weight", fc), params_of(&t, "head.bias", bias);
	ls_exec_microbatch microbatch = net_microbatch(&t, N);
	ls_exec_infer(t.exec, &microbatch, got);

	for (int i = 0; i < N; i++) {
		double z[NET_CLASSES], sum = 0;
		int best = 0;
		for (int k = 0; k < NET_CLASSES; k++)
			z[k] = bias[k];
		for (int c = 0; c < C; c++)
			for (int p = 0; p < 4; p++) {
				double a = b[c];
				for (int tap = 0; tap < 4; tap++)
					a += w[c * 4 + tap] * t.images[i * 9 + (p / 2 + tap / 2) * 3 + p % 2 + tap % 2];
				a = (a - mean[c]) / sqrt(var[c] + 1e-5) * scale[c] + shift[c];
				for (int k = 0; k < NET_CLASSES; k++)
					z[k] += fmax(a, 0) * fc[k * C * 4 + c * 4 + p];
			}
		for (int k = 0; k < NET_CLASSES; k++) {
			assert_true(fabs(z[k] - got[i * NET_CLASSES + k]) < 1e-5);
			best = z[k] > z[best] ? k : best;
			sum += exp(z[k]);
		}
		loss += log(sum) - z[t.labels[i]];
		correct += best == t.labels[i];
	}
	assert_true(fabs(loss - microbatch.loss) < 1e-5);
	assert_int_equal(correct, microbatch.correct);
	net_release(&t);
}

static void test_bytes(void **state)
{
	static const int64_t counts[] = { 1, 17, 64, 100, 257, 0 };
	(void)state;
	for (int m = 0; m < 2; m++)
		exec_check_bytes(&subject, makers[m], counts);
}

/* Inference needs less; batch statistics make memory grow with the micro-batch, tiles do not. */
static void test_bytes_make_sense(void **state)
{
	size_t train, infer, small, large;
	ls_graph *s = tiled(), *c = coupled();
	(void)state;
	assert_ok(ls_exec_bytes(c, 128, 1, 0, &train));
	assert_ok(ls_exec_bytes(c, 128, 1, 1, &infer));
	assert_true(infer < train / 2);
	assert_ok(ls_exec_bytes(c, 256, 1, 0, &large));
	assert_true(large > train * 3 / 2);
	assert_ok(ls_exec_bytes(s, 64, 1, 0, &small));
	assert_ok(ls_exec_bytes(s, 6400, 1, 0, &large));
	assert_true(large - small < 6400 * 8);
	ls_graph_free(s);
	ls_graph_free(c);
}

/* Micro-batches whose memory cannot be counted, and such that no machine has. */
static void test_absurd_microbatches(void **state)
{
	static const int64_t counts[] = { INT64_MAX, INT64_MAX / 4, (int64_t)1 << 40, ((int64_t)1 << 28) + 1 };
	size_t bytes = 0;
	(void)state;
	for (int m = 0; m < 2; m++)
		for (int c = 0; c < 4; c++) {
			ls_graph *g = makers[m]();
			assert_int_equal(ls_exec_bytes(g, counts[c], 1, 0, &bytes), LS_EMEMORY);
			assert_non_null(strstr(ls_last_error(), "smaller batch"));
			ls_graph_free(g);
		}
	ls_graph *g = net_graph();
	ls_value x = net_norm(g, ls_input(g, 64, 4096, 4096), "n");
	assert_ok(ls_graph_finish(g, net_head(g, ls_global_avg_pool(g, x))));
	assert_int_equal(ls_exec_bytes(g, (int64_t)1 << 28, 1, 0, &bytes), LS_EMEMORY);
	assert_non_null(strstr(ls_last_error(), "TB"));
	ls_graph_free(g);
}

/* A convolution fills in the moments of the norm that follows, maybe much later: their memory is theirs from then on.
 */
static void test_moments_have_memory(void **state)
{
	net t;
	int found = 0;
	(void)state;
	net_init(&t, coupled(), 16, 0, 1, 0);
	for (int i = 0; i < t.exec->op_count; i++) {
		const ls_op *op = &t.exec->ops[i];
		if (!op->moments_from)
			continue;
		for (size_t k = 0; k < t.exec->span_count; k++)
			if (t.exec->workspace + t.exec->spans[k].offset == (char *)op->aux &&
			    t.exec->spans[k].bytes > 0 && t.exec->spans[k].to == 2 * t.exec->op_count - i &&
			    t.exec->spans[k].from <= i) {
				assert_true(t.exec->spans[k].from <= op->moments_from - t.exec->ops);
				found++;
			}
	}
	assert_true(found >= 5);
	net_release(&t);
}

static void test_ready(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 3; threads++) {
		exec_check_ready(&subject, tiled, threads, 0);
		exec_check_ready(&subject, coupled, threads, 0);
		exec_check_ready(&subject, coupled, threads, 1);
	}
}

/* Tiles add up, so their gradients cannot share memory. */
static void test_shared_grads(void **state)
{
	ls_graph *s = tiled(), *c = coupled();
	(void)state;
	assert_int_equal(ls_backend_shared_grads(s, LS_TILE + 1), 0);
	assert_true(ls_backend_shared_grads(s, LS_TILE) > 0);
	assert_true(ls_backend_shared_grads(c, 1000) > 0);
	assert_true(ls_backend_shared_grads(c, 1000) < c->params.reachable);
	ls_graph_free(s);
	ls_graph_free(c);
}

/* The mask of dropout follows the sample, the step and the seed, not the place in a micro-batch. */
static void test_dropout_follows_the_sample(void **state)
{
	net t;
	ls_graph *g = net_graph();
	(void)state;
	assert_ok(ls_graph_finish(g, net_head(g, net_dropout(g, ls_input(g, 1, 6, 6), 0.5f))));
	net_init(&t, g, 1, 0, 1, 0);
	for (int i = 0; i < 36; i++)
		t.images[i] = 1;
	double loss = net_train(&t, 1);
	assert_true(net_train(&t, 1) == loss);
	ls_exec_microbatch microbatch = net_microbatch(&t, 1);
	microbatch.step++;
	ls_exec_train(t.exec, &microbatch);
	assert_true(microbatch.loss != loss);
	microbatch = net_microbatch(&t, 1);
	microbatch.seed++;
	ls_exec_train(t.exec, &microbatch);
	assert_true(microbatch.loss != loss);
	t.samples[0]++;
	assert_true(net_train(&t, 1) != loss);
	net_release(&t);
}

/* A loss that is not a number comes out as such, through every kind of node. */
static void test_nan_comes_through(void **state)
{
	(void)state;
	for (int m = 0; m < 2; m++) {
		net t;
		net_init(&t, makers[m](), 5, 0, 1, 0);
		const ls_tensor *in = &t.graph->values[t.graph->input];
		for (int i = 0; i < in->channels * in->height * in->width; i++)
			t.images[i] = NAN;
		assert_true(isnan(net_train(&t, 5)));
		net_release(&t);
	}
}

static void test_printed_plan(void **state)
{
	char *text = NULL;
	size_t bytes = 0;
	net t;
	(void)state;
	net_init(&t, coupled(), 16, 0, 1, 0);
	FILE *to = open_memstream(&text, &bytes);
	assert_ok(ls_exec_print_plan(t.graph, 8, 1, to));
	fclose(to);
	assert_non_null(strstr(text, "activations"));
	assert_non_null(strstr(text, "stem"));
	free(text);
	net_release(&t);
}

TEST_MAIN(test_threads, test_stale_memory, test_tiles, test_inference_any_cut, test_inference_by_hand,
	  test_no_allocation, test_bytes, test_bytes_make_sense, test_absurd_microbatches, test_moments_have_memory,
	  test_ready, test_shared_grads, test_dropout_follows_the_sample, test_nan_comes_through, test_printed_plan)
