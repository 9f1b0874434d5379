/*
 * slurm.c - see slurm.h.
 *
 * The variables of a batch script name the nodes that the job was given when it began. Nodes that went down since are
 * not among the job's any more, nodes that were added by a job of kind --dependency=expand are: only the controller
 * knows. mpirun reads the variables, refuses hosts that are not in them, and has srun start daemons on all that are; so
 * each start is given variables of its own.
 */
#include "cluster/slurm.h"

#include <stdio.h>
#include <stdlib.h>

int ls_slurm_is_here(void)
{
	return getenv("SLURM_JOB_ID") && getenv("SLURM_JOB_NODELIST");
}

const char *ls_slurm_discover(void)
{
	return "nodes=$(squeue -h -j \"$SLURM_JOB_ID\" -o %N) && [ -n \"$nodes\" ] && "
	       "exec scontrol show hostnames \"$nodes\"";
}

char **ls_slurm_environment(ls_arena *arena, const ls_host *hosts, size_t count)
{
	enum { WORDS = 7 };
	char **words = ls_arena_alloc(arena, (WORDS + 1) * sizeof(*words));
	const char *names = count ? hosts[0].name : "";

	for (size_t i = 1; i < count && names; i++)
		names = ls_arena_format(arena, "%s,%s", names, hosts[i].name);
	if (!words || !names)
		return NULL;
	words[0] = ls_arena_format(arena, "SLURM_JOB_NODELIST=%s", names);
	words[1] = ls_arena_format(arena, "SLURM_NODELIST=%s", names);
	words[2] = ls_arena_format(arena, "SLURM_JOB_NUM_NODES=%zu", count);
	words[3] = ls_arena_format(arena, "SLURM_NNODES=%zu", count);
	words[4] = ls_arena_format(arena, "SLURM_TASKS_PER_NODE=1(x%zu)", count);
	words[5] = ls_arena_format(arena, "SLURM_WHOLE=1"); /* a daemon's nodes have all cores of the job, not one */
	/* Slurm ends the step of a lost node only when it has given the node up: until then a
	 * step of its own would wait. */
	words[6] = ls_arena_format(arena, "SLURM_OVERLAP=1");
	words[WORDS] = NULL;
	for (size_t i = 0; i < WORDS; i++)
		if (!words[i])
			return NULL;
	return words;
}
