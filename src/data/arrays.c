/*
 * arrays.c - a dataset of samples that a program has in memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "data/dataset.h"

typedef struct arrays {
	size_t values;         /* per sample */
	const float *images;   /* (samples, values), the program's */
	const int32_t *labels; /* (samples), the program's; NULL: all 0 */
	const float *targets;  /* (samples, width), the program's; NULL: none */
	size_t width;
} arrays;

static ls_status arrays_read(void *self, uint64_t index, float *image, int32_t *label)
{
	const arrays *a = self;
	memcpy(image, a->images + index * a->values, a->values * sizeof(float));
	*label = a->labels ? a->labels[index] : 0;
	return LS_OK;
}

static ls_status arrays_read_targets(void *self, uint64_t index, float *targets)
{
	const arrays *a = self;
	memcpy(targets, a->targets + index * a->width, a->width * sizeof(float));
	return LS_OK;
}

/* Found now, with its place, and not in the middle of an epoch. */
static ls_status check(const ls_dataset *dataset, const arrays *a)
{
	const ls_dataset_info *info = &dataset->info;
	size_t values = ls_dataset_values(info);
	const float *images = a->images;
	const int32_t *labels = a->labels;

	for (uint64_t i = 0; i < info->samples; i++) {
		if (labels && (labels[i] < 0 || labels[i] >= info->classes))
			return ls_fail(LS_EINVALID, "dataset '%s': sample %llu has label %d; labels are 0 to %d",
				       info->name, (unsigned long long)i, (int)labels[i], info->classes - 1);
		for (size_t k = 0; k < values; k++)
			if (!isfinite(images[i * values + k]))
				return ls_fail(LS_EINVALID, "dataset '%s': value %zu of sample %llu is not finite",
					       info->name, k, (unsigned long long)i);
		for (int k = 0; k < info->targets; k++)
			LS_TRY(ls_dataset_check_target(dataset, i, k, a->targets[i * a->width + (size_t)k]));
	}
	return LS_OK;
}

static ls_status from(ls_dataset **out, const ls_dataset_info *info, const arrays *what)
{
	const ls_dataset_ops ops = { .read = arrays_read,
				     .free = free,
				     .read_targets = what->targets ? arrays_read_targets : NULL };
	ls_dataset *dataset = NULL;
	arrays *self = malloc(sizeof(*self));
	if (!self)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%s'", info->name);
	*self = *what;
	self->values = ls_dataset_values(info);
	self->width = (size_t)info->targets;
	ls_status status = ls_dataset_new(&dataset, info, &ops, self);
	if (status) {
		free(self);
		return status;
	}
	status = check(dataset, self);
	if (status)
		ls_dataset_free(dataset);
	else
		*out = dataset;
	return status;
}

ls_status ls_dataset_from_arrays(ls_dataset **out, const ls_dataset_info *info, const float *images,
				 const int32_t *labels)
{
	if (!out || !info || !images || !labels)
		return ls_fail(LS_EINVALID, "ls_dataset_from_arrays needs an info, images and labels");
	return from(out, info, &(arrays){ .images = images, .labels = labels });
}

ls_status ls_dataset_from_targets(ls_dataset **out, const ls_dataset_info *info, const float *images,
				  const float *targets)
{
	if (!out || !info || !images || !targets)
		return ls_fail(LS_EINVALID, "ls_dataset_from_targets needs an info, images and targets");
	if (info->targets < 1)
		return ls_fail(LS_EINVALID,
			       "ls_dataset_from_targets: info.targets of '%.63s' is %d; it must be positive",
			       info->name, info->targets);
	return from(out, info, &(arrays){ .images = images, .targets = targets });
}
