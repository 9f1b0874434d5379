/*
 * model_classes.c - what the classes of a model are called. In this order: what the program gave (options.labels); what
 * the run keeps (RUN/labels.txt) or a file of weights notes; what the named dataset has; what the data has that the
 * model is trained on.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/handles.h"
#include "base/log.h"
#include "base/names.h"
#include "data/dataset.h"
#include "data/text_input.h"
#include "trained/class_names.h"
#include "trained/model_handle.h"

#define TEXT_BYTES_MAX ((size_t)1 << 26)

static int64_t outputs_of(const ls_model *model)
{
	const ls_graph *graph = model->trained.graph;
	return graph->values[graph->logits].channels;
}

void ls_model_close_classes(ls_model *model)
{
	free(model->class_names);
	free(model->class_text);
	model->class_names = NULL;
	model->class_text = NULL;
}

/* Lines of class_text, which is changed, to class_names. `where` is for the error. */
static ls_status split_text(ls_model *model, const char *where)
{
	int64_t count = 0, outputs = outputs_of(model);
	char *rest = model->class_text;

	model->class_names = calloc((size_t)outputs, sizeof(*model->class_names));
	if (!model->class_names)
		return ls_fail(LS_EMEMORY, "no memory for %lld names", (long long)outputs);
	for (char *line; (line = strsep(&rest, "\n"));) {
		size_t length = strlen(line);
		if (length > 0 && line[length - 1] == '\r')
			line[length - 1] = '\0';
		if (!rest && *line == '\0')
			break;
		if (count < outputs)
			model->class_names[count] = line;
		count++;
	}
	if (count != outputs)
		return ls_fail(LS_EMISMATCH, "%s has %lld line%s; the model has %lld classes, and each needs a name",
			       where, (long long)count, ls_plural((uint64_t)count, "s"), (long long)outputs);
	return LS_OK;
}

static ls_status copy_text(char **out, const ls_file_map *map, const char *path)
{
	size_t valid = ls_text_invalid((const char *)map->data, map->bytes);
	char *text = NULL;

	if (map->bytes > TEXT_BYTES_MAX)
		return ls_fail(LS_EFORMAT, "%s is too large to be a list of names", path);
	if (valid < map->bytes || (map->bytes > 0 && memchr(map->data, 0, map->bytes)))
		return ls_fail(LS_EFORMAT, "%s is not a text file in UTF-8", path);
	text = calloc(map->bytes + 1, 1);
	if (!text)
		return ls_fail(LS_EMEMORY, "no memory for the names in %s", path);
	if (map->bytes > 0)
		memcpy(text, map->data, map->bytes);
	*out = text;
	return LS_OK;
}

static ls_status read_file(ls_model *model, const char *path)
{
	ls_file_map map;

	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = copy_text(&model->class_text, &map, path);
	LS_TRY(ls_file_map_end(&map, status));
	return split_text(model, path);
}

static ls_status read_noted(ls_model *model)
{
	const char *file = model->trained.weights.file;

	LS_TRY(ls_weights_read_labels(file, &model->class_text));
	return model->class_text ? split_text(model, file) : LS_OK;
}

/* Of the run or the file; names that do not fit are left alone: a head for another task has classes of its own. */
static void read_kept(ls_model *model)
{
	char kept[4096];

	ls_class_names_find(kept, sizeof(kept), model->trained.weights.run);
	if ((kept[0] != '\0' ? read_file(model, kept) : read_noted(model)) == LS_OK)
		return;
	ls_log_warning("names of classes are not used: %s", ls_last_error());
	ls_model_close_classes(model);
}

ls_status ls_model_open_classes(ls_model *model, const char *labels)
{
	if (labels)
		return read_file(model, labels);
	read_kept(model);
	if (!model->class_names)
		model->known = ls_class_names_of(NULL, model->trained.settings.data, outputs_of(model));
	return LS_OK;
}

ls_status ls_model_learn_classes(ls_model *model, const ls_dataset *data)
{
	size_t bytes;

	if (model->class_names || model->known || !data->class_names || data->info.classes != outputs_of(model))
		return LS_OK;
	LS_TRY(ls_class_names_text(data, &model->class_text, &bytes));
	return split_text(model, data->info.name);
}

const char *ls_model_class_name(const ls_model *model, int64_t i)
{
	if (ls_handle_check(model, LS_MODEL_KIND) != LS_OK || i < 0 || i >= outputs_of(model))
		return NULL;
	if (model->class_names)
		return model->class_names[i];
	if (model->table.targets > 0)
		return ls_table_output_name(&model->table, (size_t)i);
	return model->known ? model->known[i] : NULL;
}

ls_status ls_model_class_lines(const ls_model *model, char **out)
{
	size_t bytes;

	*out = NULL;
	if (!ls_model_class_name(model, 0))
		return LS_OK;
	FILE *to = open_memstream(out, &bytes);
	for (int64_t i = 0; to && i < outputs_of(model); i++)
		fprintf(to, "%s\n", ls_model_class_name(model, i));
	if (to && fclose(to) == 0)
		return LS_OK;
	return ls_fail(LS_EMEMORY, "no memory for the names of %lld classes", (long long)outputs_of(model));
}
