/*
 * Trainers of programs (lockstep/trainer.h): steps have the bits of ls_train() on any devices and threads, whole and in
 * two halves; gradients are what they say; a step never allocates.
 */
#include <math.h>
#include <stdatomic.h>

#include "unit/graph/allocations.h"
#include "unit/run/custom_loop.h"
#include "unit/test_main.h"

static void test_steps_have_the_bits_of_train(void **state)
{
	static const struct {
		const char *model, *data, *optimizer;
		double clip;
	} jobs[] = { { "mlp", "glyphs", "adam", 0 },
		     { "mlp", "glyphs", "lamb", 0.5 },
		     { "cnn", "glyphs", "adamw", 0.7 },
		     { "transformer", "babble", "adam", 0 },
		     { "bert-tiny", "babble-pairs", "sgd", 0 } };
	(void)state;
	for (size_t j = 0; j < sizeof(jobs) / sizeof(jobs[0]); j++) {
		ls_dataset *set = open_set(jobs[j].data);
		ls_trainer_options o = options_of(jobs[j].optimizer);
		o.clip_norm = jobs[j].clip;
		uint64_t expected = train(jobs[j].model, set, &o);
		for (way how = WHOLE; how < WAYS; how++) {
			/* a clipped gradient is scaled once in a step, and twice where it was read in between */
			if (how == HALVES_SET && jobs[j].clip > 0)
				continue;
			o.devices = 1 + how % 3;
			o.threads = 1 + how % 2;
			uint64_t bits = train_here(jobs[j].model, set, &o, how);
			if (bits != expected)
				fail_msg("%s with %s, way %d: %016llx, not %016llx", jobs[j].model, jobs[j].optimizer,
					 (int)how, (unsigned long long)bits, (unsigned long long)expected);
		}
		ls_dataset_free(set);
	}
}

/* A step that is one micro-batch on one device goes without an exchange. */
static void test_a_single_micro_batch(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("adam");
	(void)state;
	o.micro_batch = BATCH;
	o.devices = 1;
	o.threads = 2;
	uint64_t expected = train("resnet18", set, &o);
	assert_int_equal(train_here("resnet18", set, &o, HALVES), expected);
	assert_int_equal(train_here("resnet18", set, &o, DATASET), expected);
	ls_dataset_free(set);
}

static void test_an_epoch_of_a_dataset(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("adam");
	ls_model *model = make_model("cnn", set);
	ls_trainer *trainer = NULL;
	ls_trainer_report report;
	ls_trainer_position where;
	(void)state;
	uint64_t expected = train("cnn", set, &o);
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_run(trainer, set, 3, &report));
	assert_int_equal(report.samples, 3 * BATCH);
	assert_ok(ls_trainer_run(trainer, set, 0, &report));
	assert_int_equal(report.samples, SAMPLES % BATCH);
	assert_ok(ls_trainer_get_position(trainer, &where));
	assert_int_equal(where.epoch, 1);
	assert_int_equal(where.epoch_step, 0);
	assert_int_equal(where.steps, 4);
	assert_int_equal(where.micro_batch, MICRO);
	assert_ok(ls_trainer_run(trainer, set, 0, &report));
	assert_int_equal(report.samples, SAMPLES);
	assert_int_equal(fingerprint(model), expected);
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

/* With random changes of images and smoothed labels, as the command trains with them. */
static void test_augment_and_label_smoothing(void **state)
{
	ls_dataset *set = open_set("glyphs"), *text = open_set("babble");
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	char list[] = "crop:3,rotate:20,erase,randaugment";
	(void)state;
	uint64_t plain = train("cnn", set, &o), changed;
	o.augment = list;
	changed = train("cnn", set, &o);
	label_smoothing = 0.2;
	uint64_t expected = train("cnn", set, &o);
	ls_model *model = make_model("cnn", set);
	assert_ok(ls_trainer_new(&trainer, model, &o));
	memset(list, 'x', sizeof(list) - 1); /* it is the program's */
	assert_ok(ls_trainer_run(trainer, set, 3, NULL));
	assert_ok(ls_trainer_run(trainer, set, 0, NULL));
	assert_ok(ls_trainer_run(trainer, set, 0, NULL));
	assert_int_equal(fingerprint(model), expected);
	assert_true(expected != changed && changed != plain);
	ls_trainer_free(trainer);
	ls_model_free(model);
	label_smoothing = 0;
	model = make_model("transformer", text);
	o.augment = "flip";
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_fails(ls_trainer_run(trainer, text, 1, NULL), LS_EINVALID, "options.augment is for images");
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(text);
	ls_dataset_free(set);
}

