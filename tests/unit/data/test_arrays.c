/*
 * Datasets of arrays that a program has in memory.
 */
#include "data/dataset.h"

#include <math.h>
#include <string.h>

#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { SAMPLES = 5, VALUES = 2 * 3 * 4 };

static const ls_dataset_info info = {
	.name = "mine", .samples = SAMPLES, .channels = 2, .height = 3, .width = 4, .classes = 3
};

static void fill(float *images, int32_t *labels)
{
	for (int i = 0; i < SAMPLES * VALUES; i++)
		images[i] = (float)i / 7;
	for (int i = 0; i < SAMPLES; i++)
		labels[i] = i % 3;
}

static void reads_what_is_there(void **state)
{
	float images[SAMPLES * VALUES], image[VALUES];
	int32_t labels[SAMPLES], label;
	ls_dataset *set = NULL;
	(void)state;
	fill(images, labels);
	assert_ok(ls_dataset_from_arrays(&set, &info, images, labels));
	for (uint64_t i = SAMPLES; i-- > 0;) {
		assert_ok(ls_dataset_read(set, i, image, &label));
		assert_memory_equal(image, images + i * VALUES, sizeof(image));
		assert_int_equal(label, i % 3);
	}
	images[VALUES] = 99; /* not copied */
	assert_ok(ls_dataset_read(set, 1, image, &label));
	assert_true(image[0] == 99);
	ls_dataset_free(set);
}

static void refuses_what_cannot_be_trained_on(void **state)
{
	float images[SAMPLES * VALUES];
	int32_t labels[SAMPLES];
	ls_dataset *set = NULL;
	ls_dataset_info other = info;
	(void)state;
	fill(images, labels);
	labels[3] = 3;
	assert_fails(ls_dataset_from_arrays(&set, &info, images, labels), LS_EINVALID,
		     "dataset 'mine': sample 3 has label 3; labels are 0 to 2");
	labels[3] = -1;
	assert_fails(ls_dataset_from_arrays(&set, &info, images, labels), LS_EINVALID, "sample 3 has label -1");
	fill(images, labels);
	images[2 * VALUES + 1] = NAN;
	assert_fails(ls_dataset_from_arrays(&set, &info, images, labels), LS_EINVALID,
		     "dataset 'mine': value 1 of sample 2 is not finite");
	fill(images, labels);
	other.samples = 0;
	assert_fails(ls_dataset_from_arrays(&set, &other, images, labels), LS_EINVALID, "has no samples");
	assert_null(set);
}

TEST_MAIN(reads_what_is_there, refuses_what_cannot_be_trained_on)
