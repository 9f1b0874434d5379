/*
 * Trainers of programs in bf16: the bits of ls_train() in the same precision, in which the model predicts afterwards,
 * and which its files name.
 */
#include <lockstep/model.h>

#include "unit/run/custom_loop.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

enum { OUTPUTS = 10, LOGITS = 4 * OUTPUTS };

static void test_steps_have_the_bits_of_train(void **state)
{
	static const char *const precisions[] = { "bf16", "bf16-amx" };
	static const char *const models[][2] = { { "cnn", "glyphs" }, { "transformer", "babble" } };
	(void)state;
	for (size_t m = 0; m < 2; m++) {
		ls_dataset *set = open_set(models[m][1]);
		ls_trainer_options o = options_of("adam");
		uint64_t seen[3] = { train_here(models[m][0], set, &o, WHOLE) };
		for (size_t p = 0; p < 2; p++) {
			o.precision = precisions[p];
			uint64_t expected = train(models[m][0], set, &o);
			for (way how = WHOLE; how < WAYS; how++) {
				o.devices = 1 + how % 3;
				o.threads = 1 + how % 2;
				uint64_t bits = train_here(models[m][0], set, &o, how);
				if (bits != expected)
					fail_msg("%s in %s, way %d: %016llx, not %016llx", models[m][0], precisions[p],
						 (int)how, (unsigned long long)bits, (unsigned long long)expected);
			}
			seen[p + 1] = expected;
		}
		assert_true(seen[0] != seen[1] && seen[0] != seen[2] && seen[1] != seen[2]);
		ls_dataset_free(set);
	}
}

static void predict(ls_model *model, const ls_dataset *set, float logits[LOGITS])
{
	samples *s = malloc(sizeof(*s));

	assert_ok(ls_model_predict(model, take(s, set, 0).images, 4, logits));
	free(s);
}

/* A file of the model predicts as the model does. */
static void assert_saved(ls_model *model, const ls_dataset *set, const char *path, const float logits[LOGITS])
{
	ls_model_load_options from = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_model *loaded = NULL;
	float got[LOGITS];

	assert_ok(ls_model_save(model, path));
	from.source = path;
	assert_ok(ls_model_load(&loaded, &from));
	predict(loaded, set, got);
	assert_memory_equal(got, logits, sizeof(got));
	ls_model_free(loaded);
}

/* Also where options.precision is left open later on, and after a trainer that could not be made. */
static void test_the_model_keeps_its_precision(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("adam");
	ls_model *model = make_model("cnn", set), *same = make_model("cnn", set);
	ls_trainer *trainer = NULL;
	float plain[LOGITS], rounded[LOGITS], got[LOGITS];

	for (int k = 0; k < 2; k++) { /* the last layer begins with zeros */
		o.precision = "fp32";
		assert_ok(ls_trainer_new(&trainer, k ? same : model, &o));
		do_steps(trainer, k ? same : model, set, 0, 2, DATASET);
		ls_trainer_free(trainer);
	}
	predict(model, set, plain);
	o.precision = "bf17";
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "did you mean 'bf16'?");
	o.precision = "bf16";
	o.freeze = "nothing.*";
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "nothing.*");
	predict(model, set, got);
	assert_memory_equal(got, plain, sizeof(got));
	o.freeze = NULL;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	predict(model, set, rounded);
	assert_memory_not_equal(rounded, plain, sizeof(rounded));
	ls_trainer_free(trainer);
	assert_saved(model, set, in_dir(*state, "rounded.safetensors"), rounded);

	uint64_t bits[2];
	for (int k = 0; k < 2; k++) {
		ls_model *trained = k ? same : model;
		o.precision = k ? "bf16" : NULL;
		assert_ok(ls_trainer_new(&trainer, trained, &o));
		do_steps(trainer, trained, set, 0, 2, WHOLE);
		ls_trainer_free(trainer);
		bits[k] = fingerprint(trained);
	}
	assert_int_equal(bits[0], bits[1]);
	ls_model_free(same);
	ls_model_free(model);
	ls_dataset_free(set);
}

static void test_auto_is_one_of_them(void **state)
{
	static const char *const precisions[] = { "fp32", "bf16", "bf16-amx" };
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("sgd");
	(void)state;
	o.precision = "auto";
	uint64_t bits = train_here("mlp", set, &o, WHOLE);
	int found = 0;
	for (size_t p = 0; p < 3; p++) {
		o.precision = precisions[p];
		found += train_here("mlp", set, &o, WHOLE) == bits;
	}
	assert_int_equal(found, 1);
	ls_dataset_free(set);
}

/* A checkpoint goes on in its own precision or not at all, and a model that is loaded from it has that. */
static void test_checkpoints_have_a_precision(void **state)
{
	const char *dir = in_dir(*state, "checkpoints");
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("adam");
	ls_model *model = make_model("cnn", set);
	ls_model_load_options from = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_trainer *trainer = NULL;

	o.precision = "bf16";
	uint64_t expected = train_here("cnn", set, &o, WHOLE);
	assert_ok(ls_trainer_new(&trainer, model, &o));
	do_steps(trainer, model, set, 0, 3, WHOLE);
	assert_ok(ls_trainer_save(trainer, dir, 1));
	ls_trainer_free(trainer);

	uint64_t before = fingerprint(model);
	o.precision = "fp32";
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_fails(ls_trainer_load(trainer, dir), LS_EMISMATCH,
		     "trained with precision bf16, and this trainer has fp32");
	assert_int_equal(fingerprint(model), before);
	ls_trainer_free(trainer);
	ls_model_free(model);

	from.source = dir;
	o.precision = NULL;
	assert_ok(ls_model_load(&model, &from));
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_load(trainer, dir));
	do_steps(trainer, model, set, 3, STEPS, WHOLE);
	assert_int_equal(fingerprint(model), expected);
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

/* ls_train() of a model in memory leaves it in the run's precision. */
static void test_files_after_a_run(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("cnn", set);
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;
	float logits[LOGITS];

	o.model_handle = model;
	o.train_set = set;
	o.eval_every = 0;
	o.steps = 2;
	o.batch = BATCH;
	o.precision = "bf16";
	o.conv = "direct";
	o.quiet = 1;
	assert_ok(ls_train(&o, NULL));
	predict(model, set, logits);
	assert_saved(model, set, in_dir(*state, "run.safetensors"), logits);
	ls_model_free(model);
	ls_dataset_free(set);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_steps_have_the_bits_of_train, test_the_model_keeps_its_precision,
	       test_auto_is_one_of_them, test_checkpoints_have_a_precision, test_files_after_a_run)
