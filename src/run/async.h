/*
 * async.h - steps that nodes do not complete together (ps-async): what differs from the step loop of train.c.
 *
 * In a synchronous strategy the report of a step is the same on every node, so all nodes see the same loss, adapt the
 * assignment to the same speeds and end after the same step. Without a common step
 *
 *     a report is a worker's own, of all samples that servers got since its last one: there may be none, and a server
 *     has no loss at all;
 *     a loss that is not finite is found by one node alone;
 *     speeds, and the wish to end, are exchanged when all nodes have drained: after the first few steps, and from
 *     then on wherever something else makes them drain.
 *
 * With a synchronous strategy nothing is due and ls_async_exchange() does nothing.
 */
#ifndef LS_RUN_ASYNC_H
#define LS_RUN_ASYNC_H

#include "run/setup.h"

/* What this node has done since all nodes last exchanged it. */
typedef struct ls_async_since {
	int64_t microbatches;
	double seconds; /* its devices computed them, summed over micro-batches */
	int64_t stops;  /* this node is to end */
} ls_async_since;

typedef struct ls_async {
	ls_setup *setup; /* borrowed */
	ls_async_since since;
	int found_alone; /* other nodes have not seen what this one ends for */
} ls_async;

/* Nodes have no common step. Once the run is set up. */
int ls_async_is_on(const ls_async *async);

/* Whether the report of a step has a loss. */
int ls_async_has_loss(const ls_async *async, const ls_node_trainer_report *report);

/* In place of ls_batches_learn(). */
ls_status ls_async_learn(ls_async *async, const ls_node_trainer_report *report, int wants_to_end);

/* All nodes drain after `done` steps to exchange speeds for the first time. */
int ls_async_is_due(const ls_async *async, uint64_t done);

/* All nodes have drained. `stops` is set where one of them is to end. */
ls_status ls_async_exchange(ls_async *async, int *stops);

#endif
