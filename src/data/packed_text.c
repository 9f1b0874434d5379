#include "data/packed_text.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

static size_t array_bytes(int64_t count)
{
	return ls_round_up64((size_t)count * sizeof(int32_t));
}

size_t ls_microbatch_text_bytes(const ls_dataset_info *info, int64_t samples)
{
	return 2 * array_bytes(samples + 1) + 2 * array_bytes(samples * info->tokens_max) +
	       2 * array_bytes(samples * info->masked_max);
}

static int32_t *take(char **base, int64_t count)
{
	int32_t *array = (int32_t *)*base;
	*base += array_bytes(count);
	return array;
}

void ls_microbatch_text_place(ls_microbatch_text *text, const ls_dataset_info *info, int64_t samples, void *base)
{
	char *next = base;
	text->start = take(&next, samples + 1);
	text->masked_start = take(&next, samples + 1);
	text->token = take(&next, samples * info->tokens_max);
	text->segment = take(&next, samples * info->tokens_max);
	text->masked_at = take(&next, samples * info->masked_max);
	text->target = take(&next, samples * info->masked_max);
	text->packed = (ls_packed){ .start = text->start,
				    .masked_start = text->masked_start,
				    .token = text->token,
				    .segment = text->segment,
				    .masked_at = text->masked_at,
				    .target = text->target };
	text->start[0] = text->masked_start[0] = 0;
}

ls_status ls_microbatch_text_read(ls_microbatch_text *text, const ls_dataset *dataset, int64_t i, uint64_t index,
				  uint64_t epoch, int32_t *label)
{
	int32_t row = text->start[i], masked = text->masked_start[i];
	ls_text_sample sample = { .tokens = text->token + row,
				  .segments = text->segment + row,
				  .places = text->masked_at + masked,
				  .targets = text->target + masked };
	LS_TRY(ls_dataset_sample_text(dataset, index, epoch, &sample));
	for (int k = 0; k < sample.masked; k++)
		text->masked_at[masked + k] += row;
	text->start[i + 1] = row + sample.length;
	text->masked_start[i + 1] = masked + sample.masked;
	*label = sample.label;
	return LS_OK;
}
