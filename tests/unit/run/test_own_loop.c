/*
 * Trainers of programs (lockstep/trainer.h): steps have the bits of ls_train() on any devices and threads, whole, in two
 * halves, and after a save and a load; gradients are what they say; mistakes are refused and leave nothing behind.
 */
#include <lockstep/trainer.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "data/shuffle.h"
#include "unit/assert_status.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

enum { SEED = 91, SAMPLES = 75, BATCH = 24, MICRO = 6, PIXELS = 28 * 28, STEPS = 8 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

/* ---- allocations are counted, but for a sanitizer, which has its own malloc() ---------------------------------------- */

static atomic_long allocations;

#if !IS_SANITIZED && defined(__GLIBC__)
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
void *malloc(size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_calloc(count, bytes);
}
#endif

/* ---- what is trained ----------------------------------------------------------------------------------------------- */

static ls_dataset *open_set(const char *name)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set = NULL;

	o.name = name;
	o.samples = SAMPLES;
	o.tokens = strstr(name, "babble") ? 16 : 0;
	o.seed = SEED;
	assert_ok(ls_dataset_open(&set, &o));
	return set;
}

static ls_model *make_model(const char *name, const ls_dataset *set)
{
	const ls_dataset_info *info = ls_dataset_describe(set);
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	ls_model *model = NULL;

	o.name = name;
	o.classes = info->classes;
	if (info->tokens_max == 0) {
		o.channels = info->channels;
		o.height = info->height;
		o.width = info->width;
		o.dropout = 0.2f;
	} else {
		o.text = (ls_text_model){ .tokens = info->tokens_max,
					  .masked = info->masked_max,
					  .vocabulary = info->vocabulary };
		if (strcmp(name, "transformer") == 0) {
			o.text.layers = 1;
			o.text.hidden = 32;
			o.text.heads = 2;
		}
	}
	assert_ok(ls_model_new_named(&model, &o, SEED));
	return model;
}

static ls_trainer_options options_of(const char *optimizer)
{
	ls_trainer_options o = LS_TRAINER_OPTIONS_INIT;

	o.batch = BATCH;
	o.micro_batch = MICRO;
	o.optimizer = optimizer;
	o.schedule = "wsd";
	o.steps = STEPS;
	o.warmup = 2;
	o.lr = 0.003;
	o.seed = SEED;
	o.weight_decay = 0.01;
	o.devices = 2;
	o.threads = 1;
	return o;
}

static uint64_t fingerprint(const ls_model *model)
{
	ls_model_facts facts;
	assert_ok(ls_model_describe(model, &facts));
	return facts.fingerprint;
}

/* The bits that the command comes to. */
static uint64_t train(const char *model, const ls_dataset *set, const ls_trainer_options *t)
{
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;
	ls_train_result result;

	o.model = model;
	o.train_set = set;
	o.eval_every = 0;
	o.steps = STEPS;
	o.batch = t->batch;
	o.micro_batch = t->micro_batch;
	o.optimizer = t->optimizer;
	o.lr = t->lr;
	o.weight_decay = t->weight_decay;
	o.warmup = t->warmup;
	o.clip_norm = t->clip_norm;
	o.freeze = t->freeze;
	o.seed = t->seed;
	o.devices = 1;
	o.threads = 2;
	o.quiet = 1;
	if (ls_dataset_describe(set)->tokens_max == 0)
		o.dropout = 0.2f;
	else if (strcmp(model, "transformer") == 0) {
		o.layers = 1;
		o.width = 32;
		o.heads = 2;
	}
	assert_ok(ls_train(&o, &result));
	return result.fingerprint;
}

/* ---- the samples of a step, as ls_train() takes them ---------------------------------------------------------------- */

typedef struct samples {
	float images[BATCH * PIXELS];
	int32_t labels[BATCH];
	uint64_t indices[BATCH];
	ls_text_sample text[BATCH];
	int32_t tokens[BATCH][4][64];
} samples;

