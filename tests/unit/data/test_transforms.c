/*
 * Transforms of training images: what each does, what is drawn depends on seed, epoch and sample
 * alone, and lists that are wrong.
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

enum { CHANNELS = 2, HEIGHT = 5, WIDTH = 6, VALUES = CHANNELS * HEIGHT * WIDTH, SAMPLES = 400, SCRATCH = 256 };

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

/* Transform `name` of an image of given values, drawn for `index`. */
static void apply_to(const char *name, const double *numbers, uint64_t index, float *values)
{
	ls_sample_rng draw = ls_sample_rng_begin(ls_rng_make(7, LS_RNG_TRANSFORM, 0), index);
	float scratch[SCRATCH];
	ls_transform_image image = { .values = values,
				     .channels = CHANNELS,
				     .height = HEIGHT,
				     .width = WIDTH,
				     .black = black,
				     .white = white,
				     .scratch = scratch };
	assert_in_range(ls_transform_scratch(CHANNELS, HEIGHT, WIDTH), 1, SCRATCH);
	row_of(name)->apply(&image, numbers, &draw);
}

static void apply(const char *name, double amount, uint64_t index, float *values)
{
	fill(values);
	apply_to(name, (const double[]){ amount, 1, 0.75, 4.0 / 3 }, index, values);
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

/* The part that was taken, from the values of a ramp: its first and last, each half a step from the border. */
static void find_part(const float *ramp, int stride, int side, double *begin, double *length)
{
	double first = (double)ramp[0], last = (double)ramp[stride * (side - 1)];
	*length = (last - first) + 1; /* pixels whose centres were met, at least */
	*begin = first;
}

/* Parts of the image: as large as asked, of every place, and of both shapes. */
static void test_resized_crop(void **state)
{
	const double all[] = { 1, 1, 1, 20 }, half[] = { 0.2, 0.5, 0.5, 2 }, wide[] = { 1, 1, 5, 20 };
	int seen_rows[HEIGHT + 1] = { 0 }, seen_tops[HEIGHT + 1] = { 0 }, lefts[WIDTH + 1] = { 0 };
	float ramp[VALUES], now[VALUES], was[VALUES];
	(void)state;
	for (int i = 0; i < VALUES; i++) /* y in channel 0, x in channel 1 */
		ramp[i] = i < HEIGHT * WIDTH ? (float)(i / WIDTH) : (float)(i % WIDTH);
	for (uint64_t index = 0; index < SAMPLES; index++) {
		double top, rows, left, columns;
		memcpy(now, ramp, sizeof(now));
		apply_to("resized-crop", half, index, now);
		find_part(now, WIDTH, HEIGHT, &top, &rows);
		find_part(now + HEIGHT * WIDTH, 1, WIDTH, &left, &columns);
		assert_true(rows * columns >= 0.2 * 30 - 4 && rows * columns <= 0.5 * 30 + 4);
		seen_rows[(int)lround(rows)]++;
		seen_tops[(int)lround(top)]++;
		lefts[(int)lround(left)]++;
		assert_true(top >= 0 && left >= 0 && top + rows <= HEIGHT + 1e-4 && left + columns <= WIDTH + 1e-4);
	}
	assert_true(seen_rows[2] > 20 && seen_rows[3] > 20 && seen_rows[4] > 20 && seen_tops[0] > 20 &&
		    seen_tops[1] > 20);
	assert_true(lefts[0] > 20 && lefts[1] > 20 && lefts[2] > 20);
	fill(was);
	memcpy(now, was, sizeof(now));
	apply_to("resized-crop", all, 0, now); /* 6 x 5, all of it: what fits */
	assert_memory_equal(now, was, sizeof(now));
	memcpy(now, ramp, sizeof(now));
	apply_to("resized-crop", wide, 0, now); /* which never fits: the middle row */
	for (int i = 0; i < HEIGHT * WIDTH; i++)
		assert_true(now[i] == 2 && now[HEIGHT * WIDTH + i] == (float)(i % WIDTH));
}

/* Each of several changes comes about as often as it should. */
static void test_chances(void **state)
{
	static const char *const names[] = { "invert", "autocontrast", "posterize", "solarize", "sharpness" };
	float was[VALUES], now[VALUES];
	(void)state;
	fill(was);
	for (size_t k = 0; k < LS_COUNT(names); k++) {
		const double numbers[] = { row_of(names[k])->numbers[1].name ? row_of(names[k])->numbers[0].usual : 0.3,
					   0.3 };
		int changed = 0;
		for (uint64_t i = 0; i < SAMPLES; i++) {
			fill(now);
			apply_to(names[k], numbers, i, now);
			changed += memcmp(was, now, sizeof(was)) != 0;
		}
		if (changed < 80 || changed > 160)
			fail_msg("%s changed %d of %d", names[k], changed, SAMPLES);
	}
}

/* Shifts of whole pixels within the part, both ways. */
static void test_translate(void **state)
{
	float was[VALUES], now[VALUES];
	int seen[5] = { 0 };
	(void)state;
	fill(was);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		apply("translate", 0.34, i, now); /* 1.7 rows, 2.04 columns */
		int found = 0;
		for (int dy = -2; dy <= 2; dy++)
			for (int dx = -2; dx <= 2; dx++)
				if (at(now, 1, 2, 2) == at(was, 1, 2 + dy, 2 + dx)) {
					found = 1;
					seen[dx + 2]++;
				}
		assert_true(found);
	}
	for (int i = 0; i < 5; i++)
		assert_true(seen[i] > 20);
}

