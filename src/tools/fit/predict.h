/*
 * predict.h - one row of a table by simulation, from the one-node rows of its job.
 */
#ifndef LS_TOOLS_FIT_PREDICT_H
#define LS_TOOLS_FIT_PREDICT_H

#include "tools/fit/table.h"

typedef struct ls_fit_settings {
	double latency_us;    /* negative: by the rate of the link */
	double spread;        /* of nodes that share one name */
	int64_t bucket_bytes; /* 0: the trainer's default */
} ls_fit_settings;

typedef struct ls_fit_prediction {
	double rate;   /* samples per second */
	double half;   /* half-width of the interval by what was measured, without the model's error (interval.h) */
	double spread; /* of its nodes, as it was used */
	char bottleneck[32];
	const char *why; /* the row cannot be predicted: the reason; else NULL */
} ls_fit_prediction;

ls_status ls_fit_predict(const ls_fit_table *table, const ls_fit_point *point, const ls_fit_settings *settings,
			 ls_fit_prediction *out);

#endif
