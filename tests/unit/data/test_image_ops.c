/*
 * What transforms do to an image, held to plain references: the textbook's formulas in double,
 * pixel by pixel, or on bytes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/exact_math.h"
#include "data/transforms/image_ops.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { CHANNELS = 3, SIDE_MAX = 80, VALUES_MAX = CHANNELS * SIDE_MAX * SIDE_MAX };

/* Pixels from 0 to 1 are what references work on; normalised values are other numbers for each channel. */
static const float black[] = { -2, -1.5f, -0.25f }, white[] = { 2.5f, 3, 4 };

typedef struct picture {
	int channels, height, width;
	float values[VALUES_MAX], scratch[VALUES_MAX + CHANNELS * 4 * SIDE_MAX + 5 * SIDE_MAX + 64];
} picture;

static ls_transform_image image_of(picture *p)
{
	return (ls_transform_image){ .values = p->values,
				     .channels = p->channels,
				     .height = p->height,
				     .width = p->width,
				     .black = black,
				     .white = white,
				     .scratch = p->scratch };
}

static int values_of(const picture *p)
{
	return p->channels * p->height * p->width;
}

static int channel_of(const picture *p, int i)
{
	return i / (p->height * p->width);
}

/* Random bytes as normalised values. */
static void draw_picture(picture *p, int channels, int height, int width, uint8_t *bytes)
{
	ls_sample_rng draw = ls_sample_rng_begin(ls_rng_make(3, LS_RNG_TEST, 0), (uint64_t)(height * 1000 + width));

	p->channels = channels;
	p->height = height;
	p->width = width;
	for (int i = 0; i < values_of(p); i++) {
		int c = channel_of(p, i);
		bytes[i] = (uint8_t)(ls_sample_rng_word(&draw) >> 24);
		bytes[i] =
			i % 7 == 0 && i >= height * width ? bytes[i - height * width] : bytes[i]; /* ties of colours */
		p->values[i] = black[c] + (white[c] - black[c]) * (float)bytes[i] / 255.0f;
	}
}

static double pixel_at(const picture *p, int i)
{
	int c = channel_of(p, i);
	return ((double)p->values[i] - (double)black[c]) / ((double)white[c] - (double)black[c]);
}

static void assert_pixel(const picture *p, int i, double wanted, double tolerance)
{
	if (!(fabs(pixel_at(p, i) - wanted) <= tolerance))
		fail_msg("value %d of %d x %d x %d is %.7f, not %.7f", i, p->channels, p->height, p->width,
			 pixel_at(p, i), wanted);
}

static double limited(double p)
{
	return p < 0 ? 0 : p > 1 ? 1 : p;
}

static const int sizes[][3] = { { 3, 32, 32 }, { 1, 28, 28 }, { 3, 7, 80 }, { 3, 65, 3 }, { 2, 1, 5 }, { 3, 1, 1 } };

/* ---- geometry ---------------------------------------------------------------------------------------------------- */

/* Bytes of a channel at (x, y), 0 outside, as a pixel. */
static double byte_at(const uint8_t *plane, int height, int width, int y, int x)
{
	return y >= 0 && x >= 0 && y < height && x < width ? plane[y * width + x] / 255.0 : 0;
}

static double between(const uint8_t *plane, int height, int width, double y, double x)
{
	int top = (int)floor(y), left = (int)floor(x);
	double fy = y - top, fx = x - left;

	return (1 - fy) * ((1 - fx) * byte_at(plane, height, width, top, left) +
			   fx * byte_at(plane, height, width, top, left + 1)) +
	       fy * ((1 - fx) * byte_at(plane, height, width, top + 1, left) +
		     fx * byte_at(plane, height, width, top + 1, left + 1));
}

/* Every pixel is what the map says: source = m (pixel - centre) + centre. */
static void assert_mapped(const picture *p, const uint8_t *bytes, const double m[4], double cx, double cy)
{
	int plane = p->height * p->width;

	for (int i = 0; i < values_of(p); i++) {
		double x = i % p->width - cx, y = i % plane / p->width - cy;
		double wanted = between(bytes + i / plane * plane, p->height, p->width, m[2] * x + m[3] * y + cy,
					m[0] * x + m[1] * y + cx);
		assert_pixel(p, i, wanted, 2e-3);
	}
}

