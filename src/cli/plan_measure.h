/*
 * plan_measure.h - the measurement of one device with which lockstep plan begins where it is given a model.
 */
#ifndef LS_CLI_PLAN_MEASURE_H
#define LS_CLI_PLAN_MEASURE_H

#include <lockstep/bench.h>

/* Measure for a few seconds, with progress on stderr. `*profile` is the text of the profile (free() it). */
ls_status ls_plan_measure(const char *command, const ls_bench_options *options, char **profile);

#endif
