/*
 * predict.c - use what was trained: load the model of a run, predict a few images, and write it for other programs.
 *
 *     cc predict.c $(pkg-config --cflags --libs lockstep) && ./a.out
 */
#include <lockstep/lockstep.h>
#include <stdio.h>

enum { SHOWN = 8, PIXELS = 28 * 28, CLASSES = 10 };

static int fail(void)
{
	fprintf(stderr, "%s\n", ls_last_error());
	return 1;
}

static int train(const char *run)
{
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	options.model = "cnn";
	options.data = "glyphs";
	options.samples = 6000;
	options.run = run;
	options.quiet = 1;
	return ls_train(&options, NULL) ? fail() : 0;
}

/* Digits that the model has not seen. Images of a dataset are normalised as the model wants them. */
static int read_digits(float *images, int32_t *labels)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	ls_dataset *digits = NULL;
	options.name = "glyphs";
	options.split = LS_SPLIT_TEST;
	if (ls_dataset_open(&digits, &options))
		return fail();
	for (uint64_t i = 0; i < SHOWN; i++)
		if (ls_dataset_read(digits, i, images + i * PIXELS, &labels[i]))
			return fail();
	ls_dataset_free(digits);
	return 0;
}

int main(void)
{
	ls_model_load_options options = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_model *model = NULL;
	float images[SHOWN * PIXELS], chances[SHOWN * CLASSES];
	int32_t labels[SHOWN];

	options.source = "runs/digits";
	if (train(options.source) || read_digits(images, labels))
		return 1;
	if (ls_model_load(&model, &options) || ls_model_predict(model, images, SHOWN, chances))
		return fail();
	ls_softmax(chances, SHOWN, CLASSES);
	for (int i = 0; i < SHOWN; i++) {
		const float *row = chances + i * CLASSES;
		int best = 0;
		for (int k = 1; k < CLASSES; k++)
			best = row[k] > row[best] ? k : best;
		printf("a %d: predicted %d with probability %.3f\n", (int)labels[i], best, (double)row[best]);
	}
	if (ls_model_export_onnx(model, "digits.onnx"))
		return fail();
	puts("digits.onnx is the same model for onnxruntime");
	ls_model_free(model);
	return 0;
}
