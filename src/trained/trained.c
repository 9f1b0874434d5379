#include "trained/trained.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/handles.h"
#include "base/memory.h"
#include "checkpoint/checkpoint.h"
#include "data/dataset.h"
#include "data/normalise.h"
#include "data/text_input.h"
#include "settings/model.h"
#include "trained/columns.h"
#include "trained/normalisation.h"
#include "trained/vocabulary.h"
#include "trainer/evaluate.h"

#define TOKENS_DEFAULT 128    /* of text whose data is not there to be measured */
#define POSITIONS_OF_GPT 1024 /* all that the model has */

/* ---- what the run or the file says ------------------------------------------------------------------------------- */

static ls_status read_run(ls_trained *t)
{
	char *text = NULL;

	LS_TRY(ls_ckpt_settings(t->weights.checkpoint, &text));
	ls_status status = ls_settings_from_json(&t->stored, text, t->weights.checkpoint);
	free(text);
	LS_TRY(status);
	ls_vocabulary_find(t->vocab, sizeof(t->vocab), t->weights.run);
	if (t->vocab[0] != '\0')
		t->stored.options.vocab = t->vocab;
	return LS_OK;
}

static ls_status read_file(ls_trained *t)
{
	ls_train_options *o = &t->stored.options;

	*o = (ls_train_options)LS_TRAIN_OPTIONS_INIT;
	ls_vocabulary_find(t->vocab, sizeof(t->vocab), t->weights.home);
	if (t->vocab[0] != '\0')
		o->vocab = t->vocab;
	return ls_weights_read_notes(t->weights.file, o, &t->said);
}

static int64_t either(int64_t given, int64_t stored)
{
	return given != 0 ? given : stored;
}

/* How text is read and how large the model is, whatever the data. */
static void choose_model(ls_trained *t, const ls_eval_options *o)
{
	ls_train_options *s = &t->settings;

	s->model = o->model ? o->model : s->model;
	s->vocab = o->vocab ? o->vocab : s->vocab;
	s->cased |= o->cased;
	s->replace_invalid |= o->replace_invalid;
	s->seq_len = either(o->seq_len, s->seq_len);
	s->layers = either(o->layers, s->layers);
	s->width = either(o->width, s->width);
	s->heads = either(o->heads, s->heads);
	s->ffn = either(o->ffn, s->ffn);
	s->max_len = either(o->max_len, s->max_len);
}

/* The layer of classes of a model, as its file names it, whatever the samples. */
static ls_status name_head(const ls_trained *t, char *out, size_t size)
{
	const ls_model_row *row = ls_model_row_of(t->settings.model);
	ls_dataset_info info = { .tokens_max = row && row->is_text };
	ls_train_options settings = t->settings;
	ls_graph *graph = NULL;

	settings.class_weights = NULL; /* as many as there are classes, which are not known yet */
	LS_TRY(ls_train_build_model(&graph, &settings, &info));
	const char *head = ls_graph_head(graph);
	snprintf(out, size, "%s.weight", head ? head : "");
	ls_graph_free(graph);
	return LS_OK;
}

/* As many as the trained weights have rows for, whatever labels the data has. A file without that layer is refused when
 * it is loaded. */
static ls_status count_classes(ls_trained *t)
{
	ls_st_reader *reader = NULL;
	char head[256];

	if (t->graph || !t->settings.model)
		return LS_OK;
	LS_TRY(name_head(t, head, sizeof(head)));
	LS_TRY(ls_st_open(&reader, t->weights.file));
	const ls_st_tensor *weight = ls_st_find(reader, head);
	if (weight && weight->rank > 0 && weight->shape[0] <= INT32_MAX)
		t->classes = (int)weight->shape[0];
	ls_st_close(reader);
	return LS_OK;
}

ls_status ls_trained_find(ls_trained *out, const ls_eval_options *options)
{
	if (!options->source)
		return ls_fail(LS_EINVALID, "no weights: name a run directory or a .safetensors file");
	if (options->graph)
		LS_TRY(ls_handle_check(options->graph, LS_GRAPH_KIND));
	LS_TRY(ls_weights_find(&out->weights, options->source, options->best));
	LS_TRY(out->weights.checkpoint[0] != '\0' ? read_run(out) : read_file(out));
	out->settings = out->stored.options;
	out->graph = options->graph;
	choose_model(out, options);
	LS_TRY(count_classes(out));
	LS_TRY(ls_columns_of_weights(out->weights.file, &out->columns, &out->task));
	return ls_normalisation_of_weights(&out->normalisation, out->weights.file);
}

/* ---- the input --------------------------------------------------------------------------------------------------- */

static ls_status parse_input(const char *text, ls_dataset_info *info)
{
	if (ls_weights_parse_input(text, info))
		return LS_OK;
	return ls_fail(LS_EINVALID, "options.input is '%s', not CHANNELSxHEIGHTxWIDTH such as 3x224x224", text);
}

