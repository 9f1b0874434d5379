/*
 * Mixup and cutmix: what is drawn, what becomes of images and targets, and that neither depends on the batch.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/transforms/transforms.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { SAMPLES = 40, EPOCHS = 3, SIDE = 4, PIXELS = SIDE * SIDE, CLASSES = 5 };

/* Sample i has the values i, and the label i mod CLASSES. */
static ls_status read(void *self, uint64_t index, float *image, int32_t *label)
{
	(void)self;
	for (int i = 0; i < PIXELS; i++)
		image[i] = (float)index;
	*label = (int32_t)(index % CLASSES);
	return LS_OK;
}

static ls_status read_targets(void *self, uint64_t index, float *targets)
{
	(void)self;
	for (int i = 0; i < CLASSES; i++)
		targets[i] = (float)index * 0.01f + (float)i;
	return LS_OK;
}

static ls_dataset *make_set(int has_targets)
{
	ls_dataset_info info = {
		.name = "numbers", .samples = SAMPLES, .channels = 1, .height = SIDE, .width = SIDE, .classes = CLASSES
	};
	ls_dataset_ops ops = { .read = read };
	ls_dataset *set = NULL;
	if (has_targets) {
		info.task = LS_TASK_REGRESSION;
		info.targets = CLASSES;
		ops.read_targets = read_targets;
	}
	assert_ok(ls_dataset_new(&set, &info, &ops, NULL));
	return set;
}

/* Mean 1/2 and variance 1 / (4 (2 alpha + 1)), and for 1 every tenth as often; the same numbers everywhere. */
static void test_beta(void **state)
{
	enum { COUNT = 20000 };
	static const double alphas[] = { 0.01, 0.2, 0.5, 1, 2, 8, 100 };
	uint64_t hash = 0;
	(void)state;
	for (size_t k = 0; k < LS_COUNT(alphas); k++) {
		double sum = 0, squares = 0, wanted = 1 / (4 * (2 * alphas[k] + 1));
		int tenth[10] = { 0 };
		for (uint64_t i = 0; i < COUNT; i++) {
			ls_sample_rng draw = ls_sample_rng_begin(ls_rng_make(5, LS_RNG_TEST, k), i);
			double x = ls_draw_beta(alphas[k], &draw);
			assert_true(x >= 0 && x <= 1);
			sum += x;
			squares += (x - 0.5) * (x - 0.5);
			tenth[x < 1 ? (int)(x * 10) : 9]++;
			float rounded = (float)x;
			hash = XXH64(&rounded, sizeof(rounded), hash);
		}
		assert_true(fabs(sum / COUNT - 0.5) < 0.012);
		assert_true(fabs(squares / COUNT / wanted - 1) < 0.04);
		for (int i = 0; alphas[k] == 1 && i < 10; i++)
			assert_in_range(tenth[i], 1850, 2150);
	}
	print_message("# xxh64 of %d draws: %016llx\n", COUNT, (unsigned long long)hash);
	assert_true(hash == 0xdd0c445fc663e400ull);
}

typedef struct mixed {
	float image[PIXELS], targets[CLASSES];
} mixed;

/* Every sample of the epochs, by its number. */
static void read_epochs(const ls_dataset *set, const ls_transforms *t, int64_t microbatch, int threads, mixed *out)
{
	ls_loader_options o = { .seed = 3,
				.shuffle = 1,
				.microbatch = microbatch,
				.global_batch = 20,
				.threads = threads,
				.transforms = t,
				.one_hot = 1 };
	ls_loader *loader = NULL;
	const ls_microbatch *m = NULL;

	assert_ok(ls_loader_new(&loader, set, &o));
	for (int64_t seen = 0; seen < EPOCHS * SAMPLES; seen += m->count) {
		assert_ok(ls_loader_next(loader, &m));
		assert_int_equal(m->target_count, CLASSES);
		for (int64_t i = 0; i < m->count; i++) {
			mixed *to = &out[m->epoch * SAMPLES + m->samples[i]];
			memcpy(to->image, m->images + i * PIXELS, sizeof(to->image));
			memcpy(to->targets, m->targets + i * CLASSES, sizeof(to->targets));
		}
	}
	ls_loader_free(loader);
}

