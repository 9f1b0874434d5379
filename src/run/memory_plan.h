/*
 * memory_plan.h - the memory a run takes, before it takes any.
 *
 * Every part is counted by the code that allocates it. What the process holds already (program, libraries, data that
 * was read) is a part, too: the total is the peak of its resident size.
 *
 * Stores are made for any assignment of micro-batches that may come, but pages that nothing is written to cost nothing:
 * where shares follow the speed of nodes, the plan is for the assignment at the beginning, and `more` says what any
 * other would add. A limit on address space (ulimit -v) counts such pages, too, and the whole of every stack.
 */
#ifndef LS_RUN_MEMORY_PLAN_H
#define LS_RUN_MEMORY_PLAN_H

#include <stdint.h>

#include "base/status.h"
#include "settings/settings.h"
#include "trainer/layout.h"
#include "trainer/trainer.h"

/* Bytes. */
typedef struct ls_memory_plan {
	ls_node_trainer_options trainer; /* that the plan is for; its room is that of the beginning */
	ls_summation_buffers most;       /* and that of any assignment */
	size_t resident;                 /* of the process, before */
	ls_node_trainer_bytes bytes;
	size_t more;    /* gradients and evaluation, for other assignments */
	size_t samples; /* read ahead */
	size_t evaluation, checkpoint, timeline;
	size_t in_memory; /* snapshots in /dev/shm, and what is on its way to the next node */
	size_t freed;     /* those of earlier starts, where they make room for it; taken now, and not a part */
	size_t snapshot;  /* a copy of parameters and optimizer state, which is written while training goes on */
	size_t threads;   /* their stacks, as far as they are used */
	size_t unused;    /* mapped beside all this, never written to */
	size_t files;     /* mapped to be read: no memory, and no data (ulimit -d) */
	int thread_count, running; /* all of them; how many run already */
} ls_memory_plan;

/* The trainer's part, and what there is anyway. last_microbatches: of an epoch's last step, 0: it is like the others.
 */
ls_status ls_memory_plan_init(ls_memory_plan *plan, const ls_node_trainer_options *trainer, const ls_layout *layout,
			      int64_t last_microbatches);

/* Threads beside those of devices: readers of samples. */
void ls_memory_plan_add_threads(ls_memory_plan *plan, int count);

size_t ls_memory_plan_total(const ls_memory_plan *plan);

ls_status ls_memory_plan_print(const ls_memory_plan *plan, FILE *to);

/* For advice: the options of the run as they were given, and a function that plans it with other (resolved) options. */
typedef struct ls_memory_advice {
	const ls_train_options *given;
	int64_t devices; /* of all nodes */
	int tails;       /* a step may end with a smaller micro-batch */
	ls_status (*plan)(void *context, const ls_train_options *job, ls_memory_plan *out); /* fails: not possible */
	void *context;
} ls_memory_advice;

/* Whether this machine has what the run may take. */
int ls_memory_plan_fits(const ls_memory_plan *plan);

/* Fails with LS_EMEMORY, and with a batch that would fit, where this machine has less than the run may take. */
ls_status ls_memory_plan_check(const ls_memory_plan *plan, const ls_memory_advice *advice);

#endif
