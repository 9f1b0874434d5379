/*
 * bench.c - throughput of training steps on data that is already in memory.
 *
 * Each repeat is `warmup` steps that do not count and `steps` that do. A repeat's rate is its samples over its time;
 * the result is the median of repeats. Input is random and fixed: what is timed is compute, not reading.
 */
#include <lockstep/bench.h>
#include <lockstep/models.h>
#include <lockstep/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/isa.h"
#include "base/memory.h"
#include "base/rng.h"
#include "metrics/rate.h"
#include "train/trainer.h"

typedef struct bench {
	const ls_bench_options *options;
	ls_graph *graph;
	ls_trainer *trainer;
	float *images;
	int32_t *labels;
	uint64_t *samples;
	size_t image_bytes;
	double *step_s, *repeat_rates;
	ls_leaf leaf;
	double warm_up_s; /* of updates */
	ls_status status;
} bench;

static ls_status check(const ls_bench_options *o)
{
	int64_t steps, samples;

	if (o->batch < 1 || o->devices < 1 || o->devices > 4096 || o->threads < 1 || o->threads > LS_THREADS_MAX ||
	    o->steps < 1 || o->repeat < 1 || o->warmup < 0)
		return ls_fail(LS_EINVALID,
			       "bench: batch, devices (to 4096), threads (to %d), steps and repeat must be at least 1, "
			       "warmup at least 0",
			       LS_THREADS_MAX);
	if (__builtin_mul_overflow(o->steps, o->repeat, &steps) || __builtin_mul_overflow(steps, o->batch, &samples) ||
	    steps > INT64_MAX / (int64_t)sizeof(double))
		return ls_fail(LS_EINVALID, "bench: %lld repeats of %lld steps of %lld samples are too many",
			       (long long)o->repeat, (long long)o->steps, (long long)o->batch);
	if (o->model == NULL || o->optimizer == NULL)
		return ls_fail(LS_EINVALID, "bench: model and optimizer must be named");
	LS_TRY(ls_isa_check());
	return ls_gemm_check();
}

static ls_status make_data(bench *b)
{
	const ls_bench_options *o = b->options;
	const ls_tensor *in = &b->graph->values[b->graph->input]; /* options may leave its shape to the model */
	size_t floats = (size_t)o->batch * (size_t)in->channels * (size_t)in->height * (size_t)in->width;
	uint32_t classes = (uint32_t)b->graph->values[b->graph->logits].channels;
	ls_rng rng = ls_rng_make(o->seed, LS_RNG_BENCH, 0);
	void *images = NULL;

	b->image_bytes = floats * sizeof(float);
	LS_TRY(ls_buffer_new(&images, b->image_bytes, "bench images"));
	b->images = images;
	b->labels = calloc((size_t)o->batch, sizeof(*b->labels));
	b->samples = calloc((size_t)o->batch, sizeof(*b->samples));
	b->step_s = calloc((size_t)(o->steps * o->repeat), sizeof(double));
	b->repeat_rates = calloc((size_t)o->repeat, sizeof(double));
	if (b->labels == NULL || b->samples == NULL || b->step_s == NULL || b->repeat_rates == NULL)
		return ls_fail(LS_EMEMORY, "no memory for the bench");
	ls_rng_fill_normal(rng, 0, 0, floats, 1, b->images);
	for (int64_t i = 0; i < o->batch; i++) {
		uint32_t words[4];
		ls_rng_words(rng, 1, (uint64_t)i, words);
		b->labels[i] = (int32_t)ls_rng_below(words[0], classes);
		b->samples[i] = (uint64_t)i;
	}
	b->leaf = (ls_leaf){ .count = o->batch,
			     .images = b->images,
			     .labels = b->labels,
			     .samples = b->samples,
			     .step_samples = o->batch * o->devices };
	return LS_OK;
}

/* Every device works on the same samples: no less work, and less memory. */
static ls_status next_leaf(void *context, int device, const ls_leaf **leaf)
{
	const bench *b = context;
	(void)device;
	*leaf = &b->leaf;
	return LS_OK;
}

static ls_status prepare(bench *b)
{
	const ls_bench_options *o = b->options;
	ls_model_options model = {
		.name = o->model, .channels = o->channels, .height = o->height, .width = o->width, .classes = o->classes
	};

	LS_TRY(check(o));
	LS_TRY(ls_model_build(&b->graph, &model));
	ls_trainer_options t = {
		.graph = b->graph,
		.leaf = o->batch,
		.leaves = o->devices,
		.devices = (int)o->devices,
		.next = next_leaf,
		.next_context = b,
		.threads = (int)o->threads,
		.optimizer = o->optimizer,
		.seed = o->seed,
		.profile = o->profile,
		.hyper = { .lr = 1e-3, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8 },
		.schedule = { .name = "constant", .lr = 1e-3 }
	};
	LS_TRY(ls_trainer_new(&b->trainer, &t));
	LS_TRY(ls_trainer_init(b->trainer));
	return make_data(b);
}

