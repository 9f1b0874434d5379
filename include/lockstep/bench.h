/*
 * bench.h - throughput of a model on in-memory data.
 */
#ifndef LOCKSTEP_BENCH_H
#define LOCKSTEP_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_bench_options {
	const char *model;
	int channels, height, width, classes; /* 0: what the model takes by itself */
	int64_t batch, devices, threads;
	int64_t warmup, steps, repeat; /* `repeat` times: `warmup` steps not counted, then `steps` timed */
	const char *optimizer;
	uint64_t seed;
	int profile; /* also time every layer */
} ls_bench_options;
#define LS_BENCH_OPTIONS_INIT                                                                                          \
	{                                                                                                              \
		.model = "resnet18", .channels = 1, .height = 28, .width = 28, .classes = 10, .batch = 128,            \
		.devices = 1, .threads = 1, .warmup = 3, .steps = 10, .repeat = 5, .optimizer = "adam", .seed = 1      \
	}

/* One layer of the profile: means over all timed steps, without the loss and the optimizer. */
typedef struct ls_bench_layer {
	char name[64];
	double forward_ms, backward_ms;
	double flop; /* forward + backward of one step, useful taps only */
} ls_bench_layer;

typedef struct ls_bench_result {
	double samples_per_s; /* median over repeats */
	double samples_per_s_min, samples_per_s_max;
	double step_ms;   /* median over all timed steps */
	double update_ms; /* of it, the optimizer: mean over all timed steps */
	double flop_per_sample;
	double gflop_per_s; /* achieved, useful taps only */
	uint64_t peak_rss_bytes;
	char kernels[32], isa[32]; /* "xsmm", "avx512" */
	size_t layer_count;
	ls_bench_layer *layers; /* with profile; freed by ls_bench_result_release() */
} ls_bench_result;

ls_status ls_bench(const ls_bench_options *options, ls_bench_result *result);
void ls_bench_result_release(ls_bench_result *result);

#ifdef __cplusplus
}
#endif
#endif
