/*
 * Losses, gradients, running statistics, one step of Adam and inference of every model family against PyTorch's, on the
 * same weights (tests/golden/README.md).
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/models.h>

#include "backends/cpu/exec.h"
#include "golden/formula.h"
#include "golden/golden.h"
#include "optim/optimizer.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

#define THREADS 2

/* A model with the formula's weights, and what one step made of them. */
typedef struct fixture {
	golden golden;
	ls_graph *graph;
	const ls_param_table *table;
	ls_team *team;
	float *params, *grads, *slots[2]; /* (total), (reachable), (reachable) each */
	float *buffers, *stats;           /* (buffers) */
	float *images;                    /* (batch, C, H, W) */
	int32_t *labels;                  /* (batch) */
	float *logical;                   /* the largest tensor */
} fixture;

static size_t buffer_bytes(size_t count, size_t size)
{
	return (count ? count : 1) * size;
}

static void *take(size_t count, size_t size)
{
	void *memory = NULL;
	assert_ok(ls_buffer_new(&memory, buffer_bytes(count, size), "test"));
	return memory;
}

static size_t largest_tensor(const ls_param_table *table)
{
	size_t most = 1;
	for (size_t i = 0; i < table->count; i++)
		if (ls_param_elements(&table->rows[i]) > most)
			most = ls_param_elements(&table->rows[i]);
	return most;
}

static void fill_weights(fixture *f)
{
	for (size_t i = 0; i < f->table->count; i++) {
		const ls_param *p = &f->table->rows[i];
		if (p->role == LS_ROLE_COUNTER)
			continue;
		golden_fill_param(f->golden.seed, p->name, p->rank, p->shape, f->logical);
		ls_param_import(p, LS_STORE_WHOLE, f->logical, p->role == LS_ROLE_BUFFER ? f->buffers : f->params);
	}
}

static size_t image_floats(const golden *g)
{
	return (size_t)g->channels * (size_t)g->height * (size_t)g->width;
}

static void setup(fixture *f, const char *file)
{
	char path[1024];
	golden *g = &f->golden;

	*f = (fixture){ 0 };
	snprintf(path, sizeof(path), "%s/models/%s.txt", LS_GOLDEN_DIR, file);
	if (golden_open(g, path) != 0)
		fail_msg("%s", g->error);
	ls_model_options options = LS_MODEL_OPTIONS_INIT;
	options.name = g->model;
	options.channels = g->channels;
	options.height = g->height;
	options.width = g->width;
	options.classes = g->classes;
	assert_ok(ls_model_build(&f->graph, &options));
	assert_ok(ls_team_new(&f->team, THREADS));

	f->table = &f->graph->params;
	f->params = take(f->table->total, sizeof(float));
	f->grads = take(f->table->reachable, sizeof(float));
	for (int i = 0; i < 2; i++)
		f->slots[i] = take(f->table->reachable, sizeof(float));
	f->buffers = take(f->table->buffers, sizeof(float));
	f->stats = take(f->table->buffers, sizeof(float));
	f->images = take((size_t)g->batch * image_floats(g), sizeof(float));
	f->labels = take((size_t)g->batch, sizeof(int32_t));
	f->logical = take(largest_tensor(f->table), sizeof(float));
	fill_weights(f);
	golden_fill(g->seed, "input", 0.0f, 1.0f, (size_t)g->batch * image_floats(g), f->images);
	golden_labels(g->seed, g->classes, (size_t)g->batch, f->labels);
}

static void teardown(fixture *f)
{
	ls_buffer_free(f->logical, buffer_bytes(largest_tensor(f->table), sizeof(float)));
	ls_buffer_free(f->labels, buffer_bytes((size_t)f->golden.batch, sizeof(int32_t)));
	ls_buffer_free(f->images, buffer_bytes((size_t)f->golden.batch * image_floats(&f->golden), sizeof(float)));
	ls_buffer_free(f->stats, buffer_bytes(f->table->buffers, sizeof(float)));
	ls_buffer_free(f->buffers, buffer_bytes(f->table->buffers, sizeof(float)));
	for (int i = 0; i < 2; i++)
		ls_buffer_free(f->slots[i], buffer_bytes(f->table->reachable, sizeof(float)));
	ls_buffer_free(f->grads, buffer_bytes(f->table->reachable, sizeof(float)));
	ls_buffer_free(f->params, buffer_bytes(f->table->total, sizeof(float)));
	ls_team_free(f->team);
	ls_graph_free(f->graph);
	golden_close(&f->golden);
}

