/*
 * results.h - results.json, the measurements of a sweep: written by the sweep after every point, read by the report.
 *
 * A point is one row of a table: a job and its result. A bench has a rate; a run of training also has curves and wall
 * time.
 *
 * Invariants of results that were read
 *  1. Numbers are finite and in their ranges, texts fit their arrays, and keys are unique.
 *  2. A point that is LS_POINT_DONE has at least one repeat with a rate above zero, and its medians, extremes and
 *     spreads are those of its repeats.
 *  3. Every repeat names a launch that did not fail, where the point has launches.
 *  4. A point that is LS_POINT_SKIPPED or LS_POINT_FAILED has a reason.
 */
#ifndef LS_TOOLS_RESULTS_RESULTS_H
#define LS_TOOLS_RESULTS_RESULTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define LS_RESULTS_VERSION 3
enum { LS_RESULTS_NAME = 64, LS_RESULTS_TEXT = 256, LS_RESULTS_SETTING = 32, LS_RESULTS_SETTINGS = 32 };

typedef enum ls_point_state { LS_POINT_PENDING, LS_POINT_DONE, LS_POINT_SKIPPED, LS_POINT_FAILED } ls_point_state;

/* The job of a point. `shape` is devices by node, "4" or "3+2"; `nodes` and `devices` are their numbers (all devices).
 */
typedef struct ls_point_job {
	char kind[16]; /* "bench" or "train" */
	char model[LS_RESULTS_NAME], data[LS_RESULTS_NAME], optimizer[LS_RESULTS_NAME];
	char shape[LS_RESULTS_NAME];
	int64_t nodes, devices, threads, servers;
	int64_t batch;               /* samples per device and step */
	char strategy[16], wire[16]; /* "local" on one node, else as --strategy; as --wire */
	char precision[16];          /* as --precision, and among `arguments` unless it is fp32; "": fp32 */
	char rate[32];               /* of links, "1gbit"; "": unlimited */
	int64_t replay;              /* simulated compute from a profile */
	double speed; /* of the slowest emulated node, relative to one at full speed; 0: all are at full speed */
	int64_t warmup, steps;   /* of a bench, per repeat; steps also of a run with --steps */
	int64_t epochs, samples; /* of training; 0 where they do not apply */
	double target;           /* test accuracy at which training ends, one seed per launch; 0: none */
	char epoch
		[16]; /* "data": every sample once over all devices; "worker": every device reads all data; "": data */
	char servers_count
		[16]; /* "inside": the servers are among the devices that a row names; "beside", "": they are not */
	char arguments[4 * LS_RESULTS_TEXT]; /* other options of the command, as typed */
} ls_point_job;

/* A setting of the published run, by the option's name, and the same setting of this point. */
typedef struct ls_point_setting {
	char name[LS_RESULTS_SETTING];
	char original[LS_RESULTS_NAME], ours[LS_RESULTS_NAME];
} ls_point_setting;

/* One node of a point; times are per step, means over its devices. */
typedef struct ls_point_node {
	char host[LS_RESULTS_NAME];
	int64_t devices; /* 0: a server */
	double compute_ms, exposed_ms, wait_ms;
	double sent_bytes, received_bytes;
} ls_point_node;

typedef struct ls_point_repeat {
	double samples_per_s, step_ms;
	double wall_s;  /* of the whole command, start and end included */
	int64_t launch; /* index of the launch that made it */
} ls_point_repeat;

/* One process, or one job over several nodes, and the state of this machine around it. A launch that failed has a
 * reason and no repeats. */
typedef struct ls_point_launch {
	double wall_s;
	double load;   /* cores that other processes used just before it */
	double steal;  /* fraction of the machine's time that the hypervisor gave to others meanwhile */
	double mhz;    /* mean clock of the cores at its end; 0: not known */
	int64_t busy;  /* 1: the machine was not quiet (ls_launch_is_busy) */
	int64_t again; /* 1: it repeats the one before it, which was busy */
	int64_t seed;  /* of a job with a target; 0: the job's */
	double target_s, target_epochs; /* when the target was reached, from the start of training; 0: it was not */
	char reason[LS_RESULTS_TEXT];   /* why it failed; "": it did not */
} ls_point_launch;

/* An evaluation of a job with a target. */
typedef struct ls_point_test {
	int64_t launch;
	double epochs, elapsed_s; /* since the launch */
	double accuracy;
} ls_point_test;

/* "Step200: 100.71 data/sec": of the steps since the last one, and the loss of that step (NaN: not known). */
typedef struct ls_point_rate {
	int64_t step;
	double samples_per_s, loss;
} ls_point_rate;

