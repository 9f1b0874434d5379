/*
 * model_samples.c - lockstep/model.h: from files and text to what a model takes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/handles.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/images/image.h"
#include "data/normalise.h"
#include "trained/model_handle.h"
#include "trained/vocabulary.h"

#define FRAME 2 /* [CLS] and [SEP] */

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Another vocabulary would give tokens that mean other words, or none. */
static ls_status check_tokenizer(const ls_model *model, const char *vocab)
{
	size_t size = ls_tokenizer_size(&model->tokenizer);
	uint64_t hash = ls_tokenizer_hash(&model->tokenizer);

	if (hash == model->vocabulary && size <= (size_t)ls_graph_vocabulary(model->trained.graph))
		return LS_OK;
	return ls_fail(LS_EMISMATCH,
		       "%s is another vocabulary (%zu tokens, xxh64 %016llx) than the model was trained with (%d, "
		       "%016llx)",
		       vocab, size, (unsigned long long)hash, ls_graph_vocabulary(model->trained.graph),
		       (unsigned long long)model->vocabulary);
}

/* Text that was generated has no vocabulary; then there is no tokenizer, and ls_model_tokenize() says so. */
static ls_status open_tokenizer(ls_model *model)
{
	const ls_train_options *s = &model->trained.settings;
	char beside[4096] = "";

	if (model->trained.graph->tokens_max == 0 || model->vocabulary == 0)
		return LS_OK;
	ls_dataset_options how = { .split = LS_SPLIT_TEST,
				   .vocab = s->vocab,
				   .cased = s->cased,
				   .replace_invalid = s->replace_invalid,
				   .next_token = model->trained.graph->predicts_next };
	if (!how.vocab) {
		LS_TRY(ls_vocabulary_beside(beside, sizeof(beside), s));
		how.vocab = beside;
	}
	LS_TRY(ls_tokenizer_open(&model->tokenizer, &how, ".", "name one with options.vocab"));
	return check_tokenizer(model, how.vocab);
}

static char *copy_with_spaces(const char *text)
{
	char *copy = strdup(text);
	for (char *at = copy; at && (at = strchr(at, ','));)
		*at = ' ';
	return copy;
}

/* The options' constants take the place of those that the weights came with. */
static ls_status choose_normalisation(ls_model *model, const ls_model_load_options *o)
{
	ls_normalisation chosen = { 0 };
	int channels = model->trained.graph->values[model->trained.graph->input].channels;

	if (!o->mean && !o->deviation)
		return LS_OK;
	if (!o->mean || !o->deviation)
		return ls_fail(LS_EINVALID, "options.mean and options.deviation go together: give both");
	char *mean = copy_with_spaces(o->mean), *deviation = copy_with_spaces(o->deviation);
	ls_status status = mean && deviation ? ls_normalisation_from_text(&chosen, mean, deviation,
									  "options.mean and options.deviation")
					     : ls_fail(LS_EMEMORY, "no memory for means");
	free(mean);
	free(deviation);
	if (status == LS_EFORMAT)
		status = LS_EINVALID;
	if (status == LS_OK && chosen.channels != 1 && chosen.channels != channels) {
		status = ls_fail(LS_EINVALID, "options.mean has %d numbers; the model's images have %d channel%s",
				 chosen.channels, channels, ls_plural((uint64_t)channels, "s"));
		ls_normalisation_release(&chosen);
	}
	LS_TRY(status);
	ls_normalisation_release(&model->trained.normalisation);
	model->trained.normalisation = chosen;
	return LS_OK;
}

/* Outputs and inputs are the columns'. */
static ls_status open_table(ls_model *model, int64_t outputs)
{
	const ls_trained *t = &model->trained;
	const ls_tensor *in = &t->graph->values[t->graph->input];

	if (!t->columns)
		return LS_OK;
	LS_TRY(ls_table_schema_from_text(&model->table, t->columns, t->weights.file));
	if (ls_table_outputs(&model->table) != outputs ||
	    (!model->table.text && ls_table_features(&model->table) != (size_t)in->channels))
		return ls_fail(LS_EFORMAT, "%s: the columns of its table do not fit the model", t->weights.file);
	return LS_OK;
}

ls_status ls_model_open_samples(ls_model *model, const ls_model_load_options *options)
{
	LS_TRY(open_tokenizer(model));
	LS_TRY(open_table(model, ls_graph_outputs(model->trained.graph)));
	LS_TRY(choose_normalisation(model, options));
	return ls_model_open_classes(model, options->labels);
}