static void test_rotate_and_shear(void **state)
{
	static picture p;
	static uint8_t bytes[VALUES_MAX];
	(void)state;
	for (size_t i = 0; i < LS_COUNT(sizes); i++)
		for (double degrees = -170; degrees <= 180; degrees += 35) {
			double angle = degrees * 3.14159265358979 / 180, slope = degrees / 300;
			double turn[] = { cos(angle), -sin(angle), sin(angle), cos(angle) };
			double sheared[] = { 1, slope, 0.5 * slope, 1 };
			draw_picture(&p, sizes[i][0], sizes[i][1], sizes[i][2], bytes);
			ls_transform_image image = image_of(&p);
			double cx = 0.5 * (p.width - 1), cy = 0.5 * (p.height - 1);
			ls_image_rotate(&image, (float)degrees);
			assert_mapped(&p, bytes, turn, cx, cy);
			draw_picture(&p, sizes[i][0], sizes[i][1], sizes[i][2], bytes);
			ls_image_shear(&image, (float)slope, 0.5f * (float)slope, 1);
			assert_mapped(&p, bytes, sheared, cx, cy);
			draw_picture(&p, sizes[i][0], sizes[i][1], sizes[i][2], bytes);
			ls_image_shear(&image, (float)slope, 0.5f * (float)slope, 0);
			assert_mapped(&p, bytes, sheared, -0.5, -0.5);
		}
}

static void test_no_change_is_exact(void **state)
{
	static picture p, was;
	static uint8_t bytes[VALUES_MAX];
	(void)state;
	for (size_t i = 0; i < LS_COUNT(sizes); i++) {
		draw_picture(&p, sizes[i][0], sizes[i][1], sizes[i][2], bytes);
		was = p;
		ls_transform_image image = image_of(&p);
		ls_image_rotate(&image, 0);
		ls_image_shear(&image, 0, 0, 1);
		ls_image_enlarge(&image, 0, 0, p.height, p.width);
		ls_image_move(&image, 0, 0);
		assert_memory_equal(p.values, was.values, (size_t)values_of(&p) * sizeof(float));
	}
}

/* A part scaled up: pixel centres keep their places, and the border's pixels go on outside. */
static void test_enlarge(void **state)
{
	static picture p;
	static uint8_t bytes[VALUES_MAX];
	(void)state;
	for (size_t k = 0; k < LS_COUNT(sizes); k++)
		for (int variant = 0; variant < 12; variant++) {
			draw_picture(&p, sizes[k][0], sizes[k][1], sizes[k][2], bytes);
			int rows = 1 + variant * (p.height - 1) / 11, columns = 1 + (11 - variant) * (p.width - 1) / 11;
			int top = (p.height - rows) / 2, left = p.width - columns, plane = p.height * p.width;
			ls_transform_image image = image_of(&p);
			ls_image_enlarge(&image, top, left, rows, columns);
			for (int i = 0; i < values_of(&p); i++) {
				double y = (i % plane / p.width + 0.5) * rows / p.height - 0.5;
				double x = (i % p.width + 0.5) * columns / p.width - 0.5;
				y = top + (y < 0 ? 0 : y > rows - 1 ? rows - 1 : y);
				x = left + (x < 0 ? 0 : x > columns - 1 ? columns - 1 : x);
				assert_pixel(&p, i, between(bytes + i / plane * plane, p.height, p.width, y, x), 1e-4);
			}
		}
}

/* ---- colours ----------------------------------------------------------------------------------------------------- */

