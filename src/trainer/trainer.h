/*
 * trainer.h - a model with its optimizer on the devices of a node: micro-batches in, updates out.
 *
 *     ls_node_trainer_step()       this node's part of a step: forward, backward, exchange, update (step.c)
 *     ls_node_trainer_report_of()  the results of a step, once it is complete
 *     ls_node_trainer_drain()      wait until every step begun is complete: before weights are read
 *
 * Devices share one parameter store. The driver of a device gets its micro-batches from `next` and takes the device
 * through them. Sums over micro-batches, whoever computed them, are the exchange's (exchange.h). On several nodes the
 * parameters of a step arrive while the next step's forward pass goes on, so a step is complete later than it returns.
 *
 * Where a step is one micro-batch on one device of one node and takes no norms (clipping, LAMB), there is no exchange:
 * a layer is updated while backward goes on, and gradients share the memory of one layer.
 *
 * A trainer holds all that a step changes, so a checkpoint is this plus a position in the data. Nothing here knows
 * where micro-batches come from, or prints.
 *
 * Behind the gradient go the step statistics (enum ls_step_stat): sums of all micro-batches that every node gets.
 */
#ifndef LS_TRAINER_TRAINER_H
#define LS_TRAINER_TRAINER_H

#include <pthread.h>
#include <stdatomic.h>

#include "backends/devices.h"
#include "data/loader.h"
#include "exchange/exchange.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "trainer/counts.h"

/* Floats of gradient that go out together on several nodes, unless settings have it otherwise. */
enum { LS_BUCKET_NODES = 256 * 1024 };

typedef struct ls_node_trainer ls_node_trainer;

typedef struct ls_node_trainer_options {
	ls_graph *graph;                  /* borrowed; finished */
	int64_t microbatch;               /* largest micro-batch */
	int64_t tails[2];                 /* other micro-batch sizes that will come, 0: none */
	int64_t microbatches;             /* most micro-batches a step has */
	ls_summation_buffers sum_buffers; /* what summing them takes at most; zeros: any device may have any of them */

	const ls_backend *backend;   /* what the devices are */
	const void *backend_options; /* see ls_devices_options */
	int devices, threads;        /* of this node, 0: a server; host threads of a device */
	ls_pin_mode pin;
	int profile; /* devices time every layer */

	const char *optimizer;
	ls_hyper hyper;
	ls_schedule_options schedule;
	double clip_norm;
	double ema; /* decay of the moving average of parameters; 0: there is none */
	uint64_t seed;
	int keeps; /* checkpoints are gathered and written by this node */

	/* Where parameters (total) and running statistics with the step statistics behind them
	 * (ls_node_trainer_stats_floats()) are, in the layout of the optimizer; borrowed. NULL: stores of its own. */
	float *params, *state;

	/* The device's next micro-batch of the step under way, borrowed until its next call; called by its driver. */
	ls_status (*next)(void *context, int device, const ls_microbatch **microbatch);
	void *next_context;

	/* several nodes */
	ls_comm *comm; /* borrowed; NULL: one node */
	const ls_strategy *strategy;
	const ls_codec *codec;
	int servers, staleness;
	size_t bucket; /* floats; 0: the default */

	/* A timeline: what a device's layers and the exchange are doing; may be NULL. */
	void (*span)(void *context, int device, const char *node, int is_backward, double begin_s, double end_s);
	void (*act)(void *context, ls_exchange_event event, int participant, int64_t number, double begin_s,
		    double end_s);
	void *trace_context;
} ls_node_trainer_options;

/* The assignment of a step; both arrays NULL: the devices of the only node share it evenly. */
typedef struct ls_node_trainer_assignment {
	int64_t microbatches, samples; /* of the whole step */
	const int *node, *device;
	int wants_stop; /* this node is to end: every node finds that in the step's report */
} ls_node_trainer_assignment;

