#include "backends/profiler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Behind the layers' forward and backward. */
enum { LOSS, REPORTED, OTHER = REPORTED, UPDATE, EXCHANGE, STEP, PARTS };

static size_t reported(const ls_profiler *r)
{
	return 2 * r->layers + REPORTED;
}

static size_t width(const ls_profiler *r)
{
	return 2 * r->layers + PARTS;
}

ls_status ls_profiler_init(ls_profiler *r, const ls_graph *graph, int64_t steps)
{
	*r = (ls_profiler){ .graph = graph, .layers = (size_t)graph->node_count, .most = steps };
	r->now = calloc(reported(r), sizeof(double));
	r->kept = calloc(width(r) * (size_t)steps, sizeof(double));
	if (!r->now || !r->kept) {
		ls_profiler_release(r);
		return ls_fail(LS_EMEMORY, "no memory to record %lld steps", (long long)steps);
	}
	return LS_OK;
}

void ls_profiler_release(ls_profiler *r)
{
	free(r->kept);
	free(r->now);
	*r = (ls_profiler){ 0 };
}

void ls_profiler_span(void *context, int is_backward, double begin_s, double end_s)
{
	ls_profiler *r = context;
	size_t at = (is_backward ? r->backwards++ : r->forwards++) % r->layers;

	if (!is_backward) {
		r->now[at] += end_s - begin_s;
		r->forward_end = end_s;
		return;
	}
	if (at == 0)
		r->now[2 * r->layers + LOSS] += begin_s - r->forward_end;
	r->now[r->layers + (r->layers - 1 - at)] += end_s - begin_s;
}

static void keep(ls_profiler *r, size_t part, double seconds)
{
	r->kept[part * (size_t)r->most + (size_t)r->steps] = seconds;
}

static void keep_step(ls_profiler *r, const ls_profiler_step *step)
{
	double microbatches = (double)step->microbatches, other = step->seconds - step->update_s - step->exchange_s;

	for (size_t i = 0; i < reported(r); i++) {
		keep(r, i, r->now[i] / microbatches);
		other -= r->now[i];
	}
	keep(r, 2 * r->layers + OTHER, fmax(0, other) / microbatches); /* parts do not overlap: 0 is for rounding */
	keep(r, 2 * r->layers + UPDATE, step->update_s);
	keep(r, 2 * r->layers + EXCHANGE, step->exchange_s);
	keep(r, 2 * r->layers + STEP, step->seconds);
	r->tiles = (int64_t)(r->forwards / r->layers) / step->microbatches;
	r->microbatches = step->microbatches;
	r->steps++;
}

void ls_profiler_end_step(ls_profiler *r, const ls_profiler_step *step, int counts)
{
	if (counts && step->microbatches > 0 && r->steps < r->most)
		keep_step(r, step);
	memset(r->now, 0, reported(r) * sizeof(double));
	r->forwards = r->backwards = 0;
}

/* A step, and how long it took. */
typedef struct ranked {
	double seconds;
	size_t step;
} ranked;

static int by_seconds(const void *a, const void *b)
{
	const ranked *left = a, *right = b;
	return (left->seconds > right->seconds) - (left->seconds < right->seconds);
}

/* The middle half of the steps: `*count` of them, the first of which is returned. */
static const ranked *middle(const ls_profiler *r, ranked *all, size_t *count)
{
	size_t steps = (size_t)r->steps, left_out = steps / 4;

	for (size_t k = 0; k < steps; k++)
		all[k] = (ranked){ r->kept[(2 * r->layers + STEP) * (size_t)r->most + k], k };
	qsort(all, steps, sizeof(*all), by_seconds);
	*count = steps - 2 * left_out;
	return all + left_out;
}

static double mean_of(const ls_profiler *r, size_t part, const ranked *chosen, size_t count)
{
	double sum = 0;
	for (size_t k = 0; k < count; k++)
		sum += r->kept[part * (size_t)r->most + chosen[k].step];
	return count > 0 ? sum / (double)count : 0;
}

void ls_profiler_ranges(const ls_graph *graph, int node, ls_profile_layer *out)
{
	int rows[LS_NODE_ROWS], count = ls_node_rows(graph, &graph->nodes[node], rows);

	out->ranges = 0;
	for (int k = 0; k < count; k++) {
		const ls_param *param = &graph->params.rows[rows[k]];
		out->range[out->ranges++] = (ls_profile_range){ .begin = (int64_t)param->offset,
								.end = (int64_t)(param->offset + param->count) };
	}
}

static void take_times(const ls_profiler *r, ls_profile *out, const ranked *chosen, size_t count)
{
	size_t after = 2 * r->layers;

	for (size_t i = 0; i < r->layers; i++) {
		ls_profile_layer *layer = &out->layer[i];
		snprintf(layer->name, sizeof(layer->name), "%s", r->graph->nodes[i].name);
		layer->forward_s = mean_of(r, i, chosen, count);
		layer->backward_s = mean_of(r, r->layers + i, chosen, count);
		ls_profiler_ranges(r->graph, (int)i, layer);
	}
	out->loss_s = mean_of(r, after + LOSS, chosen, count);
	out->other_s = mean_of(r, after + OTHER, chosen, count);
	out->update_s = mean_of(r, after + UPDATE, chosen, count);
	out->exchange_s = mean_of(r, after + EXCHANGE, chosen, count);
	out->step_s = mean_of(r, after + STEP, chosen, count);
}

ls_status ls_profiler_take(ls_profiler *r, ls_profile *out)
{
	size_t count;
	ranked *all = calloc((size_t)r->steps + 1, sizeof(*all));

	out->layers = r->layers;
	out->layer = calloc(r->layers, sizeof(*out->layer));
	if (!out->layer || !all) {
		free(all);
		return ls_fail(LS_EMEMORY, "no memory for the profile of %zu layers", r->layers);
	}
	const ranked *chosen = middle(r, all, &count);
	take_times(r, out, chosen, count);
	free(all);
	out->tiles = r->tiles;
	out->microbatches = r->microbatches;
	out->steps = r->steps;
	return LS_OK;
}
