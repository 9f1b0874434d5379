/*
 * forecast.h - what `lockstep plan --json` predicts, as a report reads it.
 */
#ifndef LS_REPORT_FORECAST_H
#define LS_REPORT_FORECAST_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_predicted_row {
	int64_t nodes, devices, servers; /* all devices */
	char placement[16], wire[16], rate[32];
	int64_t bucket_bytes;
	double step_ms, compute_ms, exposed_ms, wait_ms; /* waiting: NaN where it is not told apart */
	double samples_per_s, efficiency;
	char bottleneck[64];
} ls_predicted_row;

typedef struct ls_predicted {
	char model[64];
	int64_t batch;
	size_t row_count;
	ls_predicted_row *rows;
} ls_predicted;

/* `label` names the text in errors, which say field and reason. The output is left alone on failure. */
ls_status ls_predicted_parse(ls_predicted *out, const void *text, size_t bytes, const char *label);
void ls_predicted_release(ls_predicted *forecast);

#endif
