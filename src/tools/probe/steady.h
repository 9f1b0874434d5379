/*
 * steady.h - a measurement that is repeated until it is steady, so that a busy machine does not pass for a slow one.
 *
 * A round is `repeat` measurements. It is steady when they differ by at most LS_STEADY_SPREAD of their median, but for
 * the slowest quarter: anybody may be interrupted once. Rounds are made until one is steady (and not too far below what
 * is expected), at most LS_STEADY_ROUNDS; then the best that there was is told, and how far apart its repeats are.
 */
#ifndef LS_TOOLS_PROBE_STEADY_H
#define LS_TOOLS_PROBE_STEADY_H

#define LS_STEADY_SPREAD 0.1
#define LS_STEADY_LEAST 0.75 /* of what is expected */
enum { LS_STEADY_ROUNDS = 5, LS_STEADY_REPEATS = 99 };

typedef struct ls_steady_options {
	double (*rate)(void *context); /* measures once */
	void *context;
	int repeat;      /* 1 to LS_STEADY_REPEATS */
	double expected; /* 0: nothing is */
} ls_steady_options;

typedef struct ls_steady {
	double value;  /* median */
	double spread; /* between repeats: 0.2 is 20 % of the median */
	int rounds;    /* that were made */
} ls_steady;

ls_steady ls_steady_measure(const ls_steady_options *options);

#endif
