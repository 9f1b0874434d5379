/*
 * rate.h - throughput over the recent past.
 */
#ifndef LS_METRICS_RATE_H
#define LS_METRICS_RATE_H

#include <stdint.h>

/* Durations of the last LS_RATE_WINDOW steps, for a median that one hiccup does not move. The first LS_RATE_SKIPPED
 * steps of a process (pages touched for the first time, kernels made) do not count in it once there are others. */
#define LS_RATE_WINDOW 512
#define LS_RATE_SKIPPED 3
typedef struct ls_rate {
	double seconds[LS_RATE_WINDOW];
	double samples[LS_RATE_WINDOW];
	uint64_t count;
} ls_rate;

void ls_rate_add(ls_rate *rate, double seconds, double samples);
double ls_rate_median(const ls_rate *rate);                     /* samples per second; 0 before the first */
double ls_rate_mean_since(const ls_rate *rate, uint64_t steps); /* over the newest `steps` */

#endif
