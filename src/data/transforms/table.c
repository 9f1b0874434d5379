/*
 * table.c - the table of transforms. A new one is a row here and a function in a file beside it.
 */
#include "base/array.h"
#include "data/transforms/transforms.h"

static const ls_transform rows[] = {
	{ "crop", "shift by up to N pixels each way, black outside (4)", "pixels", 4, 1, 1024, 1, 1,
	  ls_transform_crop },
	{ "flip", "mirror left and right with probability P (0.5)", "probability", 0.5, 0, 1, 0, 0, ls_transform_flip },
	{ "vertical-flip", "mirror top and bottom with probability P (0.5)", "probability", 0.5, 0, 1, 0, 0,
	  ls_transform_vertical_flip },
	{ "erase", "erase a rectangle with probability P (0.25)", "probability", 0.25, 0, 1, 0, 0, ls_transform_erase },
	{ "brightness", "multiply pixels by 1 - X to 1 + X (0.2)", "amount", 0.2, 0, 1, 0, 1, ls_transform_brightness },
	{ "contrast", "stretch around the mean by 1 - X to 1 + X (0.2)", "amount", 0.2, 0, 1, 0, 1,
	  ls_transform_contrast },
};

const ls_transform *ls_transform_at(size_t i)
{
	return i < LS_COUNT(rows) ? &rows[i] : NULL;
}
