/*
 * model_handle.c - lockstep/model.h: a model in memory for programs. How it is made, lent to a trainer and freed.
 */
#include "trained/model_handle.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/handles.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/normalise.h"

/* ---- making ------------------------------------------------------------------------------------------------------ */

static ls_model *alloc_model(void)
{
	ls_model *model = calloc(1, sizeof(*model));
	if (!model)
		ls_fail(LS_EMEMORY, "no memory for a model");
	else
		atomic_init(&model->holders, 1);
	return model;
}

static void let_go(ls_model *model)
{
	if (atomic_fetch_sub(&model->holders, 1) > 1)
		return;
	ls_predictor_free(model->predictor);
	ls_model_close_samples(model);
	ls_floats_free(model->values, model->value_count);
	if (model->buffers_floats > 0) {
		ls_floats_free(model->trained.buffers, model->buffers_floats);
		model->trained.buffers = NULL;
	}
	ls_trained_release(&model->trained);
	free(model);
}

static ls_status finish(ls_model **out, ls_model *model, ls_status status)
{
	if (status == LS_OK)
		status = ls_handle_add(model, LS_MODEL_KIND);
	if (status == LS_OK)
		*out = model;
	else
		let_go(model);
	return status;
}

/* All cores, where options leave it open. */
static ls_status choose_devices(ls_model *model, int64_t devices, int64_t threads)
{
	int64_t cores = ls_pin_cores();

	if (threads < 0 || threads > LS_THREADS_MAX || devices < 0 || devices > LS_THREADS_MAX)
		return ls_fail(LS_EINVALID, "options.devices %lld, options.threads %lld: both must be from 0 to %d",
			       (long long)devices, (long long)threads, LS_THREADS_MAX);
	model->threads = threads > 0 ? (int)threads : 1;
	model->devices = devices > 0 ? (int)devices : cores > model->threads ? (int)cores / model->threads : 1;
	if ((int64_t)model->devices * model->threads > LS_THREADS_MAX)
		return ls_fail(LS_EINVALID, "%d devices of %d threads: at most %d threads", model->devices,
			       model->threads, LS_THREADS_MAX);
	return LS_OK;
}

static ls_status load(ls_model *model, const ls_model_load_options *o)
{
	const ls_eval_options which = { .source = o->source,
					.best = o->best,
					.model = o->model,
					.seq_len = o->seq_len,
					.layers = o->layers,
					.width = o->width,
					.heads = o->heads,
					.ffn = o->ffn,
					.max_len = o->max_len,
					.vocab = o->vocab,
					.cased = o->cased,
					.replace_invalid = o->replace_invalid };
	ls_trained *t = &model->trained;
	ls_dataset_info info;

	LS_TRY(choose_devices(model, o->devices, o->threads));
	LS_TRY(ls_trained_find(t, &which));
	if (o->data) {
		t->settings.data = o->data;
		t->is_data_given = 1;
		t->settings.data_dir = NULL;
	}
	if (o->data_dir)
		t->settings.data_dir = o->data_dir;
	LS_TRY(ls_trained_find_shape(t, o->input, &info));
	model->vocabulary = info.vocabulary_hash;
	LS_TRY(ls_trained_load(t, &info));
	return ls_model_open_samples(model, o);
}

ls_status ls_model_load(ls_model **out, const ls_model_load_options *options)
{
	ls_model_load_options own = LS_MODEL_LOAD_OPTIONS_INIT;

	LS_TRY(ls_argument_check(out, "out"));
	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, threads, "LS_MODEL_LOAD_OPTIONS_INIT"));
	ls_model *model = alloc_model();
	return model ? finish(out, model, load(model, &own)) : LS_EMEMORY;
}

static ls_status make(ls_model *model, const ls_graph *graph, uint64_t seed)
{
	ls_trained *t = &model->trained;

	if (!graph->finished)
		return ls_fail(LS_EINVALID, "the graph is not finished; call ls_graph_finish() and check its status");
	t->graph = graph;
	LS_TRY(choose_devices(model, 0, 0));
	LS_TRY(ls_floats_new(&t->params, graph->params.total, "parameters"));
	LS_TRY(ls_floats_new(&t->buffers, graph->params.buffers, "running statistics"));
	return ls_params_init(&graph->params, seed, t->params, t->buffers);
}

ls_status ls_model_new(ls_model **out, ls_graph *graph, uint64_t seed)
{
	LS_TRY(ls_argument_check(out, "out"));
	LS_TRY(ls_handle_check(graph, LS_GRAPH_KIND));
	ls_model *model = alloc_model();
	ls_status status = model ? make(model, graph, seed) : LS_EMEMORY;

	if (status != LS_OK)
		return model ? finish(out, model, status) : status;
	status = finish(out, model, LS_OK);
	if (status == LS_OK)
		model->trained.own_graph = graph;
	return status;
}

