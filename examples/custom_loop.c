/*
 * custom_loop.c - a custom training loop: samples come from your arrays, you see every gradient before it is applied,
 * decide on the learning rate, and continue after an interruption with the same bits.
 *
 *     cc custom_loop.c $(pkg-config --cflags --libs lockstep) -lm && ./a.out
 */
#include <lockstep/lockstep.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 2000, BATCH = 100, STEPS = 60, PIXELS = 28 * 28 };

static float images[SAMPLES * PIXELS];
static int32_t labels[SAMPLES];

static int fail(void)
{
	fprintf(stderr, "%s\n", ls_last_error());
	return 1;
}

/* Yours may come from anywhere: floats (count, channels, height, width) and a label each. */
static int make_samples(void)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	ls_dataset *digits = NULL;
	options.name = "glyphs";
	options.samples = SAMPLES;
	if (ls_dataset_open(&digits, &options))
		return fail();
	for (uint64_t i = 0; i < SAMPLES; i++)
		if (ls_dataset_read(digits, i, images + i * PIXELS, &labels[i]))
			return fail();
	ls_dataset_free(digits);
	return 0;
}

static ls_batch batch_of(int step)
{
	int first = step * BATCH % SAMPLES;
	ls_batch batch = LS_BATCH_INIT;
	batch.count = BATCH;
	batch.images = images + (size_t)first * PIXELS;
	batch.labels = labels + first;
	return batch;
}

/* Keep every element of every gradient between -limit and limit. Returns how many were outside, -1: failed. */
static long clip_values(ls_trainer *trainer, const ls_model *model, float limit)
{
	ls_model_param param;
	long clipped = 0;

	for (size_t i = 0; ls_model_param_at(model, i, &param); i++) {
		float *values = malloc(param.elements * sizeof(*values));
		if (!param.is_trained || !values ||
		    ls_trainer_get_gradient(trainer, param.name, values, param.elements)) {
			free(values);
			if (!param.is_trained)
				continue;
			return -1;
		}
		for (uint64_t k = 0; k < param.elements; k++) {
			clipped += fabsf(values[k]) > limit;
			values[k] = fminf(fmaxf(values[k], -limit), limit);
		}
		ls_status status = ls_trainer_set_gradient(trainer, param.name, values, param.elements);
		free(values);
		if (status)
			return -1;
	}
	return clipped;
}

/* Steps first to last - 1. */
static int train(ls_trainer *trainer, const ls_model *model, int first, int last)
{
	for (int step = first; step < last; step++) {
		ls_batch batch = batch_of(step);
		ls_trainer_report report;
		if (step == STEPS / 2 && ls_trainer_set_lr(trainer, 2e-4))
			return fail();
		if (ls_trainer_backward(trainer, &batch, &report))
			return fail();
		long clipped = clip_values(trainer, model, 0.1f);
		if (clipped < 0 || ls_trainer_update(trainer, NULL))
			return fail();
		if (step % 10 == 0)
			printf("step %2d: loss %.4f, %ld elements of the gradient clipped\n", step, report.loss,
			       clipped);
	}
	return 0;
}

static int make(ls_model **model, ls_trainer **trainer)
{
	ls_model_options what = LS_MODEL_OPTIONS_INIT;
	ls_trainer_options how = LS_TRAINER_OPTIONS_INIT;
	what.name = "cnn";
	how.batch = BATCH;
	how.lr = 1e-3;
	return ls_model_new_named(model, &what, 7) || ls_trainer_new(trainer, *model, &how) ? fail() : 0;
}

static uint64_t bits_of(const ls_model *model)
{
	ls_model_facts facts = { 0 };
	ls_model_describe(model, &facts);
	return facts.fingerprint;
}

int main(void)
{
	ls_model *model = NULL, *other = NULL;
	ls_trainer *trainer = NULL, *again = NULL;
	ls_eval_result result;
	ls_batch all = LS_BATCH_INIT;

	all.count = SAMPLES;
	all.images = images;
	all.labels = labels;
	if (make_samples() || make(&model, &trainer))
		return 1;
	if (train(trainer, model, 0, 40) || (ls_trainer_save(trainer, "loop", 1) && fail()))
		return 1;
	if (train(trainer, model, 40, STEPS) || (ls_trainer_evaluate(trainer, &all, &result) && fail()))
		return 1;
	printf("accuracy on what it was trained on: %.3f\n", result.accuracy);

	/* as if the program had ended after step 40 */
	if (make(&other, &again) || (ls_trainer_load(again, "loop") && fail()) || train(again, other, 40, STEPS))
		return 1;
	int same = bits_of(model) == bits_of(other);
	printf("%016llx and, continued after step 40, %016llx: %s\n", (unsigned long long)bits_of(model),
	       (unsigned long long)bits_of(other), same ? "the same bits" : "other bits");
	ls_trainer_free(again);
	ls_trainer_free(trainer);
	ls_model_free(other);
	ls_model_free(model);
	return !same;
}
