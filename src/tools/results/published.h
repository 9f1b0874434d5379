/*
 * published.h - published figures of other trainers, read from CSV files as published/README.md describes them. Figures
 * are kept as they were published, also where they contradict one another.
 *
 *     ls_published *sets;
 *     LS_TRY(ls_published_read(&sets, &count, &arena, "published", 0));
 */
#ifndef LS_TOOLS_RESULTS_PUBLISHED_H
#define LS_TOOLS_RESULTS_PUBLISHED_H

#include <stddef.h>

#include "base/memory.h"
#include "base/status.h"

enum { LS_PUBLISHED_REPEATS = 7, LS_PUBLISHED_MODELS = 8 };

/* One row of a published table. Numbers that were not published are 0, texts "". */
typedef struct ls_published_row {
	int line;                             /* of the file */
	const char *model;                    /* by its name in Lockstep */
	const char *data;                     /* "": generated */
	const char *hosts;                    /* "lm1+lm6", "gn[01-03]"; "Avg": an average, as published */
	const char *shape;                    /* devices of each node, "8+8" */
	const char *link;                     /* between nodes */
	const char *note;                     /* about the row, by who entered it */
	int nodes, devices;                   /* all devices */
	double batch;                         /* samples per device and step */
	double samples_per_s;                 /* at most one of these two */
	double words_per_s;                   /* */
	double wall_s;                        /* of all epochs */
	double epochs, steps;                 /* steps per epoch */
	double speedup;                       /* over one device */
	double epoch_s, test_s, accuracy;     /* of the last epoch */
	double repeats[LS_PUBLISHED_REPEATS]; /* of the rate; 0 past the last */
} ls_published_row;

/* A row that was left out. */
typedef struct ls_published_fault {
	int line;
	const char *reason;
} ls_published_fault;

/* One file. */
typedef struct ls_published {
	const char *name;    /* of the file, without its ending */
	const char *title;   /* "OneFlow BERT-base pretraining, 8×V100 per node" */
	const char *setting; /* precision, links, how it was measured */
	const char *recipes; /* names of recipes with the same jobs, separated by spaces */
	const char *table;   /* the form of table it is compared with where no recipe matches */
	double words_per_sample;
	int channels, height, width;        /* of images; 0: the default of the models */
	double classes, tokens, vocabulary; /* the same */
	size_t model_count;
	struct {
		const char *name;
		double parameters;
	} models[LS_PUBLISHED_MODELS];
	int has_averages; /* some rows are averages over hosts */
	size_t row_count;
	ls_published_row *rows;
	size_t fault_count;
	ls_published_fault *faults;
} ls_published;

/* A file built in by cmake/embed.cmake. */
typedef struct ls_published_file {
	const char *name, *text;
	size_t bytes;
} ls_published_file;
extern const ls_published_file ls_published_built_in[];
extern const size_t ls_published_built_in_count;

/* `label` stands in errors, which name the line. All memory is the arena's. With `skip`, rows that cannot be read are
 * left out and listed as faults; otherwise the first is an error. */
ls_status ls_published_parse(ls_published *out, ls_arena *arena, const void *text, size_t bytes, const char *name,
			     const char *label, int skip);

/* All sets that are built in for "published", one of them by name, or a file by its path. */
ls_status ls_published_read(ls_published **out, size_t *count, ls_arena *arena, const char *which, int skip);

int ls_published_is_average(const ls_published_row *row);

/* What the rows behind a printed average give: rows of the same model, data, batch, shape, link, and epochs and steps
 * where they are given. */
typedef struct ls_published_mean {
	size_t rows;            /* 0: not an average, or no row is like it; all else is 0 then */
	double wall_s, speedup; /* over the mean of the rows of one device; 0: there are none */
	double least_s, most_s; /* of the rows */
	int differs;            /* from what was printed, beyond rounding */
} ls_published_mean;

ls_published_mean ls_published_mean_of(const ls_published *set, const ls_published_row *average);

/* Samples per second, 0 where no rate was published; rates in words are divided by the words per sample. */
double ls_published_samples_per_s(const ls_published *set, const ls_published_row *row);

/* fp32 bytes of a model's gradient, 0 where the file does not give the model's size. */
double ls_published_gradient_bytes(const ls_published *set, const char *model);

/* The set that a sweep's results are compared with: by the name of its recipe, else by the form of its table; NULL:
 * none. */
const ls_published *ls_published_for(const ls_published *sets, size_t count, const char *recipe, const char *table);

#endif
