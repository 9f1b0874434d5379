/*
 * python_loop.c - the C side of bench/python: steps of a model on one batch in memory, timed one by one.
 *
 *     python_loop MODEL BATCH STEPS
 *
 * Prints the median time of a step in microseconds, of all but the first three, and the fingerprint of the weights.
 */
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PIXELS = 28 * 28, WARM = 3 };

static int fail(void)
{
	fprintf(stderr, "%s\n", ls_last_error());
	return 1;
}

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static int read_digits(float *images, int32_t *labels, int64_t count)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	ls_dataset *digits = NULL;
	options.name = "glyphs";
	options.samples = (uint64_t)count;
	if (ls_dataset_open(&digits, &options))
		return fail();
	for (int64_t i = 0; i < count; i++)
		if (ls_dataset_read(digits, (uint64_t)i, images + i * PIXELS, &labels[i]))
			return fail();
	ls_dataset_free(digits);
	return 0;
}

static int loop(ls_trainer *trainer, const ls_batch *batch, int steps, double *times)
{
	for (int i = -WARM; i < steps; i++) {
		ls_trainer_report report;
		double began = now_us();
		if (ls_trainer_step(trainer, batch, &report))
			return fail();
		if (i >= 0)
			times[i] = now_us() - began;
	}
	return 0;
}

int main(int argc, char **argv)
{
	ls_model_options what = LS_MODEL_OPTIONS_INIT;
	ls_trainer_options how = LS_TRAINER_OPTIONS_INIT;
	ls_batch batch = LS_BATCH_INIT;
	ls_model *model = NULL;
	ls_trainer *trainer = NULL;
	ls_model_facts facts;

	if (argc != 4)
		return 2;
	int steps = atoi(argv[3]);
	what.name = argv[1];
	how.batch = batch.count = atoll(argv[2]);
	how.devices = how.threads = 1;
	float *images = calloc((size_t)batch.count * PIXELS, sizeof(*images));
	int32_t *labels = calloc((size_t)batch.count, sizeof(*labels));
	double *times = calloc((size_t)steps, sizeof(*times));
	if (!images || !labels || !times || steps < 1 || read_digits(images, labels, batch.count))
		return 1;
	batch.images = images;
	batch.labels = labels;
	if (ls_model_new_named(&model, &what, 1) || ls_trainer_new(&trainer, model, &how))
		return fail();
	if (loop(trainer, &batch, steps, times) || ls_model_describe(model, &facts))
		return 1;
	qsort(times, (size_t)steps, sizeof(*times), by_value);
	printf("%.3f %016llx\n", times[steps / 2], (unsigned long long)facts.fingerprint);
	ls_trainer_free(trainer);
	ls_model_free(model);
	free(images);
	free(labels);
	free(times);
	return 0;
}
