/*
 * plan.h - predict how fast a job would train on a cluster.
 *
 *     ls_forecast_options options = LS_FORECAST_OPTIONS_INIT;
 *     ls_forecast forecast = { 0 };
 *     options.profile = "resnet18.json";      a profile of one device: lockstep bench --profile-out resnet18.json
 *     options.nodes = "2,4,8,16";
 *     options.rate = "1gbit,10gbit";
 *     if (ls_forecast_make(&forecast, &options) == LS_OK)
 *             for (size_t i = 0; i < forecast.count; i++)
 *                     printf("%lld nodes: %.1f samples/s\n", (long long)forecast.row[i].nodes,
 *                            forecast.row[i].samples_per_s);
 *     ls_forecast_release(&forecast);
 *
 * Steps are simulated by the rules of the exchange; docs/planner.md describes them and compares predictions with
 * measurements. Rows are all combinations of the lists, in the order nodes, rate, strategy, wire, bucket.
 */
#ifndef LOCKSTEP_PLAN_H
#define LOCKSTEP_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_forecast_options {
	size_t size;              /* set by LS_FORECAST_OPTIONS_INIT */
	const char *profile;      /* file */
	const char *profile_text; /* the profile itself, as ls_bench_result has it; wins over the file; may be NULL */
	const char *cluster;      /* cluster file or output of `lockstep probe --json`; NULL: identical nodes */
	const char *nodes;        /* list, "2,4,8"; NULL: the cluster's, or 1, 2, 4, ... 16 */
	int64_t devices;          /* per node; 0: the cluster's, or 1 */
	const char *rate;         /* list of nominal rates of links, "1gbit,10gbit"; NULL: the cluster's, or 1gbit */
	double latency_us;        /* one way, per message; negative: the cluster's */
	const char *strategy;     /* list of strategies without ls_strategy_info.unplanned: "allreduce,ps"; NULL: all */
	int64_t servers;          /* ps: the last N nodes are servers; 0: one per 8 nodes, at least one */
	const char *wire;         /* list of "fp32" and "bf16"; NULL: fp32 */
	const char *bucket;       /* list of bytes, "262144,1048576"; NULL: training's default */
	int64_t microbatches;     /* per device and step, each of the profile's size */
	const char *share;        /* "equal" or "auto": micro-batches in proportion to speeds */
	double spread;            /* standard deviation of speeds of identical nodes; negative: the cluster's */
	double mtbf_hours;        /* of a node; negative: the cluster's */
	double interval_s;        /* between checkpoints; negative: the cluster's, 0: the best interval */
	int replayed;             /* devices with simulated compute, as in a replay */
	int64_t shared_cores;     /* all nodes are emulated on one machine with N cores; 0: the cluster's */
	int after;                /* exchange only after backward, without overlap */
	int unused;               /* fills the struct up; stays 0 */
	double checkpoint_s;      /* that a checkpoint stops training; negative: the cluster's */
	double restart_s;         /* from a failure until training continues; negative: the cluster's */
	double snapshot_s; /* that a snapshot in memory stops training; negative: the cluster's, or none are taken */
} ls_forecast_options;
#define LS_FORECAST_OPTIONS_INIT                                                                                       \
	{                                                                                                              \
		.size = sizeof(ls_forecast_options), .latency_us = -1, .microbatches = 1, .share = "equal",            \
		.spread = -1, .mtbf_hours = -1, .interval_s = -1, .checkpoint_s = -1, .restart_s = -1,                 \
		.snapshot_s = -1                                                                                       \
	}

typedef struct ls_forecast_row {
	int64_t nodes, devices, servers; /* devices: of all nodes that compute */
	char strategy[16], wire[16], rate[32];
	int64_t bucket_bytes;
	double step_ms, compute_ms, exposed_ms;
	double samples_per_s, efficiency;             /* efficiency: relative to the same devices that never wait */
	double samples_per_s_low, samples_per_s_high; /* 90 % interval; 0: a file without one */
	double sent_bytes;                            /* per step, by the node that sends most */
	double link_busy;                             /* fraction of the step in which the busiest link is full */
	double goodput;                               /* fraction of the time not lost to failures and checkpoints */
	double interval_s;                            /* between checkpoints; 0: no node fails */
	char bottleneck[32];
	int64_t snapshot_every; /* steps between snapshots in memory; 0: there are none */
	double fallback;        /* fraction of failures after which the checkpoint on disk is read, not a snapshot */
	uint64_t reserved[6];   /* 0 */
} ls_forecast_row;

