/*
 * profiler.h - a profile out of what a device reports while it computes (ls_exec_microbatch.span).
 *
 * Layers are known by order, not by name: forward in order, backward in reverse, and again for each tile of a
 * micro-batch.
 *
 * A profile adds up: every second of a step belongs to a layer, the loss, the update, the exchange, or to "other",
 * which is the step less all of these (input, statistics, the hand-over between threads). Medians of parts would not
 * add up to the median of the sum, least of all on a busy machine, where a disturbance hits another part in every step;
 * so times are means over the same steps: the middle half, by how long they took.
 */
#ifndef LS_BACKENDS_PROFILER_H
#define LS_BACKENDS_PROFILER_H

#include "backends/profile.h"
#include "graph/graph.h"

typedef struct ls_profiler {
	const ls_graph *graph;
	size_t layers;
	int64_t most, steps;        /* that there is room for; recorded */
	double *now;                /* (2 * layers + 1) of the step under way: forward, backward, loss */
	double *kept;               /* (2 * layers + 5, most): the same, other, update, exchange, step */
	size_t forwards, backwards; /* reported in this step */
	double forward_end;         /* the last forward's */
	int64_t microbatches;       /* of the device, in a step */
	int64_t tiles;              /* of a micro-batch */
} ls_profiler;

/* What is known of a step only when it is over. */
typedef struct ls_profiler_step {
	int64_t microbatches; /* the device computed */
	double seconds;       /* from the end of the step before to its end */
	double update_s;      /* the device's share of the update */
	double exchange_s;    /* what else the device did, and waited, in the exchange */
} ls_profiler_step;

/* `graph` is borrowed. */
ls_status ls_profiler_init(ls_profiler *profiler, const ls_graph *graph, int64_t steps);
void ls_profiler_release(ls_profiler *profiler);

/* A layer was computed; `context` is the profiler. By one device. */
void ls_profiler_span(void *context, int is_backward, double begin_s, double end_s);

/* The step is over; it counts or it does not. */
void ls_profiler_end_step(ls_profiler *profiler, const ls_profiler_step *step, int counts);

/* Times, layers, tiles and micro-batches of `out`; its layers are released with it. `update_s` is this device's
 * share. */
ls_status ls_profiler_take(ls_profiler *profiler, ls_profile *out);

/* The ranges that become ready after node i's backward. */
void ls_profiler_ranges(const ls_graph *graph, int node, ls_profile_layer *out);

#endif
