/*
 * read.c - lockstep/data.h: samples for programs, of a dataset that must not have been freed.
 */
#include "base/handles.h"
#include "data/dataset.h"

ls_status ls_dataset_read(const ls_dataset *dataset, uint64_t index, float *image, int32_t *label)
{
	LS_TRY(ls_handle_check(dataset, LS_DATASET_KIND));
	return ls_dataset_sample(dataset, index, image, label);
}

ls_status ls_dataset_read_text(const ls_dataset *dataset, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	LS_TRY(ls_handle_check(dataset, LS_DATASET_KIND));
	return ls_dataset_sample_text(dataset, index, epoch, out);
}

ls_status ls_dataset_measure_text(const ls_dataset *dataset, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	LS_TRY(ls_handle_check(dataset, LS_DATASET_KIND));
	return ls_dataset_sample_measures(dataset, index, epoch, length, masked);
}

ls_status ls_dataset_read_targets(const ls_dataset *dataset, uint64_t index, float *targets)
{
	LS_TRY(ls_handle_check(dataset, LS_DATASET_KIND));
	return ls_dataset_sample_targets(dataset, index, targets);
}
