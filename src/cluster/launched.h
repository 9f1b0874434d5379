/*
 * launched.h - which launcher started this process, from the environment.
 */
#ifndef LS_CLUSTER_LAUNCHED_H
#define LS_CLUSTER_LAUNCHED_H

#include "base/status.h"

/* What to keep hwloc from loading, where MPI asks it about the machine: HWLOC_COMPONENTS. */
#define LS_HWLOC_COMPONENTS "-opencl,-gl"

/* How many processes a launcher (mpirun, srun, MPICH's hydra) has started this one among: from the environment, without
 * touching MPI; 1 when there is none. */
int ls_mpi_launched(void);

/* How many devices LOCKSTEP_DEVICES_PER_NODE="3,2" gives a node, by its rank; 0 where it is not set. Fails with
 * LS_EINVALID when it has no number from 1 to 4096 for the node. */
ls_status ls_mpi_launched_devices(int node, int *out);

/* The hosts of all nodes as the launcher named them, "a:2,b:2", from LOCKSTEP_NODE_HOSTS; NULL where it is not set. */
const char *ls_mpi_launched_hosts(void);

/* In a node that ends and leaves it to another to report why: the launcher prints this where the other one cannot. */
void ls_launch_report_heard(const char *reason);

/* In a node started by ls_launch(): it is about to wait for all others in MPI_Init(), which knows no timeout; it
 * watches them from now on by itself. Until then the launcher does. */
void ls_launch_report_joins(int has_joined);

/* In the first node started by ls_launch(): all nodes have trained a step. */
void ls_launch_report_trains(void);

#endif
