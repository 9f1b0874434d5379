#include "run/model.h"

#include "base/files.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/corpus.h"
#include "data/readers/image_list.h"
#include "data/unsupported.h"
#include "graph/graph.h"

/* Text that a model of images is given: opening it would ask for a vocabulary. */
static ls_status check_path(const ls_model_row *model, const char *data)
{
	if (model->is_text || !ls_path_exists(data) || ls_directory_is(data) || ls_image_folder_is(data) ||
	    !ls_corpus_is_text(data))
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
	d.next_token = ls_train_predicts_next(o);
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
	if (!row || row->is_text == (info->tokens_max > 0))
		return LS_OK; /* building it reports an unknown name */
	return ls_fail(LS_EMISMATCH,
		       "model %s takes %s, and dataset %s is %s; `lockstep models` and `lockstep data` list "
		       "what there is",
		       o->model, row->is_text ? "text" : "images", info->name, row->is_text ? "images" : "text");
}

ls_status ls_train_build_model(ls_graph **out, const ls_train_options *o, const ls_dataset_info *info)
{
	ls_model_options model = { .size = sizeof(model),
				   .name = o->model,
				   .channels = info->channels,
				   .height = info->height,
				   .width = info->width,
				   .classes = info->classes,
				   .dropout = o->dropout,
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
	LS_TRY(ls_model_build(&graph, &model));
	ls_status status = o->label_smoothing > 0 ? ls_graph_smooth_labels(graph, o->label_smoothing) : LS_OK;
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
