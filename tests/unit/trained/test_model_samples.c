/*
 * Samples for a model: images from files and from numbers give the same bits as the dataset; options of
 * normalisation and names are checked; names of classes are saved with a model. Whole files are predicted
 * in tests/cli/t0430-predict.sh.
 */
#include <lockstep/model.h>
#include <lockstep/predict.h>
#include <lockstep/train.h>
#include <lockstep/trainer.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "data/dataset.h"
#include "support/png_writer.h"
#include "unit/assert_status.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

enum { PIXELS = 28 * 28 };

static char run[TEMP_DIR_NAME + 8];

static const char *train_once(const char *dir)
{
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;

	snprintf(run, sizeof(run), "%s/run", dir);
	o.model = "mlp";
	o.data = "glyphs";
	o.samples = o.test_samples = 8;
	o.steps = 1;
	o.run = run;
	o.quiet = 1;
	assert_ok(ls_train(&o, NULL));
	return run;
}

static ls_model *load(const ls_model_load_options *options)
{
	ls_model *model = NULL;
	assert_ok(ls_model_load(&model, options));
	return model;
}

static void test_images_and_numbers_agree(void **state)
{
	ls_model_load_options options = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_image_options how = LS_IMAGE_OPTIONS_INIT;
	uint8_t pixels[PIXELS];
	float decoded[PIXELS], numbers[PIXELS];

	options.source = train_once(*state);
	ls_model *model = load(&options);
	for (size_t i = 0; i < PIXELS; i++)
		numbers[i] = pixels[i] = (uint8_t)(i * 37);
	assert_ok(ls_model_normalise(model, numbers));
	assert_true(numbers[1] == (37 / 255.0f - 0.1307f) / 0.3081f);
	png_file png = png_make(28, 28, 8, 0, pixels, 28, NULL, 0);
	ls_status status = ls_model_read_image(model, png.bytes, png.size, &how, decoded);
	if (status != LS_EUNSUPPORTED) { /* a build without libpng */
		assert_ok(status);
		assert_memory_equal(decoded, numbers, sizeof(decoded));
	}
	free(png.bytes);
	numbers[5] = 255.5f;
	assert_fails(ls_model_normalise(model, numbers), LS_ENUMERIC, "from 0 to 255");
	how.name = "x.gif";
	assert_fails(ls_model_read_image(model, "GIF89a..", 8, &how, decoded), LS_EFORMAT, "x.gif is neither");
	ls_text_sample sample = { 0 };
	assert_fails(ls_model_tokenize(model, "text", 4, &sample, NULL), LS_EMISMATCH, "takes images");
	assert_null(ls_model_class_name(model, 0));
	ls_model_free(model);
}

static void test_normalisation_of_options(void **state)
{
	ls_model_load_options options = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_model *model = NULL;
	float numbers[PIXELS] = { 0 };

	options.source = train_once(*state);
	options.mean = "0.5";
	assert_fails(ls_model_load(&model, &options), LS_EINVALID, "give both");
	options.deviation = "0.25";
	model = load(&options);
	assert_true(ls_model_normalisation(model)->mean[0] == 0.5);
	assert_ok(ls_model_normalise(model, numbers));
	assert_true(numbers[0] == -2);
	ls_model_free(model);
	options.mean = options.deviation = "0.5,0.5";
	assert_fails(ls_model_load(&model, &options), LS_EINVALID,
		     "options.mean has 2 numbers; the model's images have 1");
	options.mean = "0.5,x";
	assert_fails(ls_model_load(&model, &options), LS_EINVALID, "options.mean");
	options.mean = "0.5";
	options.deviation = "0";
	assert_fails(ls_model_load(&model, &options), LS_EINVALID, "deviation");
}

static void test_names_of_classes(void **state)
{
	ls_model_load_options options = LS_MODEL_LOAD_OPTIONS_INIT;
	char path[TEMP_DIR_NAME + 16];
	ls_model *model = NULL;

	options.source = train_once(*state);
	options.labels = path;
	snprintf(path, sizeof(path), "%s/labels", (const char *)*state);
	assert_ok(ls_file_put(path, "a\r\nb\n\nd\ne\nf\ng\nh\ni\nlast", 22));
	model = load(&options);
	assert_string_equal(ls_model_class_name(model, 0), "a");
	assert_string_equal(ls_model_class_name(model, 2), "");
	assert_string_equal(ls_model_class_name(model, 9), "last");
	assert_null(ls_model_class_name(model, 10));
	assert_null(ls_model_class_name(model, -1));
	ls_model_free(model);
	assert_ok(ls_file_put(path, "a\nb\n", 4));
	assert_fails(ls_model_load(&model, &options), LS_EMISMATCH, "has 2 lines; the model has 10 classes");
	assert_ok(ls_file_put(path, "\xff\n", 2));
	assert_fails(ls_model_load(&model, &options), LS_EFORMAT, "UTF-8");
	options.labels = "/nowhere/labels";
	assert_fails(ls_model_load(&model, &options), LS_ENOTFOUND, "/nowhere/labels");
}

