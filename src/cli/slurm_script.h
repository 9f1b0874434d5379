/*
 * slurm_script.h - the text of a Slurm job that trains.
 */
#ifndef LS_CLI_SLURM_SCRIPT_H
#define LS_CLI_SLURM_SCRIPT_H

#include <stdint.h>
#include <stdio.h>

#include "job_training.h"

typedef struct slurm_job {
	int64_t nodes, devices, threads;
	int64_t grace;    /* seconds between the request to stop and the time limit */
	int64_t requeues; /* how often the job is requeued at its time limit */
	const char *time, *memory, *partition, *account, *name, *mpi; /* NULL: not given */
	const char *setup;                                            /* shell command to run first, or NULL */
	const char *program;                                          /* lockstep, as the nodes find it */
} slurm_job;

/* argc and argv are the command line, which is written in the head of the script. */
void ls_slurm_script(FILE *to, const slurm_job *job, const job_training *training, int argc, char **argv);

#endif
