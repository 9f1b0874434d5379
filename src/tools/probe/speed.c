/*
 * speed.c - the same load on one core, then on all at once.
 *
 * A load is run `times` times, so that a repeat takes its part of the time; the rate is the work divided by the time
 * until the last core is finished. Threads are pinned and have touched their memory before. When other programs
 * disturb the measurement, it is repeated (stable_rate.h).
 */
#include "tools/probe/speed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/pin.h"
#include "base/team.h"
#include "kernels/gemm.h"
#include "tools/probe/stable_rate.h"

enum { SIDE = 64, FLOATS = SIDE * SIDE };

/* Buffers of one core. */
typedef struct bench_core {
	float *products; /* (3, 64, 64) x, w and y */
	uint64_t *from, *to;
	uint64_t checksum; /* keeps reading from being optimised away */
} bench_core;

typedef struct load load;
struct load {
	void (*run)(const load *load, bench_core *core);
	double amount; /* work per run */
	double seconds;
	int repeat;
	size_t bytes;
	ls_gemm gemm;
	int64_t times;
	int all;         /* on all cores, or on the caller's */
	double unsteady; /* the largest spread of a figure that did not become steady */
	ls_team *team;
	bench_core *cores; /* (size of team) */
};

static void run_products(const load *l, bench_core *core)
{
	float *x = core->products;
	for (int i = 0; i < 64; i++)
		ls_gemm_run(&l->gemm, x, x + FLOATS, x + 2 * FLOATS);
}

/* Sums of integers, eight at a time: any compiler vectorizes this, so that memory is the limit. */
static void run_read(const load *l, bench_core *core)
{
	uint64_t sums[8] = { 0 };
	for (size_t i = 0; i + 8 <= l->bytes / sizeof(uint64_t); i += 8)
		for (int lane = 0; lane < 8; lane++)
			sums[lane] += core->from[i + (size_t)lane];
	for (int lane = 0; lane < 8; lane++)
		core->checksum += sums[lane];
}

static void run_copy(const load *l, bench_core *core)
{
	memcpy(core->to, core->from, l->bytes);
	core->from[0]++; /* so that the copy is not optimised away */
}

static void run_times(void *context, ls_member member)
{
	const load *l = context;
	for (int64_t i = 0; i < l->times; i++)
		l->run(l, &l->cores[member.rank]);
}

/* Seconds for `times` runs, on all cores or on the caller's. */
static double time_load(load *l, int64_t times, int all)
{
	l->times = times;
	double start = ls_clock_seconds();
	if (all)
		ls_team_run(l->team, run_times, l);
	else
		run_times(l, (ls_member){ .size = 1 });
	return ls_clock_seconds() - start;
}

static double rate_of(void *context)
{
	load *l = context;
	double cores = l->all ? ls_team_size(l->team) : 1;
	return l->amount * (double)l->times * cores / time_load(l, l->times, l->all);
}

/* `expected`: rate extrapolated from one core; 0: none. */
static double measure(load *l, int all, double expected)
{
	double part = l->seconds / l->repeat;
	int64_t times = 1;
	double once = time_load(l, times, all);

	while (once < part / 4 && times < INT64_MAX / 8) {
		times *= 4;
		once = time_load(l, times, all);
	}
	l->times = times;
	l->all = all;
	ls_stable_rate steady = ls_stable_rate_measure(
		&(ls_stable_rate_options){ .rate = rate_of, .context = l, .repeat = l->repeat, .expected = expected });
	if (steady.spread > LS_STABLE_SPREAD)
		l->unsteady = fmax(l->unsteady, steady.spread);
	return steady.value;
}

static void touch(void *context, ls_member member)
{
	load *l = context;
	bench_core *core = &l->cores[member.rank];
	for (int i = 0; i < 3 * FLOATS; i++)
		core->products[i] = 1.0f / SIDE;
	memset(core->from, 1, l->bytes);
	memset(core->to, 2, l->bytes);
}

