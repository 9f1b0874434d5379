/*
 * plan_print.h - the output of lockstep plan.
 */
#ifndef LS_CLI_PLAN_PRINT_H
#define LS_CLI_PLAN_PRINT_H

#include <stdio.h>

#include <lockstep/plan.h>

/* The job, a table of all rows with the best of each number of nodes marked, and advice about row `best`. */
void ls_forecast_print(const ls_forecast *forecast, int best, const char *advice, FILE *to);

/* A table of measured and predicted rates, with errors and how good they are on the whole. */
void ls_fit_print(const ls_fit *fit, FILE *to);

/* Rows that were left out, one line per reason: file, lines, reason. */
void ls_fit_print_left_out(const char *command, const ls_fit *fit, FILE *to);

/* "123 (115–131)"; without an interval, "123". */
enum { LS_RATE_RANGE = 64 };
void ls_rate_range(char *out, size_t size, double rate, double low, double high);

#endif
