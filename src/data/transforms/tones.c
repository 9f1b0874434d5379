/*
 * tones.c - each pixel p from 0, black, to 1, white, becomes a function of itself.
 *
 *     invert         p -> 1 - p
 *     autocontrast   p -> (p - least) / (most - least), of each channel
 *     posterize      the upper bits of a byte stay
 *     solarize       bytes from a threshold on are inverted
 *     equalize       bytes are mapped so that all are about as frequent, in each channel
 */
#include "data/transforms/image_ops.h"

/* The nearest byte of a value. */
static inline int byte_of(float value, float black, float scale)
{
	return (int)ls_limit((value - black) * scale + 0.5f, 0.0f, 255.0f);
}

void ls_image_invert(const ls_transform_image *image)
{
	size_t plane = ls_image_plane(image);

	for (int c = 0; c < image->channels; c++) {
		float *values = image->values + (size_t)c * plane, both = image->black[c] + image->white[c];
		for (size_t i = 0; i < plane; i++)
			values[i] = both - values[i];
	}
}

void ls_image_autocontrast(const ls_transform_image *image)
{
	size_t plane = ls_image_plane(image);

	for (int c = 0; c < image->channels; c++) {
		float *values = image->values + (size_t)c * plane, black = image->black[c], white = image->white[c];
		float least = values[0], most = values[0];
		for (size_t i = 0; i < plane; i++) {
			least = values[i] < least ? values[i] : least;
			most = values[i] > most ? values[i] : most;
		}
		if (!(most > least))
			continue;
		float scale = (white - black) / (most - least);
		for (size_t i = 0; i < plane; i++)
			values[i] = ls_limit(black + (values[i] - least) * scale, black, white);
	}
}

void ls_image_posterize(const ls_transform_image *image, int bits)
{
	size_t plane = ls_image_plane(image);
	int mask = 256 - (1 << (8 - bits));

	for (int c = 0; c < image->channels; c++) {
		float *values = image->values + (size_t)c * plane, black = image->black[c];
		float step = (image->white[c] - black) / 255.0f, scale = 1.0f / step;
		for (size_t i = 0; i < plane; i++)
			values[i] = black + step * (float)(byte_of(values[i], black, scale) & mask);
	}
}

void ls_image_solarize(const ls_transform_image *image, float threshold)
{
	size_t plane = ls_image_plane(image);

	for (int c = 0; c < image->channels; c++) {
		float *values = image->values + (size_t)c * plane, black = image->black[c];
		float both = black + image->white[c], scale = 255.0f / (image->white[c] - black);
		for (size_t i = 0; i < plane; i++) {
			float inverse = both - values[i];
			values[i] = (float)byte_of(values[i], black, scale) >= threshold ? inverse : values[i];
		}
	}
}

/* The map of bytes that makes them equally frequent, as PIL and torchvision have it; 0: the image has but one. */
static int equalizing_map(const size_t count[256], int map[256])
{
	size_t sum = 0, last = 0, before = 0;

	for (int i = 0; i < 256; i++) {
		sum += count[i];
		last = count[i] ? count[i] : last;
	}
	size_t step = (sum - last) / 255;
	if (step == 0)
		return 0;
	for (int i = 0; i < 256; i++) {
		size_t to = (before + step / 2) / step;
		map[i] = i == 0 ? 0 : to < 255 ? (int)to : 255;
		before += count[i];
	}
	return 1;
}

void ls_image_equalize(const ls_transform_image *image)
{
	size_t plane = ls_image_plane(image);

	for (int c = 0; c < image->channels; c++) {
		float *values = image->values + (size_t)c * plane, black = image->black[c];
		float step = (image->white[c] - black) / 255.0f, scale = 1.0f / step, level[256];
		size_t count[256] = { 0 };
		int map[256];
		for (size_t i = 0; i < plane; i++)
			count[byte_of(values[i], black, scale)]++;
		if (!equalizing_map(count, map))
			continue;
		for (int i = 0; i < 256; i++)
			level[i] = black + step * (float)map[i];
		for (size_t i = 0; i < plane; i++)
			values[i] = level[byte_of(values[i], black, scale)];
	}
}

/* ---- rows: with a probability, the last number ------------------------------------------------------------------- */

void ls_transform_invert(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	if (ls_transform_happens(draw, numbers[0]))
		ls_image_invert(image);
}

void ls_transform_autocontrast(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	if (ls_transform_happens(draw, numbers[0]))
		ls_image_autocontrast(image);
}

void ls_transform_equalize(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	if (ls_transform_happens(draw, numbers[0]))
		ls_image_equalize(image);
}

void ls_transform_posterize(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	if (ls_transform_happens(draw, numbers[1]))
		ls_image_posterize(image, (int)numbers[0]);
}

void ls_transform_solarize(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	if (ls_transform_happens(draw, numbers[1]))
		ls_image_solarize(image, (float)numbers[0]);
}
