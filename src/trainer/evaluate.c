#include "trainer/evaluate.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exact_math.h"
#include "base/names.h"
#include "comm/collectives.h"
#include "data/dataset.h"
#include "data/task.h"
#include "metrics/progress.h"
#include "trainer/token_targets.h"
#include "trainer/trainer.h"

/* What a micro-batch came to. The first record that a node sends is no micro-batch: its `correct` says that the node
 * was stopped. */
typedef struct microbatch_sums {
	double loss;
	int64_t correct;
	double token_loss;
	int64_t token_correct, masked;
} microbatch_sums;

/* State of one driver in a pass. */
typedef struct driver {
	ls_executor *executor;
	float *logits; /* (batch, classes) */
	ls_loader *loader;
	ls_status status;
	char message[512];
} driver;

struct ls_evaluator {
	ls_evaluator_options options; /* its arrays are not read again */
	int node, nodes;
	int64_t batch, microbatches;
	ls_assigner assigner;
	int64_t *cut, *device_cut; /* (nodes + 1), (devices + 1) */
	driver *driver;            /* (devices) */
	microbatch_sums *sums;     /* (micro-batches) */
	int outputs;               /* that metrics of float targets are of; 0: none */
	ls_target_sums *targets;   /* (micro-batches, outputs), then (outputs) of all */
	double *scale;             /* (outputs) or NULL */
	int (*stop)(void *context);
	void *stop_context;
};

/* Float targets are one per output, and a softmax is no answer to anything but classes. */
static ls_status targets_fit(const ls_graph *graph, const ls_dataset_info *info)
{
	int outputs = ls_graph_outputs(graph);

	if (graph->predicts_next)
		return ls_fail(LS_EMISMATCH, "the model predicts the next token, dataset %s is for %s", info->name,
			       ls_task_title(info->task));
	if (outputs != info->targets)
		return ls_fail(LS_EMISMATCH, "the model has %d output%s, dataset %s has %d float target%s per sample",
			       outputs, ls_plural((uint64_t)outputs, "s"), info->name, info->targets,
			       ls_plural((uint64_t)info->targets, "s"));
	if (info->task != LS_TASK_CLASSIFICATION && ls_graph_classifies(graph))
		return ls_fail(
			LS_EMISMATCH,
			"dataset %s is for %s, and the loss of the model is cross-entropy of classes; give its graph "
			"%s",
			info->name, ls_task_title(info->task),
			info->task == LS_TASK_REGRESSION ? "ls_mean_squared_error()" : "ls_binary_cross_entropy()");
	return LS_OK;
}

static ls_status classes_fit(const ls_graph *graph, const ls_dataset_info *info)
{
	int classes = ls_graph_classes(graph);

	if (info->targets > 0)
		return targets_fit(graph, info);
	if (classes < info->classes)
		return ls_fail(LS_EMISMATCH, "the model has %d class%s, dataset %s has %d", classes,
			       ls_plural((uint64_t)classes, "es"), info->name, info->classes);
	return LS_OK;
}

static ls_status text_fits(const ls_graph *graph, const ls_dataset_info *info)
{
	if (graph->tokens_max == 0 || info->tokens_max == 0)
		return ls_fail(LS_EMISMATCH, "the model takes %s, dataset %s is %s",
			       graph->tokens_max ? "text" : "images", info->name, info->tokens_max ? "text" : "images");
	if (graph->tokens_max < info->tokens_max || graph->masked_max < info->masked_max)
		return ls_fail(LS_EMISMATCH,
			       "the model takes %d tokens per sample and %d masked positions; dataset %s has %d and %d",
			       graph->tokens_max, graph->masked_max, info->name, info->tokens_max, info->masked_max);
	if (ls_graph_vocabulary(graph) < info->vocabulary)
		return ls_fail(LS_EMISMATCH, "the model has %d tokens, the vocabulary of dataset %s has %d",
			       ls_graph_vocabulary(graph), info->name, info->vocabulary);
	return classes_fit(graph, info);
}

