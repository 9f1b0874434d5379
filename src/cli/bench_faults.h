/*
 * bench_faults.h - lockstep bench --fault-every.
 */
#ifndef LS_CLI_BENCH_FAULTS_H
#define LS_CLI_BENCH_FAULTS_H

#include <lockstep/faults.h>
#include <lockstep/train.h>

/* What is printed beside the figures. */
typedef struct ls_bench_faults_job {
	const char *model, *data, *strategy, *precision;
	int json;
} ls_bench_faults_job;

/* Why an option has no effect beside --fault-every, as an ending of "--profile with --fault-every: ..."; NULL: it has
 * one. `group` is that of its row. */
const char *ls_bench_faults_refuses(const char *name, const char *group);

/* Measure and print. Returns the exit status. */
int ls_bench_faults(const char *command, const ls_fault_bench_options *options, const ls_bench_faults_job *job);

#endif
