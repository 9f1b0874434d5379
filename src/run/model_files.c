/*
 * model_files.c - an ls_model as a file: safetensors, ONNX.
 */
#include <stdlib.h>

#include "checkpoint/tensors.h"
#include "data/normalise.h"
#include "onnx/onnx.h"
#include "run/model_handle.h"

static ls_status write_weights(const ls_model *model, const char *path, const ls_weights_notes *notes)
{
	const ls_trained *t = &model->trained;
	const ls_ckpt_content content = { .model = t->settings.model,
					  .metadata = notes->pair,
					  .metadata_count = notes->count };
	ls_ckpt_tensors tensors;

	LS_TRY(ls_ckpt_tensors_model(&tensors, &t->graph->params, t->params, t->buffers, 0));
	ls_status status = ls_ckpt_tensors_write(&tensors, path, &content, NULL);
	ls_ckpt_tensors_release(&tensors);
	return status;
}

ls_status ls_model_save(const ls_model *model, const char *path)
{
	LS_TRY(ls_model_check_usable(model));
	const ls_trained *t = &model->trained;
	const ls_settings_context trained_on = { .vocabulary = model->vocabulary,
						 .normalisation = ls_model_normalisation(model) };
	ls_weights_notes notes = { 0 };

	if (t->settings.model)
		LS_TRY(ls_weights_note(&notes, &t->settings, trained_on));
	ls_weights_note_input(&notes, t->graph);
	ls_status status = write_weights(model, path, &notes);
	ls_weights_notes_release(&notes);
	return status;
}

ls_status ls_model_export_onnx(const ls_model *model, const char *path)
{
	LS_TRY(ls_model_check_usable(model));
	const ls_trained *t = &model->trained;
	const ls_normalisation *n = ls_model_normalisation(model);
	const char *name = t->settings.model ? t->settings.model : "model";
	char *mean = n ? ls_normalisation_to_text(n->mean, n->channels) : NULL;
	char *deviation = n ? ls_normalisation_to_text(n->deviation, n->channels) : NULL;
	const ls_onnx_pair pairs[] = { { "model", name },
				       { LS_WEIGHTS_MEAN, mean },
				       { LS_WEIGHTS_DEVIATION, deviation } };
	const ls_onnx_options options = { .graph = t->graph,
					  .params = t->params,
					  .buffers = t->buffers,
					  .name = name,
					  .metadata = pairs,
					  .metadata_count = mean && deviation ? 3 : 1 };
	ls_status status = n && !(mean && deviation)
				   ? ls_fail(LS_EMEMORY, "no memory for the means of %d channels", n->channels)
				   : ls_onnx_write(path, &options);
	free(mean);
	free(deviation);
	return status;
}
