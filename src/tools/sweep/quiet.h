/*
 * quiet.h - was this machine quiet around a launch?
 *
 * Three figures, kept with every launch: the cores that other processes used in a short window before it, the steal
 * time while it ran, and the clock of the cores at its end. The window is before the launch because processes of a job
 * on emulated nodes are not all children of this one, so that afterwards nobody can say whose time it was.
 */
#ifndef LS_TOOLS_SWEEP_QUIET_H
#define LS_TOOLS_SWEEP_QUIET_H

#include "tools/results/results.h"

typedef struct ls_quiet {
	double load;         /* of the window */
	double total, steal; /* ticks at its end */
} ls_quiet;

/* Takes a quarter of a second. */
void ls_quiet_begin(ls_quiet *quiet);
/* Load, steal time, clock and verdict into the launch, which has ended. */
void ls_quiet_end(const ls_quiet *quiet, ls_point_launch *launch);

#endif
