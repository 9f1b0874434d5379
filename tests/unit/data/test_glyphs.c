/*
 * Generated images: glyphs, distortions and bigmnist are functions of the index, and the same bytes everywhere.
 */
#include "unit/data/fixture.h"

#include <xxhash.h>

#include "data/dataset.h"
#include "data/synthetic/glyphs.h"
#include "data/transforms/distort.h"
#include "unit/test_main.h"

#define PIXELS (28 * 28)
#define GLYPH_HASH 0x37de7b98aaca3c16ull
#define DISTORT_HASH 0x2bb6b7937c8a33e7ull

static uint64_t glyph_hash(uint64_t seed, ls_split split, uint64_t first, uint64_t count)
{
	uint64_t hash = 0;
	for (uint64_t i = first; i < first + count; i++) {
		uint8_t image[PIXELS];
		int32_t label;
		ls_glyph_draw(seed, split, i, image, &label);
		hash = XXH64(image, PIXELS, hash + (uint64_t)label);
	}
	return hash;
}

/* The bytes are part of what makes runs comparable: a compiler, processor or edit that changes them must be noticed. */
static void glyphs_are_the_same_everywhere(void **state)
{
	(void)state;
	uint64_t hash = glyph_hash(1, LS_SPLIT_TRAIN, 0, 500);
	print_message("# xxh64 of 500 glyphs: %016llx\n", (unsigned long long)hash);
	assert_true(hash == GLYPH_HASH);
}

static void glyphs_depend_on_seed_split_and_index(void **state)
{
	(void)state;
	uint64_t hash = glyph_hash(1, LS_SPLIT_TRAIN, 5, 3);
	assert_true(hash == glyph_hash(1, LS_SPLIT_TRAIN, 5, 3));
	assert_true(hash != glyph_hash(2, LS_SPLIT_TRAIN, 5, 3));
	assert_true(hash != glyph_hash(1, LS_SPLIT_TEST, 5, 3));
	assert_true(hash != glyph_hash(1, LS_SPLIT_TRAIN, 6, 3));
	assert_true(hash != glyph_hash(1, LS_SPLIT_TRAIN, 5 + ((uint64_t)1 << 32), 3));
}

static void glyphs_dataset(void **state)
{
	(void)state;
	ls_dataset *set;
	uint8_t a[PIXELS], b[PIXELS];
	int32_t label_a, label_b;
	assert_ok(open_set(&set, "glyphs", NULL, LS_SPLIT_TEST, 0));
	assert_int_equal(ls_dataset_describe(set)->samples, 10000);
	assert_int_equal(ls_dataset_describe(set)->classes, 10);
	assert_ok(ls_dataset_read_bytes(set, 42, a, &label_a));
	ls_glyph_draw(1, LS_SPLIT_TEST, 42, b, &label_b);
	assert_memory_equal(a, b, PIXELS);
	assert_int_equal(label_a, label_b);
	ls_dataset_free(set);
	assert_ok(open_set(&set, "glyphs", NULL, LS_SPLIT_TRAIN, 0));
	assert_int_equal(ls_dataset_describe(set)->samples, 60000);
	ls_dataset_free(set);
	assert_ok(open_set(&set, "glyphs", NULL, LS_SPLIT_TRAIN, 5000000000));
	assert_int_equal(ls_dataset_describe(set)->samples, 5000000000);
	assert_ok(ls_dataset_read_bytes(set, 4999999999, a, &label_a));
	ls_dataset_free(set);
}