static ls_batch take(samples *s, const ls_dataset *set, int step)
{
	const ls_dataset_info *info = ls_dataset_describe(set);
	int per_epoch = (SAMPLES + BATCH - 1) / BATCH, first = step % per_epoch * BATCH;
	ls_permutation order = ls_permutation_make(SEED, (uint64_t)(step / per_epoch), info->samples);
	ls_batch batch = LS_BATCH_INIT;

	batch.count = SAMPLES - first < BATCH ? SAMPLES - first : BATCH;
	batch.indices = s->indices;
	for (int i = 0; i < batch.count; i++) {
		uint64_t index = s->indices[i] = ls_permutation_at(&order, (uint64_t)(first + i));
		if (info->tokens_max == 0) {
			assert_ok(ls_dataset_read(set, index, s->images + (size_t)i * PIXELS, &s->labels[i]));
			continue;
		}
		s->text[i] = (ls_text_sample){ .tokens = s->tokens[i][0],
					       .segments = s->tokens[i][1],
					       .places = s->tokens[i][2],
					       .targets = s->tokens[i][3] };
		assert_ok(ls_dataset_read_text(set, index, (uint64_t)(step / per_epoch), &s->text[i]));
	}
	if (info->tokens_max > 0) {
		batch.text = s->text;
	} else {
		batch.images = s->images;
		batch.labels = s->labels;
	}
	return batch;
}

typedef enum way { WHOLE, HALVES, HALVES_SET, DATASET, WAYS } way;

/* A gradient that is read and set again is the same. */
static void set_again(ls_trainer *trainer, const ls_model *model)
{
	ls_model_param param;

	for (size_t i = 0; ls_model_param_at(model, i, &param); i++) {
		float *values = malloc(param.elements * sizeof(*values));
		if (param.is_trained) {
			assert_ok(ls_trainer_get_gradient(trainer, param.name, values, param.elements));
			assert_ok(ls_trainer_set_gradient(trainer, param.name, values, param.elements));
		}
		free(values);
	}
}

static void do_steps(ls_trainer *trainer, const ls_model *model, const ls_dataset *set, int first, int last, way how)
{
	samples *s = malloc(sizeof(*s));
	ls_trainer_report report;
	double norm;

	for (int i = first; i < last; i++) {
		ls_batch batch = take(s, set, i);
		if (how == DATASET) {
			assert_ok(ls_trainer_run(trainer, set, 1, &report));
		} else if (how == WHOLE) {
			assert_ok(ls_trainer_step(trainer, &batch, &report));
		} else {
			assert_ok(ls_trainer_derive(trainer, &batch, &report));
			assert_int_equal(report.steps, i);
			if (how == HALVES_SET)
				set_again(trainer, model);
			assert_ok(ls_trainer_apply(trainer, &norm));
		}
		assert_int_equal(report.samples, batch.count);
		assert_int_equal(report.steps, how == WHOLE || how == DATASET ? i + 1 : i);
		assert_true(report.loss > 0 && report.lr > 0);
	}
	free(s);
}

static uint64_t train_here(const char *name, const ls_dataset *set, const ls_trainer_options *o, way how)
{
	ls_model *model = make_model(name, set);
	ls_trainer *trainer = NULL;

	assert_ok(ls_trainer_new(&trainer, model, o));
	do_steps(trainer, model, set, 0, STEPS, how);
	ls_trainer_free(trainer);
	uint64_t bits = fingerprint(model);
	ls_model_free(model);
	return bits;
}

/* ---- the same bits -------------------------------------------------------------------------------------------------- */

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
	assert_ok(ls_trainer_where(trainer, &where));
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

