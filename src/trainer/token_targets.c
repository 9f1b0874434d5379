#include "trainer/token_targets.h"

#include "base/status.h"
#include "data/dataset.h"

static const char *what_is_predicted(const ls_graph *graph)
{
	return graph->predicts_next ? "the next token" : "masked tokens";
}

ls_status ls_token_targets_check_batch(const ls_graph *graph, const ls_batch *batch)
{
	int64_t sum = 0;

	if (!ls_graph_predicts_tokens(graph))
		return LS_OK;
	for (int64_t i = 0; i < batch->count; i++) {
		sum += batch->text[i].masked;
		if (graph->predicts_next && batch->text[i].masked == 0)
			return ls_fail(
				LS_EINVALID,
				"sample %lld: batch.text[%lld].masked is 0, but a language model needs at least one "
				"target per sample; call ls_text_sample_set_targets()",
				(long long)i, (long long)i);
	}
	if (sum > 0)
		return LS_OK;
	return ls_fail(LS_EINVALID,
		       "the batch has no token to predict: batch.text[i].masked is 0 in all of its samples, and the "
		       "model predicts masked tokens; ls_text_sample_set_targets() sets the tokens to predict");
}

ls_status ls_token_targets_check_set(const ls_graph *graph, const ls_dataset *set)
{
	const ls_dataset_info *info = ls_dataset_describe(set);
	int length, masked = 0;

	if (!ls_graph_predicts_tokens(graph) || info->samples == 0)
		return LS_OK;
	if (info->masked_max == 0)
		return ls_fail(LS_EMISMATCH,
			       "the model predicts %s, and dataset %s has no tokens to predict, its masked_max is 0; "
			       "ls_dataset_from_texts() makes one that has some",
			       what_is_predicted(graph), info->name);
	for (uint64_t i = 0; masked == 0 && i < info->samples; i++)
		LS_TRY(ls_dataset_sample_measures(set, i, 0, &length, &masked));
	if (masked > 0)
		return LS_OK;
	return ls_fail(LS_EMISMATCH,
		       "the model predicts %s, and no sample of dataset %s has a token to predict: ops.measure_text "
		       "gives masked 0 for all of them",
		       what_is_predicted(graph), info->name);
}

ls_status ls_token_targets_check_microbatch(const ls_graph *graph, const ls_dataset *set,
					    const ls_microbatch *microbatch)
{
	const int32_t *start = microbatch->text && graph->predicts_next ? microbatch->text->masked_start : NULL;

	for (int64_t i = 0; start && i < microbatch->count; i++)
		if (start[i + 1] == start[i])
			return ls_fail(LS_EFORMAT,
				       "dataset '%s': sample %llu has no token to predict (its masked is 0), and the "
				       "model predicts the next token; leave the sample out or give it targets",
				       set->info.name, (unsigned long long)microbatch->samples[i]);
	return LS_OK;
}