/* Balanced, inked, and neither trivial nor hopeless: the nearest class mean gets most of them and far from all. */
static void glyphs_can_be_learned(void **state)
{
	(void)state;
	static float mean[10][PIXELS];
	int count[10] = { 0 }, right = 0;
	uint8_t image[PIXELS];
	int32_t label;
	for (uint64_t i = 0; i < 4000; i++) {
		unsigned ink = 0;
		ls_glyph_draw(1, LS_SPLIT_TRAIN, i, image, &label);
		count[label]++;
		for (int k = 0; k < PIXELS; k++) {
			mean[label][k] += image[k];
			ink += image[k];
		}
		assert_in_range(ink, 10 * 255, 300 * 255);
	}
	for (int c = 0; c < 10; c++) {
		assert_in_range(count[c], 320, 480);
		for (int k = 0; k < PIXELS; k++)
			mean[c][k] /= (float)count[c];
	}
	for (uint64_t i = 0; i < 1000; i++) {
		int best = 0;
		float nearest = 1e30f;
		ls_glyph_draw(1, LS_SPLIT_TEST, i, image, &label);
		for (int c = 0; c < 10; c++) {
			float distance = 0;
			for (int k = 0; k < PIXELS; k++)
				distance += (mean[c][k] - image[k]) * (mean[c][k] - image[k]);
			if (distance < nearest)
				nearest = distance, best = c;
		}
		right += best == label;
	}
	print_message("# nearest class mean: %d of 1000\n", right);
	assert_in_range(right, 450, 900);
}

static void draw_source(uint8_t *image)
{
	int32_t label;
	ls_glyph_draw(1, LS_SPLIT_TRAIN, 3, image, &label);
}

/* An image of bytes, as bigmnist.c distorts it. */
static void distort(const ls_distortion *how, uint64_t index, int channels, int height, int width, const uint8_t *in,
		    uint8_t *out)
{
	static const float black[8], white[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
	size_t values = (size_t)channels * (size_t)height * (size_t)width;
	float *floats = malloc((values + ls_transform_scratch(channels, height, width)) * sizeof(*floats));
	ls_transform_image on = { .values = floats,
				  .channels = channels,
				  .height = height,
				  .width = width,
				  .black = black,
				  .white = white,
				  .scratch = floats + values };
	ls_sample_rng draw = ls_sample_rng_begin(ls_rng_make(1, LS_RNG_AUGMENT, 0), index);
	for (size_t i = 0; i < values; i++)
		floats[i] = in[i];
	ls_distort(&on, how, &draw);
	for (size_t i = 0; i < values; i++)
		out[i] = (uint8_t)(floats[i] + 0.5f);
	free(floats);
}

static void apply(ls_distortion how, uint64_t index, const uint8_t *in, uint8_t *out)
{
	distort(&how, index, 1, 28, 28, in, out);
}

static void nothing_asked_nothing_changed(void **state)
{
	(void)state;
	uint8_t in[PIXELS], out[PIXELS];
	draw_source(in);
	apply((ls_distortion){ 0 }, 7, in, out);
	assert_memory_equal(in, out, PIXELS);
}

static void flips_mirror(void **state)
{
	(void)state;
	uint8_t in[PIXELS], out[PIXELS];
	draw_source(in);
	apply((ls_distortion){ .flip_horizontal = 1.0f }, 7, in, out);
	for (int y = 0; y < 28; y++)
		for (int x = 0; x < 28; x++)
			assert_int_equal(out[y * 28 + x], in[y * 28 + 27 - x]);
	apply((ls_distortion){ .flip_vertical = 1.0f }, 7, in, out);
	for (int y = 0; y < 28; y++)
		assert_memory_equal(out + y * 28, in + (27 - y) * 28, 28);
}

/* Each kind of distortion moves the picture, keeps most of its ink, and depends on (seed, index) alone. */
static void distortions_move_ink(void **state)
{
	(void)state;
	const ls_distortion kinds[] = { { .turn = 0.05f },  { .shear = 0.2f },    { .scale = 0.1f },
					{ .shift = 0.07f }, { .elastic = 0.07f }, LS_DISTORTION_INIT };
	uint8_t in[PIXELS], out[PIXELS], again[PIXELS], other[PIXELS];
	draw_source(in);
	double ink = 0;
	for (int k = 0; k < PIXELS; k++)
		ink += in[k];
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		double after = 0;
		apply(kinds[kind], 60001, in, out);
		apply(kinds[kind], 60001, in, again);
		apply(kinds[kind], 60002, in, other);
		assert_memory_equal(out, again, PIXELS);
		assert_memory_not_equal(out, in, PIXELS);
		assert_memory_not_equal(out, other, PIXELS);
		for (int k = 0; k < PIXELS; k++)
			after += out[k];
		assert_true(after > 0.6 * ink && after < 1.5 * ink);
	}
}