/* They go where the model goes. */
static void test_names_are_saved(void **state)
{
	const char *names = "cat\n\nc\nd\ne\nf\ng\nh\ni\n\"\xc3\xa9\"\n", *directory = *state;
	char labels[TEMP_DIR_NAME + 16], saved[TEMP_DIR_NAME + 32], onnx[TEMP_DIR_NAME + 16];
	ls_model_load_options options = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_file_map map;

	snprintf(labels, sizeof(labels), "%s/labels", directory);
	snprintf(saved, sizeof(saved), "%s/saved.safetensors", directory);
	snprintf(onnx, sizeof(onnx), "%s/x.onnx", directory);
	assert_ok(ls_file_put(labels, names, strlen(names)));
	options.source = train_once(*state);
	options.labels = labels;
	ls_model *model = load(&options);
	assert_ok(ls_model_save(model, saved));
	assert_ok(ls_model_export_onnx(model, onnx));
	ls_model_free(model);
	options.source = saved;
	options.labels = NULL;
	model = load(&options);
	assert_string_equal(ls_model_class_name(model, 0), "cat");
	assert_string_equal(ls_model_class_name(model, 1), "");
	assert_string_equal(ls_model_class_name(model, 9), "\"\xc3\xa9\"");
	ls_model_free(model);
	assert_ok(ls_file_map_open(&map, onnx));
	assert_non_null(memmem(map.data, map.bytes, names, strlen(names)));
	assert_ok(ls_file_map_end(&map, LS_OK));
}

/* A model in memory takes the names of the data that it is trained on. */
static void test_names_are_learned(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", NULL };
	ls_dataset_options data = LS_DATASET_OPTIONS_INIT;
	ls_trainer_options how = LS_TRAINER_OPTIONS_INIT;
	ls_model_options what = LS_MODEL_OPTIONS_INIT;
	ls_trainer *trainer = NULL;
	ls_dataset *digits = NULL;
	ls_model *model = NULL;

	(void)state;
	data.name = "glyphs";
	data.samples = 32;
	what.name = "mlp";
	how.batch = 32;
	assert_ok(ls_dataset_open(&digits, &data));
	digits->class_names = names;
	assert_ok(ls_model_new_named(&model, &what, 1));
	assert_ok(ls_trainer_new(&trainer, model, &how));
	assert_null(ls_model_class_name(model, 1));
	assert_ok(ls_trainer_run(trainer, digits, 1, NULL));
	assert_string_equal(ls_model_class_name(model, 1), "b");
	ls_trainer_free(trainer);
	ls_model_free(model);
	digits->class_names = NULL;
	ls_dataset_free(digits);
}

static void test_no_model(void **state)
{
	ls_image_options how = LS_IMAGE_OPTIONS_INIT;
	ls_predict_options files = LS_PREDICT_OPTIONS_INIT;
	ls_text_sample sample = { 0 };
	float numbers[PIXELS] = { 0 };

	(void)state;
	assert_fails(ls_model_read_image(NULL, "", 0, &how, numbers), LS_EINVALID, "the model is NULL");
	assert_fails(ls_model_normalise(NULL, numbers), LS_EINVALID, "the model is NULL");
	assert_fails(ls_model_tokenize(NULL, "a", 1, &sample, NULL), LS_EINVALID, "the model is NULL");
	assert_null(ls_model_class_name(NULL, 0));
	assert_fails(ls_predict(NULL, &files, NULL), LS_EINVALID, "the model is NULL");
}

/* A model of a published size does not take another in silence. */
static void test_sizes_that_are_fixed(void **state)
{
	ls_model_options what = LS_MODEL_OPTIONS_INIT;
	ls_model *model = NULL;

	(void)state;
	what.name = "gpt-nano";
	what.text.layers = 1;
	assert_fails(ls_model_new_named(&model, &what, 1), LS_EINVALID, "gpt-nano has a fixed size");
	what.text.layers = 0;
	what.text.ffn = 64;
	assert_fails(ls_model_new_named(&model, &what, 1), LS_EINVALID, "options.text.ffn");
	what.name = "transformer";
	assert_ok(ls_model_new_named(&model, &what, 1));
	ls_model_free(model);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_images_and_numbers_agree, test_normalisation_of_options,
	       test_names_of_classes, test_names_are_saved, test_names_are_learned, test_no_model,
	       test_sizes_that_are_fixed)
