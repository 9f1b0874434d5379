/*
 * faults.h - the throughput of a job on several nodes while nodes are killed: measured, beside what the planner's
 * model predicts.
 *
 *     char *job[] = { "--model", "cnn", "--data", "glyphs", NULL };
 *     ls_fault_bench_options options = LS_FAULT_BENCH_OPTIONS_INIT;
 *     ls_fault_bench_result result = { 0 };
 *     options.train = job;
 *     options.nodes = 3;
 *     options.every = 30;
 *     if (ls_fault_bench(&options, &result) == LS_OK)
 *             printf("%.1f %% of the work is kept\n", 100 * result.work_kept);
 *
 * The job is trained by `lockstep train --elastic`, started as a process of its own, in a temporary run directory
 * that is removed. In every start a node chosen at random is ended by SIGKILL, after a random time of training:
 * exponential, of a mean that is given. All of it follows from the seed. Steps that are computed again count once.
 */
#ifndef LOCKSTEP_FAULTS_H
#define LOCKSTEP_FAULTS_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_fault_bench_options {
	size_t size; /* set by LS_FAULT_BENCH_OPTIONS_INIT */
	/* Options of lockstep train, "--model", "cnn", ..., ending with NULL: none about length, output, checkpoints,
	 * hosts or devices, and no --batch-per-device. */
	char *const *train;
	const char *hosts; /* "lm1:2,lm6:2": real nodes, which see the working directory; NULL: they are emulated */
	int64_t nodes, servers; /* emulated: nodes that compute, and parameter servers besides */
	int64_t devices;        /* of an emulated node */
	const char *rate;       /* of emulated links, "1gbit"; NULL: as fast as they are */
	double every;           /* seconds of training between two faults, on average */
	uint64_t seed;          /* of nodes and times */
	int64_t faults;         /* after which the measurement ends */
	int64_t warmup;         /* steps after each start that are not taken for undisturbed */
	int64_t timeout;        /* seconds after which a silent node counts as lost */
	const char *program;    /* path of lockstep; NULL: this program */
} ls_fault_bench_options;
#define LS_FAULT_BENCH_OPTIONS_INIT                                                                                    \
	{                                                                                                              \
		.size = sizeof(ls_fault_bench_options), .devices = 1, .faults = 5, .warmup = 3, .timeout = 30          \
	}

/* Measured, from the beginning of the first start to that of the last, but for what says predicted. NaN: not known. */
typedef struct ls_fault_bench_result {
	int64_t nodes;        /* with servers */
	int64_t batch;        /* samples per step */
	double seconds;       /* that were measured */
	int64_t steps;        /* that count */
	int64_t steps_again;  /* computed again because a node was lost, as far as they were recorded */
	double samples_per_s; /* with faults: of steps that count */
	double undisturbed; /* samples per second between faults, `warmup` steps after a start to the last step that counts */
	double work_kept;       /* samples_per_s / undisturbed */
	int64_t faults;         /* that were injected */
	int64_t overtaken;      /* of these: another loss came before the first new step was recorded */
	int64_t interruptions;  /* starts that ended otherwise: other hosts, a node lost that was not to be */
	double recovery_median; /* seconds from the kill to the first new step, of those that were not overtaken */
	double recovery_worst;
	double recovery_mean;
	double step_s;              /* undisturbed */
	double snapshot_every;      /* steps between snapshots in memory when nodes were killed: mean */
	double snapshot_s;          /* seconds that one stops training: mean */
	double restart_s;           /* recovery_mean without the first step: what the prediction takes */
	double predicted_work_kept; /* by the model of lockstep plan, for the mean time between faults that was asked for */
	double predicted_samples_per_s; /* the same */
	uint64_t fingerprint;           /* of the parameters after step fingerprint_step, the last one */
	int64_t fingerprint_step;
	uint64_t reserved[8]; /* 0 */
} ls_fault_bench_result;

/* LS_EINTERRUPTED: after ls_sweep_stop(). Whatever it returns, the run, its processes, emulated nodes and the snapshots
 * in this machine's memory are gone; another host whose node was killed last removes its snapshot at its next run. */
LS_API ls_status ls_fault_bench(const ls_fault_bench_options *options, ls_fault_bench_result *result);

#ifdef __cplusplus
}
#endif
#endif