/* The settings that a file of it notes. */
static void note_settings(ls_train_options *s, const ls_model_options *o, uint64_t seed)
{
	const ls_model_row *row = ls_model_row_of(o->name);

	*s = (ls_train_options)LS_TRAIN_OPTIONS_INIT;
	s->model = row->name;
	s->data = NULL;
	s->dropout = o->dropout;
	s->label_smoothing = o->label_smoothing;
	s->seed = seed;
	if (!row->is_text)
		return;
	s->seq_len = o->text.tokens;
	s->layers = o->text.layers;
	s->width = o->text.hidden;
	s->heads = o->text.heads;
	s->ffn = o->text.ffn;
	s->max_len = o->text.positions;
	s->lora = o->text.lora;
}

/* Sizes that the model would not use are a mistake. */
static ls_status check_sizes(const ls_model_options *o)
{
	const ls_model_row *row = ls_model_row_of(o->name);
	const struct {
		const char *name;
		int value;
	} sizes[] = { { "layers", o->text.layers },
		      { "hidden", o->text.hidden },
		      { "heads", o->text.heads },
		      { "ffn", o->text.ffn } };

	for (size_t i = 0; row && !row->has_sizes && i < LS_COUNT(sizes); i++)
		if (sizes[i].value != 0)
			return ls_fail(LS_EINVALID,
				       "options.text.%s is for models whose size can be chosen, such as transformer; "
				       "%s has a fixed size",
				       sizes[i].name, row->name);
	return LS_OK; /* building it reports an unknown name */
}

ls_status ls_model_new_named(ls_model **out, const ls_model_options *options, uint64_t seed)
{
	ls_model_options own = LS_MODEL_OPTIONS_INIT;
	ls_graph *graph = NULL;
	ls_model *model = NULL;

	LS_TRY(ls_argument_check(out, "out"));
	if (!options || !options->name)
		return ls_fail(LS_EINVALID, "options.name is NULL: name a model; `lockstep models` lists them");
	LS_TRY(LS_OPTIONS_TAKE(&own, options, task, "LS_MODEL_OPTIONS_INIT"));
	LS_TRY(check_sizes(&own));
	LS_TRY(ls_model_build(&graph, &own));
	ls_status status = ls_model_new(&model, graph, seed);
	if (status != LS_OK) {
		ls_graph_free(graph);
		return status;
	}
	note_settings(&model->trained.settings, &own, seed);
	*out = model;
	return LS_OK;
}

ls_status ls_model_set_devices(ls_model *model, int64_t devices, int64_t threads)
{
	LS_TRY(ls_handle_check(model, LS_MODEL_KIND));
	LS_TRY(choose_devices(model, devices, threads));
	ls_predictor_free(model->predictor);
	model->predictor = NULL;
	return LS_OK;
}