static ls_status make_cores(load *l, int cores)
{
	for (int i = 0; i < cores; i++) {
		void *products = NULL, *from = NULL, *to = NULL;
		LS_TRY(ls_buffer_new(&products, 3 * FLOATS * sizeof(float), "products to time"));
		l->cores[i].products = products;
		LS_TRY(ls_buffer_new(&from, l->bytes, "memory to read"));
		l->cores[i].from = from;
		LS_TRY(ls_buffer_new(&to, l->bytes, "memory to copy to"));
		l->cores[i].to = to;
	}
	return LS_OK;
}

static void free_cores(load *l, int cores)
{
	for (int i = 0; i < cores; i++) {
		ls_buffer_free(l->cores[i].to, l->bytes);
		ls_buffer_free(l->cores[i].from, l->bytes);
		ls_buffer_free(l->cores[i].products, 3 * FLOATS * sizeof(float));
	}
	free(l->cores);
}

static void pin_rank(void *context, int rank)
{
	ls_pin_self(context, rank, 0);
}

/* Loads one after the other, each on one core and on all. */
static ls_status run_loads(load *l, ls_probe_node *node)
{
	ls_gemm_shape shape = {
		.rows = SIDE, .depth = SIDE, .cols = SIDE, .ldx = SIDE, .ldw = SIDE, .ldy = SIDE, .accumulate = 1
	};

	LS_TRY(ls_gemm_make(&l->gemm, &shape));
	ls_team_run(l->team, touch, l);
	l->run = run_products;
	l->amount = 64.0 * 2 * SIDE * SIDE * SIDE / 1e9;
	node->gflop_per_s_core = measure(l, 0, 0);
	node->gflop_per_s = measure(l, 1, node->cores * node->gflop_per_s_core);
	if (node->gflop_per_s_core <
	    LS_STABLE_LEAST * node->gflop_per_s / node->cores) /* the measurement of one core was disturbed */
		node->gflop_per_s_core = measure(l, 0, node->gflop_per_s / node->cores);
	l->run = run_read;
	l->amount = (double)l->bytes / 1e9;
	node->memory_core.read_gb_per_s = measure(l, 0, 0);
	node->memory.read_gb_per_s = measure(l, 1, 0); /* cores share the bandwidth: nothing is expected */
	l->run = run_copy;
	l->amount = 2 * (double)l->bytes / 1e9;
	node->memory_core.copy_gb_per_s = measure(l, 0, 0);
	node->memory.copy_gb_per_s = measure(l, 1, 0);
	node->unsteady = l->unsteady;
	return LS_OK;
}

static ls_status run_pinned(load *l, ls_probe_node *node, ls_pin_plan *plan)
{
	ls_team_options team = { .threads = node->cores, .begin = pin_rank, .context = plan };

	LS_TRY(ls_team_new_with(&l->team, &team));
	ls_pin_self(plan, 0, 0);
	l->cores = calloc((size_t)node->cores, sizeof(*l->cores));
	ls_status status = !l->cores ? ls_fail(LS_EMEMORY, "no memory for %d cores to time", node->cores)
				     : make_cores(l, node->cores);
	if (status == LS_OK)
		status = run_loads(l, node);
	if (l->cores)
		free_cores(l, node->cores);
	ls_team_free(l->team);
	return status;
}

ls_status ls_speed_measure(ls_probe_node *node, double seconds, int repeat, size_t bytes)
{
	load l = { .seconds = seconds,
		   .repeat = repeat < LS_STABLE_REPEATS ? repeat : LS_STABLE_REPEATS,
		   .bytes = ls_round_up64(bytes) };
	ls_pin_plan plan;

	node->cores = ls_pin_cores();
	node->memory_bytes = l.bytes;
	LS_TRY(ls_pin_plan_init(&plan, node->cores, 1, LS_PIN_AUTO));
	ls_status status = run_pinned(&l, node, &plan);
	ls_pin_plan_release(&plan);
	return status;
}
