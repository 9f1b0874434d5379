/*
 * k8s_job.h - the text of a Kubernetes job that trains: a Job for one node, a Kubeflow MPIJob for several.
 */
#ifndef LS_CLI_K8S_JOB_H
#define LS_CLI_K8S_JOB_H

#include <stdint.h>
#include <stdio.h>

#include "job_training.h"

typedef struct k8s_job {
	int64_t nodes, devices, threads;
	int64_t grace;   /* seconds between the request to stop and the kill */
	int64_t retries; /* how often the job is started again */
	const char *image, *name;
	const char *memory, *claim, *namespace; /* NULL: not given */
	const char *mount;                      /* where the claim is mounted; also the working directory */
	const char *program;                    /* lockstep, as the image has it */
} k8s_job;

/* argc and argv are the command line, which is written in the head of the file. Returns 0 without memory. */
int ls_k8s_job(FILE *to, const k8s_job *job, const job_training *training, int argc, char **argv);

#endif