/* Of plain gradient descent the update is the gradient. */
static void test_the_gradient_is_the_update(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("sgd");
	ls_model *model = make_model("mlp", set);
	ls_trainer *trainer = NULL;
	samples *s = malloc(sizeof(*s));
	ls_model_param param;
	(void)state;
	o.momentum = 0;
	o.weight_decay = 0;
	o.schedule = "constant";
	o.warmup = 0;
	o.lr = 0.5;
	assert_true(ls_model_param_at(model, 0, &param));
	size_t bytes = param.elements * sizeof(float);
	float *before = malloc(bytes), *gradient = malloc(bytes), *after = malloc(bytes);
	assert_ok(ls_trainer_new(&trainer, model, &o));
	ls_batch batch = take(s, set, 0);
	assert_fails(ls_trainer_get_gradient(trainer, param.name, gradient, param.elements), LS_EINVALID,
		     "there is no gradient");
	assert_ok(ls_trainer_step(trainer, &batch, NULL)); /* the last layer begins with zeros */
	assert_ok(ls_trainer_backward(trainer, &batch, NULL));
	assert_ok(ls_model_get(model, param.name, before, param.elements));
	assert_ok(ls_trainer_get_gradient(trainer, param.name, gradient, param.elements));
	assert_ok(ls_trainer_update(trainer, NULL));
	assert_ok(ls_model_get(model, param.name, after, param.elements));
	double moved = 0;
	for (uint64_t i = 0; i < param.elements; i++) {
		moved += fabs((double)after[i] - (double)before[i]);
		assert_true(fabs((double)after[i] - ((double)before[i] - 0.5 * (double)gradient[i])) < 1e-6);
	}
	assert_true(moved > 0.01);

	/* and where it is set, the update is what was set, the others stay */
	for (uint64_t i = 0; i < param.elements; i++)
		gradient[i] = i % 2 ? 0.25f : 0;
	uint64_t others = fingerprint(model);
	assert_ok(ls_trainer_set_gradient(trainer, param.name, gradient, param.elements));
	assert_fails(ls_trainer_backward(trainer, &batch, NULL), LS_EINVALID, "a gradient was set");
	assert_ok(ls_trainer_update(trainer, NULL));
	assert_ok(ls_model_get(model, param.name, before, param.elements));
	for (uint64_t i = 0; i < param.elements; i++)
		assert_true(before[i] == after[i] - (i % 2 ? 0.125f : 0));
	assert_ok(ls_model_set(model, param.name, after, param.elements));
	assert_int_equal(fingerprint(model), others);
	ls_trainer_free(trainer);
	ls_model_free(model);
	free(after);
	free(gradient);
	free(before);
	free(s);
	ls_dataset_free(set);
}

/* Half and half together: nearly the gradient of all, and one step. */
static void test_gradients_add_up(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("adam");
	ls_model *model = make_model("mlp", set);
	ls_trainer *trainer = NULL;
	samples *s = malloc(sizeof(*s));
	ls_trainer_position where;
	float whole[256], parts[256];
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	ls_batch batch = take(s, set, 0), half = batch;
	ls_model_param param;
	size_t k = 0;
	while (ls_model_param_at(model, k, &param) && (!param.is_trained || param.elements > 256))
		k++;
	batch.indices = NULL;
	assert_ok(ls_trainer_backward(trainer, &batch, NULL));
	assert_ok(ls_trainer_get_gradient(trainer, param.name, whole, param.elements));
	assert_ok(ls_trainer_zero_gradient(trainer));
	half.indices = NULL;
	half.count = BATCH / 2;
	assert_ok(ls_trainer_backward(trainer, &half, NULL));
	half.images += (size_t)half.count * PIXELS;
	half.labels += half.count;
	assert_fails(ls_trainer_step(trainer, &half, NULL), LS_EINVALID, "a gradient is waiting");
	assert_fails(ls_trainer_save(trainer, "nowhere", 0), LS_EINVALID, "a gradient is waiting");
	assert_ok(ls_trainer_backward(trainer, &half, NULL));
	assert_ok(ls_trainer_get_gradient(trainer, param.name, parts, param.elements));
	for (uint64_t i = 0; i < param.elements; i++)
		assert_true(fabsf(whole[i] - parts[i]) < 1e-5f);
	assert_ok(ls_trainer_update(trainer, NULL));
	assert_ok(ls_trainer_get_position(trainer, &where));
	assert_int_equal(where.steps, 1);
	ls_trainer_free(trainer);
	ls_model_free(model);
	free(s);
	ls_dataset_free(set);
}