/* ---- gradients ------------------------------------------------------------------------------------------------------ */

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
	assert_ok(ls_trainer_derive(trainer, &batch, NULL));
	assert_ok(ls_model_get(model, param.name, before, param.elements));
	assert_ok(ls_trainer_get_gradient(trainer, param.name, gradient, param.elements));
	assert_ok(ls_trainer_apply(trainer, NULL));
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
	assert_fails(ls_trainer_derive(trainer, &batch, NULL), LS_EINVALID, "a gradient was set");
	assert_ok(ls_trainer_apply(trainer, NULL));
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
	assert_ok(ls_trainer_derive(trainer, &batch, NULL));
	assert_ok(ls_trainer_get_gradient(trainer, param.name, whole, param.elements));
	assert_ok(ls_trainer_discard(trainer));
	half.indices = NULL;
	half.count = BATCH / 2;
	assert_ok(ls_trainer_derive(trainer, &half, NULL));
	half.images += (size_t)half.count * PIXELS;
	half.labels += half.count;
	assert_fails(ls_trainer_step(trainer, &half, NULL), LS_EINVALID, "a gradient was derived");
	assert_fails(ls_trainer_save(trainer, "nowhere", 0), LS_EINVALID, "a gradient is not applied");
	assert_ok(ls_trainer_derive(trainer, &half, NULL));
	assert_ok(ls_trainer_get_gradient(trainer, param.name, parts, param.elements));
	for (uint64_t i = 0; i < param.elements; i++)
		assert_true(fabsf(whole[i] - parts[i]) < 1e-5f);
	assert_ok(ls_trainer_apply(trainer, NULL));
	assert_ok(ls_trainer_where(trainer, &where));
	assert_int_equal(where.steps, 1);
	ls_trainer_free(trainer);
	ls_model_free(model);
	free(s);
	ls_dataset_free(set);
}

/* ---- resume --------------------------------------------------------------------------------------------------------- */

static void test_it_goes_on_after_a_load(void **state)
{
	static const char *const optimizers[] = { "adam", "sgd", "lamb" };
	ls_dataset *set = open_set("glyphs");

	for (size_t k = 0; k < 3; k++)
		for (way how = WHOLE; how < WAYS; how += 3) {
			char name[32];
			snprintf(name, sizeof(name), "%s-%d", optimizers[k], (int)how);
			const char *dir = in_dir(*state, name);
			ls_trainer_options o = options_of(optimizers[k]);
			uint64_t expected = train_here("cnn", set, &o, how);
			ls_model *model = make_model("cnn", set), *other = make_model("cnn", set);
			ls_trainer *trainer = NULL;
			assert_ok(ls_trainer_new(&trainer, model, &o));
			do_steps(trainer, model, set, 0, 3, how);
			assert_ok(ls_trainer_save(trainer, dir, 1));
			do_steps(trainer, model, set, 3, 4, how);
			ls_trainer_free(trainer);
			o.devices = 1;
			o.schedule = "constant"; /* the saved one counts */
			assert_ok(ls_trainer_new(&trainer, other, &o));
			do_steps(trainer, other, set, 0, how == WHOLE ? 2 : 0, how);
			assert_ok(ls_trainer_load(trainer, dir));
			do_steps(trainer, other, set, 3, STEPS, how);
			assert_int_equal(fingerprint(other), expected);
			ls_trainer_free(trainer);
			ls_model_free(other);
			ls_model_free(model);
		}
	ls_dataset_free(set);
}

static void test_the_learning_rate(void **state)
{
	const char *dir = in_dir(*state, "rate");
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("adam");
	ls_model *model = make_model("mlp", set);
	ls_trainer *trainer = NULL;
	ls_trainer_report report;
	double lr;

	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_get_lr(trainer, &lr));
	assert_true(lr == 0.003 / 2); /* warm-up */
	assert_ok(ls_trainer_run(trainer, set, 2, &report));
	assert_true(report.lr == 0.003);
	assert_ok(ls_trainer_set_lr(trainer, 0.25));
	assert_ok(ls_trainer_run(trainer, set, 1, &report));
	assert_true(report.lr == 0.25);
	assert_ok(ls_trainer_save(trainer, dir, 0));
	assert_fails(ls_trainer_set_lr(trainer, NAN), LS_EINVALID, "learning rate nan");
	assert_ok(ls_trainer_set_lr(trainer, 0.5));
	assert_ok(ls_trainer_load(trainer, dir));
	assert_ok(ls_trainer_get_lr(trainer, &lr));
	assert_true(lr == 0.25);
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