/* As in a textbook: RGB to HSV, another hue, and back. */
static void turn_hue(double rgb[3], double turns)
{
	double most = fmax(fmax(rgb[0], rgb[1]), rgb[2]), least = fmin(fmin(rgb[0], rgb[1]), rgb[2]), d = most - least;
	double h = 0, s = most > 0 ? d / most : 0;

	if (d > 0)
		h = most == rgb[0]   ? (rgb[1] - rgb[2]) / d
		    : most == rgb[1] ? 2 + (rgb[2] - rgb[0]) / d
				     : 4 + (rgb[0] - rgb[1]) / d;
	h = fmod(h / 6 + turns + 2, 1);
	int sector = (int)(h * 6) % 6;
	double f = h * 6 - floor(h * 6), low = most * (1 - s), fall = most * (1 - s * f),
	       rise = most * (1 - s * (1 - f));
	const double table[6][3] = { { most, rise, low }, { fall, most, low }, { low, most, rise },
				     { low, fall, most }, { rise, low, most }, { most, low, fall } };
	memcpy(rgb, table[sector], sizeof(table[0]));
}

static double grey_of(const uint8_t *bytes, int plane, int i)
{
	return (0.2989 * bytes[i] + 0.587 * bytes[plane + i] + 0.114 * bytes[2 * plane + i]) / 255;
}

static void test_colours(void **state)
{
	static picture p;
	static uint8_t bytes[VALUES_MAX];
	(void)state;
	for (size_t k = 0; k < LS_COUNT(sizes); k++)
		for (float amount = -0.5f; amount <= 0.5f; amount += 0.125f) {
			int channels = sizes[k][0], plane = sizes[k][1] * sizes[k][2];
			double factor = 1 + 2 * (double)amount, mean = 0;
			ls_transform_image image = image_of(&p);
			image.channels = channels;
			image.height = sizes[k][1];
			image.width = sizes[k][2];
			draw_picture(&p, channels, sizes[k][1], sizes[k][2], bytes);
			ls_image_hue(&image, amount);
			for (int i = 0; i < plane; i++) {
				double rgb[3] = { 0 };
				for (int c = 0; c < channels; c++)
					rgb[c] = bytes[c * plane + i] / 255.0;
				if (channels == 3)
					turn_hue(rgb, (double)amount);
				for (int c = 0; c < channels; c++)
					assert_pixel(&p, c * plane + i, rgb[c], 1e-5);
			}
			draw_picture(&p, channels, sizes[k][1], sizes[k][2], bytes);
			ls_image_saturation(&image, (float)factor);
			for (int i = 0; i < values_of(&p); i++) {
				double was = bytes[i] / 255.0,
				       g = channels == 3 ? grey_of(bytes, plane, i % plane) : was;
				assert_pixel(&p, i, limited(g + factor * (was - g)), 1e-5);
			}
			draw_picture(&p, channels, sizes[k][1], sizes[k][2], bytes);
			for (int i = 0; channels == 3 && i < plane; i++)
				mean += grey_of(bytes, plane, i) / plane;
			ls_image_contrast(&image, (float)factor);
			for (int i = 0; i < values_of(&p); i++) {
				double centre = mean;
				for (int j = 0; channels != 3 && j < plane; j++)
					centre += bytes[i / plane * plane + j] / 255.0 / plane;
				assert_pixel(&p, i, limited(centre + factor * (bytes[i] / 255.0 - centre)), 1e-5);
			}
			draw_picture(&p, channels, sizes[k][1], sizes[k][2], bytes);
			ls_image_brightness(&image, (float)factor);
			for (int i = 0; i < values_of(&p); i++)
				assert_pixel(&p, i, limited(factor * bytes[i] / 255.0), 1e-5);
		}
}

/* ---- tones ------------------------------------------------------------------------------------------------------- */

