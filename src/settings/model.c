#include "settings/model.h"

#include <string.h>

#include "base/files.h"
#include "base/names.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/corpus.h"
#include "data/readers/image_list.h"
#include "data/readers/table_files.h"
#include "data/unsupported.h"
#include "graph/graph.h"
#include "settings/class_weights.h"

#define TEXT_COLUMN "text" /* of a table, unless the options name another */

/* Text that a model of images is given: opening it would ask for a vocabulary. */
static ls_status check_path(const ls_model_row *model, const char *data)
{
	if (model->is_text || !ls_path_exists(data) || ls_directory_is(data) || ls_image_folder_is(data) ||
	    ls_table_is(data) || ls_shards_is(data) || ls_numpy_is(data) || !ls_corpus_is_text(data))
		return LS_OK;
	LS_TRY(ls_data_check_format(data));
	return ls_fail(
		LS_EMISMATCH,
		"model %s takes images, and %s is text; name a model of text with options.model, such as bert-tiny, "
		"or other "
		"data",
		model->name, data);
}

/* A name of the table is enough, before anything is looked for. */
static ls_status check_name(const ls_train_options *o)
{
	const ls_model_row *model = !o->graph ? ls_model_row_of(o->model) : NULL;
	if (!model || !o->data)
		return LS_OK;
	const ls_dataset_row *data = ls_dataset_row_of(o->data);
	if (!data)
		return check_path(model, o->data);
	if (data->is_text == model->is_text)
		return LS_OK;
	return ls_fail(LS_EMISMATCH,
		       "model %s takes %s, and dataset %s is %s; name another with options.data, such as %s",
		       model->name, model->is_text ? "text" : "images", data->name, data->is_text ? "text" : "images",
		       model->predicts_next ? "babble or sotu"
		       : model->is_text     ? "babble or sst5"
					    : "mnist or glyphs");
}

int ls_train_predicts_next(const ls_train_options *o)
{
	const ls_model_row *row = !o->graph && o->model ? ls_model_row_of(o->model) : NULL;
	return o->graph ? o->graph->predicts_next : row && row->predicts_next;
}

int ls_train_takes_text(const ls_train_options *o)
{
	const ls_model_row *row = !o->graph && o->model ? ls_model_row_of(o->model) : NULL;
	return o->graph ? o->graph->tokens_max > 0 : row && row->is_text;
}

/* Text that is generated has words of its own. */
int ls_train_needs_vocabulary(const ls_train_options *o)
{
	if (o->train_set || !o->data)
		return 0;
	const ls_dataset_row *row = ls_dataset_row_of(o->data);
	return row                    ? row->is_text && row->needs_download
	       : ls_table_is(o->data) ? ls_train_takes_text(o)
				      : !ls_image_folder_is(o->data) && ls_corpus_is_text(o->data);
}

void ls_train_copy_model(ls_train_options *to, const ls_train_options *from)
{
	to->model = from->model;
	to->dropout = from->dropout;
	to->label_smoothing = from->label_smoothing;
	to->layers = from->layers;
	to->width = from->width;
	to->heads = from->heads;
	to->ffn = from->ffn;
	to->max_len = from->max_len;
	to->lora = from->lora;
	to->loss = from->loss;
}

ls_status ls_train_open_data(ls_dataset **out, const ls_train_options *o, const ls_data_wanted *wanted)
{
	ls_dataset_options d = LS_DATASET_OPTIONS_INIT;
	LS_TRY(check_name(o));
	d.name = o->data;
	d.dir = o->data_dir;
	d.split = wanted->split;
	d.samples = wanted->samples;
	d.classes = wanted->classes;
	d.normalisation = wanted->normalisation;
	d.seed = o->seed;
	d.vocab = o->vocab;
	d.cased = o->cased;
	d.tokens = (int)o->seq_len;
	d.phrases = o->phrases;
	d.replace_invalid = o->replace_invalid;
	d.image_size = o->image_size;
	d.cache = o->cache;
	if (wanted->shape && wanted->shape->tokens_max == 0) {
		d.channels = wanted->shape->channels;
		d.height = wanted->shape->height;
		d.width = wanted->shape->width;
	}
	d.next_token = ls_train_predicts_next(o);
	d.target = o->target;
	d.task = o->task;
	d.skip_bad = o->skip_bad;
	d.columns = wanted->columns;
	if (ls_train_takes_text(o))
		d.text_column = o->text_column ? o->text_column : TEXT_COLUMN;
	return ls_dataset_open(out, &d);
}