ls_status ls_graph_fits(const ls_graph *graph, const ls_dataset_info *info)
{
	if (!graph->finished)
		return ls_fail(LS_EINVALID,
			       "the graph is not finished%s%s; call ls_graph_finish() and check its status",
			       graph->status != LS_OK ? ": " : "", graph->status != LS_OK ? graph->message : "");
	const ls_tensor *in = &graph->values[graph->input];

	if (info->tokens_max > 0 || graph->tokens_max > 0)
		return text_fits(graph, info);
	if (in->channels != info->channels || in->height != info->height || in->width != info->width)
		return ls_fail(LS_EMISMATCH, "the model takes %d x %d x %d samples, dataset %s has %d x %d x %d",
			       in->channels, in->height, in->width, info->name, info->channels, info->height,
			       info->width);
	return classes_fit(graph, info);
}

ls_status ls_graph_fits_set(const ls_graph *graph, const ls_dataset *set)
{
	const ls_dataset_info *info = ls_dataset_describe(set);

	if (graph->finished && info->tokens_max > 0) /* says more than that it has other classes */
		LS_TRY(ls_token_targets_check_set(graph, set));
	return ls_graph_fits(graph, info);
}

static size_t classes_of(const ls_graph *graph)
{
	return (size_t)graph->values[graph->logits].channels;
}

static int64_t microbatch_of(const ls_evaluator_options *o)
{
	uint64_t samples = ls_dataset_describe(o->dataset)->samples;
	return (uint64_t)o->batch < samples ? o->batch : (int64_t)samples;
}

static int64_t microbatches_of(const ls_evaluator_options *o)
{
	return (int64_t)ls_loader_steps(ls_dataset_describe(o->dataset)->samples, microbatch_of(o));
}

/* The dataset as one step, whose micro-batches are assigned. */
static ls_loader_options loader_options(const ls_evaluator_options *o, int64_t microbatch, int threads)
{
	return (ls_loader_options){ .microbatch = microbatch,
				    .global_batch = (int64_t)ls_dataset_describe(o->dataset)->samples,
				    .single_pass = 1,
				    .threads = ls_loader_threads(o->dataset, NULL, threads),
				    .assigned = 1 };
}

static ls_status make_driver(ls_evaluator *e, int device)
{
	const ls_evaluator_options *o = &e->options;
	driver *d = &e->driver[device];
	int64_t tail = (int64_t)(ls_dataset_describe(o->dataset)->samples % (uint64_t)e->batch);
	ls_load_options load = { .sizes = { e->batch, tail }, .inference = 1 };

	d->logits = calloc((size_t)e->batch * classes_of(o->graph), sizeof(float));
	if (!d->logits)
		return ls_fail(LS_EMEMORY, "no memory for the logits of %lld samples", (long long)e->batch);
	return ls_devices_load(o->on, device, o->graph, &load, &d->executor);
}

static int nodes_of(const ls_evaluator_options *o)
{
	return o->comm ? ls_comm_size(o->comm) : 1;
}

static int node_of(const ls_evaluator_options *o)
{
	return o->comm ? ls_comm_rank(o->comm) : 0;
}

static ls_status make_assigner(ls_assigner *assigner, const ls_evaluator_options *o)
{
	const double all = 1;

	if (nodes_of(o) > 1)
		return ls_assigner_init(assigner, nodes_of(o), o->devices_of, o->weight, 0);
	return ls_assigner_init(assigner, 1, &o->devices, &all, 0);
}

/* Devices that get any of `microbatches` micro-batches: the first ones. The others need no memory. */
static int busy_devices(const ls_evaluator_options *o, int64_t microbatches)
{
	return microbatches < o->devices ? (int)microbatches : o->devices;
}

static ls_status make_target_sums(ls_evaluator *e)
{
	const ls_dataset_info *info = ls_dataset_describe(e->options.dataset);
	size_t outputs = info->task == LS_TASK_CLASSIFICATION ? 0 : (size_t)info->targets;

	e->outputs = (int)outputs;
	if (outputs == 0)
		return LS_OK;
	e->targets = calloc(((size_t)e->microbatches + 1) * outputs, sizeof(*e->targets));
	e->scale = e->options.scale ? calloc(outputs, sizeof(*e->scale)) : NULL;
	if (!e->targets || (e->options.scale && !e->scale))
		return ls_fail(LS_EMEMORY, "no memory for the metrics of %zu targets", outputs);
	if (e->scale)
		memcpy(e->scale, e->options.scale, outputs * sizeof(*e->scale));
	return LS_OK;
}