static void test_tones(void **state)
{
	static picture p;
	static uint8_t bytes[VALUES_MAX];
	(void)state;
	draw_picture(&p, 3, 20, 31, bytes);
	ls_transform_image image = image_of(&p);
	for (int bits = 1; bits <= 8; bits++) {
		draw_picture(&p, 3, 20, 31, bytes);
		ls_image_posterize(&image, bits);
		for (int i = 0; i < values_of(&p); i++)
			assert_pixel(&p, i, (bytes[i] >> (8 - bits) << (8 - bits)) / 255.0, 1e-6);
	}
	for (int threshold = 0; threshold <= 255; threshold += 17) {
		draw_picture(&p, 3, 20, 31, bytes);
		ls_image_solarize(&image, (float)threshold);
		for (int i = 0; i < values_of(&p); i++)
			assert_pixel(&p, i, (bytes[i] >= threshold ? 255 - bytes[i] : bytes[i]) / 255.0, 1e-6);
	}
	draw_picture(&p, 3, 20, 31, bytes);
	ls_image_invert(&image);
	for (int i = 0; i < values_of(&p); i++)
		assert_pixel(&p, i, 1 - bytes[i] / 255.0, 1e-6);
	draw_picture(&p, 3, 20, 31, bytes);
	ls_image_brightness(&image, 0.5f);
	ls_image_autocontrast(&image);
	for (int c = 0; c < 3; c++) {
		int least = 255, most = 0;
		for (int i = c * 620; i < (c + 1) * 620; i++) {
			least = bytes[i] < least ? bytes[i] : least;
			most = bytes[i] > most ? bytes[i] : most;
		}
		for (int i = c * 620; i < (c + 1) * 620; i++)
			assert_pixel(&p, i, (bytes[i] - least) / (double)(most - least), 1e-5);
	}
	for (int i = 0; i < values_of(&p); i++)
		p.values[i] = 0.5f; /* one level: nothing to stretch */
	ls_image_autocontrast(&image);
	ls_image_equalize(&image);
	for (int i = 0; i < values_of(&p); i++)
		assert_true(p.values[i] == 0.5f);
}

/* PIL's table, as it is written there. */
static void test_equalize(void **state)
{
	static picture p;
	static uint8_t bytes[VALUES_MAX];
	(void)state;
	draw_picture(&p, 3, 60, 70, bytes);
	for (int i = 0; i < values_of(&p); i++) { /* dark, with gaps */
		bytes[i] = (uint8_t)(bytes[i] * bytes[i] / 400 / 3 * 3);
		int c = channel_of(&p, i);
		p.values[i] = black[c] + (white[c] - black[c]) * (float)bytes[i] / 255.0f;
	}
	ls_transform_image image = image_of(&p);
	ls_image_equalize(&image);
	for (int c = 0; c < 3; c++) {
		int count[256] = { 0 }, map[256], sum = 0, last = 0;
		for (int i = c * 4200; i < (c + 1) * 4200; i++)
			count[bytes[i]]++;
		for (int i = 0; i < 256; i++)
			last = count[i] ? count[i] : last;
		int step = (4200 - last) / 255, n = step / 2;
		for (int i = 0; i < 256; n += count[i], i++)
			map[i] = n / step > 255 ? 255 : n / step;
		for (int i = c * 4200; i < (c + 1) * 4200; i++) {
			assert_pixel(&p, i, map[bytes[i]] / 255.0, 1e-6);
			sum += map[bytes[i]];
		}
		assert_in_range(sum / 4200, 100, 155); /* which is what it is for */
	}
}

static void test_sharpness(void **state)
{
	static picture p;
	static uint8_t bytes[VALUES_MAX];
	(void)state;
	for (size_t k = 0; k < LS_COUNT(sizes); k++)
		for (float factor = 0; factor <= 3; factor += 0.5f) {
			draw_picture(&p, sizes[k][0], sizes[k][1], sizes[k][2], bytes);
			ls_transform_image image = image_of(&p);
			ls_image_sharpness(&image, factor);
			for (int i = 0; i < values_of(&p); i++) {
				int plane = p.height * p.width, x = i % p.width, y = i % plane / p.width;
				double was = bytes[i] / 255.0, smooth = was;
				if (x > 0 && y > 0 && x < p.width - 1 && y < p.height - 1) {
					smooth = 4 * was;
					for (int d = 0; d < 9; d++)
						smooth += bytes[i + (d / 3 - 1) * p.width + d % 3 - 1] / 255.0;
					smooth /= 13;
				}
				assert_pixel(&p, i, limited(smooth + (double)factor * (was - smooth)), 1e-5);
			}
		}
}

/* ---- the same everywhere ----------------------------------------------------------------------------------------- */

