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
	const int32_t *labels; /* (samples), the program's */
} arrays;

static ls_status arrays_read(void *self, uint64_t index, float *image, int32_t *label)
{
	const arrays *a = self;
	memcpy(image, a->images + index * a->values, a->values * sizeof(float));
	*label = a->labels[index];
	return LS_OK;
}

/* Found now, with its place, and not in the middle of an epoch. */
static ls_status check(const ls_dataset_info *info, const float *images, const int32_t *labels)
{
	size_t values = ls_dataset_values(info);

	for (uint64_t i = 0; i < info->samples; i++) {
		if (labels[i] < 0 || labels[i] >= info->classes)
			return ls_fail(LS_EINVALID, "dataset '%s': sample %llu has label %d; labels are 0 to %d",
				       info->name, (unsigned long long)i, (int)labels[i], info->classes - 1);
		for (size_t k = 0; k < values; k++)
			if (!isfinite(images[i * values + k]))
				return ls_fail(LS_EINVALID, "dataset '%s': value %zu of sample %llu is not finite",
					       info->name, k, (unsigned long long)i);
	}
	return LS_OK;
}

ls_status ls_dataset_from_arrays(ls_dataset **out, const ls_dataset_info *info, const float *images,
				 const int32_t *labels)
{
	static const ls_dataset_ops ops = { .read = arrays_read, .free = free };
	ls_dataset *dataset = NULL;
	arrays *self = malloc(sizeof(*self));
	if (!self)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%s'", info->name);
	*self = (arrays){ .values = ls_dataset_values(info), .images = images, .labels = labels };
	ls_status status = ls_dataset_new(&dataset, info, &ops, self);
	if (status) {
		free(self);
		return status;
	}
	status = check(info, images, labels);
	if (status)
		ls_dataset_free(dataset);
	else
		*out = dataset;
	return status;
}
