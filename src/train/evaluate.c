#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "metrics/progress.h"

struct ls_evaluator {
	const ls_graph *graph;
	const ls_dataset *dataset;
	ls_exec *exec;
	int64_t batch;
	float *logits; /* (batch, classes) */
	int (*stop)(void);
};

ls_status ls_graph_fits(const ls_graph *graph, const ls_dataset_info *info)
{
	if (!graph->finished)
		return ls_fail(LS_EINVALID,
			       "the graph is not finished%s%s; call ls_graph_finish() and look at what it returns",
			       graph->status != LS_OK ? ": " : "", graph->status != LS_OK ? graph->message : "");
	const ls_tensor *in = &graph->values[graph->input], *out = &graph->values[graph->logits];

	if (in->channels != info->channels || in->height != info->height || in->width != info->width)
		return ls_fail(LS_EMISMATCH, "the model takes %d x %d x %d samples, dataset %s has %d x %d x %d",
			       in->channels, in->height, in->width, info->name, info->channels, info->height,
			       info->width);
	if (out->channels < info->classes)
		return ls_fail(LS_EMISMATCH, "the model tells %d classes apart, dataset %s has %d", out->channels,
			       info->name, info->classes);
	return LS_OK;
}

ls_status ls_evaluator_new(ls_evaluator **out, const ls_graph *graph, const ls_dataset *dataset, ls_team *team,
			   int64_t batch)
{
	const ls_dataset_info *info = ls_dataset_describe(dataset);
	int64_t leaf = (uint64_t)batch < info->samples ? batch : (int64_t)info->samples;
	ls_exec_options options = { .sizes = { leaf, (int64_t)(info->samples % (uint64_t)leaf) },
				    .team = team,
				    .inference = 1 };
	ls_evaluator *e = calloc(1, sizeof(*e));
	ls_status status;

	if (e == NULL)
		return ls_fail(LS_EMEMORY, "no memory for an evaluation");
	e->graph = graph;
	e->dataset = dataset;
	e->batch = leaf;
	e->logits = calloc((size_t)leaf * (size_t)graph->values[graph->logits].channels, sizeof(float));
	status = e->logits == NULL ? ls_fail(LS_EMEMORY, "no memory for the logits of %lld samples", (long long)leaf)
				   : ls_exec_new(&e->exec, graph, &options);
	if (status != LS_OK) {
		ls_evaluator_free(e);
		return status;
	}
	*out = e;
	return LS_OK;
}

void ls_evaluator_free(ls_evaluator *e)
{
	if (e == NULL)
		return;
	ls_exec_free(e->exec);
	free(e->logits);
	free(e);
}

void ls_evaluator_set_stop(ls_evaluator *e, int (*stop)(void))
{
	e->stop = stop;
}

typedef struct pass {
	ls_evaluator *evaluator;
	uint64_t limit; /* samples to stop after */
	const float *params, *buffers;
	ls_evaluator_sink sink;
	void *context;
	ls_eval_result sums; /* loss and accuracy still sums */
} pass;

static ls_status run_leaf(pass *p, const ls_leaf *leaf)
{
	ls_evaluator *e = p->evaluator;
	ls_exec_leaf job = { .count = leaf->count,
			     .images = leaf->images,
			     .labels = leaf->labels,
			     .samples = leaf->samples,
			     .params = p->params,
			     .buffers = p->buffers };

	if (e->stop != NULL && e->stop())
		return ls_fail(LS_EINTERRUPTED, "stopped after %llu test samples", (unsigned long long)p->sums.samples);
	ls_exec_infer(e->exec, &job, p->sink != NULL ? e->logits : NULL);
	if (p->sink != NULL)
		p->sink(p->context, leaf, e->logits);
	p->sums.samples += (uint64_t)leaf->count;
	p->sums.loss += job.loss;
	p->sums.accuracy += (double)job.correct;
	return LS_OK;
}

static ls_status run_all(pass *p, ls_loader *loader)
{
	ls_progress *progress = ls_progress_begin();
	const ls_leaf *leaf = NULL;
	ls_status status = LS_OK;

	while (status == LS_OK && p->sums.samples < p->limit && (status = ls_loader_next(loader, &leaf)) == LS_OK &&
	       leaf != NULL) {
		status = run_leaf(p, leaf);
		ls_progress_update(progress, "test", p->sums.samples, p->limit, "", 0);
	}
	ls_progress_end(progress);
	return status;
}

/* From the first sample on, until the pass's limit. */
static ls_status run_pass(pass *p)
{
	const ls_evaluator *e = p->evaluator;
	ls_loader_options options = { .leaf = e->batch, .global_batch = e->batch, .single_pass = 1 };
	ls_loader *loader = NULL;

	LS_TRY(ls_loader_new(&loader, e->dataset, &options));
	ls_status status = run_all(p, loader);
	ls_loader_free(loader);
	return status;
}

ls_status ls_evaluator_probe(ls_evaluator *e, const float *params, const float *buffers, int *finite)
{
	pass p = { .evaluator = e, .params = params, .buffers = buffers, .limit = 1 };

	LS_TRY(run_pass(&p));
	*finite = isfinite(p.sums.loss);
	return LS_OK;
}

ls_status ls_evaluator_run(ls_evaluator *e, const float *params, const float *buffers, ls_evaluator_sink sink,
			   void *context, ls_eval_result *out)
{
	pass p = { .evaluator = e,
		   .params = params,
		   .buffers = buffers,
		   .sink = sink,
		   .context = context,
		   .limit = ls_dataset_describe(e->dataset)->samples };
	double start = ls_clock_seconds();

	LS_TRY(run_pass(&p));
	*out = (ls_eval_result){ .samples = p.sums.samples,
				 .loss = p.sums.loss / (double)p.sums.samples,
				 .accuracy = p.sums.accuracy / (double)p.sums.samples,
				 .seconds = ls_clock_seconds() - start };
	return LS_OK;
}
