/*
 * Models in memory: predictions do not depend on what is predicted with them, nor on devices and threads; parameters by
 * name; files that are saved are read again.
 */
#include <lockstep/inspect.h>
#include <lockstep/model.h>
#include <lockstep/models.h>
#include <lockstep/train.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "unit/assert_status.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

enum { SEED = 7301, MOST = 70, CLASSES = 10, PIXELS = 28 * 28, LONGEST = 24, WORDS = 50 };

static ls_model *make_model(const char *name)
{
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	ls_graph *graph = NULL;
	ls_model *model = NULL;

	o.name = name;
	o.text = (ls_text_model){ .tokens = LONGEST, .vocabulary = WORDS, .layers = 2, .hidden = 64, .heads = 2 };
	assert_ok(ls_model_build(&graph, &o));
	assert_ok(ls_model_new(&model, graph, SEED));
	return model;
}

static float draw(uint64_t i)
{
	uint32_t words[4];
	ls_rng_words(ls_rng_make(SEED, LS_RNG_TEST, 1), i, 0, words);
	return (float)words[0] / 4294967296.0f;
}

/* What `set` of weights that start at zero give is not telling: every weight gets a value. */
static void fill(ls_model *model)
{
	ls_model_param param;

	for (size_t i = 0; ls_model_param_at(model, i, &param); i++) {
		float *values = malloc(param.elements * sizeof(*values));
		for (uint64_t k = 0; k < param.elements; k++)
			values[k] = (param.is_trained ? -0.5f : 0.5f) + draw(1000 * i + k % 997);
		assert_ok(ls_model_set(model, param.name, values, param.elements));
		free(values);
	}
}

static void test_images_do_not_depend_on_their_neighbours(void **state)
{
	static const char *const names[] = { "mlp", "cnn", "resnet18" };
	static const int64_t sizes[] = { 1, 2, 3, 31, 33, 63, MOST };
	float *images = malloc(sizeof(float) * MOST * PIXELS), *all = malloc(sizeof(float) * MOST * CLASSES);
	float *parts = malloc(sizeof(float) * MOST * CLASSES);
	(void)state;
	for (uint64_t i = 0; i < MOST * PIXELS; i++)
		images[i] = draw(i);
	for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++) {
		ls_model *model = make_model(names[m]);
		fill(model);
		assert_ok(ls_model_predict(model, images, MOST, all));
		assert_ok(ls_model_predict(model, images, 0, parts));
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			for (int64_t at = 0; at < MOST; at += sizes[s])
				assert_ok(ls_model_predict(model, images + at * PIXELS,
							   MOST - at < sizes[s] ? MOST - at : sizes[s],
							   parts + at * CLASSES));
			if (memcmp(parts, all, sizeof(float) * MOST * CLASSES) != 0)
				fail_msg("%s: %d at a time give other bits", names[m], (int)sizes[s]);
		}
		ls_model_free(model);
	}
	free(parts);
	free(all);
	free(images);
}

static void test_text_does_not_depend_on_its_neighbours(void **state)
{
	static const char *const names[] = { "transformer", "bert-tiny" };
	int32_t tokens[MOST][LONGEST], segments[MOST][LONGEST];
	ls_text_sample samples[MOST];
	float all[MOST * CLASSES], one[CLASSES];
	(void)state;
	for (int i = 0; i < MOST; i++) {
		samples[i] =
			(ls_text_sample){ .length = 1 + i % LONGEST, .tokens = tokens[i], .segments = segments[i] };
		for (int k = 0; k < LONGEST; k++) {
			tokens[i][k] = (int32_t)(draw((uint64_t)(i * LONGEST + k)) * WORDS);
			segments[i][k] = k > i % 5;
		}
	}
	for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++) {
		ls_model *model = make_model(names[m]);
		ls_model_facts facts;
		fill(model);
		assert_ok(ls_model_describe(model, &facts));
		assert_int_equal(facts.tokens_max, LONGEST);
		assert_int_equal(facts.outputs, CLASSES);
		assert_ok(ls_model_predict_text(model, samples, MOST, all));
		for (int i = 0; i < MOST; i++) {
			assert_ok(ls_model_predict_text(model, &samples[i], 1, one));
			assert_memory_equal(one, all + i * CLASSES, sizeof(one));
		}
		assert_fails(ls_model_predict(model, all, 1, one), LS_EMISMATCH, "takes text");
		ls_text_sample bad = samples[3];
		bad.length = LONGEST + 1;
		assert_fails(ls_model_predict_text(model, &bad, 1, one), LS_EINVALID,
			     "has 25 tokens; the model takes 1 to 24");
		bad.length = 2;
		tokens[3][1] = WORDS;
		assert_fails(ls_model_predict_text(model, &bad, 1, one), LS_EINVALID, "token 1 is 50");
		tokens[3][1] = 0;
		ls_model_free(model);
	}
}

