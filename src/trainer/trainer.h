/*
 * trainer.h - a model with its optimizer on the devices of a node: micro-batches in, updates out.
 *
 *     ls_trainer_step()      this node's part of a step: forward, backward, exchange, update
 *     ls_trainer_report()    what a step came to, once it is complete
 *     ls_trainer_drain()    everything that was begun is complete: before anybody looks at the weights
 *
 * A device is a team of threads that computes micro-batches; devices share one parameter store. A driver (one thread of
 * the crew a device) fetches micro-batches through `next` and takes its team through them. Sums over micro-batches,
 * whoever computed them, are the exchange's (exchange.h). On several nodes the parameters of a step arrive while the
 * next step's forward pass goes on, so a step is complete later than it returns.
 *
 * Where a step is one micro-batch on one device of one node and is not clipped, a layer is updated while backward goes
 * on and gradients share the memory of one layer: no exchange at all. (Not with LAMB, whose update waits for norms,
 * too.)
 *
 * What it holds is all that a step changes, so a checkpoint is this plus a position in the data. Nothing here knows
 * where micro-batches come from, or prints.
 *
 * Beside the gradient ride sums that everybody is to know (ls_extra): statistics of micro-batches, loss, counts, times.
 */
#ifndef LS_TRAINER_TRAINER_H
#define LS_TRAINER_TRAINER_H

#include "backends/backend.h"
#include "backends/cpu/exec.h"
#include "backends/cpu/teams.h"
#include "base/pin.h"
#include "base/team.h"
#include "data/loader.h"
#include "exchange/exchange.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "trainer/counts.h"
#include <stdatomic.h>

typedef struct ls_trainer ls_trainer;

typedef struct ls_trainer_options {
	ls_graph *graph;      /* borrowed; finished */
	int64_t microbatch;   /* largest micro-batch */
	int64_t tails[2];     /* other micro-batch sizes that will come, 0: none */
	int64_t microbatches; /* most micro-batches a step has */
	ls_round_room room;   /* what summing them takes at most; zeros: any device may have any of them */
	int devices, threads; /* of this node, 0: a server; of a device */
	ls_pin_mode pin;
	const char *optimizer;
	ls_hyper hyper;
	ls_schedule_options schedule;
	double clip_norm;
	uint64_t seed;
	int profile;
	int keeps;               /* checkpoints are gathered and written by this node */
	ls_work_maker make_work; /* what computes the devices' micro-batches; NULL: an executor of the graph */
	void *work_context;

	/* The device's next micro-batch of the step under way, borrowed until its next call; called by its driver. */
	ls_status (*next)(void *context, int device, const ls_microbatch **microbatch);
	void *next_context;

	/* several nodes */
	ls_comm *comm; /* borrowed; NULL: one node */
	int servers, staleness, library_sum;
	ls_wire wire;
	size_t bucket; /* floats; 0: the default */

	/* A timeline: what a device's layers and the exchange are doing; may be NULL. */
	void (*span)(void *context, int device, const char *node, int is_backward, double begin_s, double end_s);
	void (*act)(void *context, ls_exchange_act act, int participant, int64_t number, double begin_s, double end_s);
	void *trace_context;
} ls_trainer_options;

/* Who computes what in a step; both arrays NULL: the devices of the only node share it evenly. */
typedef struct ls_trainer_assignment {
	int64_t microbatches, samples; /* of the whole step */
	const int *node, *device;
	int wants_stop; /* this node would like to end: every node hears of it in the step's report */
} ls_trainer_assignment;

/* What a complete step came to, the same on every node but for the two waits. */
typedef struct ls_trainer_report {
	uint64_t step; /* the first is 0 */
	double loss;   /* sums over the step's samples */
	int64_t correct, samples;
	int64_t tokens, masked; /* of text: real tokens, and those to be predicted */
	double token_loss;      /* sum over masked positions */
	int64_t token_correct;  /* of masked positions */
	int stops;              /* somebody wants to end */
	double gradient_norm;   /* when clipping is on; NaN where it is not known */
	double exposed_s;       /* devices waited for parameters, mean over them */
	double wait_s;          /* devices waited for one another and helped at the end of the step */
	const double *node_s;   /* (nodes) seconds devices computed, summed over micro-batches; borrowed until two steps
				   later */
	const int64_t *microbatches; /* (nodes) */
} ls_trainer_report;

/* Sums that ride along, behind the running statistics: floats, and counts of several floats each (counts.h). */
enum ls_extra {
	LS_EXTRA_LOSS,
	LS_EXTRA_STOPS,
	LS_EXTRA_TOKEN_LOSS,
	LS_EXTRA_CORRECT,
	LS_EXTRA_SAMPLES = LS_EXTRA_CORRECT + LS_COUNT_DIGITS,
	LS_EXTRA_TOKENS = LS_EXTRA_SAMPLES + LS_COUNT_DIGITS,
	LS_EXTRA_MASKED = LS_EXTRA_TOKENS + LS_COUNT_DIGITS,
	LS_EXTRA_TOKEN_CORRECT = LS_EXTRA_MASKED + LS_COUNT_DIGITS,
	LS_EXTRA_NODES = LS_EXTRA_TOKEN_CORRECT + LS_COUNT_DIGITS
};