/* Pixels of a ramp move by what the field and map say: neighbours stay close, so the field is smooth. */
static void elastic_fields_are_smooth(void **state)
{
	(void)state;
	uint8_t in[PIXELS], out[PIXELS];
	for (int k = 0; k < PIXELS; k++)
		in[k] = (uint8_t)(k % 28 * 9);
	for (uint64_t index = 0; index < 50; index++) {
		apply((ls_distortion){ .elastic = 0.07f }, index, in, out);
		for (int y = 4; y < 24; y++)
			for (int x = 4; x < 23; x++)
				assert_in_range(out[y * 28 + x + 1] - out[y * 28 + x] + 30, 15, 60);
	}
}

static void distorted_images_are_the_same_everywhere(void **state)
{
	(void)state;
	uint8_t in[PIXELS], out[PIXELS];
	uint64_t hash = 0;
	draw_source(in);
	for (uint64_t i = 0; i < 200; i++) {
		apply((ls_distortion)LS_DISTORTION_INIT, i, in, out);
		hash = XXH64(out, PIXELS, hash);
	}
	print_message("# xxh64 of 200 distortions: %016llx\n", (unsigned long long)hash);
	assert_true(hash == DISTORT_HASH);
}

static void channels_and_odd_sizes(void **state)
{
	(void)state;
	static const int sizes[][3] = { { 1, 1, 1 }, { 3, 1, 9 }, { 2, 9, 1 }, { 3, 32, 20 } };
	for (size_t i = 0; i < 4; i++) {
		const ls_distortion options = LS_DISTORTION_INIT;
		int channels = sizes[i][0], height = sizes[i][1], width = sizes[i][2];
		size_t plane = (size_t)(height * width), values = plane * (size_t)channels;
		uint8_t *in = malloc(values), *out = malloc(values);
		memset(in, 200, values);
		for (uint64_t k = 0; k < 20; k++) {
			distort(&options, k, channels, height, width, in, out);
			for (int c = 1; c < channels; c++)
				assert_memory_equal(out, out + (size_t)c * plane, plane);
		}
		free(out);
		free(in);
	}
}

static void bigmnist_begins_with_the_originals(void **state)
{
	ls_dataset *big, *small, *test;
	uint8_t a[PIXELS], b[PIXELS];
	int32_t label_a, label_b;
	put_mnist(*state, 40, 9);
	assert_ok(open_set(&small, "mnist", *state, LS_SPLIT_TRAIN, 0));
	assert_ok(open_set(&big, "bigmnist", *state, LS_SPLIT_TRAIN, 0));
	assert_ok(open_set(&test, "bigmnist", *state, LS_SPLIT_TEST, 0));
	assert_int_equal(ls_dataset_describe(big)->samples, 72000000);
	assert_string_equal(ls_dataset_describe(big)->name, "bigmnist");
	assert_int_equal(ls_dataset_describe(test)->samples, 9);
	for (uint64_t i = 0; i < 200; i++) {
		assert_ok(ls_dataset_read_bytes(small, i % 40, a, &label_a));
		assert_ok(ls_dataset_read_bytes(big, i, b, &label_b));
		assert_int_equal(label_a, label_b);
		if (i < 40)
			assert_memory_equal(a, b, PIXELS);
		else
			assert_memory_not_equal(a, b, PIXELS);
	}
	assert_ok(ls_dataset_read_bytes(big, 71999999, a, &label_a));
	assert_ok(ls_dataset_read_bytes(big, 71999999, b, &label_b));
	assert_memory_equal(a, b, PIXELS);
	ls_dataset_free(test);
	ls_dataset_free(big);
	ls_dataset_free(small);
	assert_ok(open_set(&big, "bigmnist", *state, LS_SPLIT_TRAIN, 55));
	assert_int_equal(ls_dataset_describe(big)->samples, 55);
	ls_dataset_free(big);
}

TEST_MAIN_EACH(fixture_enter, temp_dir_remove, glyphs_are_the_same_everywhere, glyphs_depend_on_seed_split_and_index,
	       glyphs_dataset, glyphs_can_be_learned, nothing_asked_nothing_changed, flips_mirror, distortions_move_ink,
	       elastic_fields_are_smooth, distorted_images_are_the_same_everywhere, channels_and_odd_sizes,
	       bigmnist_begins_with_the_originals)