static void check_close(double got, double expected, double tolerance, const char *tensor, const char *what)
{
	if (!(fabs(got - expected) <= tolerance))
		fail_msg("%s, %s: %.9g, PyTorch has %.9g; off by %.2g, allowed %.2g", tensor, what, got, expected,
			 fabs(got - expected), tolerance);
}

static ls_exec_microbatch whole_batch(const fixture *f)
{
	return (ls_exec_microbatch){ .count = f->golden.batch,
				     .images = f->images,
				     .labels = f->labels,
				     .grads = f->grads,
				     .stats = f->stats,
				     .step = 0 };
}

static ls_exec *executor(const fixture *f, int inference)
{
	ls_exec *exec = NULL;
	assert_ok(ls_exec_new(
		&exec, f->graph,
		&(ls_exec_options){ .sizes = { f->golden.batch }, .team = f->team, .inference = inference }));
	ls_exec_set_params(exec, f->params, f->buffers);
	return exec;
}

/* Logits with the formula's running statistics, before any step. */
static void check_inference(const fixture *f)
{
	const golden *g = &f->golden;
	float *logits = calloc((size_t)g->batch * (size_t)g->classes, sizeof(*logits));
	assert_non_null(logits);
	ls_exec *exec = executor(f, 1);
	ls_exec_microbatch microbatch = whole_batch(f);
	double scale = 0;

	ls_exec_infer(exec, &microbatch, logits);
	for (int i = 0; i < g->logits_count; i++)
		for (int c = 0; c < g->classes; c++)
			scale = fmax(scale, fabs(g->logits[i][c]));
	for (int i = 0; i < g->logits_count; i++)
		for (int c = 0; c < g->classes; c++)
			check_close(logits[g->logits_sample[i] * g->classes + c], g->logits[i][c],
				    g->logits_tolerance * scale, "inference", "logit");
	ls_exec_free(exec);
	free(logits);
}

static void train_step(fixture *f)
{
	const golden *g = &f->golden;
	ls_exec *exec = executor(f, 0);
	ls_exec_microbatch microbatch = whole_batch(f);

	ls_exec_train(exec, &microbatch);
	ls_exec_free(exec);
	check_close(microbatch.loss, g->loss_sum, g->loss_tolerance * g->loss_sum, "loss", "sum");
	assert_int_equal(microbatch.correct, g->correct);
}

static const ls_param *find_param(const fixture *f, const char *name)
{
	for (size_t i = 0; i < f->table->count; i++)
		if (strcmp(f->table->rows[i].name, name) == 0)
			return &f->table->rows[i];
	fail_msg("%s: %s has no such parameter", name, f->golden.model);
	return NULL;
}

/*
 * A tensor x that PyTorch has as y is right when |x - y| <= tolerance * |y| (the norms over all elements). Only norm,
 * sum, probe (a projection on pseudo-random weights) and a few elements of y are known; each bounds its part of that
 * error.
 */
static void check_tensor(const fixture *f, const golden_tensor *t, const float *x, double scale, double tolerance)
{
	uint32_t stream;
	char name[128];
	double squares = 0, sum = 0, probe = 0;

	snprintf(name, sizeof(name), "%s/probe", t->name);
	stream = golden_stream(f->golden.seed, name);
	for (size_t i = 0; i < t->count; i++) {
		double value = (double)x[i] * scale;
		squares += value * value;
		sum += value;
		probe += value * (double)golden_unit(stream, i);
	}
	double error = tolerance * t->norm, rms = t->norm / sqrt((double)t->count);
	check_close(sqrt(squares), t->norm, error, t->name, "norm");
	check_close(probe, t->probe, error, t->name, "probe");
	check_close(sum, t->sum, error * sqrt((double)t->count), t->name, "sum");
	for (int i = 0; i < t->points.count; i++)
		check_close((double)x[t->points.index[i]] * scale, t->points.value[i],
			    5 * tolerance * fmax(rms, fabs(t->points.value[i])), t->name, "element");
}

static const float *export(const fixture *f, const ls_param *p, ls_store_kind kind, const float *store)
{
	ls_param_export(p, kind, store, f->logical);
	return f->logical;
}

static void check_gradients(const fixture *f)
{
	const golden *g = &f->golden;
	for (int i = 0; i < g->tensor_count; i++) {
		const golden_tensor *t = &g->tensors[i];
		if (t->is_buffer)
			continue;
		const ls_param *p = find_param(f, t->name);
		assert_int_equal(ls_param_elements(p), t->count);
		check_tensor(f, t, export(f, p, LS_STORE_REACHABLE, f->grads), 1.0 / g->batch, g->grad_tolerance);
	}
}

