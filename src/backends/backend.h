/*
 * device.h - what computes the micro-batches of a device.
 *
 * A device is an interface: the trainer hands it leaves and learns through the micro-batch's hooks (need, ready, span)
 * when it wants parameters and when gradients are final. Executing the graph on a team of threads is one way to do
 * that, sleeping through a recorded profile (replay.h) another.
 */
#ifndef LS_BACKENDS_BACKEND_H
#define LS_BACKENDS_BACKEND_H

#include "backends/cpu/exec.h"

typedef struct ls_work_kind {
	const char *name;
	/* As ls_exec_train(): hooks are called by all members of the device's team, the micro-batch's sums are written.
	 * */
	void (*train)(void *self, ls_exec_microbatch *microbatch);
	void (*free)(void *self);
} ls_work_kind;

typedef struct ls_work {
	const ls_work_kind *kind; /* NULL: none yet */
	void *self;
} ls_work;

/* An executor, which it takes over. */
ls_work ls_work_of_exec(ls_exec *exec);

/* Makes what computes micro-batches of up to `microbatch` samples on a device's team, which is borrowed. */
typedef ls_status (*ls_work_maker)(void *context, ls_team *team, int64_t microbatch, ls_work *out);

#endif
