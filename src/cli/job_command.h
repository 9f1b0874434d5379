/*
 * job_command.h - a subcommand that writes a job of a scheduler: options of its own, "--", options of lockstep train.
 */
#ifndef LS_CLI_JOB_COMMAND_H
#define LS_CLI_JOB_COMMAND_H

#include <stdio.h>

#include "args.h"
#include "job_training.h"

/* Where the job is written. */
typedef struct job_file {
	const char *path; /* NULL: standard output */
	int force;        /* replace it */
} job_file;

/* `options` is the struct that the rows of `args` fill; checks return LS_ARGS_GO, or the exit code after a message. */
typedef struct job_command {
	const ls_args *args;
	job_scheduler scheduler;
	const char *submit; /* "sbatch": what a user submits the file with */
	int (*check)(const void *options);
	int (*check_training)(const void *options, const job_training *training);
	/* argc and argv are the command line, which is written in the head of the file. Returns 0 without memory. */
	int (*write)(FILE *to, const void *options, const job_training *training, int argc, char **argv);
} job_command;

/* `file` is a member of `options`. Returns the exit code. */
int ls_job_command_run(const job_command *command, void *options, const job_file *file, int argc, char **argv);

#endif
