/* What a trainer saves: it goes on with the same bits, and its files say what they are. */
#include <math.h>

#include "unit/run/custom_loop.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

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
	assert_ok(ls_trainer_get_position(trainer, &where));
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

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_it_goes_on_after_a_load, test_the_learning_rate,
	       test_files_say_what_they_are, test_a_dataset_that_fails, test_a_graph_of_the_program)
