/*
 * published.h - the published figures that Lockstep's tables are compared with, as they were published: also where they
 * contradict one another.
 */
#ifndef LS_TOOLS_RESULTS_PUBLISHED_H
#define LS_TOOLS_RESULTS_PUBLISHED_H

#include <stddef.h>

enum { LS_PUBLISHED_REPEATS = 7, LS_PUBLISHED_SEEDS = 5 };

typedef struct ls_published {
	int seed;          /* 0 to 4: the number its file begins with */
	const char *model; /* under our name */
	const char *data;  /* NULL: made for the measurement */
	const char *hosts; /* "lm1+lm6", "gn[01-03]"; "Avg": an average, as published; NULL: not said */
	int nodes, devices;
	const char *shape; /* devices by node */
	int batch;         /* samples a device and step */
	const char *link;  /* between nodes */
	double rate;       /* samples/s, words/s where `words`; 0: none */
	int words;
	double wall_s; /* of all epochs; 0: none */
	int epochs;
	long steps;                           /* an epoch, as published; 0: none */
	double speedup;                       /* as published; 0: none */
	double epoch_s, test_s, accuracy;     /* of the last epoch; 0: none */
	double repeats[LS_PUBLISHED_REPEATS]; /* of rate; 0 past the last */
} ls_published;

const ls_published *ls_published_rows(size_t *count);

/* What a seed is about; NULL past the last. */
const char *ls_published_title(int seed);

/* fp32 bytes of a model's gradient, 0 where nothing says how large the model was. */
double ls_published_gradient_bytes(const char *model);

/* Words of a sample where a row counts words. */
enum { LS_PUBLISHED_WORDS = 128 };

#endif
