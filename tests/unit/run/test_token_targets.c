/* Models that predict tokens learn from samples that have some to predict, and refuse what has none: their loss would
 * be 0, and weight decay alone would train them. */
#include "data/dataset.h"
#include "unit/run/custom_loop.h"
#include "unit/test_main.h"

enum { LONGEST = 16, VOCABULARY = 40, OF_TEXT = 24 };

/* ---- what is trained --------------------------------------------------------------------------------------------- */

/* Texts of the program: tokens that count upwards, of several lengths. */
typedef struct texts {
	ls_text_sample sample[OF_TEXT];
	int32_t tokens[OF_TEXT][LONGEST + 1], places[OF_TEXT][LONGEST], targets[OF_TEXT][LONGEST];
} texts;

static void make_texts(texts *t, int masks)
{
	*t = (texts){ 0 };
	for (int i = 0; i < OF_TEXT; i++) {
		for (int k = 0; k <= LONGEST; k++)
			t->tokens[i][k] = (i + k) % VOCABULARY;
		t->sample[i] = (ls_text_sample){ .length = 4 + i % (LONGEST - 3),
						 .tokens = t->tokens[i],
						 .places = t->places[i],
						 .targets = t->targets[i],
						 .label = masks ? i % 2 : 0 };
		if (!masks) {
			assert_ok(ls_text_sample_set_targets(&t->sample[i], t->tokens[i] + 1));
			assert_int_equal(t->sample[i].masked, t->sample[i].length);
		} else if (i % 3 > 0) { /* a third has none, as short samples may */
			t->sample[i].masked = 1;
			t->places[i][0] = 1;
			t->targets[i][0] = 7;
		}
	}
}

static ls_model *make_text_model(const char *name)
{
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	ls_model *model = NULL;

	o.name = name;
	o.classes = 2;
	o.text = (ls_text_model){ .tokens = LONGEST, .masked = 2, .vocabulary = VOCABULARY };
	assert_ok(ls_model_new_named(&model, &o, SEED));
	return model;
}

static ls_trainer *make_trainer(ls_model *model)
{
	ls_trainer_options o = options_of("adamw");
	ls_trainer *trainer = NULL;

	assert_ok(ls_trainer_new(&trainer, model, &o));
	return trainer;
}

static ls_dataset_info info_of(const texts *t, int classes)
{
	ls_dataset_info info = {
		.name = "mine", .samples = OF_TEXT, .classes = classes, .tokens_max = LONGEST, .vocabulary = VOCABULARY
	};

	for (int i = 0; i < OF_TEXT; i++)
		info.masked_max = t->sample[i].masked > info.masked_max ? t->sample[i].masked : info.masked_max;
	return info;
}

static ls_dataset *make_set(const texts *t, int classes)
{
	const ls_dataset_info info = info_of(t, classes);
	ls_dataset *set = NULL;

	assert_ok(ls_dataset_from_texts(&set, &info, t->sample, NULL));
	return set;
}

static void forget_targets(texts *t)
{
	for (int i = 0; i < OF_TEXT; i++)
		t->sample[i].masked = 0;
}

static ls_batch batch_of(const texts *t)
{
	ls_batch batch = LS_BATCH_INIT;

	batch.count = OF_TEXT;
	batch.text = t->sample;
	return batch;
}

/* ---- batches of the program -------------------------------------------------------------------------------------- */

static void assert_batch_fails(ls_trainer *trainer, const ls_batch *batch, const char *message)
{
	ls_eval_result result;

	assert_fails(ls_trainer_step(trainer, batch, NULL), LS_EINVALID, message);
	assert_fails(ls_trainer_backward(trainer, batch, NULL), LS_EINVALID, message);
	assert_fails(ls_trainer_evaluate(trainer, batch, &result), LS_EINVALID, message);
}

static void test_samples_of_a_language_model_have_targets(void **state)
{
	ls_model *model = make_text_model("gpt-nano");
	ls_trainer *trainer = make_trainer(model);
	uint64_t bits = fingerprint(model);
	ls_trainer_report report;
	texts t;
	(void)state;
	make_texts(&t, 0);
	ls_batch batch = batch_of(&t);
	t.sample[5].masked = 0;
	assert_batch_fails(trainer, &batch,
			   "sample 5: batch.text[5].masked is 0, but a language model needs at least one target");
	forget_targets(&t);
	assert_batch_fails(trainer, &batch, "ls_text_sample_set_targets()");
	assert_int_equal(fingerprint(model), bits);
	make_texts(&t, 0);
	assert_ok(ls_trainer_step(trainer, &batch, &report));
	assert_true(report.loss > 0 && report.masked == report.tokens);
	ls_trainer_free(trainer);
	ls_model_free(model);
}

