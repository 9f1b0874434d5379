/*
 * Whether a launcher has started this process, by environments as launchers make them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "exchange/transport.h"

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
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		unsetenv(names[i]);
}

static void launchers_are_recognised(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof environments / sizeof environments[0]; i++) {
		const environment *e = &environments[i];
		clear_launchers();
		for (size_t k = 0; k + 1 < PAIRS_MAX && e->pairs[k]; k += 2)
			setenv(e->pairs[k], e->pairs[k + 1], 1);
		if (ls_mpi_launched() != e->expected)
			fail_msg("%s: %d nodes, expected %d", e->what, ls_mpi_launched(), e->expected);
	}
	clear_launchers();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(launchers_are_recognised) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