static void test_exact_math(void **state)
{
	(void)state;
	for (double x = -700; x <= 700; x += 0.37)
		assert_true(fabs(ls_exact_exp(x) / exp(x) - 1) < 3e-13);
	for (double x = 1e-12; x < 1e12; x *= 1.01)
		assert_true(fabs(ls_exact_log(x) - log(x)) < 1e-14 * fmax(1, fabs(log(x))));
	assert_true(ls_exact_log(1) == 0 && ls_exact_exp(0) == 1);
	assert_true(ls_exact_exp(-1e4) == 0 && isinf(ls_exact_exp(1e4)));
	assert_true(ls_exact_exp(-INFINITY) == 0 && isinf(ls_exact_exp(INFINITY)) && isnan(ls_exact_exp(NAN)));
}

/* The bits are part of what makes runs comparable: a compiler, processor or edit that changes them must be noticed. */
static void test_bits(void **state)
{
	static const struct {
		const char *name;
		uint64_t hash;
	} known[] = { { "crop", 0x3acd4955d058fd4full },         { "resized-crop", 0xa3980554cd9a4cd0ull },
		      { "flip", 0xfb9839ddb1abf49dull },         { "vertical-flip", 0xf6bf6c2ddf06268dull },
		      { "rotate", 0xc8ec9db71865526aull },       { "shear", 0x1663aa80e0466f35ull },
		      { "translate", 0x54533af49d9b1a92ull },    { "distort", 0x4af189432c44643dull },
		      { "elastic", 0x00cf2381210eb15cull },      { "erase", 0x9245136bc23b0c33ull },
		      { "brightness", 0x21f403e12b60662cull },   { "contrast", 0x6376a7c5e730715aull },
		      { "saturation", 0x9660d842df952ad4ull },   { "hue", 0xe3770b457367f7b3ull },
		      { "jitter", 0xf6c8588404890258ull },       { "sharpness", 0x6e6e3d036194e2b3ull },
		      { "autocontrast", 0x3db9e75a7c8f6bc4ull }, { "equalize", 0x4512c9006b81d4f9ull },
		      { "invert", 0x268e8ea78e0f672cull },       { "posterize", 0x244dfc4402fd33c2ull },
		      { "solarize", 0x66f447d0f978c849ull },     { "randaugment", 0xcd5865959aa843c5ull } };
	static picture p;
	static uint8_t bytes[VALUES_MAX];
	int wrong = 0;
	(void)state;
	for (size_t k = 0; ls_transform_at(k) && ls_transform_at(k)->apply; k++) {
		const ls_transform *row = ls_transform_at(k);
		double numbers[LS_TRANSFORM_NUMBERS];
		uint64_t hash = 0, wanted = 0;
		for (int i = 0; i < LS_TRANSFORM_NUMBERS; i++)
			numbers[i] = row->numbers[i].usual;
		for (uint64_t index = 0; index < 40; index++) {
			const int *size = sizes[index % 3];
			draw_picture(&p, size[0], size[1], size[2], bytes);
			ls_transform_image image = image_of(&p);
			ls_sample_rng draw = ls_sample_rng_begin(ls_rng_make(9, LS_RNG_TRANSFORM, 2), index);
			row->apply(&image, numbers, &draw);
			hash = XXH64(p.values, (size_t)values_of(&p) * sizeof(float), hash);
			for (int i = 0; i < values_of(&p); i++) /* and nothing is lighter than white */
				assert_true(pixel_at(&p, i) > -1e-5 && pixel_at(&p, i) < 1 + 1e-5);
		}
		for (size_t i = 0; i < LS_COUNT(known); i++)
			wanted = !strcmp(known[i].name, row->name) ? known[i].hash : wanted;
		if (hash != wanted)
			print_message("# { \"%s\", 0x%016llxull },\n", row->name, (unsigned long long)hash);
		wrong += hash != wanted;
	}
	assert_int_equal(wrong, 0);
}

TEST_MAIN(test_rotate_and_shear, test_no_change_is_exact, test_enlarge, test_colours, test_tones, test_equalize,
	  test_sharpness, test_exact_math, test_bits)