/* What a program saves it loads again, without a word about its input. */
static void test_files_say_what_they_are(void **state)
{
	static const struct {
		const char *model, *data;
	} rows[] = { { "cnn", "glyphs" }, { "transformer", "babble" }, { "bert-tiny", "babble-pairs" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char file[64];
		snprintf(file, sizeof(file), "%s.safetensors", rows[i].model);
		const char *paths[] = { in_dir(*state, file), in_dir(*state, rows[i].model) };
		ls_dataset *set = open_set(rows[i].data);
		ls_model *model = make_model(rows[i].model, set);
		ls_trainer_options o = options_of("adam");
		ls_trainer *trainer = NULL;
		ls_model_facts wanted, facts;
		assert_ok(ls_trainer_new(&trainer, model, &o));
		assert_ok(ls_trainer_run(trainer, set, 1, NULL));
		assert_ok(ls_model_save(model, paths[0]));
		assert_ok(ls_trainer_save(trainer, paths[1], 0));
		assert_ok(ls_model_describe(model, &wanted));
		for (int k = 0; k < 2; k++) {
			ls_model_load_options from = LS_MODEL_LOAD_OPTIONS_INIT;
			ls_model *loaded = NULL;
			from.source = paths[k];
			assert_ok(ls_model_load(&loaded, &from));
			assert_ok(ls_model_describe(loaded, &facts));
			assert_string_equal(facts.name, wanted.name);
			assert_int_equal(facts.fingerprint, wanted.fingerprint);
			assert_int_equal(facts.height, wanted.height);
			assert_int_equal(facts.tokens_max, wanted.tokens_max);
			assert_int_equal(facts.vocabulary, wanted.vocabulary);
			assert_int_equal(facts.outputs, wanted.outputs);
			ls_model_free(loaded);
		}
		ls_trainer_free(trainer);
		ls_model_free(model);
		ls_dataset_free(set);
	}
}

/* ---- evaluation ----------------------------------------------------------------------------------------------------- */

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
	assert_ok(ls_trainer_evaluate_set(trainer, set, &before));
	uint64_t bits = fingerprint(model);
	ls_batch batch = take(s, set, 0);
	assert_ok(ls_trainer_evaluate(trainer, &batch, &some));
	assert_int_equal(fingerprint(model), bits);
	assert_int_equal(some.samples, BATCH);
	assert_ok(ls_trainer_run(trainer, set, STEPS, NULL));
	assert_ok(ls_trainer_evaluate_set(trainer, set, &after));
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

/* ---- mistakes ------------------------------------------------------------------------------------------------------- */

static void test_options_are_checked(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("mlp", set), *large = make_model("resnet18", set);
	ls_trainer *trainer = NULL, *second = NULL;
	ls_trainer_options o = options_of("adam");
	(void)state;
	assert_fails(ls_trainer_new(&trainer, NULL, &o), LS_EINVALID, "the model is NULL");
	assert_fails(ls_trainer_new(&trainer, model, NULL), LS_EINVALID,
		     "options is NULL: start from LS_TRAINER_OPTIONS_INIT");
	o.steps = 0;
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "needs options.steps");
	o = options_of("admm");
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "adam");
	o = options_of(NULL);
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "options.optimizer is NULL");
	o = options_of("adam");
	o.lr = -1;
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "options.lr");
	o = options_of("adam");
	o.micro_batch = 7;
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "options.micro_batch");
	o = options_of("adam");
	o.batch = o.micro_batch = 1 << 24; /* batch norms take a micro-batch as a whole */
	uint64_t bits = fingerprint(large);
	assert_fails(ls_trainer_new(&trainer, large, &o), LS_EMEMORY, "would fit");
	assert_int_equal(fingerprint(large), bits);
	ls_model_free(large);
	o = options_of("adam");
	assert_null(trainer);
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_fails(ls_trainer_new(&second, model, &o), LS_EINVALID, "has a trainer already");
	ls_trainer_free(trainer);
	assert_ok(ls_trainer_new(&second, model, &o));
	ls_trainer_free(second);
	ls_model_free(model);
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

