/*
 * slurm_script.h - the text of a Slurm job that trains.
 */
#ifndef LS_CLI_SLURM_SCRIPT_H
#define LS_CLI_SLURM_SCRIPT_H

#include <stdint.h>
#include <stdio.h>

#include <lockstep/train.h>

typedef struct slurm_job {
	int64_t nodes, devices, threads;
	int64_t grace;    /* seconds between the request to stop and the time limit */
	int64_t requeues; /* how often the job is requeued at its time limit */
	const char *time, *memory, *partition, *account, *name, *mpi; /* NULL: not given */
	const char *setup;                                            /* shell command to run first, or NULL */
	const char *program;                                          /* lockstep, as the nodes find it */
} slurm_job;

/* An option of train that was given, its value as typed. */
typedef struct slurm_word {
	const ls_setting *row;
	const char *value; /* NULL for a flag */
} slurm_word;

typedef struct slurm_training {
	const slurm_word *words;
	size_t count;
	const char *run, *init; /* NULL: not given */
	int elastic;            /* the run goes on without nodes that fail */
} slurm_training;

/* Whether a word needs no quotes, by shell or by sbatch. */
int ls_slurm_is_plain(const char *word);

/* Write a word with shell quoting, without line breaks, so that it can also stand in a comment. */
void ls_slurm_quote(FILE *to, const char *word);

/* argc and argv are the command line, which is written in the head of the script. */
void ls_slurm_script(FILE *to, const slurm_job *job, const slurm_training *training, int argc, char **argv);

#endif