static void test_parameters(void **state)
{
	ls_model *model = make_model("cnn");
	ls_model_facts before, after;
	ls_model_param param;
	float bias[CLASSES], back[CLASSES];
	uint64_t trained = 0;
	(void)state;
	assert_ok(ls_model_describe(model, &before));
	assert_null(before.name);
	assert_int_equal(before.channels * before.height * before.width, PIXELS);
	for (size_t i = 0; ls_model_param_at(model, i, &param); i++)
		trained += param.is_trained ? param.elements : 0;
	assert_int_equal(trained, before.parameters);
	assert_true(ls_model_param_of(model, "fc2.bias", &param));
	assert_int_equal(param.rank, 1);
	assert_int_equal(param.shape[0], CLASSES);
	assert_false(ls_model_param_of(model, "fc3.bias", &param));
	for (int i = 0; i < CLASSES; i++)
		bias[i] = (float)i;
	assert_ok(ls_model_set(model, "fc2.bias", bias, CLASSES));
	assert_ok(ls_model_get(model, "fc2.bias", back, CLASSES));
	assert_memory_equal(back, bias, sizeof(bias));
	assert_ok(ls_model_describe(model, &after));
	assert_true(before.fingerprint != after.fingerprint);
	assert_fails(ls_model_get(model, "fc3.bias", back, CLASSES), LS_ENOTFOUND, "no parameter 'fc3.bias'");
	assert_fails(ls_model_get(model, "fc2.bias", back, 3), LS_EINVALID, "has 10 elements, not 3");
	bias[4] = NAN;
	assert_fails(ls_model_set(model, "fc2.bias", bias, CLASSES), LS_ENUMERIC,
		     "element 4 of the new 'fc2.bias' is NaN");
	assert_ok(ls_model_get(model, "fc2.bias", back, CLASSES));
	assert_true(back[4] == 4);
	ls_model_free(model);
}

/* A run's model, its file, and the file that is saved of it give the same predictions; so do devices and threads. */
static void test_load_and_save(void **state)
{
	ls_train_options train = LS_TRAIN_OPTIONS_INIT;
	ls_model_load_options load = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_train_result result;
	ls_model_facts facts;
	float *images = malloc(sizeof(float) * MOST * PIXELS), expected[MOST * CLASSES], got[MOST * CLASSES];
	char run[1100], file[1200];
	snprintf(run, sizeof(run), "%s/run", (char *)*state);
	snprintf(file, sizeof(file), "%s/saved.safetensors", (char *)*state);
	for (uint64_t i = 0; i < MOST * PIXELS; i++)
		images[i] = draw(i);
	train.model = "resnet18", train.data = "glyphs", train.samples = 64, train.test_samples = 10, train.batch = 16;
	train.steps = 2, train.run = run, train.quiet = 1;
	assert_ok(ls_train(&train, &result));
	for (int i = 0; i < 4; i++) {
		ls_model *model = NULL;
		load.source = i < 2 ? run : file;
		load.devices = 1 + i, load.threads = 1 + i % 2;
		load.input = i == 3 ? "1x28x28" : NULL;
		assert_ok(ls_model_load(&model, &load));
		assert_ok(ls_model_describe(model, &facts));
		assert_string_equal(facts.name, "resnet18");
		assert_int_equal(facts.fingerprint, result.fingerprint);
		assert_non_null(ls_model_normalisation(model));
		assert_ok(ls_model_predict(model, images, MOST, i == 0 ? expected : got));
		if (i > 0)
			assert_memory_equal(got, expected, sizeof(got));
		if (i == 1)
			assert_ok(ls_model_save(model, file));
		ls_model_free(model);
	}
	ls_softmax(got, MOST, CLASSES);
	for (int i = 0; i < MOST; i++) {
		double sum = 0;
		for (int k = 0; k < CLASSES; k++)
			sum += (double)got[i * CLASSES + k];
		assert_true(fabs(sum - 1) < 1e-5);
	}
	free(images);
}