static int takes_text(const ls_trained *t)
{
	const ls_model_row *row = t->settings.model ? ls_model_row_of(t->settings.model) : NULL;
	return row && row->is_text;
}

/* Of text without its data: that of the vocabulary. */
static ls_status shape_of_vocabulary(const ls_trained *t, ls_dataset_info *out)
{
	int usual = ls_train_predicts_next(&t->settings) ? POSITIONS_OF_GPT : TOKENS_DEFAULT;

	out->tokens_max = t->settings.seq_len > 0 ? (int)t->settings.seq_len : usual;
	return ls_vocabulary_describe(t->settings.vocab, &out->vocabulary, &out->vocabulary_hash);
}

/* A trained model is used where its data is not: then the vocabulary, or the options, say what it takes. */
static ls_status shape_of_data(const ls_trained *t, const ls_data_wanted *wanted, ls_dataset_info *out)
{
	ls_dataset *data = NULL;
	ls_status status = ls_train_open_data(&data, &t->settings, wanted);

	if (status == LS_ENOTFOUND && takes_text(t) && t->settings.vocab)
		return shape_of_vocabulary(t, out);
	if (status == LS_ENOTFOUND && !takes_text(t))
		return ls_fail_context(status, "the model takes samples like those of its data (options.input CxHxW "
					       "gives their shape without them)");
	LS_TRY(status);
	*out = *ls_dataset_describe(data);
	ls_dataset_free(data);
	return LS_OK;
}

ls_status ls_trained_find_shape(const ls_trained *t, const char *input, ls_dataset_info *out)
{
	const ls_data_wanted wanted = { .split = LS_SPLIT_TEST,
					.classes = t->classes,
					.normalisation = t->normalisation.channels > 0 ? &t->normalisation : NULL,
					.columns = t->columns };
	int found = 0;

	*out = (ls_dataset_info){ .classes = t->classes };
	if (input && takes_text(t))
		return ls_fail(LS_EINVALID,
			       "options.input is the shape of an image, and model %s takes text; leave it out",
			       t->settings.model);
	if (input)
		return parse_input(input, out);
	if (!t->is_data_given)
		LS_TRY(ls_weights_read_input(t->weights.file, out, &found));
	if (found)
		return LS_OK;
	if (takes_text(t) && t->settings.vocab && !t->is_data_given)
		return shape_of_vocabulary(t, out);
	if (!t->settings.data && takes_text(t))
		return ls_fail(LS_EINVALID,
			       "%s does not say how text becomes tokens; add options.vocab: a vocab.txt, or for GPT "
			       "a directory with vocab.json and merges.txt, or bytes",
			       t->weights.file);
	if (!t->settings.data)
		return ls_fail(
			LS_EINVALID,
			"%s does not say what the model's input is; add options.input CxHxW, or options.data NAME",
			t->weights.file);
	return shape_of_data(t, &wanted, out);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static ls_status build_graph(ls_trained *t, const ls_dataset_info *info)
{
	ls_dataset_info shape = *info;

	shape.task = t->task;

	if (t->graph)
		return LS_OK;
	if (!t->settings.model)
		return ls_fail(LS_EINVALID, "%s does not say which model it is; add options.model NAME",
			       t->weights.file);
	if (t->classes > 0 && info->masked_max == 0)
		shape.classes = t->classes;
	LS_TRY(ls_train_build_model(&t->own_graph, &t->settings, &shape));
	t->graph = t->own_graph;
	LS_TRY(ls_graph_set_conv(t->own_graph, t->settings.conv)); /* it predicts as it was trained */
	return ls_graph_set_precision(t->own_graph, t->settings.precision);
}

ls_status ls_trained_load(ls_trained *t, const ls_dataset_info *info)
{
	ls_ckpt_import how = { .vocabulary = info->vocabulary_hash, .trained = t->vocab[0] != '\0' ? t->vocab : NULL };
	int64_t ignored;

	LS_TRY(build_graph(t, info));
	LS_TRY(ls_graph_fits(t->graph, info));
	LS_TRY(ls_floats_new(&t->params, t->graph->params.total, "parameters"));
	LS_TRY(ls_floats_new(&t->buffers, t->graph->params.buffers, "running statistics"));
	return ls_ckpt_load_weights(t->weights.file, &t->graph->params, &how, t->params, t->buffers, &ignored);
}

void ls_trained_release(ls_trained *t)
{
	if (t->buffers)
		ls_floats_free(t->buffers, t->graph->params.buffers);
	if (t->params)
		ls_floats_free(t->params, t->graph->params.total);
	ls_graph_free(t->own_graph);
	free(t->columns);
	ls_normalisation_release(&t->normalisation);
	ls_settings_stored_release(&t->stored);
	ls_weights_said_release(&t->said);
	*t = (ls_trained){ 0 };
}
