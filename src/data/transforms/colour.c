/*
 * colour.c - brightness, contrast, saturation and hue, of pixels p from 0, black, to 1, white.
 *
 *     brightness   p -> f p                     f uniform in [1 - amount, 1 + amount]
 *     contrast     p -> m + f (p - m)           m: the mean of grey over the image
 *     saturation   p -> g + f (p - g)           g: grey of the pixel
 *     hue          the angle of HSV's hue plus h, uniform within +-amount of a turn
 *     jitter       all of them, in random order
 *
 * Grey is 0.2989 R + 0.587 G + 0.114 B. Images of other than three channels have no colours: contrast goes by the mean
 * of each channel, saturation and hue change nothing. In normalised values v = (p - mean) / deviation, black is b and p
 * is proportional to v - b. Results are limited to black and white, as they are for bytes.
 */
#include "data/transforms/image_ops.h"

enum { LANES = 8 };

static const float grey[] = { 0.2989f, 0.587f, 0.114f };

/* The values of channel c, away from `centre` or towards it. */
static void stretch(const ls_transform_image *image, int c, float centre, float factor)
{
	size_t plane = ls_image_plane(image);
	float *values = image->values + (size_t)c * plane, black = image->black[c], white = image->white[c];

	for (size_t i = 0; i < plane; i++)
		values[i] = ls_limit(centre + factor * (values[i] - centre), black, white);
}

void ls_image_brightness(const ls_transform_image *image, float factor)
{
	for (int c = 0; c < image->channels; c++)
		stretch(image, c, image->black[c], factor);
}

/* ---- contrast ---------------------------------------------------------------------------------------------------- */

/* In LANES sums that are added in order: the same for any vector width. */
static double mean_of(const float *values, size_t count)
{
	double lane[LANES] = { 0 }, sum = 0;
	size_t i = 0;

	for (; i + LANES <= count; i += LANES)
		for (int k = 0; k < LANES; k++)
			lane[k] += (double)values[i + (size_t)k];
	for (; i < count; i++)
		lane[i % LANES] += (double)values[i];
	for (int k = 0; k < LANES; k++)
		sum += lane[k];
	return sum / (double)count;
}

/* A pixel of a channel from its mean normalised value. */
static float pixel_of(const ls_transform_image *image, int c, float value)
{
	return (value - image->black[c]) / (image->white[c] - image->black[c]);
}

static float grey_mean(const ls_transform_image *image)
{
	size_t plane = ls_image_plane(image);
	float sum = 0;

	for (int c = 0; c < 3; c++)
		sum += grey[c] * pixel_of(image, c, (float)mean_of(image->values + (size_t)c * plane, plane));
	return sum;
}

void ls_image_contrast(const ls_transform_image *image, float factor)
{
	size_t plane = ls_image_plane(image);
	float of_all = image->channels == 3 ? grey_mean(image) : 0;

	for (int c = 0; c < image->channels; c++) {
		float black = image->black[c], white = image->white[c];
		stretch(image, c,
			image->channels == 3 ? black + (white - black) * of_all
					     : (float)mean_of(image->values + (size_t)c * plane, plane),
			factor);
	}
}

/* ---- saturation and hue ------------------------------------------------------------------------------------------ */

/* The planes of an RGB image, and the way between values and pixels. */
typedef struct rgb {
	float *r, *g, *b;
	float black[3], range[3], part[3]; /* range: white - black; part: 1 / range */
} rgb;

static rgb rgb_of(const ls_transform_image *image)
{
	size_t plane = ls_image_plane(image);
	rgb p = { .r = image->values, .g = image->values + plane, .b = image->values + 2 * plane };

	for (int c = 0; c < 3; c++) {
		p.black[c] = image->black[c];
		p.range[c] = image->white[c] - image->black[c];
		p.part[c] = 1.0f / p.range[c];
	}
	return p;
}

/* A pixel, from 0 to 1 per channel. */
typedef struct pixel {
	float r, g, b;
} pixel;

static inline pixel pixel_at(const rgb *p, size_t i)
{
	return (pixel){ (p->r[i] - p->black[0]) * p->part[0], (p->g[i] - p->black[1]) * p->part[1],
			(p->b[i] - p->black[2]) * p->part[2] };
}

