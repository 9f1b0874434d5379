/*
 * bench_faults.h - lockstep bench --fault-every.
 */
#ifndef LS_CLI_BENCH_FAULTS_H
#define LS_CLI_BENCH_FAULTS_H

#include <lockstep/bench.h>

/* The options of lockstep bench that it takes. Every one has a single value. */
typedef struct ls_bench_faults_options {
	const ls_bench_options *bench;    /* the job, its data, --warmup, and --repeat: how many faults */
	const char *every, *nodes, *rate; /* as typed; NULL: not given, but for `every` */
	int64_t samples;                  /* of the training data; 0: all */
	int json;
} ls_bench_faults_options;

/* Refuse an option that has no effect beside --fault-every, or lists several values. `value` is what is asked for,
 * `usual` what it is when it was not given; may_list: a sweep would take a list. Returns LS_ARGS_GO or the exit status
 * after the error. */
int ls_bench_faults_check(const char *command, const ls_setting *row, const char *value, const char *usual,
			  int may_list);

/* Measure and print. Returns the exit status. */
int ls_bench_faults(const char *command, const ls_bench_faults_options *options);

#endif
