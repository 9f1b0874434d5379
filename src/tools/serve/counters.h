/*
 * counters.h - what a server has done, for GET /metrics in Prometheus' text format. Any thread may count.
 */
#ifndef LS_TOOLS_SERVE_COUNTERS_H
#define LS_TOOLS_SERVE_COUNTERS_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

/* Values up to each bound, and beyond the last. */
enum { LS_BUCKETS_MAX = 16 };
typedef struct ls_histogram {
	const double *bounds;
	int count; /* of bounds */
	uint64_t in[LS_BUCKETS_MAX + 1];
	double sum;
} ls_histogram;

enum { LS_CODES = 600 };
typedef struct ls_counters {
	pthread_mutex_t lock;
	uint64_t requests[LS_CODES]; /* by HTTP status */
	uint64_t samples, timeouts;
	ls_histogram batch, seconds; /* samples of a batch; seconds from a whole request to its answer */
} ls_counters;

void ls_counters_init(ls_counters *counters);
void ls_counters_release(ls_counters *counters);
void ls_counters_request(ls_counters *counters, unsigned code, double seconds); /* seconds < 0: not a prediction */
void ls_counters_batch(ls_counters *counters, int64_t samples);
void ls_counters_timeout(ls_counters *counters); /* a connection that was closed because it was too slow */

/* Gauges of this moment go along. */
typedef struct ls_gauges {
	int64_t connections, waiting;
} ls_gauges;
void ls_counters_print(ls_counters *counters, ls_gauges gauges, FILE *to);

#endif
