/*
 * state.h - the state of a bench on one node, shared by bench.c (measuring) and result.c (results).
 */
#ifndef LS_TOOLS_BENCH_STATE_H
#define LS_TOOLS_BENCH_STATE_H

#include "backends/replay/replay.h"
#include "tools/bench/data.h"
#include "tools/bench/steps.h"

typedef struct ls_bench_state {
	const ls_bench_options *options;
	ls_train_options job;   /* resolved, once all nodes have exchanged their devices */
	ls_train_options given; /* the same before that */
	ls_comm *comm;          /* NULL: one node */
	ls_layout layout;
	const ls_backend *backend;
	ls_profile profile; /* with options->replay */
	ls_replay_options replay;
	ls_graph *graph;
	ls_node_trainer *trainer;
	ls_profiler profiler;
	ls_bench_steps run;
	ls_bench_data data; /* without a replay */
	double *step_s, *repeat_rates;
	double warm_up_s; /* of updates */
	uint64_t sent, received;
} ls_bench_state;

/* A profile is wanted, as a file or as text. */
static inline int ls_bench_records(const ls_bench_options *options)
{
	return options->profile_out || options->profile_text;
}

/* result.c: all steps are done. Called by all nodes; complete on the first. */
ls_status ls_bench_report(ls_bench_state *bench, ls_bench_result *out);

#endif