static ls_status make(ls_evaluator *e)
{
	const ls_evaluator_options *o = &e->options;

	e->cut = calloc((size_t)e->nodes + 1, sizeof(*e->cut));
	e->device_cut = calloc((size_t)o->devices + 1, sizeof(*e->device_cut));
	e->driver = calloc((size_t)o->devices + 1, sizeof(*e->driver));
	e->sums = calloc((size_t)e->microbatches, sizeof(*e->sums));
	LS_TRY(make_target_sums(e));
	if (!e->cut || !e->device_cut || !e->driver || !e->sums)
		return ls_fail(LS_EMEMORY, "no memory for an evaluation of %lld micro-batches",
			       (long long)e->microbatches);
	LS_TRY(make_assigner(&e->assigner, o));
	for (int i = 0; i < busy_devices(o, e->microbatches); i++)
		LS_TRY(make_driver(e, i));
	return LS_OK;
}

ls_status ls_evaluator_new(ls_evaluator **out, const ls_evaluator_options *options)
{
	const ls_dataset_info *info = ls_dataset_describe(options->dataset);
	if (info->samples == 0)
		return ls_fail(LS_EINVALID, "dataset %s has no samples to evaluate", info->name);
	ls_evaluator *e = calloc(1, sizeof(*e));
	if (!e)
		return ls_fail(LS_EMEMORY, "no memory for an evaluation");
	e->options = *options;
	e->nodes = nodes_of(options);
	e->node = node_of(options);
	e->batch = microbatch_of(options);
	e->microbatches = microbatches_of(options);
	ls_status status = make(e);
	if (status != LS_OK) {
		ls_evaluator_free(e);
		return status;
	}
	*out = e;
	return LS_OK;
}

void ls_evaluator_free(ls_evaluator *e)
{
	if (!e)
		return;
	for (int i = 0; e->driver && i < e->options.devices; i++) {
		ls_executor_free(e->driver[i].executor);
		free(e->driver[i].logits);
	}
	ls_assigner_release(&e->assigner);
	free(e->sums);
	free(e->targets);
	free(e->scale);
	free(e->driver);
	free(e->device_cut);
	free(e->cut);
	free(e);
}

/* This node's micro-batches of a pass, at the beginning. */
static ls_status first_share(const ls_evaluator_options *o, int64_t microbatches, int64_t *share)
{
	ls_assigner assigner;
	int64_t *cut = calloc((size_t)nodes_of(o) + 1, sizeof(*cut));

	if (!cut)
		return ls_fail(LS_EMEMORY, "no memory to plan an evaluation of %lld micro-batches",
			       (long long)microbatches);
	ls_status status = make_assigner(&assigner, o);
	if (status == LS_OK) {
		ls_assigner_assign(&assigner, microbatches, cut);
		*share = cut[node_of(o) + 1] - cut[node_of(o)];
		ls_assigner_release(&assigner);
	}
	free(cut);
	return status;
}

/* Used by a node whose share is `microbatches`, where the memory of a device without loader is `exec`. */
static size_t used_by(const ls_evaluator_options *o, const ls_loader_options *loader, size_t exec, int64_t microbatches)
{
	int64_t busy = busy_devices(o, microbatches);

	if (busy == 0)
		return 0;
	return (size_t)busy *
	       (exec + ls_loader_bytes(o->dataset, loader, (uint64_t)((microbatches + busy - 1) / busy)));
}

ls_status ls_evaluator_plan(const ls_evaluator_options *o, int threads, int64_t microbatches, ls_evaluator_bytes *out)
{
	ls_loader_options loader = loader_options(o, microbatch_of(o), threads);
	int64_t all = microbatches > 0 ? microbatches : microbatches_of(o), share = 0;
	size_t exec = 0;

	*out = (ls_evaluator_bytes){ 0 };
	if (o->devices == 0)
		return LS_OK;
	LS_TRY(o->backend->plan(o->graph, microbatch_of(o), threads, 1, &exec));
	LS_TRY(first_share(o, all, &share));
	int devices = busy_devices(o, microbatches_of(o));
	out->used = used_by(o, &loader, exec, share);
	out->most = used_by(o, &loader, exec, all);
	out->readers = devices * loader.threads;
	out->mapped = (size_t)devices * (exec + ls_loader_bytes(o->dataset, &loader, UINT64_MAX));
	return LS_OK;
}