typedef struct ls_device {
	ls_trainer *trainer;
	int index;
	ls_team *team;
	ls_work work;       /* computes its micro-batches */
	ls_exec *exec;      /* work's, where that is an executor; else NULL */
	float *stats;       /* (buffers) of one micro-batch */
	int64_t microbatch; /* of those it computes in this step, the one under way */
	double need_s;      /* waited for parameters in it */
	double give_s;      /* of this step: in the exchange or, where there is none, the update */
	int takes_note;     /* it takes the last step's report before it gives away this one's sums */
	ls_status status;
	char message[512];
} ls_device;

/* What is kept of a step until it is complete. */
typedef struct ls_step_notes {
	uint64_t step;
	int64_t samples;
	double scale;        /* of its gradient */
	int64_t own_samples; /* of them, this node's */
	double gradient_norm, exposed_s, wait_s;
	float sums[LS_EXTRA_NODES];
	double *node_s;        /* (nodes) */
	int64_t *microbatches; /* (nodes) */
	int taken;
} ls_step_notes;

struct ls_trainer {
	const ls_graph *graph;
	int node, nodes, devices, threads;
	int library_sum; /* every node updates everything */
	int staleness, workers;
	int64_t microbatch; /* samples of a whole micro-batch */
	ls_teams teams;
	int pinned;        /* the calling thread is, as driver of device 0 */
	ls_device *device; /* (devices) */
	ls_exchange *exchange;
	const ls_optimizer_kind *kind;
	ls_hyper hyper;
	ls_schedule_options schedule;
	double clip_norm;
	uint64_t seed;
	ls_status (*next)(void *context, int device, const ls_microbatch **microbatch);
	void *next_context;
	void (*span)(void *context, int device, const char *node, int is_backward, double begin_s, double end_s);
	void (*act)(void *context, ls_exchange_act act, int participant, int64_t number, double begin_s, double end_s);
	void *trace_context;

	float *params;              /* (total) what forward reads */
	float *master;              /* (total) what is updated: params, or with a bf16 wire the owner's exact values */
	float *state;               /* (extra) running statistics, then the last complete step's sums */
	float *buffers;             /* state's beginning */
	float *slots[LS_SLOTS_MAX]; /* (live); on several nodes each owner has its shards right */
	double *ratios;             /* (rows of the table) of the step being updated, where the optimizer has them */
	size_t extra;               /* floats of state */

	uint64_t step; /* steps begun, and on one node done */
	int64_t batches_tracked;
	ls_step_notes notes[4]; /* by step */
	double *all_sums;    /* (1 + nodes, LS_EXTRA_NODES) a server with staleness: sums so far, and as each node last
				heard */
	uint64_t first_step; /* of the exchange */
	uint64_t measured_steps;
	int *assign_node, *assign_device; /* (micro-batches) */

	atomic_int data_failed; /* micro-batches of the step under way could not be read */
	int update_early;       /* the short cut: no exchange */
	int share_grads;        /* and gradients need no memory of their own beyond one layer's */
	float *grads;           /* for it */
	size_t grads_floats;    /* there */
	double *update_s;       /* (participants) processor time spent in updates */
	int participants;
};

ls_status ls_trainer_new(ls_trainer **out, const ls_trainer_options *options);
void ls_trainer_free(ls_trainer *trainer);

/* Fill in initial parameters. */
ls_status ls_trainer_init(ls_trainer *trainer);

/* Go on after so many steps. Before the first step. */
void ls_trainer_start_at(ls_trainer *trainer, uint64_t step, int64_t batches_tracked);

/* One step; by one thread, always the same. */
ls_status ls_trainer_step(ls_trainer *trainer, const ls_trainer_assignment *assign);

/* Of one of the last two steps begun; waits until it is complete. */
ls_status ls_trainer_report_of(ls_trainer *trainer, uint64_t step, ls_trainer_report *out);

/* Wait for all that was begun. The calling thread is no longer pinned afterwards, until the next step. */
ls_status ls_trainer_drain(ls_trainer *trainer);

/* Mean over threads of the processor time spent in updates so far, the communication thread's among them. */
double ls_trainer_update_s(const ls_trainer *trainer);

ls_status ls_trainer_fingerprint(const ls_trainer *trainer, uint64_t *out);

/* Every parameter and statistic is a finite number. */
int ls_trainer_finite(const ls_trainer *trainer);

/* Bytes a trainer would take, by class; the sum is what the machine must have. */
typedef struct ls_trainer_bytes {
	size_t params, gradients, state, workspace;
} ls_trainer_bytes;
ls_status ls_trainer_plan(const ls_trainer_options *options, ls_trainer_bytes *out);

#endif
