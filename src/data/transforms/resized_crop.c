/*
 * resized_crop.c - a part of the image, scaled to all of it: torchvision's RandomResizedCrop(size, scale, ratio), where
 * the size is that of the image.
 *
 * The part has LOW to HIGH of the area and a ratio of width to height that is uniform in its logarithm. A part that
 * does not fit is drawn again, up to ten times, and then the largest central part of an allowed ratio is taken. A part
 * is never larger than the result, so bilinear interpolation needs no filter.
 */
#include <math.h>

#include "base/exact_math.h"
#include "base/status.h"
#include "data/transforms/image_ops.h"

enum { RUN = 64, TRIES = 10 };

/* Place i of `out` in a line of `in` pixels: between `first` and the next, the next having the part that is
 * returned. */
static float place_of(int i, int in, int out, int *first)
{
	float at = ((float)i + 0.5f) * ((float)in / (float)out) - 0.5f;

	at = at < 0 ? 0 : at;
	*first = (int)at < in - 1 ? (int)at : in - 1;
	return at - (float)*first;
}

/* Columns [begin, begin + count) of the result, of every row of the part. */
static void stretch_columns(const float *from, int width, int rows, int columns, int begin, int count, float *out)
{
	int left[RUN], step[RUN];
	float part[RUN];

	for (int i = 0; i < count; i++) {
		part[i] = place_of(begin + i, columns, width, &left[i]);
		step[i] = left[i] < columns - 1;
	}
	for (int y = 0; y < rows; y++) {
		const float *in = from + (size_t)y * (size_t)width;
		float *row = out + (size_t)y * (size_t)width + begin;
		for (int i = 0; i < count; i++) {
			float a = in[left[i]], b = in[left[i] + step[i]];
			row[i] = a + part[i] * (b - a);
		}
	}
}

static void stretch_rows(const float *from, int height, int width, int rows, float *out)
{
	for (int y = 0; y < height; y++) {
		int top;
		float part = place_of(y, rows, height, &top);
		const float *a = from + (size_t)top * (size_t)width, *b = a + (top < rows - 1 ? width : 0);
		float *row = out + (size_t)y * (size_t)width;
		for (int x = 0; x < width; x++)
			row[x] = a[x] + part * (b[x] - a[x]);
	}
}

void ls_image_enlarge(const ls_transform_image *image, int top, int left, int rows, int columns)
{
	int height = image->height, width = image->width;

	for (int c = 0; c < image->channels; c++) {
		float *plane = image->values + (size_t)c * ls_image_plane(image);
		const float *part = plane + (size_t)top * (size_t)width + left;
		for (int x = 0; x < width; x += RUN)
			stretch_columns(part, width, rows, columns, x, width - x < RUN ? width - x : RUN,
					image->scratch);
		stretch_rows(image->scratch, height, width, rows, plane);
	}
}

/* The largest central part whose ratio is allowed. */
static void fall_back(const ls_transform_image *image, const double *ratio, int *rows, int *columns)
{
	double height = image->height, width = image->width;

	*rows = image->height;
	*columns = image->width;
	if (width < ratio[0] * height)
		*rows = (int)(width / ratio[0] + 0.5);
	else if (width > ratio[1] * height)
		*columns = (int)(height * ratio[1] + 0.5);
	*rows = *rows < 1 ? 1 : *rows;
	*columns = *columns < 1 ? 1 : *columns;
}

void ls_transform_resized_crop(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	const double *scale = numbers, *ratio = numbers + 2, area = (double)ls_image_plane(image);
	double low = ls_exact_log(ratio[0]), high = ls_exact_log(ratio[1]);
	int rows = 0, columns = 0, top = -1, left = 0;

	for (int i = 0; i < TRIES && top < 0; i++) {
		double part = area * (double)ls_sample_rng_range(draw, (float)scale[0], (float)scale[1]);
		double shape = ls_exact_exp(low + (high - low) * (double)ls_sample_rng_range(draw, 0, 1));
		uint32_t down = ls_sample_rng_word(draw), right = ls_sample_rng_word(draw);
		columns = (int)(sqrt(part * shape) + 0.5);
		rows = (int)(sqrt(part / shape) + 0.5);
		if (rows < 1 || columns < 1 || rows > image->height || columns > image->width)
			continue;
		top = (int)ls_rng_below(down, (uint32_t)(image->height - rows + 1));
		left = (int)ls_rng_below(right, (uint32_t)(image->width - columns + 1));
	}
	if (top < 0) {
		fall_back(image, ratio, &rows, &columns);
		top = (image->height - rows) / 2;
		left = (image->width - columns) / 2;
	}
	ls_image_enlarge(image, top, left, rows, columns);
}

ls_status ls_transform_resized_crop_check(const double *numbers, const ls_dataset_info *info)
{
	(void)info;
	if (numbers[0] <= numbers[1] && numbers[2] <= numbers[3])
		return LS_OK;
	return ls_fail(LS_EINVALID, "options.augment: resized-crop:%g:%g:%g:%g has a smallest %s above the largest",
		       numbers[0], numbers[1], numbers[2], numbers[3], numbers[0] > numbers[1] ? "part" : "ratio");
}