static double timed_step(bench *b)
{
	const ls_bench_options *o = b->options;
	ls_trainer_deal deal = { .leaves = o->devices, .samples = o->batch * o->devices };
	double start = ls_clock_seconds();

	if (b->status == LS_OK)
		b->status = ls_trainer_step(b->trainer, &deal);
	return ls_clock_seconds() - start;
}

/* Steps that leave no trace in any figure. */
static void warm_up(bench *b)
{
	double before = ls_trainer_update_s(b->trainer);

	ls_exec_profile_pause(b->trainer->device[0].exec, 1);
	for (int64_t i = 0; i < b->options->warmup; i++)
		timed_step(b);
	ls_exec_profile_pause(b->trainer->device[0].exec, 0);
	b->warm_up_s += ls_trainer_update_s(b->trainer) - before;
}

static double timed_repeat(bench *b, double *step_s)
{
	double total = 0;
	for (int64_t i = 0; i < b->options->steps; i++) {
		step_s[i] = timed_step(b);
		total += step_s[i];
	}
	return (double)(b->options->batch * b->options->devices * b->options->steps) / total;
}

/* Layer times of all timed steps, as a mean a step. */
static ls_status keep_profile(const bench *b, ls_bench_result *r)
{
	int64_t steps = b->options->steps * b->options->repeat;
	double forward, backward, macs;
	const char *name;

	while (ls_exec_profile(b->trainer->device[0].exec, (int)r->layer_count, &forward, &backward, &macs) != NULL)
		r->layer_count++;
	r->layers = calloc(r->layer_count + 1, sizeof(*r->layers));
	if (r->layers == NULL)
		return ls_fail(LS_EMEMORY, "no memory for the profile");
	for (size_t i = 0; i < r->layer_count; i++) {
		name = ls_exec_profile(b->trainer->device[0].exec, (int)i, &forward, &backward, &macs);
		ls_bench_layer *layer = &r->layers[i];
		snprintf(layer->name, sizeof(layer->name), "%s", name);
		layer->forward_ms = 1e3 * forward / (double)steps;
		layer->backward_ms = 1e3 * backward / (double)steps;
		layer->flop = 2 * macs * (double)b->options->batch;
	}
	return LS_OK;
}

static ls_status measure(bench *b, ls_bench_result *r)
{
	const ls_bench_options *o = b->options;

	for (int64_t k = 0; k < o->repeat; k++) {
		warm_up(b);
		b->repeat_rates[k] = timed_repeat(b, b->step_s + k * o->steps);
		LS_TRY(b->status);
	}
	r->update_ms = 1e3 * (ls_trainer_update_s(b->trainer) - b->warm_up_s) / (double)(o->steps * o->repeat);
	r->step_ms = 1e3 * ls_median(b->step_s, (size_t)(o->steps * o->repeat));
	r->samples_per_s_min = r->samples_per_s_max = b->repeat_rates[0];
	for (int64_t k = 0; k < o->repeat; k++) {
		if (b->repeat_rates[k] < r->samples_per_s_min)
			r->samples_per_s_min = b->repeat_rates[k];
		if (b->repeat_rates[k] > r->samples_per_s_max)
			r->samples_per_s_max = b->repeat_rates[k];
	}
	r->samples_per_s = ls_median(b->repeat_rates, (size_t)o->repeat);
	r->flop_per_sample = ls_graph_describe(b->graph).flop_per_sample;
	r->gflop_per_s = r->samples_per_s * r->flop_per_sample / 1e9;
	r->peak_rss_bytes = ls_memory_peak();
	snprintf(r->kernels, sizeof(r->kernels), "%s", ls_gemm_backend());
	snprintf(r->isa, sizeof(r->isa), "%s", ls_isa_name(ls_isa_get()));
	return o->profile ? keep_profile(b, r) : LS_OK;
}

ls_status ls_bench(const ls_bench_options *options, ls_bench_result *result)
{
	bench b = { .options = options };
	ls_bench_result r = { 0 };
	ls_status status = prepare(&b);

	if (status == LS_OK)
		status = measure(&b, &r);
	if (status == LS_OK)
		*result = r;
	free(b.repeat_rates);
	free(b.step_s);
	free(b.samples);
	free(b.labels);
	if (b.images != NULL)
		ls_buffer_free(b.images, b.image_bytes);
	ls_trainer_free(b.trainer);
	ls_graph_free(b.graph);
	return status;
}

void ls_bench_result_release(ls_bench_result *result)
{
	free(result->layers);
	result->layers = NULL;
	result->layer_count = 0;
}