/* RandAugment is a chain of the others: one change is one of 14, of which one is none. */
static void test_randaugment(void **state)
{
	float was[VALUES], now[VALUES], kept[SAMPLES][VALUES];
	int kinds = 0, none = 0;
	(void)state;
	fill(was);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		fill(now);
		apply_to("randaugment", (const double[]){ 1, 30 }, i, now);
		none += !memcmp(was, now, sizeof(was));
		int is_known = 0;
		for (int k = 0; k < kinds && !is_known; k++)
			is_known = !memcmp(kept[k], now, sizeof(now));
		if (!is_known)
			memcpy(kept[kinds++], now, sizeof(now));
	}
	/* Of two channels saturation is none, too, and 30 values are too few to equalize: 3 in 14.
	 * Nine have two directions. */
	assert_in_range(none, 50, 125);
	assert_in_range(kinds, 18, 22);
	fill(now);
	for (uint64_t i = 0; i < SAMPLES; i++)
		apply_to("randaugment", (const double[]){ 14, 0 }, i, now); /* of magnitude 0, but for autocontrast */
	for (int i = 0; i < VALUES; i++)
		assert_true(isfinite(now[i]));
}

/* Amounts of 0 are no change, whatever the order. */
static void test_jitter(void **state)
{
	float was[VALUES], now[VALUES], other[VALUES];
	(void)state;
	fill(was);
	for (uint64_t i = 0; i < 50; i++) {
		fill(now);
		apply_to("jitter", (const double[]){ 0, 0, 0, 0 }, i, now);
		assert_memory_equal(was, now, sizeof(was));
		apply_to("jitter", (const double[]){ 0.4, 0.4, 0.4, 0.1 }, i, now);
		assert_memory_not_equal(was, now, sizeof(was));
		fill(other);
		apply_to("jitter", (const double[]){ 0, 0.4, 0, 0 }, i, other);
		double mean = 0, before = 0;
		for (int k = 0; k < HEIGHT * WIDTH; k++) {
			mean += (double)other[k];
			before += (double)was[k];
		}
		assert_true(fabs(mean - before) < 1e-3);
	}
}

/* ---- lists and loaders ------------------------------------------------------------------------------------------- */

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
		      { "crop:", "options.augment" },
		      { "crop:28", "images of dataset 'glyphs' are 28 x 28: nothing would be left" },
		      { "crop:2:3", "crop has 1 number, and more follow: 3" },
		      { "jitter:0.1:0.1:0.1:0.6", "hue of jitter must be a number from 0 to 0.5, not 0.6" },
		      { "randaugment:2:31", "magnitude of randaugment must be a whole number from 0 to 30, not 31" },
		      { "randaugment:2.5", "changes of randaugment must be a whole number from 1 to 14" },
		      { "randaugment:1:2:3", "randaugment has 2 numbers, and more follow: 3" },
		      { "randomaugment", "did you mean 'randaugment'?" },
		      { "resized-crop:0.5:0.2",
			"resized-crop:0.5:0.2:0.75:1.33333 has a smallest part above the largest" },
		      { "resized-crop:0.5:1:2:1", "has a smallest ratio above the largest" },
		      { "resized-crop:0", "least area of resized-crop must be a number from 0.001 to 1, not 0" },
		      { "hue", "hue needs colour images; those of dataset 'glyphs' have 1 channel, not 3" },
		      { "saturation:0.1", "saturation needs colour images" },
		      { "rotate:-5", "degrees of rotate must be a number from 0 to 180, not -5" },
		      { "posterize:0", "bits of posterize" },
		      { "rotate:nan", "options.augment" },
		      { "crop,,flip", "transform" },
		      { "", "transform" },
		      { "flip,none", "transform" } };
	ls_transforms t;
	(void)state;
	ls_dataset *set = glyphs(), *text = NULL;
	assert_ok(ls_transforms_init(&t, "crop:3,flip,erase:0.1,brightness,contrast:0,vertical-flip", set, 1));
	assert_int_equal(t.count, 6);
	assert_true(t.numbers[0][0] == 3 && t.numbers[1][0] == 0.5 && t.numbers[2][0] == 0.1 && t.numbers[4][0] == 0);
	ls_transforms_release(&t);
	assert_ok(ls_transforms_init(&t, "resized-crop:0.2,randaugment:3,jitter:0.1:0.2,elastic,distort:0.5", set, 1));
	assert_true(t.numbers[0][0] == 0.2 && t.numbers[0][1] == 1 && t.numbers[0][3] == 4.0 / 3);
	assert_true(t.numbers[1][0] == 3 && t.numbers[1][1] == 9 && t.numbers[2][1] == 0.2 && t.numbers[2][2] == 0.4);
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
	assert_ok(ls_transforms_init(&t, "crop:3,flip,erase:0.5,randaugment,resized-crop,elastic", set, 5));
	assert_ok(ls_transforms_init(&other, "crop:3,flip,erase:0.5,randaugment,resized-crop,elastic", set, 6));
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

TEST_MAIN(test_flips, test_crop, test_resized_crop, test_erase, test_colours, test_chances, test_translate,
	  test_randaugment, test_jitter, test_lists, test_draws_depend_on_sample_and_epoch)