static inline void put_pixel(const rgb *p, size_t i, pixel x)
{
	p->r[i] = p->black[0] + p->range[0] * x.r;
	p->g[i] = p->black[1] + p->range[1] * x.g;
	p->b[i] = p->black[2] + p->range[2] * x.b;
}

void ls_image_saturation(const ls_transform_image *image, float factor)
{
	size_t plane = ls_image_plane(image);

	if (image->channels != 3)
		return;
	const rgb p = rgb_of(image);
	for (size_t i = 0; i < plane; i++) {
		const pixel x = pixel_at(&p, i);
		float level = grey[0] * x.r + grey[1] * x.g + grey[2] * x.b;
		put_pixel(&p, i,
			  (pixel){ ls_limit(level + factor * (x.r - level), 0, 1),
				   ls_limit(level + factor * (x.g - level), 0, 1),
				   ls_limit(level + factor * (x.b - level), 0, 1) });
	}
}

static inline float smaller(float a, float b)
{
	return a < b ? a : b;
}

static inline float larger(float a, float b)
{
	return a > b ? a : b;
}

/* HSV's hue in sixths of a turn, from -1 to 5. */
static inline float sixths_of(pixel x, float most, float chroma)
{
	float scale = chroma > 0 ? 1.0f / chroma : 0;
	float of_red = (x.g - x.b) * scale, of_green = 2.0f + (x.b - x.r) * scale;
	float of_blue = 4.0f + (x.r - x.g) * scale, of_others = most == x.g ? of_green : of_blue;

	return most == x.r ? of_red : of_others;
}

/* A channel of HSV: `first` is 5, 3 or 1 for red, green or blue. sixths from 0 to 6. */
static inline float channel_of(float first, float sixths, float most, float chroma)
{
	float k = first + sixths, round = k >= 6.0f ? k - 6.0f : k;

	return most - chroma * larger(0, smaller(smaller(round, 4.0f - round), 1.0f));
}

void ls_image_hue(const ls_transform_image *image, float turns)
{
	size_t plane = ls_image_plane(image);

	if (image->channels != 3)
		return;
	const rgb p = rgb_of(image);
	for (size_t i = 0; i < plane; i++) {
		const pixel x = pixel_at(&p, i);
		float most = larger(larger(x.r, x.g), x.b), chroma = most - smaller(smaller(x.r, x.g), x.b);
		float sixths = sixths_of(x, most, chroma) + 6.0f * turns;
		sixths = sixths < 0 ? sixths + 6.0f : sixths;
		sixths = sixths >= 6.0f ? sixths - 6.0f : sixths;
		put_pixel(&p, i,
			  (pixel){ channel_of(5, sixths, most, chroma), channel_of(3, sixths, most, chroma),
				   channel_of(1, sixths, most, chroma) });
	}
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static float draw_factor(ls_sample_rng *draw, double amount)
{
	return ls_sample_rng_range(draw, 1 - (float)amount, 1 + (float)amount);
}

void ls_transform_brightness(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	ls_image_brightness(image, draw_factor(draw, numbers[0]));
}

void ls_transform_contrast(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	ls_image_contrast(image, draw_factor(draw, numbers[0]));
}

void ls_transform_saturation(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	ls_image_saturation(image, draw_factor(draw, numbers[0]));
}

void ls_transform_hue(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	ls_image_hue(image, ls_sample_rng_range(draw, -(float)numbers[0], (float)numbers[0]));
}

/* Changes with an amount of 0 are left out, as in torchvision. */
void ls_transform_jitter(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	static void (*const change[])(const ls_transform_image *, const double *,
				      ls_sample_rng *) = { ls_transform_brightness, ls_transform_contrast,
							   ls_transform_saturation, ls_transform_hue };
	int order[] = { 0, 1, 2, 3 };

	for (int i = 3; i > 0; i--) {
		int other = (int)ls_rng_below(ls_sample_rng_word(draw), (uint32_t)i + 1), kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
	for (int i = 0; i < 4; i++)
		if (numbers[order[i]] > 0)
			change[order[i]](image, &numbers[order[i]], draw);
}
