/*
 * plan.h - how fast a job would train on a cluster that need not be there.
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
 * Steps are simulated by the rules the exchange goes by (docs/planner.md says which, and how far that was from
 * measurements). Rows are all combinations of the lists asked for, in the order nodes, rate, strategy, wire, bucket.
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
	const char *profile;  /* file */
	const char *cluster;  /* file: a description, or what `lockstep probe --json` printed; NULL: the following */
	const char *nodes;    /* list, "2,4,8"; NULL: the cluster's, or 1, 2, 4, ... 16 */
	int64_t devices;      /* of a node; 0: the cluster's, or 1 */
	const char *rate;     /* list of nominal rates of links, "1gbit,10gbit"; NULL: the cluster's, or 1gbit */
	double latency_us;    /* of a message; negative: the cluster's */
	const char *strategy; /* list of "allreduce" and "ps"; NULL: both */
	int64_t servers;      /* of a ps: the last so many nodes; 0: an eighth of them, at least one */
	const char *wire;     /* list of "fp32" and "bf16"; NULL: fp32 */
	const char *bucket;   /* list of bytes, "262144,1048576"; NULL: training's default */
	int64_t microbatches; /* a device computes in a step, each of the profile's batch */
	const char *share;    /* "equal" or "auto": micro-batches in proportion to speeds */
	double spread;        /* of speeds of nodes that are alike; negative: the cluster's */
	double mtbf_hours;    /* of a node; negative: the cluster's */
	double interval_s;    /* between checkpoints; negative: the cluster's, 0: what loses least */
	int replayed;         /* devices sleep through their profile, as in a lab */
	int64_t shared_cores; /* all nodes are emulated on one machine with N cores; 0: the cluster's */
	int after;            /* as trainers that exchange only after backward */
} ls_forecast_options;
#define LS_FORECAST_OPTIONS_INIT                                                                                       \
	{                                                                                                              \
		.latency_us = -1, .microbatches = 1, .share = "equal", .spread = -1, .mtbf_hours = -1,                 \
		.interval_s = -1                                                                                       \
	}

typedef struct ls_forecast_row {
	int64_t nodes, devices, servers; /* devices: of all nodes that compute */
	char strategy[16], wire[16], rate[32];
	int64_t bucket_bytes;
	double step_ms, compute_ms, exposed_ms;
	double samples_per_s, efficiency; /* of as many devices that wait for nobody */
	double sent_bytes;                /* in a step by the node that sends most */
	double link_busy;                 /* part of the step in which the busiest link was full */
	double goodput;                   /* part of the time that is not lost to failures and checkpoints */
	double interval_s;                /* between checkpoints; 0: no node fails */
	char bottleneck[32];
} ls_forecast_row;

typedef struct ls_forecast {
	char model[64], optimizer[64], cluster[64];
	int64_t batch;         /* of a device and step */
	double device_per_s;   /* samples a second of one device of the profile */
	double gradient_bytes; /* fp32 */
	size_t count;
	ls_forecast_row *row;
} ls_forecast;

LS_API ls_status ls_forecast_make(ls_forecast *out, const ls_forecast_options *options);
LS_API void ls_forecast_release(ls_forecast *forecast);

/* The row with most samples a second that are not lost, of those with so many nodes at this rate; -1: none. */
LS_API int ls_forecast_best(const ls_forecast *forecast, int64_t nodes, const char *rate);

/* What to choose, what limits it, and what faster links, half precision on the wire or more nodes would buy: a few
 * sentences about the row, by simulating those. malloc'd. */
LS_API ls_status ls_forecast_advise(const ls_forecast_options *options, const ls_forecast *forecast, int row,
				    char **out);

/* JSON text, malloc'd; NULL without memory. */
LS_API char *ls_forecast_to_json(const ls_forecast *forecast);

#ifdef __cplusplus
}
#endif
#endif
