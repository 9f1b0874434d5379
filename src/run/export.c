/*
 * export.c - a trained model as a file for other programs.
 */
#include <lockstep/onnx.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "onnx/onnx.h"
#include "run/model.h"
#include "run/trained.h"

typedef struct exporter {
	const ls_export_options *options;
	ls_trained trained;
	ls_dataset *data; /* NULL: the shape of a sample is known without */
	ls_dataset_info info;
} exporter;

/* "3x224x224" */
static ls_status parse_input(const char *text, ls_dataset_info *info)
{
	int end = 0;
	if (sscanf(text, "%dx%dx%d%n", &info->channels, &info->height, &info->width, &end) != 3 || text[end] != '\0' ||
	    info->channels < 1 || info->height < 1 || info->width < 1)
		return ls_fail(LS_EINVALID, "options.input is '%s', not CHANNELSxHEIGHTxWIDTH such as 3x224x224", text);
	return LS_OK;
}

/* The shape of a sample: as given, else as the data has it that the model was trained on. */
static ls_status find_shape(exporter *e)
{
	const ls_export_options *o = e->options;
	const ls_trained *t = &e->trained;
	const ls_data_wanted wanted = { .split = LS_SPLIT_TEST,
					.classes = t->classes,
					.normalisation = t->normalisation.channels > 0 ? &t->normalisation : NULL };

	if (o->input) {
		e->info.classes = t->classes;
		return parse_input(o->input, &e->info);
	}
	if (!t->settings.data)
		return ls_fail(
			LS_EINVALID,
			"%s does not say what the model's input is; add options.input CxHxW, or options.data NAME",
			t->weights.file);
	LS_TRY(ls_train_open_data(&e->data, &t->settings, &wanted));
	e->info = *ls_dataset_describe(e->data);
	return LS_OK;
}

/* "0.485,0.456,0.406" */
static void list_numbers(char *out, size_t size, const double *values, int count)
{
	size_t used = 0;
	out[0] = '\0';
	for (int i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%.9g", i > 0 ? "," : "", values[i]);
}

static ls_status write_onnx(exporter *e)
{
	const ls_trained *t = &e->trained;
	const char *model = t->settings.model ? t->settings.model : "model";
	char mean[4096], deviation[4096];
	ls_onnx_pair pairs[3] = { { "model", model } };
	ls_onnx_options options = { .graph = t->graph,
				    .params = t->params,
				    .buffers = t->buffers,
				    .name = model,
				    .metadata = pairs,
				    .metadata_count = 1 };

	if (t->normalisation.channels > 0 && e->info.tokens_max == 0) {
		list_numbers(mean, sizeof(mean), t->normalisation.mean, t->normalisation.channels);
		list_numbers(deviation, sizeof(deviation), t->normalisation.deviation, t->normalisation.channels);
		pairs[1] = (ls_onnx_pair){ "mean", mean };
		pairs[2] = (ls_onnx_pair){ "deviation", deviation };
		options.metadata_count = 3;
	}
	return ls_onnx_write(e->options->onnx, &options);
}

static ls_status run(exporter *e)
{
	const ls_export_options *o = e->options;
	const ls_eval_options which = { .source = o->source,
					.model = o->model,
					.graph = o->graph,
					.seq_len = o->seq_len,
					.layers = o->layers,
					.width = o->width,
					.heads = o->heads,
					.ffn = o->ffn,
					.max_len = o->max_len };

	if (!o->onnx)
		return ls_fail(LS_EINVALID, "options.onnx is not set: name the file to write");
	LS_TRY(ls_file_check(o->onnx));
	LS_TRY(ls_trained_find(&e->trained, &which));
	if (o->data) {
		e->trained.settings.data = o->data;
		e->trained.settings.data_dir = NULL;
	}
	if (o->data_dir)
		e->trained.settings.data_dir = o->data_dir;
	LS_TRY(find_shape(e));
	LS_TRY(ls_trained_load(&e->trained, &e->info));
	return write_onnx(e);
}

ls_status ls_export(const ls_export_options *options)
{
	exporter e = { .options = options };
	ls_status status = run(&e);

	ls_trained_release(&e.trained);
	ls_dataset_free(e.data);
	return status;
}
