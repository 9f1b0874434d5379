/*
 * faults.h - faults that are injected on purpose, to measure what they cost (lockstep bench --fault-every).
 *
 * In every start of an elastic run one node ends itself by SIGKILL while it trains. Which one, and after how many
 * seconds, follows from seed and start alone, so all nodes know it and nobody needs to reach another host. The times
 * are exponential: independent failures of nodes at a constant rate, as the model of `lockstep plan` assumes. They
 * have no memory, so to draw anew in each start is the same as to go on; and time counts while nodes train, not while
 * they start.
 *
 * The environment carries it, LOCKSTEP_FAULTS="EVERY:SEED:COUNT", for it belongs to a measurement and not to a run:
 * it must not be in run.json. After COUNT starts with a fault comes one without, which ends after its first step.
 */
#ifndef LS_CLUSTER_FAULTS_H
#define LS_CLUSTER_FAULTS_H

#include <stdint.h>

#include "base/status.h"

#define LS_FAULTS "LOCKSTEP_FAULTS"

typedef struct ls_faults {
	double every; /* seconds of training between two faults, on average; 0: no faults */
	uint64_t seed;
	uint64_t count; /* starts that have one */
} ls_faults;

typedef struct ls_fault {
	int node;     /* -1: none in this start */
	double after; /* seconds from when the start begins to train */
} ls_fault;

/* "30:7:5"; NULL: no faults. */
ls_status ls_faults_parse(ls_faults *out, const char *text);
/* From the environment. */
ls_status ls_faults_given(ls_faults *out);

/* Of start 1, 2, ... with `nodes` nodes. */
ls_fault ls_faults_draw(const ls_faults *faults, uint64_t start, int nodes);

/* This process ends by SIGKILL after as many seconds: by a timer of the kernel, whatever it is doing. */
ls_status ls_fault_arm(double seconds);

#endif
