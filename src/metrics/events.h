/*
 * events.h - a TensorBoard event file: scalars over steps.
 */
#ifndef LS_METRICS_EVENTS_H
#define LS_METRICS_EVENTS_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_events ls_events;

/* A new file RUN/events.out.tfevents.<time>.<host>.<pid>; a resumed run has one for each of its parts. With resume_step
 * above 0 it begins by making readers forget what earlier files say about later steps; with 0 earlier files go. */
ls_status ls_events_open(ls_events **out, const char *run, uint64_t resume_step);
void ls_events_close(ls_events *events);

/* One value of the scalar "<kind>/<name>". */
ls_status ls_events_scalar(ls_events *events, double wall, uint64_t step, const char *kind, const char *name,
			   double value);
ls_status ls_events_flush(ls_events *events); /* readers see all scalars so far, or none since the last flush */
int ls_events_share(const ls_events *events); /* another descriptor of the file, for fsync(); -1: errno says why */

#endif
