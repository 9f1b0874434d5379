/*
 * trainer_steps.c - lockstep/trainer.h: steps on arrays and datasets, whole and in two halves, and evaluation.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/handles.h"
#include "base/names.h"
#include "base/options.h"
#include "data/dataset.h"
#include "run/trainer_handle.h"
#include "settings/model.h"
#include "trainer/evaluate.h"
#include "trainer/hold.h"
#include "trainer/sample_check.h"

/* ---- one step ---------------------------------------------------------------------------------------------------- */

ls_status ls_trainer_break_off(ls_trainer *t, ls_status status)
{
	if (status == LS_OK)
		return LS_OK;
	t->failed = status;
	snprintf(t->why, sizeof(t->why), "%s", ls_last_error());
	return status;
}

static double rate_of(const ls_trainer *t)
{
	return ls_schedule_rate(&t->node->options.schedule, ls_node_trainer_updates(t->node));
}

static ls_trainer_report report_of(const ls_trainer *t, const ls_node_trainer_report *r, double lr)
{
	double samples = (double)r->samples, masked = r->masked > 0 ? (double)r->masked : 1;

	return (ls_trainer_report){ .steps = (int64_t)ls_node_trainer_updates(t->node),
				    .samples = r->samples,
				    .loss = r->loss / samples,
				    .correct = r->correct,
				    .accuracy = r->answers > 0 ? (double)r->correct / (double)r->answers : 0,
				    .tokens = r->tokens,
				    .masked = r->masked,
				    .token_loss = r->token_loss / masked,
				    .token_accuracy = (double)r->token_correct / masked,
				    .lr = lr,
				    .gradient_norm = r->gradient_norm };
}

static ls_status check_loss(const ls_trainer_report *r)
{
	if (isfinite(r->loss))
		return LS_OK;
	return ls_fail(LS_ENUMERIC,
		       "the loss became %s at step %lld: the weights are not usable any more; use a "
		       "smaller options.lr or set options.clip_norm",
		       isnan(r->loss) ? "NaN" : "infinite", (long long)r->steps);
}

/* Sizes of micro-batches that are new get their memory now, and a batch norm must have something to normalise. */
static ls_status expect(ls_trainer *t, int64_t samples)
{
	int64_t whole = t->settings.micro_batch, tail = samples % whole;
	char where[96];

	snprintf(where, sizeof(where), "the last micro-batch of %lld sample%s", (long long)samples,
		 ls_plural((uint64_t)samples, "s"));
	if (samples >= whole)
		LS_TRY(ls_train_check_norms(t->node->graph, whole, "a micro-batch",
					    "use a larger options.micro_batch"));
	LS_TRY(ls_train_check_norms(t->node->graph, tail, where, "use another number of samples"));
	return tail > 0 ? ls_node_trainer_expect(t->node, tail) : LS_OK;
}

/* Whole, or up to the gradient. */
static ls_status one_step(ls_trainer *t, const ls_node_trainer_assignment *assign, int is_backward_only,
			  ls_trainer_report *out)
{
	ls_node_trainer_report r;
	double lr = rate_of(t);
	uint64_t step = t->node->step;

	LS_TRY(ls_trainer_break_off(t, is_backward_only ? ls_node_trainer_backward(t->node, assign)
							: ls_node_trainer_step(t->node, assign)));
	LS_TRY(ls_node_trainer_report_of(t->node, step, &r));
	*out = report_of(t, &r, lr);
	return check_loss(out);
}

/* The calling thread is the program's again. */
static ls_status leave(ls_trainer *t, ls_status status)
{
	ls_devices_leave(t->node->devices);
	return status;
}

/* What the program gave, in this version's form. */
static ls_status take_batch(ls_batch *own, const ls_batch *batch)
{
	*own = (ls_batch)LS_BATCH_INIT;
	if (!batch)
		return ls_fail(LS_EINVALID, "the batch is NULL");
	return LS_OPTIONS_TAKE(own, batch, indices, "LS_BATCH_INIT");
}

/* ---- on arrays --------------------------------------------------------------------------------------------------- */

static ls_status check_pending(const ls_trainer *t, int is_backward_only)
{
	if (t->was_set)
		return ls_fail(LS_EINVALID,
			       "a gradient was set: call ls_trainer_update() or ls_trainer_zero_gradient() first");
	if (t->backward_samples > 0 && !is_backward_only)
		return ls_fail(LS_EINVALID,
			       "a gradient is waiting: call ls_trainer_update() or ls_trainer_zero_gradient() first");
	return LS_OK;
}

/* A gradient whose loss is not finite is of no use, with what was added up before. */
static ls_status count_backward(ls_trainer *t, int64_t samples, ls_status status)
{
	if (status == LS_ENUMERIC) {
		ls_node_trainer_zero_gradient(t->node);
		t->backward_samples = 0;
	}
	if (status == LS_OK)
		t->backward_samples += (uint64_t)samples;
	return status;
}

