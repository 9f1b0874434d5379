/*
 * schedule.h - the learning rate as a function of the step.
 */
#ifndef LS_OPTIM_SCHEDULE_H
#define LS_OPTIM_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_schedule_options {
	const char *name; /* a row of ls_schedule_at(): "wsd", "constant", "step", "cosine", "linear" */
	double lr, lr_min;
	uint64_t warmup; /* steps: lr * (step + 1) / warmup */
	uint64_t total;  /* steps of the whole run */
	uint64_t every;  /* step: multiply by factor every N steps */
	double factor;
} ls_schedule_options;

typedef struct ls_schedule_kind {
	const char *name, *summary;
	/* Learning rate of 0-based step `step` after warm-up; `span` steps are left of the run after warm-up. */
	double (*rate)(const ls_schedule_options *options, uint64_t step, uint64_t span);
	int needs_length; /* goes from lr to lr_min over the run, so the rate of a step depends on how long that is */
} ls_schedule_kind;

const ls_schedule_kind *ls_schedule_at(size_t i);
const ls_schedule_kind *ls_schedule_find(const char *name); /* NULL: there is none */

/* The present name of a schedule: "settle" is the earlier one of wsd, accepted until the next release. */
const char *ls_schedule_name(const char *name);

ls_status ls_schedule_check(const ls_schedule_options *options);            /* unknown name, step without every, ... */
double ls_schedule_rate(const ls_schedule_options *options, uint64_t step); /* 0-based step; warm-up included */

#endif