void ls_model_close_samples(ls_model *model)
{
	ls_tokenizer_close(&model->tokenizer);
	ls_table_schema_release(&model->table);
	ls_model_close_classes(model);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static ls_status check_images(const ls_model *model)
{
	LS_TRY(ls_handle_check(model, LS_MODEL_KIND));
	if (model->table.targets > 0 && !model->table.text)
		return ls_fail(LS_EMISMATCH,
			       "the model was trained on a table: it takes rows of CSV, TSV or JSONL, not images");
	if (model->trained.graph->tokens_max > 0)
		return ls_fail(LS_EMISMATCH, "the model takes text, not images");
	if (!ls_model_normalisation(model))
		return ls_fail(
			LS_EINVALID,
			"the weights do not say how images were normalised; give options.mean and options.deviation, "
			"for ImageNet 0.485,0.456,0.406 and 0.229,0.224,0.225");
	return LS_OK;
}

static ls_image_shape shape_of(const ls_model *model)
{
	const ls_tensor *in = &model->trained.graph->values[model->trained.graph->input];
	return (ls_image_shape){ in->channels, in->height, in->width };
}

ls_status ls_model_read_image(const ls_model *model, const void *bytes, size_t count, const ls_image_options *options,
			      float *image)
{
	ls_image_options o = LS_IMAGE_OPTIONS_INIT;
	ls_image decoded;

	LS_TRY(LS_OPTIONS_TAKE(&o, options, pixels_max, "LS_IMAGE_OPTIONS_INIT"));
	LS_TRY(check_images(model));
	LS_TRY(ls_argument_check(bytes, "bytes"));
	LS_TRY(ls_argument_check(image, "image"));
	ls_image_shape shape = shape_of(model);
	LS_TRY(ls_image_decode_for(&decoded, bytes, count, o.name, o.pixels_max, &shape));
	ls_status status = ls_image_resize(&decoded, o.resize, shape, image, o.name);
	ls_image_release(&decoded);
	if (status != LS_OK)
		return status;
	ls_pixels_round(image, (size_t)shape.channels * (size_t)shape.height * (size_t)shape.width);
	ls_pixels_normalise(image, shape, ls_model_normalisation(model));
	return LS_OK;
}

ls_status ls_model_normalise(const ls_model *model, float *pixels)
{
	LS_TRY(check_images(model));
	LS_TRY(ls_argument_check(pixels, "pixels"));
	ls_image_shape shape = shape_of(model);
	size_t values = (size_t)shape.channels * (size_t)shape.height * (size_t)shape.width;

	for (size_t i = 0; i < values; i++)
		if (!(pixels[i] >= 0 && pixels[i] <= 255))
			return ls_fail(LS_ENUMERIC, "value %zu of the image is %g; pixels are numbers from 0 to 255",
				       i + 1, (double)pixels[i]);
	ls_pixels_normalise(pixels, shape, ls_model_normalisation(model));
	return LS_OK;
}

ls_status ls_model_normalise_floats(const ls_model *model, float *values)
{
	LS_TRY(check_images(model));
	LS_TRY(ls_argument_check(values, "values"));
	ls_image_shape shape = shape_of(model);
	const ls_normalisation *n = ls_model_normalisation(model);
	size_t positions = (size_t)shape.height * (size_t)shape.width;

	for (int c = 0; c < shape.channels; c++) {
		int from = n->channels == 1 ? 0 : c;
		float mean = (float)n->mean[from], deviation = (float)n->deviation[from];
		for (size_t i = 0; i < positions; i++, values++)
			*values = (*values - mean) / deviation;
	}
	return LS_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

int ls_model_column_at(const ls_model *model, size_t i, ls_model_column *out)
{
	if (ls_handle_check(model, LS_MODEL_KIND) != LS_OK || i >= model->table.inputs)
		return 0;
	const ls_table_column *column = &model->table.input[i];
	if (out)
		*out = (ls_model_column){ .name = column->name };
	if (out && column->is_category) {
		out->categories = (const char *const *)column->value;
		out->category_count = column->values;
	}
	return 1;
}

ls_status ls_model_read_row(const ls_model *model, const char *const *names, const char *const *values, size_t count,
			    float *features)
{
	LS_TRY(ls_handle_check(model, LS_MODEL_KIND));
	const ls_table_schema *s = &model->table;
	ls_table_met met = { 0 };
	size_t *places = calloc(s->inputs + 1, sizeof(*places));
	const char **field = calloc(count + 1, sizeof(*field));
	float *compact = calloc(s->inputs + 1, sizeof(*compact));
	ls_status status = LS_OK;

	if (s->inputs == 0)
		status = ls_fail(LS_EMISMATCH, "the model was not trained on a table of numbers and categories");
	else if (!places || !field || !compact)
		status = ls_fail(LS_EMEMORY, "no memory for a row");
	for (size_t k = 0; status == LS_OK && k < count; k++)
		field[k] = values[k];
	for (size_t i = 0; status == LS_OK && i < s->inputs; i++) {
		while (places[i] < count && strcmp(names[places[i]], s->input[i].name) != 0)
			places[i]++;
		if (places[i] == count)
			field[count] = ""; /* a missing value */
	}
	const ls_table_row row = { .line = 1, .field = field };
	if (status == LS_OK)
		status = ls_table_read_inputs(s, places, &row, "row", compact, &met);
	if (status == LS_OK)
		ls_table_expand(s, compact, features);
	free(compact);
	free(field);
	free(places);
	return status;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static ls_status check_text(const ls_model *model)
{
	LS_TRY(ls_handle_check(model, LS_MODEL_KIND));
	if (model->trained.graph->tokens_max == 0)
		return ls_fail(LS_EMISMATCH, "the model takes images, not text");
	if (!model->tokenizer.wordpiece && !model->tokenizer.bpe)
		return ls_fail(
			LS_EMISMATCH,
			"the model was trained on generated text, which has no vocabulary: it takes no other text");
	return LS_OK;
}

static void frame(const ls_model *model, const ls_tokens *found, ls_text_sample *out, int *cut)
{
	int most = model->trained.graph->tokens_max - FRAME,
	    count = found->count < (size_t)most ? (int)found->count : most;

	out->length = count + FRAME;
	out->masked = 0;
	out->tokens[0] = model->tokenizer.special.cls;
	if (count > 0)
		memcpy(out->tokens + 1, found->ids, (size_t)count * sizeof(*out->tokens));
	out->tokens[count + 1] = model->tokenizer.special.sep;
	if (out->segments)
		memset(out->segments, 0, (size_t)out->length * sizeof(*out->segments));
	if (cut)
		*cut = (int)(found->count - (size_t)count);
}

/* What a language model goes on from: the end of a text that is too long. A text without a token begins with the end of
 * another. */
static ls_status take_end(const ls_model *model, const ls_tokens *found, ls_text_sample *out, int *cut)
{
	int most = model->trained.graph->tokens_max, count = found->count < (size_t)most ? (int)found->count : most;
	int32_t end = ls_bpe_end(model->tokenizer.bpe);

	if (count == 0 && end < 0)
		return ls_fail(LS_EINVALID,
			       "the prompt is empty, and the vocabulary has no " LS_BPE_END " to start a text with");
	if (count == 0)
		out->tokens[0] = end;
	else
		memcpy(out->tokens, found->ids + found->count - (size_t)count, (size_t)count * sizeof(*out->tokens));
	out->length = count > 0 ? count : 1;
	out->masked = 0;
	if (out->segments)
		memset(out->segments, 0, (size_t)out->length * sizeof(*out->segments));
	if (cut)
		*cut = (int)(found->count - (size_t)count);
	return LS_OK;
}

static ls_status tokenize(const ls_model *model, const char *text, size_t bytes, ls_tokens *found)
{
	const ls_tokenizer *t = &model->tokenizer;
	return t->bpe ? ls_bpe_encode(t->bpe, text, bytes, found)
		      : ls_wordpiece_encode(t->wordpiece, text, bytes, found);
}

ls_status ls_model_tokenize(const ls_model *model, const char *text, size_t bytes, ls_text_sample *out, int *cut)
{
	ls_tokens found = { 0 };

	LS_TRY(check_text(model));
	LS_TRY(ls_argument_check(bytes > 0 ? text : "", "text"));
	LS_TRY(ls_argument_check(out, "out"));
	ls_status status = tokenize(model, text, bytes, &found);
	if (status == LS_OK && model->tokenizer.bpe)
		status = take_end(model, &found, out, cut);
	else if (status == LS_OK)
		frame(model, &found, out, cut);
	ls_tokens_free(&found);
	return status;
}
