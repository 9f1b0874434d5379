/*
 * plain_set.h - a dataset to test loaders with: every sample contains its own index.
 */
#ifndef LS_TEST_DATA_PLAIN_SET_H
#define LS_TEST_DATA_PLAIN_SET_H

#include "unit/data/fixture.h"

#include <time.h>

#include "base/status.h"
#include "data/dataset.h"

/* A dataset with one float per sample, its index; `bad` fails, and every read may take `nap` microseconds. */
typedef struct plain_set {
	uint64_t bad;
	long nap;
} plain_set;

static ls_status plain_read(void *self, uint64_t index, float *image, int32_t *label)
{
	const plain_set *set = self;
	if (set->nap)
		nanosleep(&(struct timespec){ .tv_nsec = set->nap * 1000 }, NULL);
	if (index == set->bad) {
		return ls_fail(LS_EIO, "sample %llu cannot be read", (unsigned long long)index);
	}
	image[0] = (float)index;
	*label = (int32_t)(index % 7);
	return LS_OK;
}

/* A dataset that reads `self`. */
static ls_dataset *make_set(plain_set *self, uint64_t samples)
{
	ls_dataset *set;
	ls_dataset_info info = {
		.name = "plain", .samples = samples, .channels = 1, .height = 1, .width = 1, .classes = 7
	};
	assert_ok(ls_dataset_new(&set, &info, &(ls_dataset_ops){ .read = plain_read }, self));
	return set;
}

static plain_set fine = { .bad = UINT64_MAX };

#endif