/* Frozen parameters stay, the rest has the bits of ls_train(); the next trainer starts with nothing frozen. */
static void test_frozen_parameters_stay(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("resnet18", set);
	ls_trainer *trainer = NULL;
	ls_trainer_options o = options_of("adam");
	char patterns[] = "conv1.*,bn1.*,layer1.*";
	static float before[64 * 49], after[64 * 49];
	ls_model_param conv1;
	(void)state;
	assert_int_equal(ls_model_param_of(model, "conv1.weight", &conv1), 1);
	assert_ok(ls_model_get(model, "conv1.weight", before, conv1.elements));
	uint64_t bits = fingerprint(model);
	o.freeze = "conv9.*";
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "conv9.*");
	assert_int_equal(fingerprint(model), bits);
	o.freeze = patterns;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	memset(patterns, 'x', sizeof(patterns) - 1); /* the options are the program's again */
	assert_fails(ls_trainer_set_gradient(trainer, "conv1.weight", before, conv1.elements), LS_EINVALID,
		     "is frozen");
	assert_ok(ls_trainer_run(trainer, set, STEPS, NULL));
	o.freeze = "conv1.*,bn1.*,layer1.*";
	assert_int_equal(fingerprint(model), train("resnet18", set, &o));
	assert_ok(ls_model_get(model, "conv1.weight", after, conv1.elements));
	assert_memory_equal(before, after, conv1.elements * sizeof(float));
	ls_trainer_free(trainer);
	o.freeze = NULL;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_run(trainer, set, 1, NULL));
	assert_ok(ls_model_get(model, "conv1.weight", after, conv1.elements));
	assert_memory_not_equal(before, after, conv1.elements * sizeof(float));
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

static void test_evaluation(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("adam");
	ls_model *model = make_model("cnn", set);
	ls_trainer *trainer = NULL;
	ls_eval_result before, after, some;
	samples *s = malloc(sizeof(*s));
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_evaluate_dataset(trainer, set, &before));
	uint64_t bits = fingerprint(model);
	ls_batch batch = take(s, set, 0);
	assert_ok(ls_trainer_evaluate(trainer, &batch, &some));
	assert_int_equal(fingerprint(model), bits);
	assert_int_equal(some.samples, BATCH);
	assert_ok(ls_trainer_run(trainer, set, STEPS, NULL));
	assert_ok(ls_trainer_evaluate_dataset(trainer, set, &after));
	assert_int_equal(after.samples, SAMPLES);
	assert_true(after.loss < before.loss && after.accuracy > before.accuracy);

	/* what it says is what predictions come to */
	float logits[BATCH * 10];
	int correct = 0;
	assert_ok(ls_trainer_evaluate(trainer, &batch, &some));
	assert_ok(ls_model_predict(model, batch.images, BATCH, logits));
	for (int i = 0; i < BATCH; i++) {
		int best = 0;
		for (int c = 1; c < 10; c++)
			best = logits[i * 10 + c] > logits[i * 10 + best] ? c : best;
		correct += best == batch.labels[i];
	}
	assert_true(some.accuracy == (double)correct / BATCH);
	ls_trainer_free(trainer);
	ls_model_free(model);
	free(s);
	ls_dataset_free(set);
}

static void test_a_step_never_allocates(void **state)
{
	static const char *const names[][2] = { { "cnn", "glyphs" }, { "transformer", "babble" } };
	samples *s = malloc(sizeof(*s));
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		ls_dataset *set = open_set(names[i][1]);
		ls_model *model = make_model(names[i][0], set);
		ls_trainer_options o = options_of("adam");
		ls_trainer *trainer = NULL;
		ls_batch batch = take(s, set, 0);
		batch.count = BATCH - 1; /* the last micro-batch is smaller */
		long before = atomic_load(&allocations);
		assert_ok(ls_trainer_new(&trainer, model, &o));
		assert_true(!OWN_MALLOC || atomic_load(&allocations) > before);
		for (int k = 0; k < 4; k++) {
			before = atomic_load(&allocations);
			assert_ok(ls_trainer_step(trainer, &batch, NULL));
			assert_ok(ls_trainer_backward(trainer, &batch, NULL));
			assert_ok(ls_trainer_update(trainer, NULL));
			if (k > 0 && atomic_load(&allocations) != before)
				fail_msg("%s: %ld allocations in a step", names[i][0],
					 atomic_load(&allocations) - before);
		}
		ls_trainer_free(trainer);
		ls_model_free(model);
		ls_dataset_free(set);
	}
	free(s);
}

TEST_MAIN(test_steps_have_the_bits_of_train, test_a_single_micro_batch, test_an_epoch_of_a_dataset,
	  test_augment_and_label_smoothing, test_the_gradient_is_the_update, test_gradients_add_up,
	  test_frozen_parameters_stay, test_evaluation, test_a_step_never_allocates)
