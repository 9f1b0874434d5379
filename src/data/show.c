/*
 * show.c - lockstep data show: a sheet of training images as transforms change them.
 *
 * A row per sample: the image as it is, a gap, and the image in epochs 0, 1, ... of a run with that seed. Small images
 * are enlarged by a whole number, so that a pixel stays a square.
 */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/images/image.h"
#include "data/transforms/transforms.h"

enum { CELL_MIN = 64, GAP = 2, WIDE_GAP = 8, COUNT_MAX = 1000 };

/* Bytes of the largest sheet: a gigabyte. */
#define SHEET_BYTES_MAX ((uint64_t)1 << 30)

typedef struct sheet {
	const ls_dataset *set;
	ls_transforms transforms;
	uint64_t rows, epochs;
	int zoom;
	ls_image_shape shape; /* of the sheet */
	uint8_t *pixels;      /* (height, width, channels) */
	float *image;         /* of a sample, and behind it what transforms work in */
} sheet;

static ls_status check_options(const ls_dataset *set, const ls_data_show_options *o)
{
	const ls_dataset_info *info = &set->info;

	if (info->tokens_max > 0)
		return ls_fail(LS_EINVALID, "dataset '%s' is text; only images can be shown", info->name);
	if (info->channels != 1 && info->channels != 3)
		return ls_fail(LS_EINVALID,
			       "images of dataset '%s' have %d channels; grey ones (1) and RGB (3) can be shown",
			       info->name, info->channels);
	if (!ls_dataset_normalisation(set))
		return ls_fail(LS_EINVALID, "dataset '%s' has floats of any range; only images of bytes can be shown",
			       info->name);
	if (o->rows < 1 || o->rows > COUNT_MAX || o->epochs < 0 || o->epochs > COUNT_MAX)
		return ls_fail(LS_EINVALID, "%lld rows of %lld epochs cannot be shown; 1 to %d rows, at most %d epochs",
			       (long long)o->rows, (long long)o->epochs, COUNT_MAX, COUNT_MAX);
	return LS_OK;
}

/* Where cell `column` of a row begins; -1 is the image as it is. */
static uint64_t column_at(const sheet *s, int64_t column)
{
	uint64_t cell = (uint64_t)s->set->info.width * (uint64_t)s->zoom;
	return column < 0 ? GAP : GAP + cell + WIDE_GAP + (uint64_t)column * (cell + GAP);
}

static ls_status lay_out(sheet *s)
{
	const ls_dataset_info *info = &s->set->info;
	int side = info->height < info->width ? info->height : info->width;

	s->zoom = side < CELL_MIN ? (CELL_MIN + side - 1) / side : 1;
	uint64_t width = column_at(s, (int64_t)s->epochs);
	uint64_t height = GAP + s->rows * ((uint64_t)info->height * (uint64_t)s->zoom + GAP);
	uint64_t bytes = width * height * (uint64_t)info->channels;
	if (width > LS_IMAGE_SIDE_MAX || height > LS_IMAGE_SIDE_MAX || bytes > SHEET_BYTES_MAX)
		return ls_fail(LS_EINVALID, "a picture of %llu x %llu pixels is too large; show fewer rows or epochs",
			       (unsigned long long)height, (unsigned long long)width);
	s->shape = (ls_image_shape){ info->channels, (int)height, (int)width };
	s->pixels = malloc(bytes);
	s->image = calloc(ls_dataset_values(info) + ls_transforms_scratch(&s->transforms), sizeof(*s->image));
	if (!s->pixels || !s->image)
		return ls_fail(LS_EMEMORY, "no memory for a picture of %llu x %llu pixels", (unsigned long long)height,
			       (unsigned long long)width);
	memset(s->pixels, 128, bytes);
	return LS_OK;
}

static uint8_t byte_of(const sheet *s, int channel, float value)
{
	const ls_normalisation *n = ls_dataset_normalisation(s->set);
	double pixel = 255 * ((double)value * n->deviation[channel] + n->mean[channel]) + 0.5;

	return (uint8_t)(pixel < 0 ? 0 : pixel > 255 ? 255 : pixel);
}

static void draw_cell(const sheet *s, uint64_t row, int64_t column)
{
	const ls_dataset_info *info = &s->set->info;
	size_t zoom = (size_t)s->zoom, channels = (size_t)info->channels, height = (size_t)info->height * zoom;
	size_t width = (size_t)info->width * zoom, top = GAP + (size_t)row * (height + GAP);

	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < width; x++)
			for (size_t c = 0; c < channels; c++) {
				size_t from = (c * (size_t)info->height + y / zoom) * (size_t)info->width + x / zoom;
				size_t to = (top + y) * (size_t)s->shape.width + (size_t)column_at(s, column) + x;
				s->pixels[to * channels + c] = byte_of(s, (int)c, s->image[from]);
			}
}

static ls_status draw_row(const sheet *s, uint64_t row)
{
	uint64_t index = s->set->info.samples / s->rows * row + s->set->info.samples % s->rows * row / s->rows;
	float *scratch = s->image + ls_dataset_values(&s->set->info);
	int32_t label;

	for (int64_t column = -1; column < (int64_t)s->epochs; column++) {
		LS_TRY(ls_dataset_sample(s->set, index, s->image, &label));
		if (column >= 0)
			LS_TRY(ls_transforms_apply(&s->transforms, s->set, (uint64_t)column, index, s->image, NULL,
						   scratch));
		draw_cell(s, row, column);
	}
	return LS_OK;
}

static ls_status draw_sheet(sheet *s, const ls_data_show_options *o)
{
	const ls_dataset_info *info = &s->set->info;

	LS_TRY(check_options(s->set, o));
	LS_TRY(ls_transforms_init(&s->transforms, o->augment, s->set, o->seed));
	s->rows = (uint64_t)o->rows < info->samples ? (uint64_t)o->rows : info->samples;
	s->epochs = (uint64_t)o->epochs;
	LS_TRY(lay_out(s));
	for (uint64_t i = 0; i < s->rows; i++)
		LS_TRY(draw_row(s, i));
	LS_TRY(ls_dataset_check(s->set));
	return ls_png_write(o->out, s->pixels, s->shape);
}

ls_status ls_data_show(const ls_dataset_options *dataset, const ls_data_show_options *options)
{
	ls_data_show_options own = LS_DATA_SHOW_OPTIONS_INIT;
	ls_dataset *set = NULL;

	LS_TRY(LS_OPTIONS_TAKE(&own, options, seed, "LS_DATA_SHOW_OPTIONS_INIT"));
	if (!own.out || !*own.out)
		return ls_fail(LS_EINVALID, "options.out is missing: the PNG file to write");
	LS_TRY(ls_dataset_open(&set, dataset));
	sheet s = { .set = set };
	ls_status status = draw_sheet(&s, &own);
	ls_transforms_release(&s.transforms);
	free(s.image);
	free(s.pixels);
	ls_dataset_free(set);
	return status;
}
