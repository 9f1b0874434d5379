/*
 * steps.h - the steps of a bench on one node: assigned, run, and accounted for.
 *
 * Steps go on without a pause, in cycles of `warmup` that do not count and `steps` that do. On several nodes the end of
 * a step overlaps the next one; what is timed is how far steps are apart.
 */
#ifndef LS_TOOLS_BENCH_STEPS_H
#define LS_TOOLS_BENCH_STEPS_H

#include <lockstep/bench.h>

#include "backends/profiler.h"
#include "exchange/assigner.h"
#include "trainer/layout.h"
#include "trainer/trainer.h"

enum { LS_BENCH_RING = 4 };

typedef struct ls_bench_steps {
	ls_node_trainer *trainer; /* borrowed, like the next two */
	const ls_layout *layout;
	ls_profiler *profiler;            /* NULL: nothing is recorded */
	int64_t microbatch, microbatches; /* samples of one; of a step */
	int64_t warmup, steps;            /* of a cycle */
	ls_assigner assigner;
	int64_t *cut;                        /* (LS_BENCH_RING, nodes + 1) by step */
	int64_t *device_cut;                 /* (devices + 1) */
	int *node, *device;                  /* (micro-batches) */
	uint64_t accounted;                  /* steps */
	double mark;                         /* when the last step was done */
	double updated_s;                    /* processor time of updates until then, with a recorder */
	int64_t counted;                     /* steps in the sums: */
	double compute_s, exposed_s, wait_s; /* means over this node's devices, summed over steps */
	double last_loss;                    /* mean over the samples of the newest step */
} ls_bench_steps;

/* The first seven members are the caller's; `follows`: micro-batches are assigned by speed. */
ls_status ls_bench_steps_init(ls_bench_steps *steps, int follows);
void ls_bench_steps_release(ls_bench_steps *steps);

/* One step, and how long after the one before it was done. */
ls_status ls_bench_steps_run(ls_bench_steps *steps, double *seconds);

/* Bytes to and from all other nodes since the beginning. */
ls_traffic ls_bench_traffic(const ls_layout *layout);

#endif
