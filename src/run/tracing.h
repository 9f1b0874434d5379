/*
 * tracing.h - a run's timeline: what devices and the exchange of all nodes are doing, as RUN/trace.json.
 *
 * A node has these lanes, in this order:
 *
 *     steps                   ls_node_trainer_step(), one after the other
 *     device D                forward and backward of every layer, and waits for parameters
 *     sums, device D          sums and updates by the first thread of the device; lanes of its other threads follow
 *     sums, communication thread    the same, by the thread that carries messages
 *     sums, between steps     the same, by the thread that waits for a step's end
 *     reduce-scatter          messages with gradients that the node sends, from post to arrival
 *     all-gather              messages with new parameters, the same way
 *
 * Clocks of nodes differ; how much is measured when the trace is written, and all times are those of the first node.
 */
#ifndef LS_RUN_TRACING_H
#define LS_RUN_TRACING_H

#include "trainer/layout.h"
#include "trainer/trainer.h"

typedef struct ls_tracing ls_tracing;

/* `trainer` are the options of the trainer to be watched, whose hooks are set here; its graph outlives the tracing, the
 * tracing the trainer. `run` is borrowed. */
ls_status ls_tracing_new(ls_tracing **out, const ls_layout *layout, const char *run, uint64_t steps,
			 ls_node_trainer_options *trainer);
void ls_tracing_free(ls_tracing *tracing);

/* Bytes it takes. */
size_t ls_tracing_bytes(const ls_layout *layout, uint64_t steps, const ls_node_trainer_options *trainer);

/* Around ls_node_trainer_step(). All these do nothing when there is no tracing. */
void ls_tracing_begin_step(ls_tracing *tracing, uint64_t step);
void ls_tracing_end_step(ls_tracing *tracing);

/* It has all its steps, or, at the end of a run, as many as there were: time to write it. The same on all nodes. */
int ls_tracing_is_due(const ls_tracing *tracing, int is_end);

/* Nothing is recorded from now on, and the first node writes the file. Called by all nodes, when no step is under way.
 */
ls_status ls_tracing_write(ls_tracing *tracing);

#endif
