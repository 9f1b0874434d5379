/*
 * model_files.c - an ls_model as a file: safetensors, ONNX.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/handles.h"
#include "base/memory.h"
#include "checkpoint/tensors.h"
#include "data/normalise.h"
#include "onnx/onnx.h"
#include "trained/adapters.h"
#include "trained/model_handle.h"

/* `params` may be a merged copy of the model's; `is_merged`: leave adapters out. */
static ls_status write_weights(const ls_model *model, const char *path, const ls_weights_notes *notes, float *params,
			       int is_merged)
{
	const ls_trained *t = &model->trained;
	const ls_ckpt_content content = { .model = t->settings.model,
					  .metadata = notes->pair,
					  .metadata_count = notes->count };
	ls_ckpt_tensors tensors;

	LS_TRY(ls_ckpt_tensors_model(&tensors, &t->graph->params, params, t->buffers, 0));
	if (is_merged)
		ls_adapters_leave_out(&tensors);
	ls_status status = ls_ckpt_tensors_write(&tensors, path, &content, NULL);
	ls_ckpt_tensors_release(&tensors);
	return status;
}

static ls_status save(const ls_model *model, const char *path, float *params, int is_merged)
{
	const ls_trained *t = &model->trained;
	ls_train_options settings = t->settings;
	const ls_settings_context trained_on = { .vocabulary = model->vocabulary,
						 .normalisation = ls_model_normalisation(model),
						 .columns = t->columns,
						 .task = t->task };
	ls_weights_notes notes = { 0 };

	if (is_merged)
		settings.lora = 0;
	if (settings.model)
		LS_TRY(ls_weights_note(&notes, &settings, trained_on));
	ls_weights_note_input(&notes, t->graph);
	char *labels = NULL;
	ls_status status = ls_model_class_lines(model, &labels);
	ls_weights_note_labels(&notes, labels);
	if (status == LS_OK)
		status = write_weights(model, path, &notes, params, is_merged);
	ls_weights_notes_release(&notes);
	return status;
}

ls_status ls_model_save(const ls_model *model, const char *path)
{
	LS_TRY(ls_model_check_usable(model));
	LS_TRY(ls_argument_check(path, "path"));
	return save(model, path, model->trained.params, 0);
}

/* Never overwrite the file the weights came from. */
static ls_status check_output(const ls_model *model, const char *path)
{
	const char *source = model->trained.weights.file;
	struct stat from, to;

	if (source[0] == '\0' || stat(source, &from) != 0 || stat(path, &to) != 0 || from.st_dev != to.st_dev ||
	    from.st_ino != to.st_ino)
		return LS_OK;
	return ls_fail(LS_EINVALID, "cannot export to %s: the weights are read from it", path);
}

ls_status ls_model_export_safetensors(const ls_model *model, const char *path)
{
	LS_TRY(ls_model_check_usable(model));
	LS_TRY(ls_argument_check(path, "path"));
	LS_TRY(check_output(model, path));
	const ls_trained *t = &model->trained;
	const ls_param_table *table = &t->graph->params;
	float *merged = NULL;

	if (!ls_adapters_are_in(table))
		return save(model, path, t->params, 0);
	LS_TRY(ls_floats_new(&merged, table->total, "merged weights"));
	memcpy(merged, t->params, table->total * sizeof(*merged));
	ls_status status = ls_adapters_merge(table, merged);
	if (status == LS_OK)
		status = save(model, path, merged, 1);
	ls_floats_free(merged, table->total);
	return status;
}

/* Of regression on a table: what its targets were standardised with, malloc'd; NULL: they were not. */
static ls_status find_units(const ls_model *model, float **scale, float **offset)
{
	const ls_table_schema *s = &model->table;

	if (s->targets == 0 || s->task != LS_TASK_REGRESSION)
		return LS_OK;
	*scale = malloc(s->targets * sizeof(**scale));
	*offset = malloc(s->targets * sizeof(**offset));
	if (!*scale || !*offset)
		return ls_fail(LS_EMEMORY, "no memory for the units of %zu targets", s->targets);
	for (size_t i = 0; i < s->targets; i++) {
		(*scale)[i] = (float)s->target[i].deviation;
		(*offset)[i] = (float)s->target[i].mean;
	}
	return LS_OK;
}

ls_status ls_model_export_onnx(const ls_model *model, const char *path)
{
	LS_TRY(ls_model_check_usable(model));
	LS_TRY(ls_argument_check(path, "path"));
	LS_TRY(check_output(model, path));
	const ls_trained *t = &model->trained;
	const ls_normalisation *n = ls_model_normalisation(model);
	const char *name = t->settings.model ? t->settings.model : "model";
	char *mean = n ? ls_normalisation_to_text(n->mean, n->channels) : NULL;
	char *deviation = n ? ls_normalisation_to_text(n->deviation, n->channels) : NULL;
	char *labels = NULL;
	float *scale = NULL, *offset = NULL;
	const int has_memory = !n || (mean && deviation);
	ls_status status = has_memory ? ls_model_class_lines(model, &labels)
				      : ls_fail(LS_EMEMORY, "no memory for the means of %d channels", n->channels);
	const char *precision = ls_precision_name_at(t->graph->precision);
	ls_onnx_pair pairs[6] = { { "model", name }, { "precision", precision } };
	ls_onnx_options options = { .graph = t->graph,
				    .params = t->params,
				    .buffers = t->buffers,
				    .name = name,
				    .metadata = pairs,
				    .metadata_count = 2 };

	if (n) {
		pairs[options.metadata_count++] = (ls_onnx_pair){ LS_WEIGHTS_MEAN, mean };
		pairs[options.metadata_count++] = (ls_onnx_pair){ LS_WEIGHTS_DEVIATION, deviation };
	}
	if (labels)
		pairs[options.metadata_count++] = (ls_onnx_pair){ LS_WEIGHTS_LABELS, labels };
	if (t->columns) /* how rows become inputs */
		pairs[options.metadata_count++] = (ls_onnx_pair){ LS_WEIGHTS_COLUMNS, t->columns };
	if (status == LS_OK)
		status = find_units(model, &scale, &offset);
	options.scale = scale;
	options.offset = offset;
	if (status == LS_OK)
		status = ls_onnx_write(path, &options);
	free(mean);
	free(deviation);
	free(labels);
	free(scale);
	free(offset);
	return status;
}
