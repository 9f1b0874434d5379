/*
 * resize.c - an image at the size and with the channels that a model wants.
 *
 * Scaling is separable. Along a line, output i is centred on the source at
 *
 *     first + (i + 0.5) * scale,     scale = source length used / output length,
 *
 * and is the mean of the source values around it, weighted by a triangle of half-width max(scale, 1): bilinear
 * interpolation when the image grows, without aliasing when it shrinks. Weights are sums in index order of doubles, so
 * the result has the same bits everywhere.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "data/images/image.h"

/* ---- channels ---------------------------------------------------------------------------------------------------- */

static double value_at(const ls_image *image, size_t i)
{
	return image->deep ? ((const uint16_t *)image->pixels)[i] / 257.0 : ((const uint8_t *)image->pixels)[i];
}

/* Channel `c` of `channels` at a position of the image. */
static double pixel_at(const ls_image *image, size_t position, int channels, int c)
{
	size_t at = position * (size_t)image->channels;

	if (image->channels == 1)
		return value_at(image, at);
	if (channels == 3)
		return value_at(image, at + (size_t)c);
	return 0.299 * value_at(image, at) + 0.587 * value_at(image, at + 1) + 0.114 * value_at(image, at + 2);
}

/* ---- one line ---------------------------------------------------------------------------------------------------- */

typedef struct axis {
	double first, scale; /* of the part of the source that is used */
	int length, out;
	int *begin;     /* (out) the first source value of each output */
	int *count;     /* (out) */
	double *weight; /* (out, taps) */
	int taps;
} axis;

static void release_axis(axis *a)
{
	free(a->begin);
	free(a->count);
	free(a->weight);
}

static void weigh(axis *a, int i)
{
	double reach = a->scale > 1 ? a->scale : 1, centre = a->first + (i + 0.5) * a->scale, sum = 0;
	int begin = (int)floor(centre - reach + 0.5), end = (int)floor(centre + reach + 0.5);
	double *weight = a->weight + (size_t)i * (size_t)a->taps;

	begin = begin < 0 ? 0 : begin >= a->length ? a->length - 1 : begin;
	end = end > a->length ? a->length : end <= begin ? begin + 1 : end;
	end = end - begin > a->taps ? begin + a->taps : end;
	for (int k = begin; k < end; k++) {
		double distance = fabs((k + 0.5 - centre) / reach);
		weight[k - begin] = distance < 1 ? 1 - distance : 0;
		sum += weight[k - begin];
	}
	for (int k = 0; k < end - begin; k++)
		weight[k] = sum > 0 ? weight[k] / sum : 1.0 / (end - begin);
	a->begin[i] = begin;
	a->count[i] = end - begin;
}

/* `used` values of `length`, those in the middle, become `out`. */
static ls_status make_axis(axis *a, int length, double used, int out)
{
	*a = (axis){ .first = (length - used) / 2, .scale = used / out, .length = length, .out = out };
	a->taps = 2 * (int)ceil(a->scale > 1 ? a->scale : 1) + 2;
	a->begin = calloc((size_t)out, sizeof(*a->begin));
	a->count = calloc((size_t)out, sizeof(*a->count));
	a->weight = calloc((size_t)out * (size_t)a->taps, sizeof(*a->weight));
	if (!a->begin || !a->count || !a->weight)
		return ls_fail(LS_EMEMORY, "no memory to scale %d pixels to %d", length, out);
	for (int i = 0; i < out; i++)
		weigh(a, i);
	return LS_OK;
}

/* ---- the image --------------------------------------------------------------------------------------------------- */

/* Source row y of channel c, as it is. */
static void read_line(const ls_image *image, int y, int channels, int c, double *line)
{
	size_t row = (size_t)y * (size_t)image->width;

	for (int x = 0; x < image->width; x++)
		line[x] = pixel_at(image, row + (size_t)x, channels, c);
}