static ls_status step_on_arrays(ls_trainer *t, const ls_batch *batch, int is_backward_only, ls_trainer_report *report)
{
	ls_node_trainer_assignment assign;
	ls_trainer_report ignored;
	ls_trainer_use none;
	ls_batch own;

	LS_TRY(ls_trainer_check(t));
	LS_TRY(check_pending(t, is_backward_only));
	LS_TRY(take_batch(&own, batch));
	LS_TRY(ls_sample_check(t->node->graph, &own, t->settings.batch));
	LS_TRY(expect(t, own.count));
	LS_TRY(ls_trainer_begin(t, is_backward_only ? "ls_trainer_backward" : "ls_trainer_step", &none));
	ls_arrays_begin(t->arrays, &own, t->backward_samples, &assign);
	ls_status status = leave(t, one_step(t, &assign, is_backward_only, report ? report : &ignored));
	if (is_backward_only)
		status = count_backward(t, own.count, status);
	return ls_trainer_end(t, &none, status);
}

ls_status ls_trainer_step(ls_trainer *t, const ls_batch *batch, ls_trainer_report *report)
{
	return step_on_arrays(t, batch, 0, report);
}

ls_status ls_trainer_backward(ls_trainer *t, const ls_batch *batch, ls_trainer_report *report)
{
	ls_trainer_report r;

	LS_TRY(step_on_arrays(t, batch, 1, &r));
	if (report)
		*report = r;
	return LS_OK;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static ls_status find_trained(const ls_trainer *t, const char *name, uint64_t elements, const ls_param **out)
{
	LS_TRY(ls_model_find_param(t->model, name, elements, out));
	if ((*out)->is_frozen)
		return ls_fail(LS_EINVALID, "'%s' is frozen by options.freeze: it has no gradient", name);
	if (ls_param_is_trained(*out))
		return LS_OK;
	return ls_fail(LS_EINVALID, "'%s' has running statistics, which have no gradient", name);
}

ls_status ls_trainer_get_gradient(ls_trainer *t, const char *name, float *values, uint64_t elements)
{
	const ls_param *param;

	LS_TRY(ls_trainer_check(t));
	LS_TRY(find_trained(t, name, elements, &param));
	LS_TRY(ls_argument_check(values, "values"));
	if (t->node->held_samples == 0)
		return ls_fail(LS_EINVALID, "there is no gradient: call ls_trainer_backward() first");
	float scale = ls_node_trainer_held_scale(t->node);
	ls_param_export(param, LS_STORE_REACHABLE, t->node->held, values);
	for (uint64_t i = 0; t->node->held_samples > 1 && i < elements; i++)
		values[i] *= scale;
	return LS_OK;
}

ls_status ls_trainer_set_gradient(ls_trainer *t, const char *name, const float *values, uint64_t elements)
{
	const ls_param *param;

	LS_TRY(ls_trainer_check(t));
	LS_TRY(find_trained(t, name, elements, &param));
	LS_TRY(ls_argument_check(values, "values"));
	LS_TRY(ls_model_check_finite("gradients", param->name, values, elements));
	if (!t->was_set)
		LS_TRY(ls_node_trainer_means(t->node));
	t->was_set = 1;
	ls_param_import(param, LS_STORE_REACHABLE, values, t->node->held);
	return LS_OK;
}

ls_status ls_trainer_update(ls_trainer *t, double *gradient_norm)
{
	double norm;

	LS_TRY(ls_trainer_check(t));
	LS_TRY(ls_trainer_check_process(t));
	LS_TRY(leave(t, ls_node_trainer_update(t->node, &norm)));
	t->backward_samples = 0;
	t->was_set = 0;
	if (gradient_norm)
		*gradient_norm = norm;
	return LS_OK;
}

ls_status ls_trainer_zero_gradient(ls_trainer *t)
{
	LS_TRY(ls_trainer_check(t));
	ls_node_trainer_zero_gradient(t->node);
	t->backward_samples = 0;
	t->was_set = 0;
	return LS_OK;
}

/* ---- on a dataset ------------------------------------------------------------------------------------------------ */

/* Sums of reports, until they are means again. */
static void add(ls_trainer_report *sum, const ls_trainer_report *r)
{
	ls_trainer_report s = *r;

	s.samples += sum->samples;
	s.correct += sum->correct;
	s.tokens += sum->tokens;
	s.masked += sum->masked;
	s.loss = sum->loss + r->loss * (double)r->samples;
	s.token_loss = sum->token_loss + r->token_loss * (double)r->masked;
	s.token_accuracy = sum->token_accuracy + r->token_accuracy * (double)r->masked;
	*sum = s;
}

/* `answers`: predictions that `correct` is of. */
static void divide(ls_trainer_report *sum, int64_t answers)
{
	double samples = (double)sum->samples, masked = sum->masked > 0 ? (double)sum->masked : 1;

	sum->loss /= samples;
	sum->accuracy = (double)sum->correct / (double)(answers > 0 ? answers : 1);
	sum->token_loss /= masked;
	sum->token_accuracy /= masked;
}

static ls_status call_hook(ls_trainer *t, const ls_trainer_report *r)
{
	if (!t->hook)
		return LS_OK;
	t->use.is_in_hook = 1;
	int wants_end = t->hook(t->hook_context, r) != 0;
	t->use.is_in_hook = 0;
	if (wants_end)
		return ls_fail(LS_EINTERRUPTED, "the program's hook stopped the run after step %lld",
			       (long long)r->steps);
	if (t->is_freed)
		return ls_fail(LS_EINTERRUPTED,
			       "the program's hook freed the trainer, which ended the run after step %lld",
			       (long long)r->steps);
	return LS_OK;
}

static ls_status run_steps(ls_trainer *t, uint64_t steps, ls_trainer_report *sum, int64_t *answers)
{
	for (uint64_t i = 0; i < steps; i++) {
		ls_node_trainer_assignment assign;
		ls_node_trainer_report whole;
		ls_trainer_report r;
		int last_in_epoch = 0;
		ls_batches_begin(&t->batches, &assign, &last_in_epoch);
		LS_TRY(one_step(t, &assign, 0, &r));
		t->epoch += (uint64_t)last_in_epoch;
		t->epoch_step = last_in_epoch ? 0 : t->epoch_step + 1;
		LS_TRY(ls_node_trainer_report_of(t->node, t->node->step - 1, &whole));
		LS_TRY(ls_batches_learn(&t->batches, &whole));
		add(sum, &r);
		*answers += whole.answers;
		LS_TRY(call_hook(t, &r));
		if (i + 1 < steps && ls_stop_is_requested(t->stop))
			return ls_fail(LS_EINTERRUPTED, "stopped on request after step %lld", (long long)r.steps);
	}
	return LS_OK;
}

static ls_status open_batches(ls_trainer *t, const ls_dataset *dataset, uint64_t *steps)
{
	const ls_dataset_info *info = ls_dataset_describe(dataset);
	uint64_t samples = info->samples, batch = (uint64_t)t->settings.batch;
	uint64_t of_epoch = ls_loader_steps(samples, t->settings.batch);
	ls_batches_options options = { .layout = &t->layout,
				       .dataset = dataset,
				       .graph = t->node->graph,
				       .seed = t->settings.seed,
				       .microbatch = t->settings.micro_batch,
				       .global_batch = t->settings.batch,
				       .start_epoch = t->epoch,
				       .start_step = t->epoch_step,
				       .transforms = t->transforms.count > 0 ? &t->transforms : NULL };

	if (t->epoch_step >= of_epoch)
		return ls_fail(LS_EMISMATCH,
			       "the trainer is at step %llu of an epoch, and one of dataset %s has %llu steps of %llu",
			       (unsigned long long)t->epoch_step, info->name, (unsigned long long)of_epoch,
			       (unsigned long long)batch);
	*steps = *steps > 0 ? *steps : of_epoch - t->epoch_step;
	options.steps = *steps;
	if (t->epoch_step + *steps >= of_epoch)
		LS_TRY(expect(t, (int64_t)(samples - (of_epoch - 1) * batch)));
	if (of_epoch > 1)
		LS_TRY(expect(t, t->settings.batch));
	return ls_batches_open(&t->batches, &options);
}

static ls_status run_dataset(ls_trainer *t, const ls_dataset *dataset, uint64_t steps, ls_trainer_report *sum,
			     int64_t *answers)
{
	LS_TRY(open_batches(t, dataset, &steps));
	t->reads_dataset = 1;
	ls_status status = leave(t, run_steps(t, steps, sum, answers));
	t->reads_dataset = 0;
	ls_batches_close(&t->batches);
	return status;
}

ls_status ls_trainer_run(ls_trainer *t, const ls_dataset *dataset, int64_t steps, ls_trainer_report *report)
{
	ls_trainer_report sum = { 0 };
	ls_trainer_use none;
	uint64_t count = (uint64_t)steps;
	int64_t answers = 0;

	LS_TRY(ls_trainer_check(t));
	LS_TRY(check_pending(t, 0));
	LS_TRY(ls_handle_check(dataset, LS_DATASET_KIND));
	if (steps < 0)
		return ls_fail(LS_EINVALID, "the number of steps is negative");
	if (ls_dataset_describe(dataset)->samples == 0)
		return ls_fail(LS_EINVALID, "dataset %s has no samples to train on",
			       ls_dataset_describe(dataset)->name);
	LS_TRY(ls_graph_fits_set(t->node->graph, dataset));
	LS_TRY(ls_model_learn_data(t->model, dataset));
	LS_TRY(ls_trainer_begin(t, "ls_trainer_run", &none));
	ls_status status = ls_transforms_init(&t->transforms, t->augment, dataset, t->settings.seed);
	if (status == LS_OK) {
		status = run_dataset(t, dataset, count, &sum, &answers);
		ls_transforms_release(&t->transforms);
	}
	LS_TRY(ls_trainer_end(t, &none, status));
	divide(&sum, answers);
	if (report)
		*report = sum;
	return LS_OK;
}

/* ---- evaluation -------------------------------------------------------------------------------------------------- */

enum { EVAL_BATCH = 256 };

static int is_stopping(void *context)
{
	return ls_stop_is_requested(((const ls_trainer *)context)->stop);
}

static ls_status evaluate(ls_trainer *t, const ls_dataset *dataset, ls_eval_result *result)
{
	const ls_node_trainer *node = t->node;
	ls_evaluator_options options = { .graph = node->graph,
					 .dataset = dataset,
					 .batch = EVAL_BATCH,
					 .backend = node->options.backend,
					 .devices = node->options.devices,
					 .on = node->devices,
					 .is_quiet = 1 };
	ls_evaluator *evaluator = NULL;

	LS_TRY(ls_graph_fits_set(node->graph, dataset));
	LS_TRY(ls_evaluator_new(&evaluator, &options));
	ls_evaluator_set_stop(evaluator, is_stopping, t);
	ls_status status = ls_evaluator_run(evaluator, node->params, node->buffers, NULL, NULL, result);
	ls_evaluator_free(evaluator);
	return status;
}

ls_status ls_trainer_evaluate_dataset(ls_trainer *t, const ls_dataset *dataset, ls_eval_result *result)
{
	ls_trainer_use outer;

	LS_TRY(ls_handle_check(t, LS_TRAINER_KIND));
	LS_TRY(ls_handle_check(dataset, LS_DATASET_KIND));
	LS_TRY(ls_argument_check(result, "result"));
	LS_TRY(ls_trainer_begin(t, "ls_trainer_evaluate_dataset", &outer));
	return ls_trainer_end(t, &outer, evaluate(t, dataset, result));
}

/* Images as a dataset. */
typedef struct view {
	const ls_batch *batch;
	size_t floats, outputs; /* per sample */
} view;

static ls_status view_read(void *self, uint64_t index, float *image, int32_t *label)
{
	const view *v = self;

	memcpy(image, v->batch->images + index * v->floats, v->floats * sizeof(*image));
	*label = v->batch->labels ? v->batch->labels[index] : 0;
	return LS_OK;
}

static ls_status view_read_targets(void *self, uint64_t index, float *targets)
{
	const view *v = self;

	memcpy(targets, v->batch->targets + index * v->outputs, v->outputs * sizeof(*targets));
	return LS_OK;
}

ls_status ls_trainer_evaluate(ls_trainer *t, const ls_batch *batch, ls_eval_result *result)
{
	static const ls_dataset_ops ops = { .read = view_read, .read_targets = view_read_targets };
	ls_batch own;

	LS_TRY(ls_handle_check(t, LS_TRAINER_KIND));
	LS_TRY(take_batch(&own, batch));
	LS_TRY(ls_sample_check(t->node->graph, &own, INT64_MAX));
	const ls_graph *graph = t->node->graph;
	const ls_tensor *in = &graph->values[graph->input];
	int is_text = graph->tokens_max > 0;
	view v = { .batch = &own,
		   .floats = is_text ? 0 : ls_sample_floats(graph),
		   .outputs = own.targets ? (size_t)ls_graph_outputs(graph) : 0 };
	ls_dataset_info info = { .name = "batch",
				 .samples = (uint64_t)own.count,
				 .channels = is_text ? 0 : in->channels,
				 .height = is_text ? 0 : in->height,
				 .width = is_text ? 0 : in->width,
				 .classes = own.targets ? ls_graph_outputs(graph) : ls_graph_classes(graph),
				 .task = own.targets ? ls_graph_task(graph) : LS_TASK_CLASSIFICATION,
				 .targets = (int)v.outputs,
				 .tokens_max = graph->tokens_max,
				 .vocabulary = ls_graph_vocabulary(graph),
				 .masked_max = graph->masked_max };
	ls_dataset *set = NULL;

	LS_TRY(is_text ? ls_dataset_from_texts(&set, &info, own.text, own.targets)
		       : ls_dataset_new(&set, &info, &ops, &v));
	ls_status status = ls_trainer_evaluate_dataset(t, set, result);
	ls_dataset_free(set);
	return status;
}
