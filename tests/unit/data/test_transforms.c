/*
 * Transforms of training images: what each does, what is drawn depends on seed, epoch and sample alone, and lists that are
 * wrong.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/transforms/transforms.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { CHANNELS = 2, HEIGHT = 5, WIDTH = 6, VALUES = CHANNELS * HEIGHT * WIDTH, SAMPLES = 400 };

static const float black[] = { -2, -3 }, white[] = { 2, 3 };

/* Values within black and white, all different. */
static void fill(float *values)
{
	for (int i = 0; i < VALUES; i++)
		values[i] = -1.5f + 3.0f * (float)i / VALUES;
}

static float at(const float *values, int c, int y, int x)
{
	return values[(c * HEIGHT + y) * WIDTH + x];
}

static const ls_transform *row_of(const char *name)
{
	const ls_transform *row = NULL;
	for (size_t i = 0; (row = ls_transform_at(i)) && strcmp(row->name, name) != 0; i++)
		;
	assert_non_null(row);
	return row;
}

/* Transform `name` of a fresh image, drawn for `index`. */
static void apply(const char *name, double amount, uint64_t index, float *values)
{
	ls_sample_rng draw = ls_sample_rng_begin(ls_rng_make(7, LS_RNG_TRANSFORM, 0), index);
	ls_transform_image image = {
		.values = values, .channels = CHANNELS, .height = HEIGHT, .width = WIDTH, .black = black, .white = white
	};
	fill(values);
	row_of(name)->apply(&image, amount, &draw);
}

static void test_flips(void **state)
{
	float was[VALUES], now[VALUES];
	int flipped = 0;
	(void)state;
	fill(was);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		apply("flip", 0.3, i, now);
		int is_flipped = at(now, 0, 0, 0) != at(was, 0, 0, 0);
		flipped += is_flipped;
		for (int c = 0; c < CHANNELS; c++)
			for (int y = 0; y < HEIGHT; y++)
				for (int x = 0; x < WIDTH; x++)
					assert_true(at(now, c, y, x) == at(was, c, y, is_flipped ? WIDTH - 1 - x : x));
	}
	assert_in_range(flipped, 80, 160);
	apply("vertical-flip", 1, 3, now);
	for (int y = 0; y < HEIGHT; y++)
		assert_true(at(now, 1, y, 2) == at(was, 1, HEIGHT - 1 - y, 2));
	apply("flip", 0, 3, now);
	assert_memory_equal(was, now, sizeof(was));
}

/* Every shift up to the amount comes, and the image is moved by it, black outside. */
static void test_crop(void **state)
{
	float was[VALUES], now[VALUES];
	int seen[5][5] = { { 0 } };
	(void)state;
	fill(was);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		apply("crop", 2, i, now);
		int dy = 9, dx = 9;
		for (int y = -2; y <= 2; y++) /* where the middle pixel came from */
			for (int x = -2; x <= 2; x++)
				if (at(now, 0, 2, 2) == at(was, 0, 2 + y, 2 + x))
					dy = y, dx = x;
		assert_true(dy != 9);
		seen[dy + 2][dx + 2]++;
		for (int c = 0; c < CHANNELS; c++)
			for (int y = 0; y < HEIGHT; y++)
				for (int x = 0; x < WIDTH; x++) {
					int is_inside = y + dy >= 0 && y + dy < HEIGHT && x + dx >= 0 && x + dx < WIDTH;
					assert_true(at(now, c, y, x) ==
						    (is_inside ? at(was, c, y + dy, x + dx) : black[c]));
				}
	}
	for (int i = 0; i < 25; i++)
		assert_true(seen[i / 5][i % 5] > 0);
	apply("crop", 1024, 1, now); /* more than there is */
}

static void test_erase(void **state)
{
	float was[VALUES], now[VALUES];
	int erased = 0;
	(void)state;
	fill(was);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		int count = 0, top = HEIGHT, bottom = -1, left = WIDTH, right = -1;
		apply("erase", 0.5, i, now);
		for (int y = 0; y < HEIGHT; y++)
			for (int x = 0; x < WIDTH; x++) {
				int is_zero = at(now, 0, y, x) == 0 && at(was, 0, y, x) != 0;
				assert_true(is_zero || at(now, 0, y, x) == at(was, 0, y, x));
				assert_true(!is_zero || at(now, 1, y, x) == 0);
				count += is_zero;
				top = is_zero && y < top ? y : top;
				bottom = is_zero && y > bottom ? y : bottom;
				left = is_zero && x < left ? x : left;
				right = is_zero && x > right ? x : right;
			}
		erased += count > 0;
		if (count > 0) /* a rectangle, whole */
			assert_int_equal(count, (bottom - top + 1) * (right - left + 1));
		assert_in_range(count, 0, HEIGHT * WIDTH / 2);
	}
	assert_in_range(erased, 150, 250);
}