/* The predictions of some samples that are right or wrong: one per sample or, in a language model, one per token. */
typedef struct ls_answers {
	int64_t correct, count;
} ls_answers;
static inline ls_answers ls_answers_of(const ls_graph *graph, ls_answers of_samples, ls_answers of_tokens)
{
	return graph->predicts_next ? of_tokens : of_samples;
}

/* Results of a complete step, the same on every node except for the two waits. */
typedef struct ls_node_trainer_report {
	uint64_t step; /* the first is 0 */
	double loss;   /* sums over the step's samples */
	int64_t correct, samples;
	int64_t answers;        /* predictions that `correct` is of: samples, or in language models tokens */
	int64_t tokens, masked; /* of text: real tokens, and those to be predicted */
	double token_loss;      /* sum over masked positions */
	int64_t token_correct;  /* of masked positions */
	int stops;              /* a node is to end */
	double gradient_norm;   /* when clipping is on; NaN where it is not known */
	double exposed_s;       /* devices waited for parameters, mean over them */
	double wait_s;          /* devices waited for one another and helped at the end of the step */
	const double *node_s;   /* (nodes) seconds devices computed, summed over micro-batches; borrowed until two steps
				   later */
	const int64_t *microbatches; /* (nodes) */
} ls_node_trainer_report;

/* Step statistics, behind the running statistics: floats, and counts of several floats each (counts.h). */
enum ls_step_stat {
	LS_STAT_LOSS,
	LS_STAT_STOPS,
	LS_STAT_TOKEN_LOSS,
	LS_STAT_CORRECT,
	LS_STAT_SAMPLES = LS_STAT_CORRECT + LS_COUNT_DIGITS,
	LS_STAT_TOKENS = LS_STAT_SAMPLES + LS_COUNT_DIGITS,
	LS_STAT_MASKED = LS_STAT_TOKENS + LS_COUNT_DIGITS,
	LS_STAT_TOKEN_CORRECT = LS_STAT_MASKED + LS_COUNT_DIGITS,
	LS_STAT_NODES = LS_STAT_TOKEN_CORRECT + LS_COUNT_DIGITS /* (nodes) seconds of computation */
};

/* The driver of a device. */
typedef struct ls_driver {
	ls_node_trainer *trainer;
	int device;
	ls_executor *executor;
	float *stats;       /* (buffers) of one micro-batch */
	int64_t microbatch; /* of those it computes in this step, the one under way */
	double need_s;      /* waited for parameters in it */
	double deliver_s;   /* of this step: delivering gradients to the exchange or, where there is none, updating */
	int64_t sizes[LS_SIZES_MAX]; /* of micro-batches that the executor is made for; 0 ends the list */
	int completes_last;          /* it records the last step before it gives this one's last statistics away */
	ls_status status;
	char message[512];
} ls_driver;

/* What is known of a step, until it is reported. */
typedef struct ls_step_record {
	int64_t samples;
	double scale;        /* of its gradient */
	int64_t own_samples; /* of them, this node's */
	double gradient_norm, exposed_s, wait_s;
	float stats[LS_STAT_NODES];
	double *node_s;        /* (nodes) */
	int64_t *microbatches; /* (nodes) */
	int is_complete;
} ls_step_record;

struct ls_node_trainer {
	ls_node_trainer_options options;
	const ls_graph *graph;
	const ls_optimizer_kind *kind;
	int node, nodes, workers;
	ls_devices *devices;   /* NULL: a server has none */
	ls_driver *driver;     /* (devices) */
	ls_exchange *exchange; /* NULL: a micro-batch is a step, and updates at once */

	/* what a step changes */
	float *params;              /* (total) what forward reads */
	float *master;              /* (total) what is updated: params, or with a bf16 codec the owner's exact values */
	float *state;               /* (stats_floats) running statistics, then the last complete step's statistics */
	float *buffers;             /* state's beginning */
	size_t stats_floats;        /* of running statistics and step statistics */
	float *slots[LS_SLOTS_MAX]; /* (reachable); on several nodes each owner has its shards right */
	float *average; /* (total) of master, as slots are; whole after ls_state_share_average(). NULL: none */
	double *ratios; /* (rows of the table) of the step being updated, where the optimizer has them */
	uint64_t step;  /* steps begun, and on one node done */
	int64_t batches_tracked;

