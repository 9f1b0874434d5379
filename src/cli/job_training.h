/*
 * job_training.h - what a job of a scheduler trains: options of lockstep train behind a "--", checked before it is
 * submitted.
 */
#ifndef LS_CLI_JOB_TRAINING_H
#define LS_CLI_JOB_TRAINING_H

#include <stdint.h>
#include <stdio.h>

#include <lockstep/train.h>

/* Whose job it is. */
typedef struct job_scheduler {
	const char *command; /* "lockstep slurm": as errors begin */
	const char *name;    /* "Slurm" */
	int has_elastic;     /* its jobs may go on without nodes that fail */
} job_scheduler;

/* An option of train that was given, its value as typed. */
typedef struct job_word {
	const ls_setting *row;
	const char *value; /* NULL for a flag */
} job_word;

typedef struct job_training {
	const job_word *words;
	size_t count;
	const char *run, *init; /* NULL: not given */
	int elastic;            /* the run goes on without nodes that fail */
} job_training;

/* argv[0] is the "--". Returns LS_ARGS_GO, or the exit code after a message. `words` has room for LS_ARGS_MAX. */
int ls_job_training_read(const job_scheduler *scheduler, int argc, char **argv, job_word *words, job_training *out);

/* Shell commands that set the arrays `arguments` and `start`, the options of lockstep train: where there is a run
 * already, `start` resumes it. */
void ls_job_training_write(FILE *to, const job_training *training, int64_t devices, int64_t threads);

#endif
