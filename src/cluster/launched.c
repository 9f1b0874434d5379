/*
 * launched.c - which launcher started this process: how many processes it has started, which on one node spares MPI
 * its initialisation, and how many devices each is to have.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/launch.h>

#include "cluster/command.h"
#include "cluster/launched.h"

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
 * srun gives a task the size of its step. What runs in a batch script has SLURM_PROCID and SLURM_NTASKS as well, but
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

/* A launcher that sets rank and size, when they fit together: a stray variable is no launcher. */
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

ls_status ls_mpi_launched_devices(int node, int *out)
{
	enum { DIGITS = 4, MOST = 4096 };
	const char *list = getenv(LS_DEVICES_PER_NODE), *entry = list;
	int devices = 0;
	if (!list) {
		*out = 0;
		return LS_OK;
	}
	for (int i = 0; entry && i < node; i++) {
		const char *comma = strchr(entry, ',');
		entry = comma ? comma + 1 : NULL;
	}
	size_t digits = entry ? strspn(entry, "0123456789") : 0;
	for (size_t i = 0; digits <= DIGITS && i < digits; i++)
		devices = 10 * devices + (entry[i] - '0');
	if (devices < 1 || devices > MOST || (entry[digits] && entry[digits] != ','))
		return ls_fail(LS_EINVALID, LS_DEVICES_PER_NODE "=%s has no number of devices (1 to %d) for node %d",
			       list, MOST, node);
	*out = devices;
	return LS_OK;
}

const char *ls_mpi_launched_hosts(void)
{
	return getenv(LS_NODE_HOSTS);
}
