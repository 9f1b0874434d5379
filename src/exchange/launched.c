/*
 * launched.c - among how many processes a launcher has started this one, told by the environment alone: on one node
 * MPI is not even initialised.
 */
#include <limits.h>
#include <stdlib.h>

#include "exchange/transport.h"

/* A whole number in [0, most], or -1: what the variable of a launcher never is. */
static long number_in(const char *name, long most)
{
	const char *text = getenv(name);
	if (!text || *text < '0' || *text > '9')
		return -1;
	char *end;
	long value = strtol(text, &end, 10);
	return *end || value > most ? -1 : value;
}

/*
 * srun tells a task the size of its step. What runs in a batch script has SLURM_PROCID and SLURM_NTASKS as well, but
 * is in no step; a shell inside a step (srun --pty) is in one of its own, with one task.
 */
static long slurm_tasks(void)
{
	if (!getenv("SLURM_STEP_ID"))
		return -1;
	long tasks = number_in("SLURM_STEP_NUM_TASKS", INT_MAX);
	long process = number_in("SLURM_PROCID", INT_MAX);
	return process >= 0 && process < tasks ? tasks : -1;
}

/* One that rank and size tell, when they fit together: a stray variable is no launcher. */
static long pair_size(const char *rank_name, const char *size_name)
{
	long size = number_in(size_name, INT_MAX);
	long rank = number_in(rank_name, INT_MAX);
	return rank >= 0 && rank < size ? size : -1;
}

/* mpirun and hydra come before Slurm: inside an allocation they start their daemons with srun, so that a process has
 * the variables of both, and those of Slurm count daemons. */
int ls_mpi_launched(void)
{
	long size = pair_size("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
	if (size < 1)
		size = pair_size("PMI_RANK", "PMI_SIZE");
	if (size < 1)
		size = slurm_tasks();
	return size < 1 ? 1 : (int)size;
}
