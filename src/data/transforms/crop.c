/*
 * crop.c - a random crop of the image with a black border around it: torchvision's RandomCrop(size, padding).
 *
 *     out(y, x) = in(y + dy, x + dx), black outside;   dy, dx from -amount to amount
 */
#include <string.h>

#include "base/status.h"
#include "data/transforms/image_ops.h"

static int draw_shift(ls_sample_rng *draw, int most, int side)
{
	int bound = most < side ? most : side - 1;
	return (int)ls_rng_below(ls_sample_rng_word(draw), (uint32_t)(2 * bound + 1)) - bound;
}

static void fill(float *to, int count, float value)
{
	for (int i = 0; i < count; i++)
		to[i] = value;
}

/* Row `to` becomes row `from` moved by dx; they may be the same row. */
static void move_row(float *to, const float *from, int width, int dx, float black)
{
	int kept = width - (dx > 0 ? dx : -dx);

	memmove(to + (dx < 0 ? -dx : 0), from + (dx > 0 ? dx : 0), (size_t)kept * sizeof(*to));
	fill(dx > 0 ? to + kept : to, width - kept, black);
}

/* In an order in which no row is overwritten before it was moved. */
static void move_plane(float *plane, int height, int width, int dy, int dx, float black)
{
	for (int i = 0; i < height; i++) {
		int y = dy >= 0 ? i : height - 1 - i;
		float *to = plane + (size_t)y * (size_t)width;
		if (y + dy >= 0 && y + dy < height)
			move_row(to, plane + (size_t)(y + dy) * (size_t)width, width, dx, black);
		else
			fill(to, width, black);
	}
}

void ls_image_move(const ls_transform_image *image, int dy, int dx)
{
	size_t plane = ls_image_plane(image);

	for (int c = 0; c < image->channels; c++)
		move_plane(image->values + (size_t)c * plane, image->height, image->width, dy, dx, image->black[c]);
}

void ls_transform_crop(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	int dy = draw_shift(draw, (int)numbers[0], image->height), dx = draw_shift(draw, (int)numbers[0], image->width);

	ls_image_move(image, dy, dx);
}

ls_status ls_transform_crop_check(const double *numbers, const ls_dataset_info *info)
{
	if (numbers[0] < info->height && numbers[0] < info->width)
		return LS_OK;
	return ls_fail(LS_EINVALID,
		       "options.augment: crop:%g shifts by up to %g pixels, and images of dataset '%s' are %d x %d: "
		       "nothing would be left",
		       numbers[0], numbers[0], info->name, info->height, info->width);
}
