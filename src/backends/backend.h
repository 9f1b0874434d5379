/*
 * backend.h - the interface of backends, which run a graph: training, evaluation, memory plan and profile.
 *
 * A backend is a row: name, help, functions. It opens the devices of a node and loads graphs onto them; a loaded graph
 * is an executor, which takes micro-batches:
 *
 *     check(), start()             this machine has what the backend needs, and the process what it shares
 *     plan(), print_plan()         bytes that a graph would take on a device
 *     open()                       the devices of this node
 *       load()                     a graph, with all the memory that micro-batches of given sizes take
 *         set_params()             which parameters and running statistics it computes with
 *         train() or infer()       one micro-batch: forward, loss, backward; or forward and loss alone
 *         layer_times()            where the time went
 *       unload()
 *     close()
 *
 * Parameters and gradients lie in flat stores of the host, where the exchange and the optimizer work on them, and are
 * handed over by range: `need` returns when parameters [begin, end) may be read; `ready` says that the gradient of
 * [begin, end) is final, in the host's memory, and that these parameters are not read again. For cpu the stores are
 * what it computes on, so set_params() keeps two pointers. A device with memory of its own copies a range in when
 * `need` has returned, and out before it calls `ready`.
 *
 * Host threads. A device has one driver, the host thread that calls its functions (devices.h). Each range is summed,
 * updated or sent by the host, and that work is shared by all host threads that call a hook together: ls_member says
 * which of how many the caller is. A cpu device calls hooks from all threads of its team. A device that has no host
 * threads calls them from its driver, as { .rank = 0, .size = 1 }.
 */
#ifndef LS_BACKENDS_BACKEND_H
#define LS_BACKENDS_BACKEND_H

#include <stdint.h>
#include <stdio.h>

#include "base/pin.h"
#include "base/team.h"
#include "graph/graph.h"
#include "params/packed.h"

/* Samples of a micro-batch without batch statistics that go through the graph together. Gradients are added tile by
 * tile, in order: a part of the mathematics, the same for every backend and machine. */
#define LS_TILE 64
#define LS_SIZES_MAX 6

typedef struct ls_backend ls_backend;

/* A graph on a device; a backend's own struct begins with it. */
typedef struct ls_executor {
	const ls_backend *backend;
} ls_executor;

/* The devices of a node. */
typedef struct ls_devices_options {
	int count;
	int threads;     /* host threads of a device */
	ls_pin_mode pin; /* pin these threads to cores */
	/* What this backend alone takes: the struct that its header names (replay: ls_replay_options; cpu: none, NULL).
	 * Borrowed while devices are open. */
	const void *backend_options;
} ls_devices_options;

typedef struct ls_load_options {
	int64_t sizes[LS_SIZES_MAX]; /* micro-batch sizes that will be run, 0 ends the list: the whole, the tail, ... */
	int inference;               /* forward only, with running statistics */
	int profile;                 /* time every layer */
} ls_load_options;

/* One micro-batch in, its sums out. */
typedef struct ls_exec_microbatch {
	int64_t count;
	const float *images;   /* (count, C, H, W); NULL: text */
	const ls_packed *text; /* NULL: images */
	double token_weight;   /* samples of the step per masked position: makes sums over these means */
	const int32_t *labels; /* (count) */
	const float *targets;  /* (count, target_count) what losses of samples compare with; NULL: labels */
	int target_count;
	const uint64_t *samples; /* (count) dataset indices, for dropout */
	uint64_t seed, step;     /* dropout's key */
	float *grads;            /* (reachable) written, not added to; or, with share_grads, (shared_grads()) */
	int share_grads;         /* a gradient lives only until `ready` has returned for it; one tile per micro-batch */
	float *stats;            /* (buffers) the micro-batch's mean and unbiased variance; training writes them */
	/* Called by all host threads of the device before forward reads parameters [begin, end); NULL: all may be read.
	 * A micro-batch that runs in tiles asks again for each. */
	void (*need)(void *context, size_t begin, size_t end, ls_member member);
	void *need_context;
	/* Called by all host threads of the device when the gradient of [begin, end) is final for this micro-batch;
	 * `grads` points at begin's. May be NULL. */
	void (*ready)(void *context, size_t begin, size_t end, const float *grads, ls_member member);
	void *ready_context;
	/* Called by the driver when a layer is done, for a timeline; may be NULL. */
	void (*span)(void *context, const char *node, int is_backward, double begin_s, double end_s);
	void *span_context;
	/* out */
	double loss;           /* sum over samples, plus token_weight times the sum over masked positions */
	int64_t correct;       /* predictions of samples that are right */
	double token_loss;     /* sum over masked positions */
	int64_t token_correct; /* of masked positions */
} ls_exec_microbatch;