void ls_evaluator_set_stop(ls_evaluator *e, int (*stop)(void *context), void *context)
{
	e->stop = stop;
	e->stop_context = context;
}

void ls_evaluator_set_weights(ls_evaluator *e, const double *weight)
{
	for (int i = 0; i < e->nodes; i++)
		e->assigner.weight[i] = e->assigner.devices[i] > 0 ? weight[i] : 0;
}

typedef struct pass {
	ls_evaluator *evaluator;
	int64_t microbatches; /* the first ones, of the dataset */
	const float *params, *buffers;
	ls_evaluator_sink sink;
	void *context;
	ls_progress *progress;
	uint64_t share;        /* samples of this node's micro-batches */
	atomic_ullong samples; /* of them, done */
	atomic_int stopped;    /* the caller wants to stop */
	atomic_int failed;
} pass;

static void run_microbatch(pass *p, driver *d, const ls_microbatch *microbatch)
{
	microbatch_sums *sums = &p->evaluator->sums[microbatch->microbatch];
	ls_exec_microbatch job = { .count = microbatch->count,
				   .images = microbatch->images,
				   .text = microbatch->text,
				   .labels = microbatch->labels,
				   .targets = microbatch->targets,
				   .target_count = microbatch->target_count,
				   .samples = microbatch->samples };

	ls_evaluator *e = p->evaluator;
	d->executor->backend->infer(d->executor, &job, p->sink || e->outputs > 0 ? d->logits : NULL);
	if (e->outputs > 0)
		ls_target_sums_count(ls_dataset_describe(e->options.dataset)->task, microbatch, d->logits,
				     e->targets + microbatch->microbatch * e->outputs);
	if (p->sink)
		p->sink(p->context, microbatch, d->logits);
	*sums = (microbatch_sums){ .loss = job.loss,
				   .correct = job.correct,
				   .token_loss = job.token_loss,
				   .token_correct = job.token_correct,
				   .masked = microbatch->text ? microbatch->text->masked_start[microbatch->count] : 0 };
	atomic_fetch_add(&p->samples, (unsigned long long)microbatch->count);
}

static int must_end(pass *p)
{
	const ls_evaluator *e = p->evaluator;
	if (e->stop && e->stop(e->stop_context))
		atomic_store(&p->stopped, 1);
	return atomic_load(&p->stopped) || atomic_load(&p->failed);
}

static ls_status run_device(pass *p, int device)
{
	driver *d = &p->evaluator->driver[device];
	const ls_microbatch *microbatch = NULL;

	if (d->loader)
		d->executor->backend->set_params(d->executor, p->params, p->buffers);
	while (d->loader && !must_end(p)) {
		LS_TRY(ls_loader_next(d->loader, &microbatch));
		if (!microbatch)
			break;
		LS_TRY(ls_token_targets_check_microbatch(p->evaluator->options.graph, p->evaluator->options.dataset,
							 microbatch));
		run_microbatch(p, d, microbatch);
		if (device == 0)
			ls_progress_update(p->progress, "test", atomic_load(&p->samples), p->share, "", 0);
	}
	return LS_OK;
}

static void drive(void *context, int device)
{
	pass *p = context;
	driver *d = &p->evaluator->driver[device];

	d->status = run_device(p, device);
	if (d->status == LS_OK)
		return;
	snprintf(d->message, sizeof(d->message), "%s", ls_last_error());
	atomic_store(&p->failed, 1);
}

static ls_status first_failure(const ls_evaluator *e)
{
	for (int i = 0; i < e->options.devices; i++)
		if (e->driver[i].status != LS_OK)
			return ls_fail(e->driver[i].status, "%s", e->driver[i].message);
	return LS_OK;
}