	/* a gradient that is held back (hold.c) */
	float *held;           /* (reachable) NULL: none was yet */
	int64_t held_samples;  /* that its sums are of; 0: there is no gradient */
	int is_holding;        /* the step under way adds to it, and updates nothing */
	int64_t steps_held;    /* steps that were no updates, less updates that were no steps */
	double *held_norms;    /* of blocks, where an update takes norms */
	size_t *held_norms_at; /* (blocks + 1) */

	/* the steps under way */
	uint64_t first_step;          /* of the exchange */
	uint64_t clipped_steps;       /* whose gradient norm is known, since then */
	ls_step_record records[4];    /* by step */
	atomic_int data_failed;       /* micro-batches of the step under way could not be read */
	int *even_node, *even_device; /* (micro-batches) the assignment of a caller that leaves it to the trainer */
	double *all_stats; /* (1 + nodes, LS_STAT_NODES) a server of ps-async: statistics so far, and as each node
			      last got them */
	pthread_mutex_t stats_lock; /* ps-async: a server's statistics change with every worker's message, also while
				       the server records its own step's */
	double *update_s;           /* (participants) processor time spent in updates */
	int participants;

	/* without an exchange */
	float *early_grads; /* (early_floats) a gradient lives here until it is applied */
	size_t early_floats;
	int share_grads;    /* one layer's at a time */
	float *early_stats; /* (stats_floats) of the micro-batch */
};

ls_status ls_node_trainer_new(ls_node_trainer **out, const ls_node_trainer_options *options);
void ls_node_trainer_free(ls_node_trainer *trainer);

/* Fill in initial parameters. */
ls_status ls_node_trainer_init(ls_node_trainer *trainer);

/* Floats of a store of running statistics and step statistics. */
size_t ls_node_trainer_stats_floats(const ls_node_trainer_options *options);

/* Steps may have micro-batches of this many samples from now on: allocates, between steps, where it is a new size. */
ls_status ls_node_trainer_expect(ls_node_trainer *trainer, int64_t microbatch);

/* Updates so far: the number of the next, from which its learning rate follows. */
static inline uint64_t ls_node_trainer_updates(const ls_node_trainer *trainer)
{
	return trainer->step - (uint64_t)trainer->steps_held;
}

/* Continue after `step` steps. Before the first step. */
void ls_node_trainer_start_at(ls_node_trainer *trainer, uint64_t step, int64_t batches_tracked);

/* One step; by one thread, always the same. */
ls_status ls_node_trainer_step(ls_node_trainer *trainer, const ls_node_trainer_assignment *assign);

/* Of one of the last two steps begun; waits until it is complete. */
ls_status ls_node_trainer_report_of(ls_node_trainer *trainer, uint64_t step, ls_node_trainer_report *out);

/* Wait for all that was begun. The calling thread is no longer pinned afterwards, until the next step. */
ls_status ls_node_trainer_drain(ls_node_trainer *trainer);

/* Processor time spent in updates so far, the communication thread's included: mean over the devices' threads. */
double ls_node_trainer_update_s(const ls_node_trainer *trainer);

/* The weights that a run is evaluated with and leaves: the moving average where there is one, else the parameters. */
static inline const float *ls_node_trainer_weights(const ls_node_trainer *trainer)
{
	return trainer->average ? trainer->average : trainer->params;
}

ls_status ls_node_trainer_fingerprint(const ls_node_trainer *trainer, uint64_t *out);

/* Every parameter and statistic is a finite number. */
int ls_node_trainer_finite(const ls_node_trainer *trainer);

/* Bytes a trainer would take, by class; the sum is what the machine must have. */
typedef struct ls_node_trainer_bytes {
	size_t params, gradients, state, average, workspace;
} ls_node_trainer_bytes;
ls_status ls_node_trainer_plan(const ls_node_trainer_options *options, ls_node_trainer_bytes *out);

#endif