static void test_a_batch_in_pretraining_has_masked_tokens(void **state)
{
	ls_model *model = make_text_model("bert-tiny");
	ls_trainer *trainer = make_trainer(model);
	uint64_t bits = fingerprint(model);
	ls_trainer_report report;
	ls_eval_result result;
	texts t;
	(void)state;
	make_texts(&t, 1);
	ls_batch batch = batch_of(&t);
	forget_targets(&t);
	assert_batch_fails(trainer, &batch, "the batch has no token to predict: batch.text[i].masked is 0 in all");
	assert_int_equal(fingerprint(model), bits);
	make_texts(&t, 1);
	assert_ok(ls_trainer_step(trainer, &batch, &report)); /* samples without any are among them */
	assert_int_equal(report.masked, OF_TEXT * 2 / 3);
	assert_ok(ls_trainer_evaluate(trainer, &batch, &result));
	assert_int_equal(result.masked, OF_TEXT * 2 / 3);
	ls_trainer_free(trainer);
	ls_model_free(model);
}

/* ---- datasets ---------------------------------------------------------------------------------------------------- */

static ls_status train_on(const char *model, const ls_dataset *set, const ls_dataset *test, ls_train_result *result)
{
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;

	o.model = model;
	o.train_set = set;
	o.test_set = test;
	o.epochs = 1;
	o.eval_every = test ? 1 : 0;
	o.batch = BATCH;
	o.optimizer = "adamw";
	o.quiet = 1;
	return ls_train(&o, result);
}

static void assert_set_fails(const char *name, const ls_dataset *set, ls_status status, const char *message)
{
	ls_model *model = make_text_model(name);
	ls_trainer *trainer = make_trainer(model);
	uint64_t bits = fingerprint(model);
	ls_eval_result result;

	assert_fails(ls_trainer_evaluate_dataset(trainer, set, &result), status, message);
	assert_fails(ls_trainer_run(trainer, set, 0, NULL), status, message);
	assert_int_equal(fingerprint(model), bits);
	ls_trainer_free(trainer);
	ls_model_free(model);
}

static void test_datasets_without_targets(void **state)
{
	const char *message = "dataset mine has no tokens to predict, its masked_max is 0; ls_dataset_from_texts()";
	ls_train_result result;
	texts t, good;
	(void)state;
	make_texts(&t, 0);
	make_texts(&good, 0);
	forget_targets(&t);
	ls_dataset *set = make_set(&t, 1), *whole = make_set(&good, 1);
	assert_set_fails("gpt-nano", set, LS_EMISMATCH, message);
	assert_set_fails("bert-tiny", set, LS_EMISMATCH, message);
	assert_fails(train_on("gpt-nano", set, NULL, &result), LS_EMISMATCH, message);
	assert_fails(train_on("gpt-nano", whole, set, &result), LS_EMISMATCH, message);
	assert_ok(train_on("gpt-nano", whole, whole, &result));
	ls_dataset *classes = make_set(&t, 2);
	assert_set_fails("gpt-nano", classes, LS_EMISMATCH, message);
	ls_dataset_free(classes);
	ls_dataset_free(whole);
	ls_dataset_free(set);
}

/* A dataset may announce what its samples do not have. */
static void test_samples_without_targets(void **state)
{
	ls_dataset_info info;
	ls_dataset *set = NULL;
	ls_train_result result;
	texts t;
	(void)state;
	make_texts(&t, 0);
	info = info_of(&t, 1);
	t.sample[9].masked = 0;
	assert_ok(ls_dataset_from_texts(&set, &info, t.sample, NULL));
	assert_set_fails("gpt-nano", set, LS_EFORMAT, "dataset 'mine': sample 9 has no token to predict");
	assert_fails(train_on("gpt-nano", set, NULL, &result), LS_EFORMAT, "sample 9 has no token to predict");
	ls_dataset_free(set);
	forget_targets(&t);
	info.masked_max = 2;
	assert_ok(ls_dataset_from_texts(&set, &info, t.sample, NULL));
	assert_set_fails("bert-tiny", set, LS_EMISMATCH, "no sample of dataset mine has a token to predict");
	ls_dataset_free(set);
}

/* A dataset without samples, which ls_dataset_new() refuses, is an error of its own, with and without masked_max. */
static void test_an_empty_dataset(void **state)
{
	static const char *const models[] = { "gpt-nano", "bert-tiny" };
	texts t;
	(void)state;
	for (int i = 0; i < 4; i++) {
		make_texts(&t, i % 2);
		ls_dataset *set = make_set(&t, i % 2 ? 2 : 1);
		set->info.samples = 0;
		set->info.masked_max *= i / 2;
		assert_set_fails(models[i % 2], set, LS_EINVALID, "dataset mine has no samples to");
		ls_dataset_free(set);
	}
	ls_model *model = make_text_model("bert-tiny");
	ls_trainer *trainer = make_trainer(model);
	ls_dataset *set = make_set(&t, 5); /* nor would its classes fit */
	set->info.samples = 0;
	assert_fails(ls_trainer_run(trainer, set, 0, NULL), LS_EINVALID, "dataset mine has no samples to train on");
	ls_dataset_free(set);
	ls_trainer_free(trainer);
	ls_model_free(model);
}

