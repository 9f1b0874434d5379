/*
 * Float targets: datasets that have them, and the loader that delivers them.
 */
#include <math.h>
#include <string.h>

#include "data/loader.h"
#include "unit/data/plain_set.h"
#include "unit/test_main.h"

enum { SAMPLES = 23, TARGETS = 3 };

static const ls_dataset_info info = { .name = "mine",
				      .samples = SAMPLES,
				      .channels = 2,
				      .height = 1,
				      .width = 1,
				      .classes = TARGETS,
				      .task = LS_TASK_REGRESSION,
				      .targets = TARGETS };

static float images[SAMPLES * 2], targets[SAMPLES * TARGETS];

static void fill(void)
{
	for (int i = 0; i < SAMPLES * 2; i++)
		images[i] = (float)i;
	for (int i = 0; i < SAMPLES * TARGETS; i++)
		targets[i] = -1.5f * (float)i;
}

static void reads_targets(void **state)
{
	ls_dataset *set = NULL;
	float row[TARGETS], image[2];
	int32_t label = 7;

	(void)state;
	fill();
	assert_ok(ls_dataset_from_targets(&set, &info, images, targets));
	for (uint64_t i = SAMPLES; i-- > 0;) {
		assert_ok(ls_dataset_read(set, i, image, &label));
		assert_ok(ls_dataset_read_targets(set, i, row));
		assert_int_equal(label, 0);
		assert_memory_equal(row, targets + i * TARGETS, sizeof(row));
	}
	assert_fails(ls_dataset_read_targets(set, SAMPLES, row), LS_EINVALID, "does not exist");
	ls_dataset_free(set);
	set = make_set(&fine, 3);
	assert_fails(ls_dataset_read_targets(set, 0, row), LS_EUNSUPPORTED, "no float targets");
	ls_dataset_free(set);
}

static void refuses_bad_targets(void **state)
{
	const struct {
		ls_task task;
		float value;
		const char *message;
	} cases[] = { { LS_TASK_REGRESSION, NAN, "target 1 of sample 2 is nan, expected a finite number" },
		      { LS_TASK_REGRESSION, INFINITY, "target 1 of sample 2 is inf" },
		      { LS_TASK_MULTI_LABEL, 1.5f, "target 1 of sample 2 is 1.5, expected a number from 0 to 1" },
		      { LS_TASK_CLASSIFICATION, -0.5f, "target 1 of sample 2 is -0.5" } };
	ls_dataset *set = NULL;
	ls_dataset_info other = info;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(targets, 0, sizeof(targets));
		targets[2 * TARGETS + 1] = cases[i].value;
		other.task = cases[i].task;
		assert_fails(ls_dataset_from_targets(&set, &other, images, targets), LS_EFORMAT, cases[i].message);
	}
	fill();
	other = info;
	other.targets = 2;
	assert_fails(ls_dataset_from_targets(&set, &other, images, targets), LS_EINVALID, "2 float targets");
	other.targets = 0;
	assert_fails(ls_dataset_from_targets(&set, &other, images, targets), LS_EINVALID, "must be positive");
	other = info;
	other.task = (ls_task)9;
	assert_fails(ls_dataset_from_targets(&set, &other, images, targets), LS_EINVALID, "has task 9");
	assert_null(set);
}

static void check_pass(const ls_dataset *set, const ls_loader_options *o, int one_hot)
{
	ls_loader *loader = NULL;
	const ls_microbatch *m = NULL;
	uint64_t seen = 0;

	assert_ok(ls_loader_new(&loader, set, o));
	for (;;) {
		assert_ok(ls_loader_next(loader, &m));
		if (!m)
			break;
		for (int64_t i = 0; i < m->count; i++, seen++) {
			const float *row = m->targets + i * m->target_count;
			assert_int_equal(m->target_count, one_hot ? 7 : TARGETS);
			for (int k = 0; k < m->target_count; k++)
				assert_true(row[k] == (one_hot ? (float)(k == m->labels[i])
							       : targets[m->samples[i] * TARGETS + (uint64_t)k]));
		}
	}
	assert_int_equal(seen, set->info.samples);
	ls_loader_free(loader);
}

static void loader_delivers_targets(void **state)
{
	ls_dataset *set = NULL, *plain = make_set(&fine, SAMPLES);
	ls_loader_options o = {
		.seed = 4, .shuffle = 1, .microbatch = 4, .global_batch = 10, .single_pass = 1, .one_hot = 1
	};

	(void)state;
	fill();
	assert_ok(ls_dataset_from_targets(&set, &info, images, targets));
	for (o.threads = 1; o.threads < 4; o.threads++) {
		check_pass(set, &o, 0);
		check_pass(plain, &o, 1);
	}
	ls_dataset_free(plain);
	ls_dataset_free(set);
}

TEST_MAIN(reads_targets, refuses_bad_targets, loader_delivers_targets)
