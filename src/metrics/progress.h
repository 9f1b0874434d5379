/*
 * progress.h - one line at the bottom of a terminal, and nothing at all elsewhere.
 *
 *     epoch 2/4 |#######-------------| 679/1876  loss 0.2134  1021 data/sec  2:30 left
 */
#ifndef LS_METRICS_PROGRESS_H
#define LS_METRICS_PROGRESS_H

#include <stdint.h>

typedef struct ls_progress ls_progress;

/* Shows from the second second on, at most ten times per second, only when stderr is a terminal and logging is not
 * quiet. Never fails: without memory or terminal the returned NULL makes the other calls no-ops. */
ls_progress *ls_progress_begin(void);
void ls_progress_update(ls_progress *progress, const char *title, uint64_t done, uint64_t total, const char *detail,
			double seconds_left);
void ls_progress_end(ls_progress *progress); /* clears the line */

#endif
