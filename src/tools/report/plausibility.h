/*
 * plausibility.h - figures that are too good: a speedup above ideal, or a rate at which the gradients exceed the
 * bandwidth of the links.
 *
 * All nodes together sum a gradient of G bytes. With allreduce over N nodes every node sends and receives at least
 * 2 G (N-1)/N bytes per step; with S parameter servers a worker moves G each way, and a server G/S for each worker. A
 * link of r bit/s each way needs 8/r seconds for each of those bytes, whatever overlaps with what.
 */
#ifndef LS_TOOLS_REPORT_PLAUSIBILITY_H
#define LS_TOOLS_REPORT_PLAUSIBILITY_H

#include <stdint.h>

#include "tools/report/page.h"
#include "tools/results/results.h"

typedef struct ls_claim {
	double speedup;                  /* 0: not known */
	int64_t nodes, devices, servers; /* servers are not among the nodes */
	double step_s;                   /* 0: not known */
	double gradient_bytes;           /* fp32; 0: not known */
	double moved_bytes; /* measured: per step in the busier direction of the busiest node; 0: not known */
	const char *strategy, *wire, *link;
	const char *reason; /* why a speedup may be above ideal */
} ls_claim;

/* Bytes per step in the busier direction of the busiest node. */
double ls_wire_bytes(const ls_claim *claim);

/* A sentence that names the contradiction and its likely reason; NULL: plausible. */
const char *ls_claim_check(ls_page *page, const ls_claim *claim);

/* Whether a baseline whose repeats differ by `spread` (0.1: 10 %) can explain a speedup above ideal. */
int ls_spread_explains(double speedup, int64_t devices, double spread);

/* The same for a measured point, with its baseline and the machine; `base` may be NULL. */
const char *ls_point_check(ls_page *page, const ls_results *results, const ls_point *point, const ls_point *base);

#endif