/* A model that was loaded is walked as the graph that it was built from. */
static void test_the_graph_of_a_model(void **state)
{
	const char *path = in_dir(*state, "walked.safetensors");
	ls_model_load_options load = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_model *model = make_model("cnn"), *loaded = NULL;
	ls_graph_node node, same;
	ls_graph_param param;
	ls_model_param info;

	assert_ok(ls_model_save(model, path));
	load.source = path;
	load.model = "cnn";
	assert_ok(ls_model_load(&loaded, &load));
	const ls_graph *graph = ls_model_graph(loaded);
	int count = 0, params = 0;
	for (; ls_graph_node_at(graph, count, &node); count++) {
		assert_int_equal(ls_graph_node_at(ls_model_graph(model), count, &same), 1);
		assert_string_equal(node.operator_name, same.operator_name);
		assert_string_equal(node.layer, same.layer);
		for (int k = 0; k < node.params; k++, params++) {
			assert_int_equal(ls_graph_param_at(graph, node.param[k], &param), 1);
			assert_int_equal(ls_model_param_of(loaded, param.name, &info), 1);
			assert_memory_equal(param.shape, info.shape, sizeof(param.shape));
		}
	}
	assert_int_equal(count, ls_graph_describe(graph).layers + 1);
	assert_int_equal(params, 8);
	assert_int_equal(ls_graph_input_shape(graph).height, 28);
	ls_model_free(loaded);
	assert_int_equal(ls_graph_node_at(graph, 0, &node), 0);
	assert_null(ls_model_graph(loaded));
	assert_null(ls_model_graph(NULL));
	ls_model_free(model);
}

static void test_refusals(void **state)
{
	ls_model_load_options load = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_model *model = NULL;
	ls_graph *graph = NULL;
	float logits[CLASSES];
	(void)state;
	assert_fails(ls_model_load(&model, &load), LS_EINVALID, "name a run directory");
	load.source = "/nowhere/at/all";
	assert_fails(ls_model_load(&model, &load), LS_ENOTFOUND, "/nowhere/at/all");
	load.threads = 1 << 20;
	assert_fails(ls_model_load(&model, &load), LS_EINVALID, "options.threads");
	assert_null(model);
	assert_ok(ls_graph_new(&graph));
	assert_fails(ls_model_new(&model, graph, 1), LS_EINVALID, "not finished");
	ls_graph_free(graph); /* still the caller's */
	model = make_model("mlp");
	assert_fails(ls_model_predict(model, logits, -1, logits), LS_EINVALID, "-1 samples");
	assert_fails(ls_model_predict_text(model, NULL, 1, logits), LS_EMISMATCH, "takes images");
	assert_fails(ls_model_predict(model, NULL, 1, logits), LS_EINVALID, "`images` is NULL");
	float images[3 * PIXELS] = { 0 }, three[3 * CLASSES] = { 0 };
	images[2 * PIXELS + 5] = NAN;
	assert_fails(ls_model_predict(model, images, 3, three), LS_EINVALID,
		     "sample 2: value 5 of the image is NaN; images must be finite numbers");
	images[PIXELS + PIXELS - 1] = -INFINITY;
	assert_fails(ls_model_predict(model, images, 3, three), LS_EINVALID,
		     "sample 1: value 783 of the image is infinite");
	assert_true(three[0] == 0); /* nothing was computed */
	assert_ok(ls_model_predict(model, images, 1, three));
	ls_model_free(model);
	ls_model_free(NULL);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_images_do_not_depend_on_their_neighbours,
	       test_text_does_not_depend_on_its_neighbours, test_parameters, test_load_and_save,
	       test_the_graph_of_a_model, test_refusals)