/* own * a + (1 - own) * b; of another class than the sample's, the share that is not its own. */
static void check_mixup(const mixed *m, int index, int *met)
{
	float sum = 0;
	int other = -1;

	for (int c = 0; c < CLASSES; c++) {
		sum += m->targets[c];
		other = c != index % CLASSES && m->targets[c] > 0 ? c : other;
	}
	assert_true(fabsf(sum - 1) < 1e-6f);
	for (int i = 1; i < PIXELS; i++)
		assert_true(m->image[i] == m->image[0]);
	if (other < 0)
		return;
	float rest = m->targets[other];
	float partner = ((float)m->image[0] - (1 - rest) * (float)index) / rest;
	if (rest > 0.01f) { /* else rounding hides it */
		assert_true(fabsf(partner - roundf(partner)) < 0.02f && (int)lroundf(partner) % CLASSES == other);
		met[lroundf(partner)]++;
	}
}

static void test_mixup(void **state)
{
	static mixed first[EPOCHS * SAMPLES], again[EPOCHS * SAMPLES];
	ls_dataset *set = make_set(0);
	ls_transforms t;
	int met[SAMPLES] = { 0 }, partners = 0;
	(void)state;
	assert_ok(ls_transforms_init(&t, "mixup:1", set, 5));
	read_epochs(set, &t, 5, 1, first);
	read_epochs(set, &t, 20, 3, again);
	assert_memory_equal(first, again, sizeof(first));
	for (int i = 0; i < EPOCHS * SAMPLES; i++)
		check_mixup(&first[i], i % SAMPLES, met);
	for (int i = 0; i < SAMPLES; i++)
		partners += met[i] > 0;
	assert_in_range(partners, SAMPLES / 2, SAMPLES); /* from the whole dataset */
	assert_memory_not_equal(first, first + SAMPLES, SAMPLES * sizeof(first[0]));
	ls_transforms_release(&t);
	ls_dataset_free(set);
}

/* Pixels are the sample's or the other's, which fill a rectangle; targets are as many of each. */
static void test_cutmix(void **state)
{
	static mixed found[EPOCHS * SAMPLES];
	ls_dataset *set = make_set(0);
	ls_transforms t;
	int cut = 0;
	(void)state;
	assert_ok(ls_transforms_init(&t, "cutmix", set, 5));
	read_epochs(set, &t, 4, 2, found);
	for (int i = 0; i < EPOCHS * SAMPLES; i++) {
		int index = i % SAMPLES, others = 0, top = SIDE, bottom = -1, left = SIDE, right = -1, partner = index;
		for (int k = 0; k < PIXELS; k++)
			if (found[i].image[k] != (float)index) {
				assert_true(partner == index || found[i].image[k] == (float)partner);
				partner = (int)found[i].image[k];
				others++;
				top = k / SIDE < top ? k / SIDE : top;
				bottom = k / SIDE > bottom ? k / SIDE : bottom;
				left = k % SIDE < left ? k % SIDE : left;
				right = k % SIDE > right ? k % SIDE : right;
			}
		if (others > 0)
			assert_int_equal(others, (bottom - top + 1) * (right - left + 1));
		float own = 1 - (float)others / PIXELS;
		for (int c = 0; partner != index && c < CLASSES; c++)
			assert_true(fabsf(found[i].targets[c] - (c == index % CLASSES ? own : 0) -
					  (c == partner % CLASSES ? 1 - own : 0)) < 1e-6f);
		cut += others > 0;
	}
	assert_in_range(cut, 50, EPOCHS * SAMPLES);
	ls_transforms_release(&t);
	ls_dataset_free(set);
}

