#include "trainer/sample_check.h"

#include <math.h>

#include "base/names.h"
#include "base/status.h"
#include "trainer/token_targets.h"

size_t ls_sample_floats(const ls_graph *graph)
{
	const ls_tensor *in = &graph->values[graph->input];
	return (size_t)in->channels * (size_t)in->height * (size_t)in->width;
}

ls_status ls_sample_check_text(const ls_graph *graph, const ls_text_sample *sample, int64_t i)
{
	int vocabulary = ls_graph_vocabulary(graph);

	if (sample->length < 1 || sample->length > graph->tokens_max)
		return ls_fail(LS_EINVALID, "sample %lld has %d tokens; the model takes 1 to %d", (long long)i,
			       sample->length, graph->tokens_max);
	for (int k = 0; k < sample->length; k++) {
		if (sample->tokens[k] < 0 || sample->tokens[k] >= vocabulary)
			return ls_fail(LS_EINVALID, "sample %lld: token %d is %d, not one of the vocabulary's %d",
				       (long long)i, k, (int)sample->tokens[k], vocabulary);
		if (sample->segments && (sample->segments[k] < 0 || sample->segments[k] > 1))
			return ls_fail(LS_EINVALID, "sample %lld: segment %d is %d, not 0 or 1", (long long)i, k,
				       (int)sample->segments[k]);
	}
	return LS_OK;
}

static ls_status check_label(const ls_graph *graph, int64_t i, int32_t label)
{
	int classes = ls_graph_classes(graph);

	if (label >= 0 && label < classes)
		return LS_OK;
	return ls_fail(LS_EINVALID, "the label of sample %lld is %d; the model has %d class%s, 0 to %d", (long long)i,
		       (int)label, classes, ls_plural((uint64_t)classes, "es"), classes - 1);
}

static ls_status check_masked(const ls_graph *graph, const ls_text_sample *sample, int64_t i)
{
	int vocabulary = ls_graph_vocabulary(graph);

	if (sample->masked < 0 || sample->masked > graph->masked_max)
		return ls_fail(LS_EINVALID, "sample %lld has %d masked positions; the model takes 0 to %d",
			       (long long)i, sample->masked, graph->masked_max);
	if (sample->masked > 0 && (!sample->places || !sample->targets))
		return ls_fail(LS_EINVALID, "sample %lld has masked positions: its places and targets must not be NULL",
			       (long long)i);
	for (int k = 0; k < sample->masked; k++) {
		int32_t place = sample->places[k], before = k > 0 ? sample->places[k - 1] : -1;
		if (place <= before || place >= sample->length)
			return ls_fail(LS_EINVALID,
				       "sample %lld: masked position %d is %d; they must ascend and be below the "
				       "sample's %d tokens",
				       (long long)i, k, (int)place, sample->length);
		if (sample->targets[k] < 0 || sample->targets[k] >= vocabulary)
			return ls_fail(LS_EINVALID, "sample %lld: target %d is %d, not one of the vocabulary's %d",
				       (long long)i, k, (int)sample->targets[k], vocabulary);
	}
	return LS_OK;
}

static ls_status check_text(const ls_graph *graph, const ls_batch *batch)
{
	if (!batch->text)
		return ls_fail(LS_EMISMATCH, "the model takes text: batch.text is NULL%s",
			       batch->images ? ", and batch.images is for models of images" : "");
	for (int64_t i = 0; i < batch->count; i++) {
		const ls_text_sample *sample = &batch->text[i];
		if (!sample->tokens)
			return ls_fail(LS_EINVALID, "sample %lld has no tokens: batch.text[%lld].tokens is NULL",
				       (long long)i, (long long)i);
		LS_TRY(ls_sample_check_text(graph, sample, i));
		LS_TRY(check_masked(graph, sample, i));
		LS_TRY(check_label(graph, i, sample->label));
	}
	return ls_token_targets_check_batch(graph, batch);
}

/* x - x is 0 for a finite x and NaN for any other; a sum of them needs no branch. */
static ls_status check_finite(const float *x, size_t count, int64_t i, const char *of, const char *all)
{
	float sum = 0;

	for (size_t k = 0; k < count; k++)
		sum += x[k] - x[k];
	if (sum == 0)
		return LS_OK;
	size_t k = 0;
	while (isfinite(x[k]))
		k++;
	return ls_fail(LS_EINVALID, "sample %lld: value %zu of %s is %s; %s must be finite numbers", (long long)i, k,
		       of, isnan(x[k]) ? "NaN" : "infinite", all);
}

ls_status ls_sample_check_images(const ls_graph *graph, const float *images, int64_t count)
{
	size_t floats = ls_sample_floats(graph);

	for (int64_t i = 0; i < count; i++)
		LS_TRY(check_finite(images + (size_t)i * floats, floats, i, "the image", "images"));
	return LS_OK;
}

static ls_status check_images(const ls_graph *graph, const ls_batch *batch)
{
	if (!batch->images || (!batch->labels && !batch->targets))
		return ls_fail(LS_EMISMATCH, "the model takes images and their labels: batch.%s is NULL%s",
			       batch->images ? "labels" : "images",
			       batch->text ? ", and batch.text is for models of text" : "");
	for (int64_t i = 0; batch->labels && i < batch->count; i++)
		LS_TRY(check_label(graph, i, batch->labels[i]));
	return ls_sample_check_images(graph, batch->images, batch->count);
}

/* One per output; classes have probabilities. */
static ls_status check_targets(const ls_graph *graph, const ls_batch *batch)
{
	size_t outputs = (size_t)ls_graph_outputs(graph);
	int are_chances = ls_graph_classifies(graph);

	if (graph->predicts_next)
		return ls_fail(LS_EMISMATCH, "the model predicts the next token: batch.targets must be NULL");
	for (int64_t i = 0; i < batch->count; i++) {
		const float *row = batch->targets + (size_t)i * outputs;
		LS_TRY(check_finite(row, outputs, i, "its targets", "targets"));
		for (size_t k = 0; k < outputs && are_chances; k++)
			if (!(row[k] >= 0 && row[k] <= 1))
				return ls_fail(LS_EINVALID,
					       "sample %lld: target %zu is %g; classes have probabilities, 0 to 1",
					       (long long)i, k, (double)row[k]);
	}
	return LS_OK;
}

ls_status ls_sample_check(const ls_graph *graph, const ls_batch *batch, int64_t most)
{
	if (!batch)
		return ls_fail(LS_EINVALID, "the batch is NULL");
	if (batch->count < 1 || batch->count > most)
		return ls_fail(LS_EINVALID, "batch.count is %lld; it must be from 1 to %lld%s", (long long)batch->count,
			       (long long)most, most < INT64_MAX ? ", the trainer's options.batch" : "");
	LS_TRY(graph->tokens_max > 0 ? check_text(graph, batch) : check_images(graph, batch));
	return batch->targets ? check_targets(graph, batch) : LS_OK;
}