static void test_some_samples_in_pretraining_have_none(void **state)
{
	ls_model *model = make_text_model("bert-tiny");
	ls_trainer *trainer = make_trainer(model);
	ls_trainer_report report;
	ls_eval_result result;
	texts t;
	(void)state;
	make_texts(&t, 1);
	ls_dataset *set = make_set(&t, 2);
	assert_ok(ls_trainer_run(trainer, set, 0, &report));
	assert_int_equal(report.masked, OF_TEXT * 2 / 3);
	assert_ok(ls_trainer_evaluate_dataset(trainer, set, &result));
	assert_int_equal(result.masked, OF_TEXT * 2 / 3);
	ls_dataset_free(set);
	ls_trainer_free(trainer);
	ls_model_free(model);
}

/* ---- samples in memory ------------------------------------------------------------------------------------------- */

static void test_labels_become_targets(void **state)
{
	int32_t labels[] = { LS_IGNORE_INDEX, 7, LS_IGNORE_INDEX, 8, 9 }, tokens[5] = { 0 }, places[5], targets[5];
	ls_text_sample s = { .length = 5, .tokens = tokens, .places = places, .targets = targets };
	(void)state;
	assert_ok(ls_text_sample_set_targets(&s, labels));
	assert_int_equal(s.masked, 3);
	assert_memory_equal(places, ((int32_t[]){ 1, 3, 4 }), 3 * sizeof(*places));
	assert_memory_equal(targets, ((int32_t[]){ 7, 8, 9 }), 3 * sizeof(*targets));
	s.targets = labels; /* in place */
	assert_ok(ls_text_sample_set_targets(&s, labels));
	assert_memory_equal(labels, targets, 3 * sizeof(*targets));
	assert_fails(ls_text_sample_set_targets(&s, NULL), LS_EINVALID, "`labels` is NULL");
	s.places = NULL;
	assert_fails(ls_text_sample_set_targets(&s, labels), LS_EINVALID, "sample.places");
}

static void test_texts_are_checked(void **state)
{
	ls_dataset_info info;
	ls_dataset *set = NULL;
	float targets[OF_TEXT] = { 0 };
	texts t;
	(void)state;
	make_texts(&t, 0);
	info = info_of(&t, 1);
	assert_fails(ls_dataset_from_texts(&set, &info, NULL, NULL), LS_EINVALID, "needs an info and samples");
	assert_fails(ls_dataset_from_texts(&set, &info, t.sample, targets), LS_EINVALID, "info.targets of 'mine' is 0");
	t.tokens[3][2] = VOCABULARY;
	assert_fails(ls_dataset_from_texts(&set, &info, t.sample, NULL), LS_EINVALID, "sample 3 has token 40");
	t.tokens[3][2] = 0;
	t.targets[4][1] = -1;
	assert_fails(ls_dataset_from_texts(&set, &info, t.sample, NULL), LS_EINVALID, "sample 4 has target -1");
	t.targets[4][1] = 0;
	t.sample[5].targets = NULL;
	assert_fails(ls_dataset_from_texts(&set, &info, t.sample, NULL), LS_EINVALID, "samples[5].masked is 9");
	t.sample[5].targets = t.targets[5];
	t.sample[6].tokens = NULL;
	assert_fails(ls_dataset_from_texts(&set, &info, t.sample, NULL), LS_EINVALID, "samples[6].tokens is NULL");
	t.sample[6].tokens = t.tokens[6];
	info.tokens_max = 0;
	assert_fails(ls_dataset_from_texts(&set, &info, t.sample, NULL), LS_EINVALID, "info.tokens_max");
	assert_null(set);
}

/* Tokens of a corpus that the program has in memory train to the bits of the corpus. */
static void test_a_corpus_in_memory_has_its_bits(void **state)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	const ls_trainer_options how = options_of("adam");
	ls_dataset *corpus = NULL, *copy = NULL;
	ls_text_sample text[SAMPLES];
	static int32_t room[SAMPLES][4][LONGEST + 1];
	(void)state;
	o.name = "babble";
	o.next_token = 1;
	o.tokens = LONGEST;
	o.samples = SAMPLES;
	assert_ok(ls_dataset_open(&corpus, &o));
	for (int i = 0; i < SAMPLES; i++) {
		text[i] = (ls_text_sample){
			.tokens = room[i][0], .segments = room[i][1], .places = room[i][2], .targets = room[i][3]
		};
		assert_ok(ls_dataset_read_text(corpus, (uint64_t)i, 0, &text[i]));
		room[i][0][LONGEST] = room[i][3][LONGEST - 1]; /* the token after the last */
		text[i].segments = NULL;
		assert_ok(ls_text_sample_set_targets(&text[i], room[i][0] + 1));
	}
	ls_dataset_info info = *ls_dataset_describe(corpus);
	assert_ok(ls_dataset_from_texts(&copy, &info, text, NULL));
	assert_true(train("gpt-nano", copy, &how) == train("gpt-nano", corpus, &how));
	ls_dataset_free(copy);
	ls_dataset_free(corpus);
}

TEST_MAIN(test_samples_of_a_language_model_have_targets, test_a_batch_in_pretraining_has_masked_tokens,
	  test_datasets_without_targets, test_samples_without_targets, test_an_empty_dataset,
	  test_some_samples_in_pretraining_have_none, test_labels_become_targets, test_texts_are_checked,
	  test_a_corpus_in_memory_has_its_bits)
