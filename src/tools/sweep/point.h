/*
 * point.h - a point of a sweep before it is measured: its job, as in the results, and where it runs.
 *
 * Invariants of a point that ls_sweep_point_normalise() has accepted
 *  1. shape, nodes and devices agree, and are those of the workers. Servers are additional to the nodes of the shape,
 *     also where the recipe counts them among its devices ("servers_count": "inside").
 *  2. On one node without servers nothing is sent: strategy is "local", rate "" and wire "fp32".
 *  3. Equal jobs have equal keys, different jobs different ones.
 */
#ifndef LS_TOOLS_SWEEP_POINT_H
#define LS_TOOLS_SWEEP_POINT_H

#include "tools/results/results.h"

enum { LS_SWEEP_KEY = LS_RESULTS_TEXT, LS_SWEEP_NODES = 200 };

/* Settings of the published run, by the names of options: see original.h. */
typedef struct ls_original {
	size_t count;
	char name[LS_RESULTS_SETTINGS][LS_RESULTS_SETTING], value[LS_RESULTS_SETTINGS][LS_RESULTS_NAME];
} ls_original;

typedef struct ls_sweep_point {
	char key[LS_SWEEP_KEY];
	ls_point_job job;
	int64_t repeat, launches;     /* 0: those of the list */
	char on[LS_RESULTS_NAME];     /* which nodes, from 1, one for each process: "1,6"; "": the first */
	char speeds[LS_RESULTS_NAME]; /* of emulated nodes, "1,0.5"; "": all at full speed */
	int replayed;                 /* simulated compute even with enough cores: a baseline of simulated points */
	ls_original original;         /* not part of the job */
} ls_sweep_point;

/* Devices of node i of a shape "3+2"; 0 past the end. */
int64_t ls_shape_devices(const char *shape, size_t i);

/* "8" on 4 nodes: "8+8+8+8", 4 and 32. "3+2" implies the number of nodes. */
ls_status ls_sweep_point_shape(ls_sweep_point *point, const char *devices, int64_t nodes);

/* The baseline of a point with simulated compute: one of its devices, simulated, too. */
ls_status ls_sweep_point_baseline(const ls_sweep_point *point, ls_sweep_point *out);

/* Products in this precision: the field, and an argument of the commands where it changes. */
ls_status ls_sweep_point_precision(ls_sweep_point *point, const char *precision);

/* More options of the commands, as typed; NULL and "" are none. */
ls_status ls_point_job_add_arguments(ls_point_job *job, const char *more);

/* Check the fields, clear those without effect, and set the key. */
ls_status ls_sweep_point_normalise(ls_sweep_point *point);

/* The node of process i, from 1; and the highest of all. */
int64_t ls_sweep_point_node(const ls_sweep_point *point, int64_t i);
int64_t ls_sweep_point_highest(const ls_sweep_point *point);

/* Count the servers among the devices: the last devices of the shape become servers. */
ls_status ls_sweep_point_servers_inside(ls_sweep_point *point);

/* How many times a worker's epoch passes over the data: once per device where every device reads all of it. */
int64_t ls_point_job_passes(const ls_point_job *job);

/* Number of processes: nodes of the shape, and servers. */
static inline int64_t ls_sweep_point_processes(const ls_sweep_point *point)
{
	return point->job.nodes + point->job.servers;
}

/* "resnet18 batch 128, 2x1 ps 1gbit", for people. */
const char *ls_sweep_point_label(const ls_sweep_point *point, char *out, size_t size);

/* 64 bits of a text, for names of files and keys. */
uint64_t ls_text_hash(const char *text);

#endif