static uint64_t samples_before(const ls_evaluator *e, int64_t microbatch)
{
	uint64_t samples = ls_dataset_describe(e->options.dataset)->samples, before = (uint64_t)(microbatch * e->batch);
	return before < samples ? before : samples;
}

static ls_status open_loaders(pass *p)
{
	ls_evaluator *e = p->evaluator;
	const ls_evaluator_options *o = &e->options;
	int64_t first = e->cut[e->node], last = e->cut[e->node + 1];
	ls_loader_options options = loader_options(o, e->batch, o->on ? o->on->threads : 1);

	p->share = samples_before(e, last) - samples_before(e, first);
	int busy = busy_devices(o, last - first);
	if (busy > 0)
		ls_assign_devices(first, last, busy, e->device_cut);
	for (int i = 0; i < busy; i++) {
		LS_TRY(ls_loader_new(&e->driver[i].loader, o->dataset, &options));
		LS_TRY(ls_loader_assign(e->driver[i].loader, e->device_cut[i],
					e->device_cut[i + 1] - e->device_cut[i]));
	}
	return LS_OK;
}

static void close_loaders(ls_evaluator *e)
{
	for (int i = 0; i < e->options.devices; i++) {
		ls_loader_free(e->driver[i].loader);
		e->driver[i].loader = NULL;
	}
}

/* This node's micro-batches. Only the first node shows how it goes, by its own. */
static ls_status run_own(pass *p)
{
	ls_evaluator *e = p->evaluator;

	ls_assigner_assign(&e->assigner, p->microbatches, e->cut);
	ls_status status = open_loaders(p);
	if (status == LS_OK) {
		p->progress = e->node == 0 && !e->options.is_quiet ? ls_progress_begin() : NULL;
		if (e->options.devices > 0) {
			ls_devices_run(e->options.on, e->options.devices, drive, p);
			ls_devices_leave(e->options.on);
		}
		ls_progress_end(p->progress);
		status = first_failure(e);
	}
	close_loaders(e);
	return status;
}

static int64_t most_microbatches(const ls_evaluator *e)
{
	int64_t most = 0;
	for (int i = 0; i < e->nodes; i++)
		most = e->cut[i + 1] - e->cut[i] > most ? e->cut[i + 1] - e->cut[i] : most;
	return most;
}

/* Records of node i, all of them `each` long: whether it was stopped, then its micro-batches. */
static void take_records(ls_evaluator *e, const microbatch_sums *all, size_t each, int *stopped)
{
	for (int i = 0; i < e->nodes; i++) {
		const microbatch_sums *theirs = all + (size_t)i * each;
		*stopped |= theirs->correct != 0;
		memcpy(e->sums + e->cut[i], theirs + 1, (size_t)(e->cut[i + 1] - e->cut[i]) * sizeof(*theirs));
	}
}

static ls_status share(ls_evaluator *e, int *stopped)
{
	if (e->nodes == 1)
		return LS_OK;
	size_t each = 1 + (size_t)most_microbatches(e);
	microbatch_sums *all = calloc(each * (size_t)(e->nodes + 1), sizeof(*all)),
			*mine = all + each * (size_t)e->nodes;
	if (!all)
		return ls_fail(LS_EMEMORY, "no memory for the results of %lld micro-batches",
			       (long long)e->microbatches);
	mine->correct = *stopped;
	memcpy(mine + 1, e->sums + e->cut[e->node], (size_t)(e->cut[e->node + 1] - e->cut[e->node]) * sizeof(*mine));
	ls_status status = ls_comm_allgather(e->options.comm, mine, each * sizeof(*mine), all, "evaluation");
	if (status == LS_OK)
		take_records(e, all, each, stopped);
	free(all);
	return status;
}