void ls_model_free(ls_model *model)
{
	if (model && ls_handle_remove(model, LS_MODEL_KIND))
		let_go(model);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* All values of a model in the layout of the outside world, to lay the stores out anew. */
static void copy_logical(ls_trained *t, float *logical, int into_stores)
{
	const ls_param_table *table = &t->graph->params;

	for (size_t i = 0; i < table->count; i++) {
		const ls_param *param = &table->rows[i];
		float *store = ls_param_is_trained(param) ? t->params : t->buffers;
		if (param->role == LS_ROLE_COUNTER)
			continue;
		if (into_stores)
			ls_param_import(param, LS_STORE_WHOLE, logical, store);
		else
			ls_param_export(param, LS_STORE_WHOLE, store, logical);
		logical += ls_param_elements(param);
	}
}

static size_t logical_floats(const ls_param_table *table)
{
	size_t sum = 0;
	for (size_t i = 0; i < table->count; i++)
		sum += ls_param_elements(&table->rows[i]);
	return sum;
}

static void free_stores(ls_model *model)
{
	ls_trained *t = &model->trained;

	ls_floats_free(t->params, t->graph->params.total);
	ls_floats_free(t->buffers, model->buffers_floats > 0 ? model->buffers_floats : t->graph->params.buffers);
	t->params = t->buffers = NULL;
	model->buffers_floats = 0;
}

ls_status ls_model_begin_training(ls_model *model)
{
	ls_trained *t = &model->trained;

	if (model->is_trained)
		return ls_fail(LS_EINVALID, "the model has a trainer already; free that one first");
	if (!model->values) {
		model->value_count = logical_floats(&t->graph->params);
		LS_TRY(ls_floats_new(&model->values, model->value_count, "the model's weights"));
		copy_logical(t, model->values, 0);
		free_stores(model);
	}
	ls_predictor_free(model->predictor); /* it was made for the old layout */
	model->predictor = NULL;
	model->is_trained = 1;
	atomic_fetch_add(&model->holders, 1);
	return LS_OK;
}

/* In the layout that the table has now. Where there is no memory for them the model keeps its values. */
static ls_status make_stores(ls_model *model, size_t floats)
{
	ls_trained *t = &model->trained;

	LS_TRY(ls_floats_new(&t->params, t->graph->params.total, "parameters"));
	ls_status status = ls_floats_new(&t->buffers, floats, "running statistics");
	if (status != LS_OK) {
		ls_floats_free(t->params, t->graph->params.total);
		t->params = NULL;
		return status;
	}
	model->buffers_floats = floats;
	copy_logical(t, model->values, 1);
	ls_floats_free(model->values, model->value_count);
	model->values = NULL;
	return LS_OK;
}

ls_status ls_model_lend(ls_model *model, size_t floats)
{
	return make_stores(model, floats);
}

void ls_model_note_arithmetic(ls_model *model)
{
	const ls_graph *graph = model->trained.graph;

	model->trained.settings.precision = ls_precision_name_at(graph->precision);
	model->trained.settings.conv = ls_conv_algorithm_name_at((size_t)graph->conv_algorithm);
}

ls_status ls_model_learn_data(ls_model *model, const ls_dataset *data)
{
	const ls_normalisation *n = ls_dataset_normalisation(data);

	model->trained.task = ls_dataset_describe(data)->task;
	if (ls_dataset_columns(data) && !model->trained.columns) {
		model->trained.columns = strdup(ls_dataset_columns(data));
		if (!model->trained.columns)
			return ls_fail(LS_EMEMORY, "no memory for the columns of a table");
		LS_TRY(ls_table_schema_from_text(&model->table, model->trained.columns, "the model"));
	}
	if (model->vocabulary == 0)
		model->vocabulary = ls_dataset_describe(data)->vocabulary_hash;
	LS_TRY(ls_model_learn_classes(model, data));
	return n && model->trained.normalisation.channels == 0 ? ls_normalisation_copy(&model->trained.normalisation, n)
							       : LS_OK;
}

/* A trainer that failed may not have come to use the stores. */
void ls_model_end_training(ls_model *model)
{
	if (model->values)
		make_stores(model, model->trained.graph->params.buffers);
	model->is_trained = 0;
	let_go(model);
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

ls_status ls_model_check_usable(const ls_model *model)
{
	LS_TRY(ls_handle_check(model, LS_MODEL_KIND));
	if (!model->values)
		return LS_OK;
	return ls_fail(LS_EINVALID, model->is_trained ? "the model is being made ready for training"
						      : "there was no memory for the model's weights");
}

ls_status ls_model_describe(const ls_model *model, ls_model_facts *out)
{
	LS_TRY(ls_model_check_usable(model));
	LS_TRY(ls_argument_check(out, "out"));
	const ls_trained *t = &model->trained;
	const ls_graph *graph = t->graph;
	const ls_tensor *in = &graph->values[graph->input];
	int is_text = graph->tokens_max > 0;
	ls_model_facts facts = { .name = t->settings.model,
				 .channels = is_text ? 0 : in->channels,
				 .height = is_text ? 0 : in->height,
				 .width = is_text ? 0 : in->width,
				 .tokens_max = graph->tokens_max,
				 .vocabulary = ls_graph_vocabulary(graph),
				 .outputs = graph->values[graph->logits].channels,
				 .predicts_next = graph->predicts_next,
				 .task = t->task,
				 .masked_max = ls_graph_predicts_tokens(graph) ? (uint64_t)graph->masked_max : 0,
				 .precision = ls_precision_name_at(graph->precision),
				 .parameters = graph->params.trainable };

	LS_TRY(ls_params_fingerprint(&graph->params, t->params, t->buffers, &facts.fingerprint));
	*out = facts;
	return LS_OK;
}

const ls_graph *ls_model_graph(const ls_model *model)
{
	return ls_handle_check(model, LS_MODEL_KIND) == LS_OK ? model->trained.graph : NULL;
}

const ls_normalisation *ls_model_normalisation(const ls_model *model)
{
	if (ls_handle_check(model, LS_MODEL_KIND) != LS_OK)
		return NULL;
	const ls_normalisation *n = &model->trained.normalisation;
	return n->channels > 0 && model->trained.graph->tokens_max == 0 ? n : NULL;
}
