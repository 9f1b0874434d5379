/*
 * lab.h - the emulated cluster of a sweep (network namespaces, made by tools/lab): up while points need it, down in
 * any case.
 *
 * A file in the output directory holds the cluster's name while it may be there, so that the next sweep in the same
 * directory takes down what one that was killed has left.
 */
#ifndef LS_TOOLS_SWEEP_LAB_H
#define LS_TOOLS_SWEEP_LAB_H

#include "tools/sweep/child.h"
#include "tools/sweep/point.h"

#define LS_LAB_HOST "node" /* of hosts: node1, node2, ... */

typedef struct ls_lab {
	char tool[4096];              /* "": none was found */
	char reason[LS_RESULTS_TEXT]; /* why there can be none; "": it can, or nobody has asked */
	int asked;
	char name[40], mark[4096];
	int64_t hosts; /* 0: it is down */
	char rate[32], speeds[LS_RESULTS_NAME];
} ls_lab;

/* Find the tool; take down what is left of an earlier sweep in `directory`. */
ls_status ls_lab_init(ls_lab *lab, const char *program, const char *directory);

/* Whether it can be made here, else lab->reason says why not. */
int ls_lab_possible(ls_lab *lab);

/* Up, with as many hosts and such links as the point needs. */
ls_status ls_lab_need(ls_lab *lab, const ls_sweep_point *point);

/* Safe to call at any time; also after a request to stop. */
void ls_lab_down(ls_lab *lab);

/* How many hosts a point's cluster has, and whether it takes one at all. */
int64_t ls_lab_hosts(const ls_sweep_point *point);
int ls_lab_is_for(const ls_sweep_point *point);

#endif
