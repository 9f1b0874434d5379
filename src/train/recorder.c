#include "train/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/rate.h"

static size_t width(const ls_recorder *r)
{
	return 2 * r->layers + 1;
}

ls_status ls_recorder_init(ls_recorder *r, const ls_graph *graph, int64_t steps)
{
	*r = (ls_recorder){ .graph = graph, .layers = (size_t)graph->node_count, .most = steps };
	r->now = calloc(width(r), sizeof(double));
	r->kept = calloc(width(r) * (size_t)steps, sizeof(double));
	if (r->now == NULL || r->kept == NULL) {
		ls_recorder_release(r);
		return ls_fail(LS_EMEMORY, "no memory to record %lld steps", (long long)steps);
	}
	return LS_OK;
}

void ls_recorder_release(ls_recorder *r)
{
	free(r->kept);
	free(r->now);
	*r = (ls_recorder){ 0 };
}

void ls_recorder_span(void *context, int is_backward, double begin_s, double end_s)
{
	ls_recorder *r = context;
	size_t told = (is_backward ? r->backwards++ : r->forwards++) % r->layers;

	if (!is_backward) {
		r->now[told] += end_s - begin_s;
		r->forward_end = end_s;
		return;
	}
	if (told == 0)
		r->now[2 * r->layers] += begin_s - r->forward_end;
	r->now[r->layers + (r->layers - 1 - told)] += end_s - begin_s;
}

void ls_recorder_end_step(ls_recorder *r, int64_t leaves, int counts)
{
	if (counts && leaves > 0 && r->steps < r->most) {
		for (size_t i = 0; i < width(r); i++)
			r->kept[i * (size_t)r->most + (size_t)r->steps] = r->now[i] / (double)leaves;
		r->slices = (int64_t)(r->forwards / r->layers) / leaves;
		r->steps++;
	}
	memset(r->now, 0, width(r) * sizeof(double));
	r->forwards = r->backwards = 0;
}

static double median_at(const ls_recorder *r, size_t i)
{
	return ls_median(r->kept + i * (size_t)r->most, (size_t)r->steps);
}

void ls_recorder_ranges(const ls_graph *graph, int node, ls_profile_layer *out)
{
	int rows[LS_NODE_ROWS], count = ls_node_rows(&graph->nodes[node], rows);

	out->ranges = 0;
	for (int k = 0; k < count; k++) {
		const ls_param *param = &graph->params.rows[rows[k]];
		out->range[out->ranges++] = (ls_profile_range){ .begin = (int64_t)param->offset,
								.end = (int64_t)(param->offset + param->count) };
	}
}

ls_status ls_recorder_take(ls_recorder *r, ls_profile *out)
{
	out->layers = r->layers;
	out->layer = calloc(r->layers, sizeof(*out->layer));
	if (out->layer == NULL)
		return ls_fail(LS_EMEMORY, "no memory for the profile of %zu layers", r->layers);
	for (size_t i = 0; i < r->layers; i++) {
		ls_profile_layer *layer = &out->layer[i];
		snprintf(layer->name, sizeof(layer->name), "%s", r->graph->nodes[i].name);
		layer->forward_s = median_at(r, i);
		layer->backward_s = median_at(r, r->layers + i);
		ls_recorder_ranges(r->graph, (int)i, layer);
	}
	out->loss_s = median_at(r, 2 * r->layers);
	out->slices = r->slices;
	out->steps = r->steps;
	return LS_OK;
}