typedef struct ls_forecast {
	char model[64], optimizer[64], cluster[64];
	int64_t batch;         /* per device and step */
	double device_per_s;   /* samples per second of one device */
	double gradient_bytes; /* fp32 */
	size_t count;
	ls_forecast_row *row;
	char precision[16];   /* of the profile: "fp32", "bf16" or "bf16-amx" */
	uint64_t reserved[6]; /* 0 */
} ls_forecast;

LS_API ls_status ls_forecast_make(ls_forecast *out, const ls_forecast_options *options);
LS_API void ls_forecast_release(ls_forecast *forecast);

/* The row with the highest samples_per_s * goodput for this number of nodes and rate; -1: none. */
LS_API int ls_forecast_best(const ls_forecast *forecast, int64_t nodes, const char *rate);

/* A few sentences about a row: its settings, what limits it, and what faster links, bf16 on the wire or more nodes
 * would gain, which are simulated. malloc'd. */
LS_API ls_status ls_forecast_advise(const ls_forecast_options *options, const ls_forecast *forecast, int row,
				    char **out);

/* JSON text, malloc'd; NULL: no memory. */
LS_API char *ls_forecast_to_json(const ls_forecast *forecast);

/*
 * Calibrate on measured rows of one node and predict the others:
 *
 *     ls_fit_options options = LS_FIT_OPTIONS_INIT;
 *     ls_fit fit = { 0 };
 *     options.table = "oneflow-bert";
 *     if (ls_fit_make(&fit, &options) == LS_OK)
 *             printf("%zu rows, mean error %.1f %%\n", fit.compared, 100 * fit.mean_error);
 *     ls_fit_release(&fit);
 *
 * One-node rows give the rate of a device and the cost of the exchange inside a node, the model's graph gives the
 * profile. Rows of a sweep are simulated as Lockstep trains; those of a table as other trainers do, which exchange
 * after backward. Rows that cannot be used are left out and listed.
 */
typedef struct ls_fit_options {
	size_t size;       /* set by LS_FIT_OPTIONS_INIT */
	const char *table; /* results.json of a sweep or its directory; a CSV file as published/README.md describes it;
			       * or the name of a built-in one, "oneflow-bert" */
	const char *nodes; /* list: also predict the jobs of the table on these numbers of nodes; NULL: only its rows */
	int64_t devices;   /* per node of those; 0: the most that were measured on one node */
	const char *rate;  /* list of nominal rates of links of those; the first also stands for links that the table
			       * does not give; NULL: the table's */
	double latency_us; /* one way, per message; negative: by the rate of the link */
	double spread;     /* of nodes that share one name; negative: as far as one-node rows differ between hosts */
	int64_t bucket_bytes; /* 0: of a sweep training's default, of a table 25 MB */
} ls_fit_options;
#define LS_FIT_OPTIONS_INIT                                                                                            \
	{                                                                                                              \
		.size = sizeof(ls_fit_options), .latency_us = -1, .spread = -1                                         \
	}

typedef struct ls_fit_row {
	int64_t line; /* of the file; of a sweep, the number of the point, from 1; 0: not in the table */
	char model[64], data[64], hosts[64];
	char shape[64]; /* devices of each node, "3+2" */
	int64_t batch;  /* samples per device and step */
	int64_t nodes, devices, servers;
	char strategy[16], wire[16], rate[32];
	int64_t fitted;              /* a row of one node, which the others are predicted from */
	double measured;             /* samples per second; 0: not in the table */
	double predicted, low, high; /* the same, and its 90 % interval */
	double error;                /* predicted / measured - 1; 0: not measured */
	char bottleneck[32];
	uint64_t reserved[8]; /* 0 */
} ls_fit_row;

/* A row that was left out. */
typedef struct ls_fit_left_out {
	int64_t line;
	char reason[256];
	uint64_t reserved[4]; /* 0 */
} ls_fit_left_out;

typedef struct ls_fit {
	char title[256], path[256]; /* path: for messages about lines */
	int64_t is_sweep;           /* lines are points of a sweep */
	double spread;              /* between hosts, as it was used */
	size_t count;
	ls_fit_row *row;
	size_t left_out_count;
	ls_fit_left_out *left_out; /* by line */
	/* over rows that were measured and not fitted */
	size_t compared, inside;        /* inside their interval */
	double mean_error, worst_error; /* magnitudes */
	uint64_t reserved[8];           /* 0 */
} ls_fit;

LS_API ls_status ls_fit_make(ls_fit *out, const ls_fit_options *options);
LS_API void ls_fit_release(ls_fit *fit);

/* JSON text, malloc'd; NULL: no memory. */
LS_API char *ls_fit_to_json(const ls_fit *fit);

#ifdef __cplusplus
}
#endif
#endif
