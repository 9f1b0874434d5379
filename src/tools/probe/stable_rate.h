/*
 * stable_rate.h - repeat a measurement until it is steady, so that a busy machine is not reported as a slow one.
 *
 * A round is `repeat` measurements. It is steady when, without the slowest quarter, they differ by at most
 * LS_STABLE_SPREAD of their median. Rounds are repeated until one is steady and reaches LS_STABLE_LEAST of the expected
 * rate, at most LS_STABLE_ROUNDS times; the result is the best round and the spread of its repeats.
 */
#ifndef LS_TOOLS_PROBE_STABLE_RATE_H
#define LS_TOOLS_PROBE_STABLE_RATE_H

#define LS_STABLE_SPREAD 0.1
#define LS_STABLE_LEAST 0.75 /* of the expected rate */
enum { LS_STABLE_ROUNDS = 5, LS_STABLE_REPEATS = 99 };

typedef struct ls_stable_rate_options {
	double (*rate)(void *context); /* measures once */
	void *context;
	int repeat;      /* 1 to LS_STABLE_REPEATS */
	double expected; /* rate; 0: unknown */
} ls_stable_rate_options;

typedef struct ls_stable_rate {
	double value;  /* median */
	double spread; /* between repeats: 0.2 is 20 % of the median */
	int rounds;    /* made */
} ls_stable_rate;

ls_stable_rate ls_stable_rate_measure(const ls_stable_rate_options *options);

#endif