/* The same of the sums of targets. */
static ls_status share_targets(ls_evaluator *e)
{
	size_t most = (size_t)most_microbatches(e) * (size_t)e->outputs, each = most * sizeof(ls_target_sums);

	if (e->nodes == 1 || most == 0)
		return LS_OK;
	ls_target_sums *all = calloc(most * (size_t)(e->nodes + 1), sizeof(*all)),
		       *mine = all + most * (size_t)e->nodes;
	if (!all)
		return ls_fail(LS_EMEMORY, "no memory for the metrics of %d targets", e->outputs);
	memcpy(mine, e->targets + e->cut[e->node] * e->outputs,
	       (size_t)((e->cut[e->node + 1] - e->cut[e->node]) * e->outputs) * sizeof(*mine));
	ls_status status = ls_comm_allgather(e->options.comm, mine, each, all, "evaluation");
	for (int i = 0; status == LS_OK && i < e->nodes; i++)
		memcpy(e->targets + e->cut[i] * e->outputs, all + (size_t)i * most,
		       (size_t)((e->cut[i + 1] - e->cut[i]) * e->outputs) * sizeof(*all));
	free(all);
	return status;
}

/* The first micro-batches of the dataset; the sums of all of them are here afterwards. */
static ls_status run_pass(pass *p)
{
	LS_TRY(run_own(p));
	int stopped = atomic_load(&p->stopped);
	LS_TRY(share(p->evaluator, &stopped));
	LS_TRY(share_targets(p->evaluator));
	if (stopped)
		return ls_fail(LS_EINTERRUPTED, "stopped after %llu of %llu test samples",
			       (unsigned long long)atomic_load(&p->samples), (unsigned long long)p->share);
	return LS_OK;
}

ls_status ls_evaluator_probe(ls_evaluator *e, const float *params, const float *buffers, int *finite)
{
	pass p = { .evaluator = e, .params = params, .buffers = buffers, .microbatches = 1 };

	LS_TRY(run_pass(&p));
	*finite = isfinite(e->sums[0].loss + e->sums[0].token_loss);
	return LS_OK;
}

static void conclude_targets(ls_evaluator *e, ls_eval_result *out)
{
	if (e->outputs == 0)
		return;
	ls_target_sums *all = e->targets + e->microbatches * e->outputs;
	memset(all, 0, (size_t)e->outputs * sizeof(*all));
	for (int64_t i = 0; i < e->microbatches; i++)
		ls_target_sums_add(all, e->targets + i * e->outputs, e->outputs);
	ls_target_sums_conclude(ls_dataset_describe(e->options.dataset)->task, all, e->outputs, e->scale, out);
}

ls_status ls_evaluator_run(ls_evaluator *e, const float *params, const float *buffers, ls_evaluator_sink sink,
			   void *context, ls_eval_result *out)
{
	pass p = { .evaluator = e,
		   .params = params,
		   .buffers = buffers,
		   .sink = sink,
		   .context = context,
		   .microbatches = e->microbatches };
	double start = ls_clock_seconds(), loss = 0, token_loss = 0;
	ls_answers of_samples = { 0 }, of_tokens = { 0 };
	uint64_t samples = ls_dataset_describe(e->options.dataset)->samples;

	LS_TRY(run_pass(&p));
	for (int64_t i = 0; i < e->microbatches; i++) {
		loss += e->sums[i].loss;
		of_samples.correct += e->sums[i].correct;
		token_loss += e->sums[i].token_loss;
		of_tokens.correct += e->sums[i].token_correct;
		of_tokens.count += e->sums[i].masked;
	}
	of_samples.count = (int64_t)samples;
	const ls_graph *graph = e->options.graph;
	ls_answers answers = ls_answers_of(graph, of_samples, of_tokens);
	double each = of_tokens.count > 0 ? (double)of_tokens.count : 1;
	*out = (ls_eval_result){ .samples = samples,
				 .loss = loss / (double)samples + token_loss / each,
				 .masked = (uint64_t)of_tokens.count,
				 .token_loss = token_loss / each,
				 .token_accuracy = (double)of_tokens.correct / each,
				 .accuracy = (double)answers.correct / (double)(answers.count > 0 ? answers.count : 1),
				 .perplexity = graph->predicts_next ? ls_exact_exp(token_loss / each) : 0,
				 .seconds = ls_clock_seconds() - start };
	conclude_targets(e, out);
	return LS_OK;
}

const ls_target_sums *ls_evaluator_sums(const ls_evaluator *e)
{
	return e->outputs > 0 ? e->targets + e->microbatches * e->outputs : NULL;
}