typedef struct ls_point_epoch {
	int64_t epoch; /* from 0, as the published tables count */
	double seconds, test_seconds, accuracy, test_loss;
} ls_point_epoch;

typedef struct ls_point {
	char key[LS_RESULTS_TEXT]; /* unique in a sweep; the same job has the same key */
	ls_point_job job;
	ls_point_state state;
	char reason[LS_RESULTS_TEXT]; /* of skipping or failing */
	/* Medians over launches of their medians over repeats; minimum and maximum are those of repeats. Launches on a
	 * busy machine do not count where there is a quiet one. For training, all but rates are of the last repeat. */
	double samples_per_s, samples_per_s_min, samples_per_s_max;
	double spread_within;  /* median over launches of (maximum - minimum) / median of their repeats */
	double spread_between; /* (maximum - minimum) / median of the launches' medians */
	int64_t busy;          /* 1: no launch that counts had a quiet machine */
	double tokens_per_s;   /* real ones; 0: images */
	double step_ms, compute_ms, exposed_ms, wait_ms, update_ms;
	double gradient_bytes; /* of the model, fp32 */
	double gflop_per_s;
	double peak_rss_bytes;
	double wall_s;
	double accuracy;                   /* after the last epoch of training; 0: none */
	int64_t end_step;                  /* of training: last step, */
	char fingerprint[LS_RESULTS_NAME]; /* and fingerprint of the parameters after it; "": not known */
	size_t launch_count, repeat_count, node_count, rate_count, epoch_count, test_count, setting_count;
	ls_point_launch *launches; /* in order; none in files before version 3 */
	ls_point_repeat *repeats;
	ls_point_node *nodes;
	ls_point_rate *rates; /* of the last repeat */
	ls_point_epoch *epochs;
	ls_point_test *tests;       /* of all launches */
	ls_point_setting *settings; /* those that the recipe records of the original; see differences.h */
} ls_point;

/* The machine that measured. */
typedef struct ls_results_machine {
	char host[LS_RESULTS_NAME], cpu[LS_RESULTS_TEXT], system[LS_RESULTS_TEXT];
	char lockstep[LS_RESULTS_NAME], kernels[LS_RESULTS_NAME], isa[LS_RESULTS_NAME], mpi[LS_RESULTS_TEXT];
	int64_t cores, memory_bytes;
	double gflop_per_s_core; /* of the 64x64 product; 0: not measured */
} ls_results_machine;

typedef struct ls_results {
	char sweep[LS_RESULTS_NAME];   /* the recipe's name, or "sweep" */
	char title[LS_RESULTS_TEXT];   /* of the published table */
	char note[LS_RESULTS_TEXT];    /* note about this form of the table; "": none */
	char table[LS_RESULTS_NAME];   /* its form: throughput, epochs, walltime, strategies, accuracy */
	char started[LS_RESULTS_NAME]; /* ISO 8601, UTC */
	char form[LS_RESULTS_NAME];    /* of a recipe: "quick", "default" or "full" */
	int64_t quick;                 /* 1: form is "quick"; files before "form" have only this */
	ls_results_machine machine;
	size_t point_count;
	ls_point *points;
} ls_results;

/* What strategies are, by the names in results and forecasts: the one place where reports and sweeps ask. A name that
 * this version does not know is its own title, and has no servers; so has "local". */
const char *ls_strategy_title(const char *name);
int ls_strategy_has_servers(const char *name);

/* `label` names the text in errors, which say field and reason. On failure the output is unchanged. */
ls_status ls_results_parse(ls_results *out, const void *text, size_t bytes, const char *label);
ls_status ls_results_read(ls_results *out, const char *path);
void ls_results_release(ls_results *results);
void ls_point_release(ls_point *point);

/* Whether `base`, a point with one device and the same job, is a valid baseline: both have real or both simulated
 * compute, and a node at reduced speed is a baseline only for itself. */
int ls_point_comparable(const ls_point *base, const ls_point *point);

/* Whole or absent. */
ls_status ls_results_write(const ls_results *results, const char *path);

/* summary.c: medians, extremes and spreads of the repeats into the point. */
ls_status ls_point_summarize(ls_point *point);

/* Number of launches that gave repeats and are not repeated by a later one. */
size_t ls_point_launches_done(const ls_point *point);

/* Whether the machine was busy around a launch, by its load and steal time. */
int ls_launch_is_busy(const ls_point_launch *launch);

#endif