static void check_running(fixture *f)
{
	const golden *g = &f->golden;
	float *sums = calloc(f->table->buffers + 1, sizeof(*sums));
	assert_non_null(sums);
	for (size_t i = 0; i < f->table->buffers; i++)
		sums[i] = f->stats[i] * (float)g->batch;
	ls_graph_update_running(f->graph, sums, 0, f->table->buffers, g->batch, f->buffers);
	free(sums);
	for (int i = 0; i < g->tensor_count; i++) {
		const golden_tensor *t = &g->tensors[i];
		if (t->is_buffer)
			check_tensor(f, t, export(f, find_param(f, t->name), LS_STORE_WHOLE, f->buffers), 1.0,
				     g->buffer_tolerance);
	}
}

/* The first step of Adam is lr * g / (|g| + epsilon): a thousandth of it, and rounding of the parameter. */
static void check_adam(const fixture *f)
{
	const golden *g = &f->golden;
	const ls_hyper hyper = { .lr = g->lr, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8 };
	ls_optimizer_pass pass = { .hyper = &hyper,
				   .table = f->table,
				   .params = f->params,
				   .grads = f->grads,
				   .slots = { f->slots[0], f->slots[1] },
				   .scale = 1.0f / (float)g->batch,
				   .step = 1,
				   .lr = g->lr };

	assert_ok(ls_optimizer_find("adam", &pass.kind));
	ls_optimizer_apply(&pass, 0, f->table->reachable);
	for (int i = 0; i < g->tensor_count; i++) {
		const golden_tensor *t = &g->tensors[i];
		if (t->is_buffer)
			continue;
		const float *x = export(f, find_param(f, t->name), LS_STORE_WHOLE, f->params);
		for (int k = 0; k < t->after.count; k++)
			check_close(x[t->after.index[k]], t->after.value[k],
				    1e-3 * g->lr + 2e-7 * fabs(t->after.value[k]), t->name, "after Adam");
	}
}

/* Nothing of the model may be missing from the file. */
static void check_coverage(const fixture *f)
{
	int rows = 0;
	for (size_t i = 0; i < f->table->count; i++)
		rows += f->table->rows[i].role != LS_ROLE_COUNTER;
	assert_int_equal(rows, f->golden.tensor_count);
}

static void check_model(const char *file)
{
	fixture f;
	setup(&f, file);
	check_coverage(&f);
	check_inference(&f);
	train_step(&f);
	check_gradients(&f);
	check_running(&f);
	check_adam(&f);
	teardown(&f);
}

static void mlp(void **state)
{
	(void)state;
	check_model("mlp");
}

static void cnn_in_shards(void **state)
{
	(void)state;
	check_model("cnn");
}

static void resnet18(void **state)
{
	(void)state;
	check_model("resnet18");
}

static void resnet18_rgb_odd_batch(void **state)
{
	(void)state;
	check_model("resnet18-rgb32");
}

static void resnet50(void **state)
{
	(void)state;
	check_model("resnet50");
}

/* The formula gives the bits Python had; all the rest stands on that. */
static void formula_bits(void **state)
{
	(void)state;
	static float values[65536];
	char word[32], name[96];
	int tensors = 0, rank;
	FILE *from = fopen(LS_GOLDEN_DIR "/models/formula.txt", "r");
	assert_non_null(from);
	assert_int_equal(fscanf(from, " #%*[^\n]"), 0);
	while (fscanf(from, "%31s", word) == 1 && strcmp(word, "tensor") == 0) {
		int64_t shape[4];
		size_t count = 1;
		uint32_t expected, got = 2166136261u;
		assert_int_equal(fscanf(from, "%95s %d", name, &rank), 2);
		assert_in_range(rank, 1, 4);
		for (int d = 0; d < rank; d++) {
			assert_int_equal(fscanf(from, "%ld", &shape[d]), 1);
			count *= (size_t)shape[d];
		}
		assert_in_range(count, 1, sizeof(values) / sizeof(*values));
		assert_int_equal(fscanf(from, "%x", &expected), 1);
		golden_fill_param(1, name, rank, shape, values);
		for (size_t i = 0; i < count; i++) {
			uint32_t bits;
			memcpy(&bits, &values[i], sizeof(bits));
			got = (got ^ bits) * 16777619u;
		}
		assert_int_equal(got, expected);
		tensors++;
	}
	fclose(from);
	assert_string_equal(word, "end");
	assert_int_equal(tensors, 6);
}

TEST_MAIN(formula_bits, mlp, cnn_in_shards, resnet18, resnet18_rgb_odd_batch, resnet50)