/* A line scaled to (x->out). */
static void scale_line(const double *line, const axis *x, double *out)
{
	for (int i = 0; i < x->out; i++) {
		const double *weight = x->weight + (size_t)i * (size_t)x->taps, *from = line + x->begin[i];
		double sum = 0;
		for (int k = 0; k < x->count[i]; k++)
			sum += weight[k] * from[k];
		out[i] = sum;
	}
}

/* Memory of a scaling: a source row, an output row, and the scaled source rows that an output row is made of, in
 * a ring: row y at y % taps. */
typedef struct lines {
	double *source, *sum, *ring;
} lines;

/* Output rows of channel c. Source rows are scaled once, when the first output row needs them. */
static void scale_channel(const ls_image *image, const axis *x, const axis *y, ls_image_shape to, int c, const lines *l,
			  float *out)
{
	size_t width = (size_t)x->out;
	int next = 0; /* source rows before this one are scaled */

	for (int j = 0; j < y->out; j++) {
		const double *weight = y->weight + (size_t)j * (size_t)y->taps;
		next = next < y->begin[j] ? y->begin[j] : next;
		for (; next < y->begin[j] + y->count[j]; next++) {
			read_line(image, next, to.channels, c, l->source);
			scale_line(l->source, x, l->ring + (size_t)(next % y->taps) * width);
		}
		for (size_t i = 0; i < width; i++)
			l->sum[i] = 0;
		for (int k = 0; k < y->count[j]; k++) {
			const double *row = l->ring + (size_t)((y->begin[j] + k) % y->taps) * width;
			for (size_t i = 0; i < width; i++)
				l->sum[i] += weight[k] * row[i];
		}
		for (size_t i = 0; i < width; i++)
			out[(size_t)j * width + i] = (float)l->sum[i];
	}
}

static ls_status scale_with(const ls_image *image, const axis *x, const axis *y, ls_image_shape to, float *pixels)
{
	size_t width = (size_t)to.width, positions = (size_t)to.height * width;
	double *memory = calloc((size_t)image->width + ((size_t)y->taps + 1) * width, sizeof(*memory));

	if (!memory)
		return ls_fail(LS_EMEMORY, "no memory to scale an image of %dx%d pixels", image->width, image->height);
	const lines l = { .source = memory, .sum = memory + image->width, .ring = memory + image->width + width };
	for (int c = 0; c < to.channels; c++) {
		float *channel = pixels + (size_t)c * positions;
		if (c > 0 && image->channels == 1)
			memcpy(channel, pixels, positions * sizeof(*pixels));
		else
			scale_channel(image, x, y, to, c, &l, channel);
	}
	free(memory);
	return LS_OK;
}

static ls_status scale(const ls_image *image, ls_resize how, ls_image_shape to, float *pixels)
{
	double across = (double)image->width / to.width, down = (double)image->height / to.height;
	double smaller = across < down ? across : down;
	axis x = { 0 }, y = { 0 };

	if (how == LS_RESIZE_COVER)
		across = down = smaller;
	ls_status status = make_axis(&x, image->width, across * to.width, to.width);
	if (status == LS_OK)
		status = make_axis(&y, image->height, down * to.height, to.height);
	if (status == LS_OK)
		status = scale_with(image, &x, &y, to, pixels);
	release_axis(&x);
	release_axis(&y);
	return status;
}

ls_status ls_image_resize(const ls_image *image, ls_resize how, ls_image_shape to, float *pixels, const char *name)
{
	size_t positions = (size_t)to.height * (size_t)to.width;

	if (to.channels != 1 && to.channels != 3)
		return ls_fail(LS_EMISMATCH, "%s: the model takes images of %d channels, and image files have 1 or 3",
			       name, to.channels);
	if (image->height != to.height || image->width != to.width)
		return scale(image, how, to, pixels);
	for (int c = 0; c < to.channels; c++)
		for (size_t i = 0; i < positions; i++)
			pixels[(size_t)c * positions + i] = (float)pixel_at(image, i, to.channels, c);
	return LS_OK;
}