static ls_status check_kind(const ls_train_options *o, const ls_dataset_info *info)
{
	const ls_model_row *row = ls_model_row_of(o->model);
	const struct {
		const char *name;
		int64_t value;
	} sizes[] = { { "layers", o->layers },
		      { "width", o->width },
		      { "heads", o->heads },
		      { "ffn", o->ffn },
		      { "max_len", o->max_len } };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (sizes[i].value != 0 && row && !row->has_sizes)
			return ls_fail(
				LS_EINVALID,
				"options.%s is for models whose size can be chosen, such as transformer; %s has a "
				"fixed size",
				sizes[i].name, row->name);
	if (row && !row->is_text && strcmp(row->name, "mlp") != 0 && o->data && ls_table_is(o->data) &&
	    info->tokens_max == 0)
		return ls_fail(LS_EINVALID, "model %s takes images; for rows of %d numbers use options.model mlp",
			       o->model, info->channels);
	if (!row || row->is_text == (info->tokens_max > 0))
		return LS_OK; /* building it reports an unknown name */
	return ls_fail(LS_EMISMATCH,
		       "model %s takes %s, and dataset %s is %s; `lockstep models` and `lockstep data "
		       "list` show which there are",
		       o->model, row->is_text ? "text" : "images", info->name, row->is_text ? "images" : "text");
}

/* A loss is that of a task; "auto" is that of the data. */
static const struct {
	const char *name, *summary;
	ls_task task;
} losses[] = {
	{ "auto", "the loss of the task (the default)", LS_TASK_CLASSIFICATION },
	{ "cross-entropy", "of the softmax over all classes", LS_TASK_CLASSIFICATION },
	{ "bce", "binary cross-entropy of every class or label by itself", LS_TASK_MULTI_LABEL },
	{ "mse", "mean squared error", LS_TASK_REGRESSION },
};

const char *ls_loss_name(size_t i)
{
	return i < sizeof(losses) / sizeof(losses[0]) ? losses[i].name : NULL;
}

const char *ls_loss_summary(size_t i)
{
	return i < sizeof(losses) / sizeof(losses[0]) ? losses[i].summary : NULL;
}

static ls_status choose_loss(const ls_train_options *o, const ls_dataset_info *info, ls_task *out)
{
	size_t row = 0;

	*out = info->task;
	if (!o->loss || !strcmp(o->loss, losses[0].name))
		return LS_OK;
	LS_TRY(ls_name_find("loss", o->loss, ls_loss_name, &row));
	if (info->masked_max > 0)
		return ls_fail(LS_EINVALID, "options.loss %s: tokens are predicted by their cross-entropy", o->loss);
	*out = losses[row].task;
	return LS_OK;
}

ls_status ls_train_build_model(ls_graph **out, const ls_train_options *o, const ls_dataset_info *info)
{
	ls_model_options model = { .size = sizeof(model),
				   .name = o->model,
				   .channels = info->channels,
				   .height = info->height,
				   .width = info->width,
				   .classes = info->classes,
				   .task = info->task,
				   .dropout = o->dropout,
				   .label_smoothing = o->label_smoothing,
				   .text = { .tokens = info->tokens_max,
					     .masked = info->masked_max,
					     .vocabulary = info->vocabulary,
					     .layers = (int)o->layers,
					     .hidden = (int)o->width,
					     .heads = (int)o->heads,
					     .ffn = (int)o->ffn,
					     .positions = (int)o->max_len,
					     .lora = (int)o->lora } };
	ls_graph *graph = NULL;

	LS_TRY(check_kind(o, info));
	LS_TRY(choose_loss(o, info, &model.task));
	LS_TRY(ls_model_build(&graph, &model));
	ls_status status = ls_class_weights_set(graph, o->class_weights);
	if (status != LS_OK) {
		ls_graph_free(graph);
		return status;
	}
	*out = graph;
	return LS_OK;
}

ls_status ls_train_check_norms(const ls_graph *graph, int64_t size, const char *where, const char *advice)
{
	const char *norm = size == 1 ? ls_graph_single_norm(graph) : NULL;

	if (!norm)
		return LS_OK;
	return ls_fail(LS_EINVALID,
		       "batch norm '%s' has maps of 1x1 and needs more than one value per channel to train, but %s has "
		       "1 sample; %s",
		       norm, where, advice);
}
