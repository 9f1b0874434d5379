/*
 * bench.h - throughput of a model on in-memory data, on one node or on all that a launcher has started.
 *
 *     ls_bench_options options = LS_BENCH_OPTIONS_INIT;
 *     ls_bench_result result = { 0 };
 *     options.job.model = "cnn";
 *     if (ls_bench(&options, &result) == LS_OK)
 *             printf("%.1f samples/s\n", result.samples_per_s);
 *     ls_bench_result_release(&result);
 *
 * Under mpirun or srun every process calls it and is a node; the result is complete on node 0 alone.
 *
 * A profile of one device that a bench has written can be replayed: compute is then simulated by sleeping for the
 * recorded times, and gradients of the right size are exchanged, so that more devices than cores can be measured.
 */
#ifndef LOCKSTEP_BENCH_H
#define LOCKSTEP_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Samples per device and step where no batch is set. */
#define LS_BENCH_BATCH_PER_DEVICE 128

typedef struct ls_bench_options {
	size_t size; /* set by LS_BENCH_OPTIONS_INIT */
	/* As for training, with the same defaults except one device with one thread, and batch_per_device 128 where no
	 * batch is set: model, batch, micro_batch, batch_per_device, optimizer, seed, dropout, nodes and devices, and
	 * how text is read. Fields about length and output are ignored, and so are job.data and job.samples. */
	ls_train_options job;
	int channels, height, width, classes; /* 0: the default of the model */
	const char *data;              /* text: sentences of this dataset; NULL: random ones of job.seq_len tokens */
	int64_t warmup, steps, repeat; /* each of `repeat` repeats: `warmup` steps, then `steps` timed ones */
	int profile;                   /* also time every layer */
	const char *profile_out;       /* write the profile of the first device of node 0 to this file; may be NULL */
	int profile_text;              /* also return it as text, result.profile_text */
	const char *replay;            /* simulate compute from this profile; may be NULL */
	double replay_speed;           /* speed of simulated compute on this node: 0.5 takes twice the recorded times */
	/* Called on this node before the first repeat and after each, with the number that are done; may be NULL. */
	void (*progress)(void *context, int64_t done, int64_t repeats);
	void *progress_context;
} ls_bench_options;
#define LS_BENCH_OPTIONS_INIT                                                                                          \
	{                                                                                                              \
		.size = sizeof(ls_bench_options), .job = LS_TRAIN_OPTIONS_INIT, .channels = 1, .height = 28,           \
		.width = 28, .classes = 10, .warmup = 3, .steps = 10, .repeat = 5, .replay_speed = 1                   \
	}

/* One layer of the profile: means over all timed steps, without the loss and the optimizer. */
typedef struct ls_bench_layer {
	char name[64];
	double forward_ms, backward_ms;
	double flop;          /* forward + backward per step, only filter taps inside the image */
	uint64_t reserved[4]; /* 0 */
} ls_bench_layer;

/* One node; times are means over its devices and all timed steps. */
typedef struct ls_bench_node {
	char host[64];
	int devices;                       /* 0: a server */
	double compute_ms;                 /* forward and backward, per step */
	double exposed_ms;                 /* waiting for parameters */
	double wait_ms;                    /* waiting for other devices at the end of a step, or helping them */
	double sent_bytes, received_bytes; /* to and from all other nodes, per step */
	uint64_t reserved[4];              /* 0 */
} ls_bench_node;

typedef struct ls_bench_repeat {
	double samples_per_s; /* of all nodes */
	double step_ms;       /* median over its timed steps */
	uint64_t reserved[4]; /* 0 */
} ls_bench_repeat;

typedef struct ls_bench_result {
	int node;             /* this node; the other fields are set on node 0 */
	double samples_per_s; /* of all nodes, median over repeats */
	double samples_per_s_min, samples_per_s_max;
	double step_ms;   /* median over all timed steps */
	double update_ms; /* CPU time of the optimizer per thread of node 0: mean over timed steps, with several nodes
			   * over all steps */
	double compute_ms, exposed_ms, wait_ms; /* means over all devices of all nodes: see ls_bench_node */
	double flop_per_sample;
	double gflop_per_s;    /* achieved, only filter taps inside the image; 0 for a replay */
	double gradient_bytes; /* exchanged per step, fp32 */
	uint64_t peak_rss_bytes;
	char model[64]; /* a replay: the profile's */
	int channels, height, width, classes;
	double tokens, masked;            /* text: means per sample; 0: images */
	int tokens_max, vocabulary;       /* of text */
	int64_t microbatch, global_batch; /* samples */
	char kernels[32], isa[32];        /* "xsmm", "avx512" */
	size_t layer_count;
	ls_bench_layer *layers; /* with profile; freed by ls_bench_result_release() */
	size_t node_count;
	ls_bench_node *nodes; /* the same */
	size_t repeat_count;
	ls_bench_repeat *repeats; /* in order; the same */
	char *profile_text;       /* with options.profile_text; the same */
	char precision[16];       /* "fp32", "bf16" or "bf16-amx" */
	uint64_t reserved[6];     /* 0 */
} ls_bench_result;

LS_API ls_status ls_bench(const ls_bench_options *options, ls_bench_result *result);
LS_API void ls_bench_result_release(ls_bench_result *result);

#ifdef __cplusplus
}
#endif
#endif
