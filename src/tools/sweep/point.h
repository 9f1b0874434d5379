/*
 * point.h - one measurement that a sweep is to make: the job as results keep it, and where it runs.
 *
 * Invariants of a point that ls_sweep_point_normalise() has accepted
 *  1. shape, nodes and devices agree. Servers are nodes beside those of the shape.
 *  2. On one node without servers nothing is sent: strategy is "local", rate "" and wire "fp32".
 *  3. The same job has the same key, and different ones do not.
 */
#ifndef LS_TOOLS_SWEEP_POINT_H
#define LS_TOOLS_SWEEP_POINT_H

#include "tools/results/results.h"

enum { LS_SWEEP_KEY = LS_RESULTS_TEXT, LS_SWEEP_NODES = 200 };

typedef struct ls_sweep_point {
	char key[LS_SWEEP_KEY];
	ls_point_job job;
	int64_t repeat;               /* 0: as often as the list says */
	int64_t on;                   /* the node of a point on one; counted from 1, 0: wherever */
	char speeds[LS_RESULTS_NAME]; /* of emulated nodes, "1,0.5"; "": all alike */
	int replayed;                 /* even where there are cores enough: a baseline of rows that are replayed */
} ls_sweep_point;

/* Devices of node i of a shape "3+2"; 0 past the end. */
int64_t ls_shape_devices(const char *shape, size_t i);

/* "8" on 4 nodes: "8+8+8+8", 4 and 32. "3+2" says itself how many nodes there are. */
ls_status ls_sweep_point_shape(ls_sweep_point *point, const char *devices, int64_t nodes);

/* One device of the point's, replayed: what its own replay is to be compared with. */
ls_status ls_sweep_point_baseline(const ls_sweep_point *point, ls_sweep_point *out);

/* Check what was filled in, leave out what cannot matter, and name it. */
ls_status ls_sweep_point_normalise(ls_sweep_point *point);

/* Processes it takes: nodes of the shape, and servers. */
static inline int64_t ls_sweep_point_processes(const ls_sweep_point *point)
{
	return point->job.nodes + point->job.servers;
}

/* "resnet18 batch 128, 2x1 ps 1gbit", for people. */
const char *ls_sweep_point_label(const ls_sweep_point *point, char *out, size_t size);

/* 64 bits of a text, for names of files and keys. */
uint64_t ls_text_hash(const char *text);

#endif
