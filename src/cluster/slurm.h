/*
 * slurm.h - an elastic run inside an allocation of Slurm: which nodes it has now, and how mpirun is to see it.
 */
#ifndef LS_CLUSTER_SLURM_H
#define LS_CLUSTER_SLURM_H

#include <stddef.h>

#include <lockstep/launch.h>

#include "base/memory.h"

/* Seconds between two questions to Slurm's controller, which serves the whole cluster. */
#define LS_SLURM_LOOK_S 10.0

/* Seconds for which a node whose loss Slurm may not know of yet is left out, for the first time. */
#define LS_SLURM_DOUBT_S 15.0

/* Whether this process runs in a batch script or in the shell of an allocation. */
int ls_slurm_is_here(void);

/* A command that prints the nodes the job has now: without those that are down (--no-kill),
 * with those that were added. */
const char *ls_slurm_discover(void);

/* What mpirun, which starts its daemons by srun, is to take for the allocation: these hosts. "NAME=VALUE" ending with
 * NULL, in the arena; NULL where there is no memory. */
char **ls_slurm_environment(ls_arena *arena, const ls_host *hosts, size_t count);

#endif
