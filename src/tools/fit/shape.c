#include "tools/fit/shape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/profiler.h"
#include "graph/graph.h"

enum { MASKED = 20, TOKENS = 128, STATISTICS = 16 };
#define TOLERANCE 0.02

static double gradient_bytes(const ls_graph *graph)
{
	return (double)graph->params.reachable * sizeof(float);
}

static ls_status build(ls_graph **out, const ls_shape_options *o, int vocabulary)
{
	const ls_model_row *row = ls_model_row_of(o->model.name);
	ls_model_options model = o->model;

	if (row && row->is_text && model.text.tokens == 0)
		model.text.tokens = TOKENS;
	if (row && row->pretrains)
		model.text.masked = model.text.tokens < MASKED ? model.text.tokens : MASKED;
	if (vocabulary > 0)
		model.text.vocabulary = vocabulary;
	LS_TRY(ls_model_build(out, &model));
	ls_graph_keep_unreachable(*out, o->whole);
	return LS_OK;
}

/* The gradient grows by the same bytes with every word. */
static ls_status find_vocabulary(const ls_shape_options *o, const ls_graph *graph, int *out)
{
	int known = ls_graph_vocabulary(graph);
	ls_graph *other = NULL;

	LS_TRY(build(&other, o, 2 * known));
	double per_word = (gradient_bytes(other) - gradient_bytes(graph)) / known;
	ls_graph_free(other);
	double words = known + (o->bytes - gradient_bytes(graph)) / per_word;
	*out = words >= 1 && words <= 1e7 ? (int)lround(words) : 0;
	return LS_OK;
}

static int is_near(const ls_graph *graph, double bytes)
{
	return !(bytes > 0) || fabs(gradient_bytes(graph) / bytes - 1) <= TOLERANCE;
}

/* A graph whose gradient has the bytes that are known. */
static ls_status build_like(ls_graph **out, const ls_shape_options *o)
{
	int vocabulary = 0;
	ls_graph *graph = NULL;

	LS_TRY(build(&graph, o, 0));
	if (!is_near(graph, o->bytes) && ls_graph_vocabulary(graph) > 0) {
		ls_status status = find_vocabulary(o, graph, &vocabulary);
		ls_graph_free(graph);
		graph = NULL;
		LS_TRY(status);
		LS_TRY(build(&graph, o, vocabulary));
	}
	if (is_near(graph, o->bytes)) {
		*out = graph;
		return LS_OK;
	}
	ls_status status = ls_fail(LS_EMISMATCH, "its gradient has %.2f MB, model %s has %.2f: it was another shape",
				   o->bytes / 1e6, o->model.name, gradient_bytes(graph) / 1e6);
	ls_graph_free(graph);
	return status;
}

static double work_of(const ls_graph *graph, int i, int whole)
{
	return graph->nodes[i].dropped ? 0 : ls_node_macs(graph, &graph->nodes[i], whole);
}

static ls_status fill(ls_profile *p, const ls_graph *graph, const ls_shape_options *o)
{
	double work = 0;

	for (int i = 0; i < graph->node_count; i++)
		work += work_of(graph, i, o->whole);
	if (!(work > 0))
		return ls_fail(LS_EINVALID, "model %s has no layer with arithmetic", o->model.name);
	p->layers = (size_t)(unsigned)graph->node_count;
	p->layer = calloc(p->layers, sizeof(*p->layer));
	if (!p->layer)
		return ls_fail(LS_EMEMORY, "no memory for the layers of model %s", o->model.name);
	for (int i = 0; i < graph->node_count; i++) {
		ls_profile_layer *layer = &p->layer[i];
		double seconds = (o->step_s - o->update_s) * work_of(graph, i, o->whole) / work;
		snprintf(layer->name, sizeof(layer->name), "%s", graph->nodes[i].name);
		layer->forward_s = seconds / 3;
		layer->backward_s = seconds * 2 / 3;
		ls_profiler_ranges(graph, i, layer);
	}
	return LS_OK;
}

ls_status ls_shape_profile(ls_profile *out, const ls_shape_options *o)
{
	ls_profile p = { .batch = o->batch,
			 .tiles = 1,
			 .threads = o->threads,
			 .steps = 1,
			 .devices = 1,
			 .microbatches = 1,
			 .step_s = o->step_s,
			 .update_s = o->update_s,
			 .extra = STATISTICS };
	ls_graph *graph = NULL;

	LS_TRY(build_like(&graph, o));
	snprintf(p.model, sizeof(p.model), "%s", o->model.name);
	p.reachable = (int64_t)graph->params.reachable;
	ls_status status = fill(&p, graph, o);
	ls_graph_free(graph);
	if (status == LS_OK)
		*out = p;
	else
		ls_profile_release(&p);
	return status;
}
