/*
 * colour.c - brightness and contrast, of pixels between black and white.
 *
 *     brightness   p -> f p                      f uniform in [1 - amount, 1 + amount]
 *     contrast     p -> m + f (p - m)            m: the mean of the channel
 *
 * In normalised values v = (p - mean) / deviation, black is b and p is proportional to v - b. Results are limited to black and
 * white, as they are for bytes.
 */
#include "data/transforms/transforms.h"

static float limit(float value, float low, float high)
{
	return value < low ? low : value > high ? high : value;
}

static float draw_factor(ls_sample_rng *draw, double amount)
{
	return ls_sample_rng_range(draw, 1 - (float)amount, 1 + (float)amount);
}

void ls_transform_brightness(const ls_transform_image *image, double amount, ls_sample_rng *draw)
{
	size_t plane = (size_t)image->height * (size_t)image->width;
	float factor = draw_factor(draw, amount);

	for (int c = 0; c < image->channels; c++) {
		float *values = image->values + (size_t)c * plane, black = image->black[c], white = image->white[c];
		for (size_t i = 0; i < plane; i++)
			values[i] = limit(black + factor * (values[i] - black), black, white);
	}
}

void ls_transform_contrast(const ls_transform_image *image, double amount, ls_sample_rng *draw)
{
	size_t plane = (size_t)image->height * (size_t)image->width;
	float factor = draw_factor(draw, amount);

	for (int c = 0; c < image->channels; c++) {
		float *values = image->values + (size_t)c * plane;
		double sum = 0;
		for (size_t i = 0; i < plane; i++)
			sum += (double)values[i];
		float mean = (float)(sum / (double)plane);
		for (size_t i = 0; i < plane; i++)
			values[i] = limit(mean + factor * (values[i] - mean), image->black[c], image->white[c]);
	}
}