static void test_samples_are_checked(void **state)
{
	ls_dataset *set = open_set("glyphs"), *words = open_set("babble-pairs");
	ls_model *model = make_model("mlp", set), *reader = make_model("bert-tiny", words);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL, *of_text = NULL;
	samples *s = malloc(sizeof(*s));
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_new(&of_text, reader, &o));
	uint64_t bits = fingerprint(model), text_bits = fingerprint(reader);
	ls_batch batch = take(s, set, 0), bad = batch;
	assert_fails(ls_trainer_step(trainer, NULL, NULL), LS_EINVALID, "the batch is NULL");
	bad.count = BATCH + 1;
	assert_fails(ls_trainer_step(trainer, &bad, NULL), LS_EINVALID, "batch.count is 25; it must be from 1 to 24");
	bad.count = 0;
	assert_fails(ls_trainer_step(trainer, &bad, NULL), LS_EINVALID, "batch.count is 0");
	bad = batch;
	bad.labels = NULL;
	assert_fails(ls_trainer_step(trainer, &bad, NULL), LS_EMISMATCH, "batch.labels is NULL");
	s->labels[5] = 10;
	assert_fails(ls_trainer_step(trainer, &batch, NULL), LS_EINVALID, "the label of sample 5 is 10");
	s->labels[5] = -1;
	assert_fails(ls_trainer_derive(trainer, &batch, NULL), LS_EINVALID, "the label of sample 5 is -1");
	s->labels[5] = 0;
	s->images[3 * PIXELS + 7] = NAN;
	assert_fails(ls_trainer_step(trainer, &batch, NULL), LS_EINVALID, "sample 3: value 7 of the image is NaN");
	assert_fails(ls_trainer_step(of_text, &batch, NULL), LS_EMISMATCH, "takes text");
	assert_fails(ls_trainer_run(of_text, set, 1, NULL), LS_EMISMATCH, "takes text");
	assert_fails(ls_trainer_run(trainer, NULL, 1, NULL), LS_EINVALID, "the dataset is NULL");

	batch = take(s, words, 0);
	int32_t token = s->tokens[2][0][1];
	s->tokens[2][0][1] = 1 << 20;
	assert_fails(ls_trainer_step(of_text, &batch, NULL), LS_EINVALID, "sample 2: token 1 is 1048576");
	s->tokens[2][0][1] = token;
	s->tokens[2][2][0] = 64;
	assert_fails(ls_trainer_step(of_text, &batch, NULL), LS_EINVALID, "masked position 0 is 64");
	assert_int_equal(fingerprint(model), bits);
	assert_int_equal(fingerprint(reader), text_bits);
	ls_trainer_free(of_text);
	ls_trainer_free(trainer);
	ls_model_free(reader);
	ls_model_free(model);
	free(s);
	ls_dataset_free(words);
	ls_dataset_free(set);
}