/* Times of a layer, over all micro-batches trained while the profile was not paused. */
typedef struct ls_layer_times {
	const char *name;
	double forward_s, backward_s;
	double macs_per_sample; /* forward and backward */
} ls_layer_times;

struct ls_backend {
	const char *name, *help;

	/* Whether the machine and the environment variables suit the backend; optional. */
	ls_status (*check)(void);
	/* Allocate what a process needs once (generated code), before memory is counted; optional. */
	ls_status (*start)(void);
	/* The kernels it computes with, for records; optional. */
	const char *(*kernels)(void);

	/* Bytes that load() would take for micro-batches of n samples, on a device with `threads` host threads. */
	ls_status (*plan)(const ls_graph *graph, int64_t n, int threads, int inference, size_t *bytes);
	/* The parts of a plan for training, for people; optional. */
	ls_status (*print_plan)(const ls_graph *graph, int64_t n, int threads, FILE *to);
	/* Floats of `grads` that share_grads needs for micro-batches of up to n samples; 0: not possible. */
	size_t (*shared_grads)(const ls_graph *graph, int64_t n);

	ls_status (*open)(void **devices, const ls_devices_options *options);
	void (*close)(void *devices);
	/* The calling thread becomes the driver of a device, or with -1 of none; optional. */
	void (*bind)(void *devices, int device);
	/* Run `work` on all host threads of a device, of which the caller is the first; optional: the caller alone. */
	void (*host_run)(void *devices, int device, ls_team_work work, void *context);
	/* Where its devices compute, as "devices 0-1 on cores 0-1"; optional. */
	void (*describe)(const void *devices, char *text, size_t size);

	ls_status (*load)(ls_executor **out, void *devices, int device, const ls_graph *graph,
			  const ls_load_options *options);
	void (*unload)(ls_executor *executor);
	/* The host's stores, from now on: (total) and (buffers). Contents change between micro-batches; in training,
	 * each range until `need` has returned for it. */
	void (*set_params)(ls_executor *executor, const float *params, const float *buffers);
	void (*train)(ls_executor *executor, ls_exec_microbatch *microbatch);
	/* Forward with running statistics; `logits` (count, classes), of a language model (masked positions, classes),
	 * may be NULL. Optional: it only trains. */
	void (*infer)(ls_executor *executor, ls_exec_microbatch *microbatch, float *logits);

	/* Layer i, with ls_load_options.profile; 0: there is none. Optional, both. */
	int (*layer_times)(const ls_executor *executor, int i, ls_layer_times *out);
	void (*pause_profile)(ls_executor *executor, int pause);
};

/* The table of backends. NULL past the end. */
const ls_backend *ls_backend_at(size_t i);

/* The backend of a job: the row of this name, or with NULL the first of the table. Checks that this machine supports
 * the instruction set that was asked for, and the backend. A job chooses once, where it is set up, and hands the row
 * down: nothing else has a default. */
ls_status ls_backend_choose(const char *name, const ls_backend **out);

/* shared_grads() of a backend that runs a micro-batch whole where batch statistics couple its samples, and otherwise in
 * tiles, whose sums must stay. */
size_t ls_backend_shared_grads(const ls_graph *graph, int64_t n);

/* Its rows: */
extern const ls_backend ls_backend_cpu, ls_backend_replay;

#endif
