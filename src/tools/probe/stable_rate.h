/*
 * stable_rate.h - a measurement that is repeated until it is steady, so that a busy machine does not pass for a slow
 * one.
 *
 * A round is `repeat` measurements. It is steady when they differ by at most LS_STABLE_SPREAD of their median, but for
 * the slowest quarter: anybody may be interrupted once. Rounds are made until one is steady (and not too far below what
 * is expected), at most LS_STABLE_ROUNDS; then the best that there was is told, and how far apart its repeats are.
 */
#ifndef LS_TOOLS_PROBE_STABLE_RATE_H
#define LS_TOOLS_PROBE_STABLE_RATE_H

#define LS_STABLE_SPREAD 0.1
#define LS_STABLE_LEAST 0.75 /* of what is expected */
enum { LS_STABLE_ROUNDS = 5, LS_STABLE_REPEATS = 99 };

typedef struct ls_stable_rate_options {
	double (*rate)(void *context); /* measures once */
	void *context;
	int repeat;      /* 1 to LS_STABLE_REPEATS */
	double expected; /* 0: nothing is */
} ls_stable_rate_options;

typedef struct ls_stable_rate {
	double value;  /* median */
	double spread; /* between repeats: 0.2 is 20 % of the median */
	int rounds;    /* that were made */
} ls_stable_rate;

ls_stable_rate ls_stable_rate_measure(const ls_stable_rate_options *options);

#endif