static void test_gradients_are_checked(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("resnet18", set);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	float values[64] = { 0 };
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_fails(ls_trainer_apply(trainer, NULL), LS_EINVALID, "no gradient to apply");
	assert_fails(ls_trainer_set_gradient(trainer, "nothing", values, 1), LS_ENOTFOUND, "no parameter 'nothing'");
	assert_fails(ls_trainer_set_gradient(trainer, "bn1.weight", values, 63), LS_EINVALID, "64 elements, not 63");
	assert_fails(ls_trainer_set_gradient(trainer, "bn1.running_mean", values, 64), LS_EINVALID,
		     "running statistics");
	values[9] = INFINITY;
	assert_fails(ls_trainer_set_gradient(trainer, "bn1.weight", values, 64), LS_ENUMERIC,
		     "element 9 of the new 'bn1.weight' is infinite; gradients");
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

static void test_handles_that_were_freed(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	ls_model_facts facts;
	double lr;
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	ls_model_free(model); /* the trainer keeps it */
	ls_model_free(model);
	assert_fails(ls_model_describe(model, &facts), LS_EINVALID, "the model was freed");
	assert_ok(ls_trainer_run(trainer, set, 2, NULL));
	ls_trainer_free(trainer);
	ls_trainer_free(trainer);
	ls_trainer_free(NULL);
	assert_fails(ls_trainer_get_lr(trainer, &lr), LS_EINVALID, "the trainer was freed");
	assert_fails(ls_trainer_run(trainer, set, 2, NULL), LS_EINVALID, "the trainer was freed");
	assert_fails(ls_trainer_step(NULL, NULL, NULL), LS_EINVALID, "the trainer is NULL");
	assert_fails(ls_model_save(NULL, "x"), LS_EINVALID, "the model is NULL");
	ls_dataset_free(set);
}

static int stop_at_third(void *context, const ls_trainer_report *report)
{
	*(int *)context += 1;
	return report->steps == 3;
}

static void test_the_hook_stops_a_run(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	int calls = 0;
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_set_hook(trainer, stop_at_third, &calls));
	assert_fails(ls_trainer_run(trainer, set, STEPS, NULL), LS_EINTERRUPTED, "after step 3");
	assert_int_equal(calls, 3);
	assert_ok(ls_trainer_run(trainer, set, STEPS - 3, NULL));
	assert_int_equal(fingerprint(model), train("mlp", set, &o));
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

/* ---- what can go wrong on the way ------------------------------------------------------------------------------------ */

typedef struct frail {
	const ls_dataset *whole;
	uint64_t broken; /* this sample cannot be read */
} frail;

static ls_status frail_read(void *self, uint64_t index, float *image, int32_t *label)
{
	const frail *f = self;
	if (index == f->broken)
		return LS_EIO;
	return ls_dataset_read(f->whole, index, image, label);
}

/* The step that needs a sample that cannot be read changes nothing; what there is can be saved and goes on. */
static void test_a_dataset_that_fails(void **state)
{
	static const ls_dataset_ops ops = { .read = frail_read };
	ls_dataset *set = open_set("glyphs"), *torn = NULL;
	ls_permutation order = ls_permutation_make(SEED, 0, SAMPLES);
	frail f = { .whole = set, .broken = ls_permutation_at(&order, 2 * BATCH + 3) };
	ls_trainer_options o = options_of("adam");
	ls_model *model = make_model("cnn", set), *other = make_model("cnn", set);
	ls_trainer *trainer = NULL;
	ls_trainer_position where;

	assert_ok(ls_dataset_new(&torn, ls_dataset_describe(set), &ops, &f));
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_int_equal(ls_trainer_run(trainer, torn, 0, NULL), LS_EIO);
	assert_ok(ls_trainer_where(trainer, &where));
	assert_int_equal(where.steps, 2);
	assert_int_equal(where.epoch_step, 2);
	assert_fails(ls_trainer_run(trainer, set, 1, NULL), LS_EIO, "broke off in an earlier step");
	assert_ok(ls_trainer_save(trainer, *state, 1));
	ls_trainer_free(trainer);
	assert_ok(ls_trainer_new(&trainer, other, &o));
	assert_ok(ls_trainer_load(trainer, *state));
	assert_ok(ls_trainer_run(trainer, set, STEPS - 2, NULL));
	assert_int_equal(fingerprint(other), train("cnn", set, &o));
	ls_trainer_free(trainer);
	ls_model_free(other);
	ls_model_free(model);
	ls_dataset_free(torn);
	ls_dataset_free(set);
}

static ls_model *graph_model(void)
{
	ls_graph *graph = NULL;
	ls_model *model = NULL;

	assert_ok(ls_graph_new(&graph));
	ls_value x = ls_input(graph, 1, 28, 28);
	x = ls_conv2d(graph, x, "conv", (ls_conv_options){ .out_channels = 8, .kernel = 5, .stride = 2, .padding = 1 });
	x = ls_relu(graph, x);
	x = ls_linear(graph, x, "fc", (ls_linear_options){ .out_features = 10 });
	assert_ok(ls_graph_finish(graph, x));
	assert_ok(ls_model_new(&model, graph, SEED));
	return model;
}

static void test_a_graph_of_the_program(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("adam");
	uint64_t bits[2];

	for (int resumed = 0; resumed < 2; resumed++) {
		ls_model *model = graph_model();
		ls_trainer *trainer = NULL;
		assert_ok(ls_trainer_new(&trainer, model, &o));
		assert_ok(resumed ? ls_trainer_load(trainer, *state) : ls_trainer_run(trainer, set, 3, NULL));
		assert_ok(ls_trainer_save(trainer, *state, 1));
		assert_ok(ls_trainer_run(trainer, set, 4, NULL));
		bits[resumed] = fingerprint(model);
		ls_trainer_free(trainer);
		ls_model_free(model);
	}
	assert_int_equal(bits[0], bits[1]);
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
		assert_true(IS_SANITIZED || atomic_load(&allocations) > before);
		for (int k = 0; k < 4; k++) {
			before = atomic_load(&allocations);
			assert_ok(ls_trainer_step(trainer, &batch, NULL));
			assert_ok(ls_trainer_derive(trainer, &batch, NULL));
			assert_ok(ls_trainer_apply(trainer, NULL));
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

/* ---- many of them --------------------------------------------------------------------------------------------------- */

static size_t used_bytes(void)
{
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

static size_t resident_pages(void)
{
	size_t size = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%zu %zu", &size, &resident), 2);
	fclose(file);
	return resident;
}

static void make_and_free(const ls_dataset *set, const ls_batch *batch)
{
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	float logits[10];

	o.devices = 1;
	assert_ok(ls_model_set_devices(model, 1, 1));
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_step(trainer, batch, NULL));
	assert_ok(ls_model_predict(model, batch->images, 1, logits));
	ls_trainer_free(trainer);
	ls_model_free(model);
}

static void test_a_thousand_leave_nothing(void **state)
{
	int cycles = IS_SANITIZED ? 30 : 1000;
	ls_dataset *set = open_set("glyphs");
	samples *s = malloc(sizeof(*s));
	(void)state;
	ls_batch batch = take(s, set, 0);
	batch.count = 4;
	for (int i = 0; i < 20; i++)
		make_and_free(set, &batch);
	size_t bytes = used_bytes(), pages = resident_pages();
	for (int i = 0; i < cycles; i++)
		make_and_free(set, &batch);
	if (!IS_SANITIZED) /* it finds leaks itself, and keeps what was freed */
		assert_true(used_bytes() < bytes + (64 << 10) && resident_pages() < pages + 2000);
	free(s);
	ls_dataset_free(set);
}

typedef struct thread_job {
	const char *model;
	const ls_dataset *set;
	uint64_t bits;
} thread_job;

static void *train_in_thread(void *context)
{
	thread_job *job = context;
	ls_trainer_options o = options_of("adam");
	o.threads = 2;
	for (int i = 0; i < 2; i++)
		job->bits = train_here(job->model, job->set, &o, i % 2 ? WHOLE : DATASET);
	return NULL;
}

static void test_trainers_in_threads(void **state)
{
	static const char *const names[] = { "mlp", "cnn", "mlp", "cnn" };
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("adam");
	thread_job jobs[4];
	pthread_t threads[4];
	(void)state;
	for (int i = 0; i < 4; i++) {
		jobs[i] = (thread_job){ .model = names[i], .set = set };
		assert_int_equal(pthread_create(&threads[i], NULL, train_in_thread, &jobs[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(jobs[i].bits, train(names[i], set, &o));
	ls_dataset_free(set);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_steps_have_the_bits_of_train, test_a_single_micro_batch,
	       test_an_epoch_of_a_dataset, test_the_gradient_is_the_update, test_gradients_add_up,
	       test_it_goes_on_after_a_load, test_files_say_what_they_are, test_the_learning_rate, test_evaluation,
	       test_options_are_checked, test_frozen_parameters_stay, test_samples_are_checked,
	       test_gradients_are_checked, test_handles_that_were_freed, test_the_hook_stops_a_run,
	       test_a_dataset_that_fails, test_a_graph_of_the_program, test_a_step_never_allocates,
	       test_a_thousand_leave_nothing, test_trainers_in_threads)
