/*
 * The best evaluation of a run: which one it is, its weights beside the checkpoints, an end where no better one comes,
 * and a moving average of weights; the same on any nodes, and after a stop at any step.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/model.h>

#include "run/best.h"
#include "unit/assert_status.h"
#include "unit/run/train_gang.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

/* Steps of 24, 24 and 12 samples per epoch, tested every second step. */
static ls_train_options job(void)
{
	ls_train_options o = short_run("mlp", 60, 24, 6);
	o.test_samples = 60;
	o.threads = 1;
	o.epochs = 4;
	o.eval_steps = 2;
	o.ema = 0.75;
	o.keep_best = "f1";
	o.quiet = 1;
	return o;
}

/* in_dir() rotates its buffers. */
typedef struct place {
	char path[4096];
} place;

static place place_of(const char *dir, const char *name)
{
	place p;
	assert_ok(ls_path_join(p.path, sizeof(p.path), dir, name));
	return p;
}

static ls_train_result train(const ls_train_options *o)
{
	ls_train_result result;
	if (ls_train_node(o, NULL, &result) != LS_OK)
		fail_msg("%s", ls_last_error());
	return result;
}

static void assert_same(const ls_train_result *a, const ls_train_result *b)
{
	assert_int_equal(a->steps, b->steps);
	assert_int_equal(a->fingerprint, b->fingerprint);
	assert_true(a->test_loss == b->test_loss && a->test_accuracy == b->test_accuracy);
	assert_int_equal(a->best_step, b->best_step);
	assert_true(a->best == b->best);
	assert_int_equal(a->stopped_early, b->stopped_early);
}

static uint64_t weights_of(const char *run, int best)
{
	ls_model_load_options load = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_model_facts facts;
	ls_model *model = NULL;
	load.source = run;
	load.best = best;
	assert_ok(ls_model_load(&model, &load));
	assert_ok(ls_model_describe(model, &facts));
	ls_model_free(model);
	return facts.fingerprint;
}

static void test_nodes(void **state)
{
	static const struct {
		int nodes, devices[GANG_MAX], servers;
		const char *strategy;
	} rows[] = { { 2, { 1, 2 }, 0, "allreduce" }, { 3, { 2, 1, 1 }, 1, "ps" }, { 4, { 1, 1, 1, 1 }, 2, "ps" } };
	ls_train_options o = job();
	const place one = place_of(*state, "alone");
	o.run = one.path;
	const ls_train_result expected = train(&o);
	assert_int_equal(expected.steps, 12);
	assert_true(expected.best_step > 0 && expected.best > 0 && expected.best < 1 && !expected.stopped_early);
	uint64_t best = weights_of(o.run, 1);

	assert_int_equal(weights_of(o.run, 0), expected.fingerprint);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		node nodes[GANG_MAX] = { 0 };
		char name[32];
		snprintf(name, sizeof(name), "nodes-%zu", r);
		const place run = place_of(*state, name);
		for (int i = 0; i < rows[r].nodes; i++) {
			nodes[i].options = o;
			nodes[i].options.devices = rows[r].devices[i];
			nodes[i].options.servers = rows[r].servers;
			nodes[i].options.strategy = rows[r].strategy;
			nodes[i].options.run = run.path;
		}
		train_nodes(nodes, rows[r].nodes);
		for (int i = 0; i < rows[r].nodes; i++) {
			if (nodes[i].gang.status != LS_OK)
				fail_msg("row %zu, node %d: %s", r, i, nodes[i].gang.message);
			assert_same(&nodes[i].result, &expected);
		}
		assert_int_equal(weights_of(run.path, 1), best);
		assert_int_equal(weights_of(run.path, 0), expected.fingerprint);
	}
}

/* No evaluation is better by more than 10: the third without a better one ends the run, in its third epoch. */
static ls_train_options stale_job(const char *run)
{
	ls_train_options o = job();
	o.early_stop = 3;
	o.early_stop_delta = 10;
	o.epochs = 10;
	o.run = run;
	return o;
}

