/*
 * lab.h - the emulated cluster of a sweep (network namespaces, made by tools/lab): created when a point needs it, and
 * always removed.
 *
 * A file in the output directory, the mark, names the cluster while it may exist, its owner and the directory, so that
 * the next sweep in the same directory removes the cluster of a sweep that was killed, and no other one.
 */
#ifndef LS_TOOLS_SWEEP_LAB_H
#define LS_TOOLS_SWEEP_LAB_H

#include "tools/sweep/child.h"
#include "tools/sweep/point.h"

#define LS_LAB_HOST "node" /* of hosts: node1, node2, ... */

typedef struct ls_lab {
	char tool[4096];              /* "": none was found */
	char reason[LS_RESULTS_TEXT]; /* why none can be made; "": it can, or not checked yet */
	int asked;
	char name[40], mark[4096];
	char directory[4096 + 64]; /* the mark's line about it */
	int64_t hosts;             /* 0: there is no cluster */
	char rate[32], speeds[LS_RESULTS_NAME];
} ls_lab;

/* Find the tool; remove a cluster that an earlier sweep in `directory` left. */
ls_status ls_lab_init(ls_lab *lab, const char *program, const char *directory);

/* Whether a cluster can be made here; else lab->reason is set. */
int ls_lab_possible(ls_lab *lab);

/* Make a cluster with the hosts and links that the point needs. */
ls_status ls_lab_need(ls_lab *lab, const ls_sweep_point *point);

/* Remove the cluster, if any; also after ls_sweep_stop(). */
void ls_lab_down(ls_lab *lab);

/* Number of hosts in a point's cluster, and whether the point needs a cluster. */
int64_t ls_lab_hosts(const ls_sweep_point *point);
int ls_lab_is_for(const ls_sweep_point *point);

#endif
