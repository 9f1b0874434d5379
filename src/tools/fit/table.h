/*
 * table.h - measured rows that the planner is calibrated on and compared with: points of a sweep, or a table in the
 * format of published/README.md.
 *
 * Invariants of a table that was read
 *  1. Rates are finite and above zero; every row has a model of `lockstep models`, a batch and at least one device.
 *  2. No two rows are of the same job in the same place: repeats are one row with their mean.
 *  3. No row is impossible or copied from another; what was left out is listed with its line and the reason.
 */
#ifndef LS_TOOLS_FIT_TABLE_H
#define LS_TOOLS_FIT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/models.h>

#include "base/memory.h"

typedef struct ls_fit_point {
	int line;               /* of the file; of a sweep, the number of the point, from 1 */
	const char *model;      /* */
	const char *data;       /* "": generated */
	const char *job;        /* what else must be the same in rows of one job; for people, may be "" */
	const char *hosts;      /* "lm1+lm6", "gn[01-03]"; "": nodes have no names */
	const char *shape;      /* devices of each node, "3+2", or of all, "3"; without servers */
	const char *link;       /* "1gbit"; "": not known */
	const char *strategy;   /* "local", "allreduce" or "ps" */
	const char *wire;       /* "fp32" or "bf16" */
	int64_t nodes, devices; /* without servers; devices of all nodes */
	int64_t servers;
	int64_t threads; /* of a device */
	int64_t batch;   /* samples per device and step */
	double rate;     /* samples per second */
	double spread;   /* relative standard deviation of its repeats; 0: not known */
	int64_t repeats;
	double update_s;       /* of a step, all parameters on one device; 0: part of computing */
	double bytes;          /* of the gradient; 0: not known */
	int replayed;          /* simulated compute */
	int emulated;          /* its nodes share the cores of one machine */
	int unequal;           /* some of its nodes are slow, and each needs a row of its own */
	const char *arguments; /* of a sweep: other options of the command */
} ls_fit_point;

typedef struct ls_fit_omission {
	int line;
	const char *reason;
} ls_fit_omission;

typedef struct ls_fit_table {
	ls_arena *arena;
	const char *name;       /* of the set of published figures; "": a sweep */
	const char *title;      /* */
	const char *label;      /* the file, for messages */
	int is_sweep;           /* of Lockstep itself */
	int64_t cores;          /* of the machine that emulated nodes; 0: none did */
	ls_model_options model; /* shape of samples, where rows do not say */
	size_t count, room;
	ls_fit_point *point;
	size_t omitted, omitted_room;
	ls_fit_omission *omission;
} ls_fit_table;

/* `which` is a results.json or the directory of a sweep, a CSV file, or the name of a built-in set. `link` stands for
 * links that are not known; may be NULL. All memory is the arena's. */
ls_status ls_fit_table_read(ls_fit_table *out, ls_arena *arena, const char *which, const char *link);

/* Record that a row was left out. */
ls_status ls_fit_table_omit(ls_fit_table *table, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
ls_status ls_fit_table_add(ls_fit_table *table, const ls_fit_point *point);

/* table_published.c, table_results.c: all rows that can be read. */
ls_status ls_fit_table_from_published(ls_fit_table *table, const char *which);
ls_status ls_fit_table_from_results(ls_fit_table *table, const char *path);

/* table_check.c: repeats become one row; copied, impossible and unknown ones are left out. */
ls_status ls_fit_table_check(ls_fit_table *table);

/* Rows of one job: only nodes, devices, links and strategy may differ. */
int ls_fit_same_job(const ls_fit_point *a, const ls_fit_point *b);

/* The same job on the same hosts, at the same speeds. */
int ls_fit_same_host(const ls_fit_point *a, const ls_fit_point *b);

/* A row of one node without servers: what the planner is calibrated on. */
static inline int ls_fit_is_alone(const ls_fit_point *point)
{
	return point->nodes == 1 && point->servers == 0;
}

/* Devices of node i. */
int64_t ls_fit_devices(const ls_fit_point *point, int64_t i);

/* "cnn, bigmnist, batch 512", in the arena. */
const char *ls_fit_job_name(const ls_fit_table *table, const ls_fit_point *point);

/* What the numbers of its rows count. */
static inline const char *ls_fit_unit(const ls_fit_table *table)
{
	return table->is_sweep ? "point" : "line";
}

/* "74.3", "17833", in the arena. */
const char *ls_fit_rate_text(const ls_fit_table *table, double rate);

/* Names in `hosts`, "lm1+lm6" or "gn[01-02,07]"; returns how many, 0 where it is no such list. */
int64_t ls_fit_hosts(ls_arena *arena, const char *hosts, const char ***out);

#endif