/* Numbers are mixed as images are: here target k is 0.01 times the image, plus k. */
static void test_targets_of_the_dataset(void **state)
{
	static mixed found[EPOCHS * SAMPLES];
	ls_dataset *set = make_set(1);
	ls_transforms t;
	int changed = 0;
	(void)state;
	assert_ok(ls_transforms_init(&t, "flip,mixup:0.5,mixup:2", set, 5));
	read_epochs(set, &t, 4, 2, found);
	for (int i = 0; i < EPOCHS * SAMPLES; i++) {
		changed += found[i].image[0] != (float)(i % SAMPLES);
		for (int c = 0; c < CLASSES; c++)
			assert_true(fabsf(found[i].targets[c] - 0.01f * found[i].image[0] - (float)c) < 1e-4f);
	}
	assert_in_range(changed, 80, EPOCHS * SAMPLES);
	ls_transforms_release(&t);
	ls_dataset_free(set);
}

/* The other sample is changed as it is changed itself in that epoch. */
static void test_the_other_is_changed_too(void **state)
{
	enum { VALUES = 28 * 28 };
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set = NULL;
	ls_transforms plain, both;
	int found = 0;
	(void)state;
	o.name = "glyphs";
	o.samples = 2;
	assert_ok(ls_dataset_open(&set, &o));
	assert_ok(ls_transforms_init(&plain, "rotate:90", set, 4));
	assert_ok(ls_transforms_init(&both, "rotate:90,cutmix:0.01", set, 4)); /* nearly all of one of them */
	float *scratch = malloc(ls_transforms_scratch(&both) * sizeof(*scratch));
	for (uint64_t epoch = 0; epoch < 40; epoch++) {
		float image[2][VALUES], changed[VALUES], targets[10] = { 0 };
		int32_t label[2];
		for (uint64_t i = 0; i < 2; i++) {
			assert_ok(ls_dataset_read(set, i, image[i], &label[i]));
			assert_ok(ls_transforms_apply(&plain, set, epoch, i, image[i], NULL, scratch));
		}
		assert_ok(ls_dataset_read(set, 0, changed, &label[0]));
		targets[label[0]] = 1;
		assert_ok(ls_transforms_apply(&both, set, epoch, 0, changed, targets, scratch));
		for (int i = 0; i < VALUES; i++)
			assert_true(changed[i] == image[0][i] || changed[i] == image[1][i]);
		found += targets[label[1]] > 0.2f && memcmp(changed, image[0], sizeof(changed)) != 0;
	}
	assert_in_range(found, 4, 30);
	free(scratch);
	ls_transforms_release(&plain);
	ls_transforms_release(&both);
	ls_dataset_free(set);
}

static void test_bad_lists(void **state)
{
	ls_dataset *set = make_set(0);
	ls_transforms t;
	ls_loader *loader = NULL;
	(void)state;
	assert_fails(ls_transforms_init(&t, "mixup,flip", set, 1), LS_EINVALID,
		     "flip comes behind mixup; what mixes samples must come last");
	assert_fails(ls_transforms_init(&t, "mixup:0", set, 1), LS_EINVALID,
		     "alpha of mixup must be a number from 0.01");
	assert_fails(ls_transforms_init(&t, "cutmix:1:2", set, 1), LS_EINVALID, "cutmix has 1 number");
	assert_fails(ls_transforms_init(&t, "mix", set, 1), LS_EINVALID, "mixup");
	assert_ok(ls_transforms_init(&t, "flip,cutmix,mixup", set, 1));
	ls_loader_options o = { .microbatch = 4, .global_batch = 8, .transforms = &t };
	assert_fails(ls_loader_new(&loader, set, &o), LS_EINVALID, "their targets are not floats");
	ls_transforms_release(&t);
	ls_dataset_free(set);
}

TEST_MAIN(test_beta, test_mixup, test_cutmix, test_targets_of_the_dataset, test_the_other_is_changed_too,
	  test_bad_lists)
