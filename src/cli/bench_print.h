/*
 * bench_print.h - the output of lockstep bench.
 */
#ifndef LS_CLI_BENCH_PRINT_H
#define LS_CLI_BENCH_PRINT_H

#include <stdio.h>

#include <lockstep/bench.h>

/* Both return 0, or 1 when writing failed. */
int ls_bench_print_text(const ls_bench_options *job, const ls_bench_result *result, FILE *to);
int ls_bench_print_json(const ls_bench_options *job, const ls_bench_result *result, FILE *to);

#endif
