/*
 * bench_sweep.h - lockstep bench with a recipe or lists of values.
 */
#ifndef LS_CLI_BENCH_SWEEP_H
#define LS_CLI_BENCH_SWEEP_H

#include <lockstep/sweep.h>

/* Measure and print the table; `list`: only list recipes or points. Returns the exit status. */
int ls_bench_sweep(const char *command, ls_sweep_options *options, int list);

/* Append " --name 'value'" to a text of arguments; 1: it does not fit, or cannot be quoted. */
int ls_bench_sweep_word(char *out, size_t size, const char *name, const char *value);

#endif