static void test_colours(void **state)
{
	float was[VALUES], now[VALUES];
	(void)state;
	fill(was);
	for (uint64_t i = 0; i < 50; i++) {
		apply("brightness", 0.4, i, now);
		float factor = (now[3] - black[0]) / (was[3] - black[0]);
		assert_true(factor >= 0.6f - 1e-5f && factor <= 1.4f + 1e-5f);
		for (int k = 0; k < VALUES; k++) {
			int c = k / (HEIGHT * WIDTH);
			float wanted = black[c] + factor * (was[k] - black[c]);
			wanted = wanted > white[c] ? white[c] : wanted;
			assert_true(fabsf(now[k] - wanted) < 1e-4f);
		}
		apply("contrast", 0.4, i, now);
		double mean = 0, before = 0;
		for (int k = 0; k < HEIGHT * WIDTH; k++) {
			mean += (double)now[k];
			before += (double)was[k];
		}
		assert_true(fabs(mean - before) < 1e-3); /* nothing of it meets black or white */
	}
	apply("contrast", 0, 1, now);
	for (int k = 0; k < VALUES; k++)
		assert_true(fabsf(now[k] - was[k]) < 1e-6f);
}

/* ---- lists and loaders --------------------------------------------------------------------------------------------- */

static ls_dataset *glyphs(void)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set = NULL;
	o.name = "glyphs";
	o.samples = 50;
	assert_ok(ls_dataset_open(&set, &o));
	return set;
}

static void test_lists(void **state)
{
	static const struct {
		const char *list, *part;
	} wrong[] = { { "flop", "did you mean 'flip'?" },
		      { "flip:2", "probability of flip must be a number from 0 to 1, not 2" },
		      { "crop:1.5", "pixels of crop must be a whole number from 1 to 1024, not 1.5" },
		      { "crop:x", "options.augment" },
		      { "crop,,flip", "transform" },
		      { "", "transform" },
		      { "flip,none", "transform" } };
	ls_transforms t;
	(void)state;
	ls_dataset *set = glyphs(), *text = NULL;
	assert_ok(ls_transforms_init(&t, "crop:3,flip,erase:0.1,brightness,contrast:0,vertical-flip", set, 1));
	assert_int_equal(t.count, 6);
	assert_true(t.amount[0] == 3 && t.amount[1] == 0.5 && t.amount[2] == 0.1 && t.amount[4] == 0);
	ls_transforms_release(&t);
	ls_transforms_release(&t);
	assert_ok(ls_transforms_init(&t, NULL, set, 1));
	assert_ok(ls_transforms_init(&t, "none", set, 1));
	assert_int_equal(t.count, 0);
	for (size_t i = 0; i < LS_COUNT(wrong); i++) {
		assert_int_equal(ls_transforms_init(&t, wrong[i].list, set, 1), LS_EINVALID);
		if (!strstr(ls_last_error(), wrong[i].part))
			fail_msg("'%s': %s", wrong[i].list, ls_last_error());
	}
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	o.name = "babble";
	assert_ok(ls_dataset_open(&text, &o));
	assert_fails(ls_transforms_init(&t, "flip", text, 1), LS_EINVALID, "'babble' is text");
	ls_dataset_free(text);
	ls_dataset_free(set);
}

/* All images of two epochs, by sample: the same whatever the loader's micro-batches and threads are. */
static void read_epochs(const ls_dataset *set, const ls_transforms *t, int64_t microbatch, int threads, float *out)
{
	ls_loader_options o = { .seed = 3,
				.shuffle = 1,
				.microbatch = microbatch,
				.global_batch = 20,
				.threads = threads,
				.transforms = t };
	ls_loader *loader = NULL;
	const ls_microbatch *m = NULL;
	size_t values = 28 * 28;

	assert_ok(ls_loader_new(&loader, set, &o));
	for (int64_t seen = 0; seen < 100; seen += m->count) {
		assert_ok(ls_loader_next(loader, &m));
		for (int64_t i = 0; i < m->count; i++)
			memcpy(out + (m->epoch * 50 + m->samples[i]) * values, m->images + (size_t)i * values,
			       values * sizeof(float));
	}
	ls_loader_free(loader);
}

static void test_draws_depend_on_sample_and_epoch(void **state)
{
	size_t bytes = 100 * 28 * 28 * sizeof(float);
	float *plain = malloc(bytes), *first = malloc(bytes), *again = malloc(bytes);
	ls_transforms t, other;
	(void)state;
	ls_dataset *set = glyphs();
	assert_ok(ls_transforms_init(&t, "crop:3,flip,erase:0.5", set, 5));
	assert_ok(ls_transforms_init(&other, "crop:3,flip,erase:0.5", set, 6));
	read_epochs(set, NULL, 5, 1, plain);
	read_epochs(set, &t, 5, 1, first);
	read_epochs(set, &t, 20, 3, again);
	assert_memory_equal(first, again, bytes);
	assert_memory_not_equal(first, plain, bytes);
	assert_memory_equal(plain, plain + 50 * 28 * 28, bytes / 2); /* without them epochs are alike */
	int alike = 0;
	for (size_t i = 0; i < 50; i++)
		alike += !memcmp(first + i * 784, first + (50 + i) * 784, 784 * sizeof(float));
	assert_in_range(alike, 0, 5);
	read_epochs(set, &other, 5, 1, again);
	assert_memory_not_equal(first, again, bytes);
	ls_transforms_release(&other);
	ls_transforms_release(&t);
	ls_dataset_free(set);
	free(again);
	free(first);
	free(plain);
}

TEST_MAIN(test_flips, test_crop, test_erase, test_colours, test_lists, test_draws_depend_on_sample_and_epoch)
