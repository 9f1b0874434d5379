/*
 * Whether a launcher has started this process, by environments as launchers make them.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <lockstep/launch.h>

#include "cluster/launched.h"
#include "unit/test_main.h"

enum { PAIRS_MAX = 12 };

typedef struct environment {
	const char *what;
	int expected;
	const char *pairs[PAIRS_MAX]; /* name, value, ... */
} environment;

static const environment environments[] = {
	{ "nothing", 1, { NULL } },
	{ "mpirun", 4, { "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "3", "PMIX_RANK", "3" } },
	{ "mpirun -np 1", 1, { "OMPI_COMM_WORLD_SIZE", "1", "OMPI_COMM_WORLD_RANK", "0" } },
	{ "hydra", 3, { "PMI_RANK", "0", "PMI_SIZE", "3", "PMI_FD", "8" } },
	{ "srun --mpi=pmix",
	  6,
	  { "SLURM_STEP_ID", "0", "SLURM_PROCID", "5", "SLURM_STEP_NUM_TASKS", "6", "SLURM_NTASKS", "6", "PMIX_RANK",
	    "5" } },
	{ "srun for a part of an allocation",
	  2,
	  { "SLURM_STEP_ID", "7", "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "2", "SLURM_NTASKS", "2",
	    "SLURM_JOB_NUM_NODES", "8" } },
	{ "batch script", 1, { "SLURM_PROCID", "0", "SLURM_NTASKS", "6", "SLURM_JOB_NUM_NODES", "2" } },
	{ "interactive shell in a step of its own",
	  1,
	  { "SLURM_STEP_ID", "4294967290", "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "1", "SLURM_NTASKS", "6" } },
	{ "mpirun in an allocation: Slurm counts daemons",
	  8,
	  { "SLURM_STEP_ID", "0", "SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2", "OMPI_COMM_WORLD_SIZE", "8",
	    "OMPI_COMM_WORLD_RANK", "5" } },
	{ "mpirun -np 1 in an allocation",
	  1,
	  { "SLURM_STEP_ID", "0", "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "2", "OMPI_COMM_WORLD_SIZE", "1",
	    "OMPI_COMM_WORLD_RANK", "0" } },
	{ "size without rank", 1, { "OMPI_COMM_WORLD_SIZE", "4" } },
	{ "rank beyond size", 1, { "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "4" } },
	{ "no number", 1, { "OMPI_COMM_WORLD_SIZE", "four", "OMPI_COMM_WORLD_RANK", "0" } },
	{ "a number and more", 1, { "PMI_SIZE", "4x", "PMI_RANK", "0" } },
	{ "negative", 1, { "PMI_SIZE", "-4", "PMI_RANK", "0" } },
	{ "too many", 1, { "PMI_SIZE", "99999999999999999999", "PMI_RANK", "0" } },
	{ "empty", 1, { "PMI_SIZE", "", "PMI_RANK", "" } },
};

static void clear_launchers(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_SIZE",
					     "OMPI_COMM_WORLD_RANK",
					     "PMI_SIZE",
					     "PMI_RANK",
					     "PMI_FD",
					     "PMIX_RANK",
					     "SLURM_STEP_ID",
					     "SLURM_PROCID",
					     "SLURM_STEP_NUM_TASKS",
					     "SLURM_NTASKS",
					     "SLURM_JOB_NUM_NODES" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

static void launchers_are_recognised(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(environments) / sizeof(environments[0]); i++) {
		const environment *e = &environments[i];
		clear_launchers();
		for (size_t k = 0; k + 1 < PAIRS_MAX && e->pairs[k]; k += 2)
			setenv(e->pairs[k], e->pairs[k + 1], 1);
		if (ls_mpi_launched() != e->expected)
			fail_msg("%s: %d nodes, expected %d", e->what, ls_mpi_launched(), e->expected);
	}
	clear_launchers();
}

/* "3,2": an entry a node, and a message where a node has none that is a number of devices. */
static void devices_are_given_by_rank(void **state)
{
	static const struct {
		const char *list;
		int node, expected; /* -1: refused */
	} cases[] = {
		{ NULL, 0, 0 },    { "3,2", 0, 3 },         { "3,2", 1, 2 },          { "4096", 0, 4096 },
		{ "0004", 0, 4 },  { "", 0, -1 },           { "3,2", 2, -1 },         { "3,", 1, -1 },
		{ "0", 0, -1 },    { "4097", 0, -1 },       { "-1", 0, -1 },          { " 3", 0, -1 },
		{ "3 ,2", 0, -1 }, { "0x3", 0, -1 },        { "99999999999", 0, -1 }, { "3x", 0, -1 },
		{ ",2", 0, -1 },   { "4294967297", 0, -1 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int devices = -2;
		unsetenv(LS_DEVICES_PER_NODE);
		if (cases[i].list)
			setenv(LS_DEVICES_PER_NODE, cases[i].list, 1);
		ls_status status = ls_mpi_launched_devices(cases[i].node, &devices);
		if (cases[i].expected >= 0
			    ? status != LS_OK || devices != cases[i].expected
			    : status != LS_EINVALID || devices != -2 || !strstr(ls_last_error(), LS_DEVICES_PER_NODE))
			fail_msg("'%s', node %d: status %d, %d devices", cases[i].list, cases[i].node, status, devices);
	}
	unsetenv(LS_DEVICES_PER_NODE);
}

TEST_MAIN(launchers_are_recognised, devices_are_given_by_rank)
