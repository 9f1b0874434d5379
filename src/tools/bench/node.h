/*
 * node.h - one node's part in a bench: what ls_bench() does once nodes can talk to each other.
 */
#ifndef LS_TOOLS_BENCH_NODE_H
#define LS_TOOLS_BENCH_NODE_H

#include <lockstep/bench.h>

#include "comm/comm.h"

/* As ls_train_node(): `comm` is taken over; NULL: one node alone. */
ls_status ls_bench_among(const ls_bench_options *options, ls_comm *comm, ls_bench_result *result);

#endif
