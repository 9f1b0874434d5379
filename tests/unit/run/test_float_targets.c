/*
 * Training on float targets: regression, labels that are independent of each other, and probabilities of classes; the
 * same bits from a dataset and from arrays, on any devices and threads.
 */
#include <lockstep/trainer.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { SEED = 5, SAMPLES = 64, FEATURES = 4, OUTPUTS = 3, EPOCHS = 150 };

static float x[SAMPLES * FEATURES], y[SAMPLES * OUTPUTS];

/* What can be learned from the features: sums, their signs, or a softmax of them. */
static void fill(ls_task task)
{
	static const float weights[OUTPUTS][FEATURES] = { { 1, -2, 0.5f, 0 }, { 0, 1, 1, -1 }, { 2, 0, -1, 1 } };

	ls_rng_fill_normal(ls_rng_make(SEED, LS_RNG_TEST, 0), 0, 0, SAMPLES * FEATURES, 1, x);
	for (int i = 0; i < SAMPLES; i++) {
		float sum[OUTPUTS], all = 0;
		for (int k = 0; k < OUTPUTS; k++) {
			sum[k] = 0;
			for (int f = 0; f < FEATURES; f++)
				sum[k] += weights[k][f] * x[i * FEATURES + f];
			all += expf(sum[k]);
		}
		for (int k = 0; k < OUTPUTS; k++)
			y[i * OUTPUTS + k] = task == LS_TASK_REGRESSION    ? sum[k]
					     : task == LS_TASK_MULTI_LABEL ? (float)(sum[k] > 0)
									   : expf(sum[k]) / all;
	}
}

static ls_dataset *open_set(ls_task task)
{
	const ls_dataset_info info = { .name = "mine",
				       .samples = SAMPLES,
				       .channels = FEATURES,
				       .height = 1,
				       .width = 1,
				       .classes = OUTPUTS,
				       .task = task,
				       .targets = OUTPUTS };
	ls_dataset *set = NULL;

	fill(task);
	assert_ok(ls_dataset_from_targets(&set, &info, x, y));
	return set;
}

static ls_model *make_model(ls_task task)
{
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	ls_model *model = NULL;

	o.name = "mlp";
	o.channels = FEATURES;
	o.height = o.width = 1;
	o.classes = OUTPUTS;
	o.task = task;
	assert_ok(ls_model_new_named(&model, &o, SEED));
	return model;
}

static ls_trainer *make_trainer(ls_model *model, int devices, int threads)
{
	ls_trainer_options o = LS_TRAINER_OPTIONS_INIT;
	ls_trainer *trainer = NULL;

	o.batch = 16;
	o.micro_batch = 4;
	o.lr = 0.003;
	o.devices = devices;
	o.threads = threads;
	o.seed = SEED;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	return trainer;
}

static uint64_t fingerprint(const ls_model *model)
{
	ls_model_facts facts;
	assert_ok(ls_model_describe(model, &facts));
	return facts.fingerprint;
}

/* Regression comes close to its numbers, labels get right, cross-entropy goes down to the targets' entropy. */
static double entropy(void)
{
	double sum = 0;
	for (int i = 0; i < SAMPLES * OUTPUTS; i++)
		sum -= y[i] > 0 ? (double)y[i] * log((double)y[i]) : 0;
	return sum / SAMPLES;
}

static void check_learns(ls_task task)
{
	ls_dataset *set = open_set(task);
	ls_model *model = make_model(task);
	ls_trainer *trainer = make_trainer(model, 1, 1);
	ls_batch batch = LS_BATCH_INIT;
	ls_eval_result before, after, of_arrays;

	assert_ok(ls_trainer_evaluate_dataset(trainer, set, &before));
	for (int i = 0; i < EPOCHS; i++)
		assert_ok(ls_trainer_run(trainer, set, 0, NULL));
	assert_ok(ls_trainer_evaluate_dataset(trainer, set, &after));
	batch.count = SAMPLES;
	batch.images = x;
	batch.targets = y;
	assert_ok(ls_trainer_evaluate(trainer, &batch, &of_arrays));
	assert_true(of_arrays.loss == after.loss);
	assert_true(task == LS_TASK_REGRESSION ? isnan(of_arrays.accuracy) && of_arrays.r2 == after.r2
					       : of_arrays.accuracy == after.accuracy);
	if (task == LS_TASK_REGRESSION)
		assert_true(after.loss < 0.01 * before.loss && after.r2 > 0.98 && before.r2 < 0.5);
	else if (task == LS_TASK_MULTI_LABEL)
		assert_true(after.accuracy > 0.95 && before.accuracy < 0.5 && after.micro_f1 > 0.95 &&
			    after.macro_f1 > 0.95);
	else
		assert_true(after.loss < entropy() + 0.02 && after.loss >= entropy() - 1e-6 && after.accuracy > 0.9);
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

static void learns(void **state)
{
	(void)state;
	check_learns(LS_TASK_REGRESSION);
	check_learns(LS_TASK_MULTI_LABEL);
	check_learns(LS_TASK_CLASSIFICATION);
}

/* Steps on a dataset, or on arrays in its order. */
static uint64_t bits(ls_task task, int devices, int threads, int with_arrays)
{
	ls_dataset *set = open_set(task);
	ls_model *model = make_model(task);
	ls_trainer *trainer = make_trainer(model, devices, threads);

	for (int i = 0; i < 4; i++) {
		ls_batch batch = LS_BATCH_INIT;
		batch.count = 16;
		batch.images = x + (size_t)i * 16 * FEATURES;
		batch.targets = y + (size_t)i * 16 * OUTPUTS;
		assert_ok(with_arrays ? ls_trainer_step(trainer, &batch, NULL) : ls_trainer_run(trainer, set, 1, NULL));
	}
	ls_trainer_free(trainer);
	uint64_t found = fingerprint(model);
	ls_model_free(model);
	ls_dataset_free(set);
	return found;
}

static void has_the_same_bits(void **state)
{
	(void)state;
	for (int task = LS_TASK_CLASSIFICATION; task <= LS_TASK_REGRESSION; task++)
		for (int with_arrays = 0; with_arrays < 2; with_arrays++) {
			uint64_t one = bits((ls_task)task, 1, 1, with_arrays);
			assert_true(one == bits((ls_task)task, 2, 1, with_arrays));
			assert_true(one == bits((ls_task)task, 1, 2, with_arrays));
			assert_true(one == bits((ls_task)task, 2, 2, with_arrays));
		}
}

static void refuses_what_does_not_fit(void **state)
{
	ls_model *model = make_model(LS_TASK_CLASSIFICATION);
	ls_trainer *trainer = make_trainer(model, 1, 1);
	ls_batch batch = LS_BATCH_INIT;
	ls_dataset *set = open_set(LS_TASK_REGRESSION);

	(void)state;
	assert_fails(ls_trainer_run(trainer, set, 1, NULL), LS_EMISMATCH, "is for regression, and the loss");
	batch.count = 2;
	batch.images = x;
	assert_fails(ls_trainer_step(trainer, &batch, NULL), LS_EMISMATCH, "batch.labels is NULL");
	batch.targets = y;
	fill(LS_TASK_CLASSIFICATION);
	y[4] = 2;
	assert_fails(ls_trainer_step(trainer, &batch, NULL), LS_EINVALID, "probabilities, 0 to 1");
	y[4] = NAN;
	assert_fails(ls_trainer_step(trainer, &batch, NULL), LS_EINVALID, "value 1 of its targets is NaN");
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

TEST_MAIN(learns, has_the_same_bits, refuses_what_does_not_fit)
