/*
 * recorder.h - a profile out of what a device tells while it computes (ls_exec_leaf.span).
 *
 * Layers are told by order, not by name: forward in order, backward in reverse, and again for each slice of a leaf.
 */
#ifndef LS_TRAIN_RECORDER_H
#define LS_TRAIN_RECORDER_H

#include "graph/graph.h"
#include "train/profile.h"

typedef struct ls_recorder {
	const ls_graph *graph;
	size_t layers;
	int64_t most, steps;        /* that there is room for; recorded */
	double *now;                /* (2 * layers + 1) of the step under way: forward, backward, loss */
	double *kept;               /* (2 * layers + 1, most) */
	size_t forwards, backwards; /* told in this step */
	double forward_end;         /* the last forward's */
	int64_t leaves;             /* of the device, in this step */
	int64_t slices;             /* of a leaf */
} ls_recorder;

/* `graph` is borrowed. */
ls_status ls_recorder_init(ls_recorder *recorder, const ls_graph *graph, int64_t steps);
void ls_recorder_release(ls_recorder *recorder);

/* A layer was computed; `context` is the recorder. One device tells it. */
void ls_recorder_span(void *context, int is_backward, double begin_s, double end_s);

/* The step, in which the device computed `leaves` of them, is over; it counts or it does not. */
void ls_recorder_end_step(ls_recorder *recorder, int64_t leaves, int counts);

/* Layers, loss and slices of `out`; its layers are released with it. */
ls_status ls_recorder_take(ls_recorder *recorder, ls_profile *out);

/* The ranges that become ready after node i's backward. */
void ls_recorder_ranges(const ls_graph *graph, int node, ls_profile_layer *out);

#endif