/* Stopped after any step, at tests, between them and at ends of epochs, with a checkpoint before the test or behind it,
 * the run ends where it would have. */
static void test_resume(void **state)
{
	const place one = place_of(*state, "whole");
	ls_train_options whole = stale_job(one.path);
	const ls_train_result expected = train(&whole);
	assert_int_equal(expected.steps, 8);
	assert_int_equal(expected.stopped_early, 1);
	uint64_t best = weights_of(whole.run, 1);

	for (int every = 0; every <= 5; every += 5)
		for (int steps = 1 + every / 2; steps <= 8 - every / 3; steps++) {
			char name[32];
			snprintf(name, sizeof(name), "run-%d-%d", every, steps);
			const place run = place_of(*state, name);
			ls_train_options o = stale_job(run.path);
			o.ckpt_every = every;
			o.steps = steps;
			train(&o);
			o.steps = 0;
			o.resume = 1;
			ls_train_result got = train(&o), again = train(&o);
			assert_same(&got, &again);  /* it has ended */
			if (got.best_step % 2 != 0) /* of the extra test at the end of the first part */
				got.best_step = expected.best_step, got.best = expected.best;
			else
				assert_int_equal(weights_of(o.run, 1), best);
			assert_same(&got, &expected);
		}
}

/* What was the best by one metric is forgotten with another. */
static void test_other_metric(void **state)
{
	ls_train_options o = job(), other = job();
	const place run = place_of(*state, "run");
	o.run = run.path;
	o.steps = 6;
	train(&o);
	o.resume = 1;
	o.steps = 0;
	o.keep_best = "loss";
	ls_train_result got = train(&o);

	other.keep_best = "loss";
	ls_train_result expected = train(&other);
	assert_true(got.best_step >= 6 && got.best >= expected.best);
}

/* A model in memory is left the weights that were evaluated; without the average the trained bits are others. */
static void test_model_in_memory(void **state)
{
	ls_train_options o = job();
	ls_model_options options = LS_MODEL_OPTIONS_INIT;
	ls_model_facts facts;
	ls_model *model = NULL;
	(void)state;
	const ls_train_result expected = train(&o);

	options.name = "mlp";
	options.channels = 1;
	options.height = options.width = 28;
	options.classes = 10;
	assert_ok(ls_model_new_named(&model, &options, o.seed));
	o.model_handle = model;
	ls_train_result got = train(&o);
	assert_same(&got, &expected);
	assert_ok(ls_model_describe(model, &facts));
	assert_int_equal(facts.fingerprint, expected.fingerprint);
	ls_model_free(model);
	o = job();
	o.ema = 0;
	got = train(&o);
	assert_true(got.fingerprint != expected.fingerprint);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *metric, *message;
		int64_t eval_every;
	} rows[] = { { "f2", "unknown metric 'f2'; did you mean 'f1'?", 1 },
		     { "perplexity", "options.keep_best perplexity is of language models, and this model is none", 1 },
		     { "masked-loss", "options.keep_best masked-loss is of models in pretraining", 1 },
		     { "loss", "options.keep_best loss needs a test set and evaluations: options.eval_every is 0",
		       0 } };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ls_train_options o = job();
		o.keep_best = rows[i].metric;
		o.eval_every = rows[i].eval_every;
		o.run = in_dir(*state, "refused");
		assert_fails(ls_train_node(&o, NULL, NULL), LS_EINVALID, rows[i].message);
		assert_false(ls_path_exists(o.run));
	}
	ls_train_options o = job();
	ls_model_load_options load = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_model *model = NULL;
	o.keep_best = NULL;
	o.run = in_dir(*state, "run");
	train(&o);
	load.source = o.run;
	load.best = 1;
	assert_fails(ls_model_load(&model, &load), LS_ENOTFOUND,
		     "has no best.safetensors: a run keeps its best weights with options.keep_best METRIC");
	load.source = in_dir(*state, "run/run.json");
	assert_fails(ls_model_load(&model, &load), LS_EINVALID, "options.best is for a run directory, and");
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_nodes, test_resume, test_other_metric, test_model_in_memory,
	       test_refusals)
