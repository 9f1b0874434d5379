/*
 * interval.h - how far off a prediction may be: 90 % intervals made of errors that were measured.
 *
 * An error is ln(predicted / measured), so that too fast and too slow by the same factor count the same. A half-width h
 * gives the interval [rate / e^h, rate * e^h]. Independent causes add up as the root of the sum of their squares:
 *
 *   - the simulation's own error: the quantile of the errors of known comparisons (bench/planner.csv, which is built
 *     in; for tables of other trainers, the other published tables);
 *   - what was measured varies between repeats: of the profile, of the rows that were fitted.
 *
 * docs/decisions/0018-intervals.md has the reasons.
 */
#ifndef LS_TOOLS_FORECAST_INTERVAL_H
#define LS_TOOLS_FORECAST_INTERVAL_H

#include <stddef.h>
#include <stdint.h>

#define LS_INTERVAL_PART 0.9
/* That part of a normal variate is within this many standard deviations. */
#define LS_INTERVAL_NORMAL 1.6449

/* The file built in by cmake/data_files.cmake. */
typedef struct ls_lab_file {
	const char *name, *text;
	size_t bytes;
} ls_lab_file;
extern const ls_lab_file ls_lab_comparisons[];
extern const size_t ls_lab_comparisons_count;

/* A measured and a predicted step on a cluster of the lab. */
typedef struct ls_lab_point {
	double measured_ms, predicted_ms;
	int waits; /* something else than computing limited it */
} ls_lab_point;

/* The comparisons, at most `most`, up to a row that cannot be read; returns how many. */
size_t ls_lab_points(ls_lab_point *out, size_t most);

/*
 * Half-width that 90 % of further errors stay within when they are like these: the k-th smallest magnitude of n, with
 * k = ceil(0.9 (n + 1)), or the largest where n is too small for that; 0 for none. Reorders `errors`.
 */
double ls_interval_quantile(double *errors, size_t count);

/* Student's t for that part, two-sided: deviations that were estimated with so many degrees of freedom. */
double ls_interval_student(double degrees);

/* Half-width for one more measurement, from the relative standard deviation of n repeats
 * (Student's t); 0 where n < 2. */
double ls_interval_repeats(double spread, int64_t repeats);

/* The simulation's own half-width for a row that is limited by this (ls_simulated.bottleneck). */
double ls_interval_simulation(const char *bottleneck);

/* Whether a row that is limited by this waits for something else than computing. */
int ls_interval_waits(const char *bottleneck);

#endif
