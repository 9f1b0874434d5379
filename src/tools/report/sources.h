/*
 * sources.h - inputs of a report: sweeps, runs and forecasts, recognized by the contents of the paths.
 */
#ifndef LS_TOOLS_REPORT_SOURCES_H
#define LS_TOOLS_REPORT_SOURCES_H

#include "tools/forecast/forecast.h"
#include "tools/report/run_log.h"
#include "tools/results/published.h"
#include "tools/results/results.h"

enum { LS_SOURCES_MAX = 64 };

typedef struct ls_sources {
	size_t sweep_count, forecast_count;
	ls_results sweeps[LS_SOURCES_MAX];
	ls_forecast forecasts[LS_SOURCES_MAX];
	ls_results runs;                             /* all of them as points of one sweep */
	ls_results_machine machines[LS_SOURCES_MAX]; /* of each run */
	ls_run_log logs[LS_SOURCES_MAX];             /* the same */
	size_t published_count;                      /* figures of others to compare with */
	ls_published *published;
} ls_sources;

/* A path is results.json, a forecast, or a directory that holds results.json or run.json. Nothing to release on
 * failure. */
ls_status ls_sources_read(ls_sources *out, const char *const *paths, size_t count);
void ls_sources_release(ls_sources *sources);

#endif
