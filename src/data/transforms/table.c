/*
 * table.c - the table of transforms. A new one is a row here and a function in a file beside it.
 */
#include "base/array.h"
#include "data/transforms/transforms.h"

/* Numbers behind colons: what, usual, least and most. */
#define REAL(what, usual, low, high)                                                                                   \
	{                                                                                                              \
		what, usual, low, high, 0                                                                              \
	}
#define WHOLE(what, usual, low, high)                                                                                  \
	{                                                                                                              \
		what, usual, low, high, 1                                                                              \
	}
#define CHANCE(usual) REAL("probability", usual, 0, 1)
#define RANGE LS_NEEDS_PIXEL_RANGE
#define COLOUR (LS_NEEDS_PIXEL_RANGE | LS_NEEDS_COLOUR)

static const ls_transform rows[] = {
	/* clang-format off */
	{ "crop", "shift by up to N pixels each way, black outside (:4)",
	  { WHOLE("pixels", 4, 1, 1024) }, RANGE, ls_transform_crop, ls_transform_crop_check, NULL },
	{ "resized-crop", "scale up a part: least and most area, least and most width by height (:0.08:1:0.75:1.333)",
	  { REAL("least area", 0.08, 0.001, 1), REAL("most area", 1, 0.001, 1), REAL("least ratio", 3.0 / 4, 0.05, 20),
	    REAL("most ratio", 4.0 / 3, 0.05, 20) }, 0, ls_transform_resized_crop, ls_transform_resized_crop_check, NULL },
	{ "flip", "mirror left and right with probability P (:0.5)", { CHANCE(0.5) }, 0, ls_transform_flip, NULL, NULL },
	{ "vertical-flip", "mirror top and bottom with probability P (:0.5)", { CHANCE(0.5) }, 0,
	  ls_transform_vertical_flip, NULL, NULL },
	{ "rotate", "rotate by up to D degrees either way, black outside (:15)", { REAL("degrees", 15, 0, 180) }, RANGE,
	  ls_transform_rotate, NULL, NULL },
	{ "shear", "shear each axis by up to X pixels per pixel (:0.3)", { REAL("amount", 0.3, 0, 2) }, RANGE,
	  ls_transform_shear, NULL, NULL },
	{ "translate", "shift by up to X of height and width (:0.1)", { REAL("amount", 0.1, 0, 0.9) }, RANGE,
	  ls_transform_translate, NULL, NULL },
	{ "distort", "bigMNIST's distortions, X times as strong: rotate, shear, scale, shift, elastic, rare flips (:1)",
	  { REAL("strength", 1, 0, 4) }, RANGE, ls_transform_distort, NULL, NULL },
	{ "elastic", "displace pixels smoothly by up to X of the size (:0.07)", { REAL("amount", 0.07, 0, 0.5) }, RANGE,
	  ls_transform_elastic, NULL, NULL },
	{ "erase", "erase a rectangle with probability P (:0.25)", { CHANCE(0.25) }, 0, ls_transform_erase, NULL, NULL },
	{ "brightness", "multiply pixels by 1 - X to 1 + X (:0.2)", { REAL("amount", 0.2, 0, 1) }, RANGE,
	  ls_transform_brightness, NULL, NULL },
	{ "contrast", "stretch around the mean by 1 - X to 1 + X (:0.2)", { REAL("amount", 0.2, 0, 1) }, RANGE,
	  ls_transform_contrast, NULL, NULL },
	{ "saturation", "stretch colours around grey by 1 - X to 1 + X (:0.2)", { REAL("amount", 0.2, 0, 1) }, COLOUR,
	  ls_transform_saturation, NULL, NULL },
	{ "hue", "turn colours by up to X of the colour wheel (:0.05)", { REAL("amount", 0.05, 0, 0.5) }, COLOUR,
	  ls_transform_hue, NULL, NULL },
	{ "jitter", "brightness, contrast, saturation and hue in random order (:0.4:0.4:0.4:0.1)",
	  { REAL("brightness", 0.4, 0, 1), REAL("contrast", 0.4, 0, 1), REAL("saturation", 0.4, 0, 1),
	    REAL("hue", 0.1, 0, 0.5) }, RANGE, ls_transform_jitter, NULL, NULL },
	{ "sharpness", "sharpen by factor F (0 smooths) with probability P (:2:0.5)",
	  { REAL("factor", 2, 0, 10), CHANCE(0.5) }, RANGE, ls_transform_sharpness, NULL, NULL },
	{ "autocontrast", "stretch each channel from black to white with probability P (:0.5)", { CHANCE(0.5) }, RANGE,
	  ls_transform_autocontrast, NULL, NULL },
	{ "equalize", "make all levels equally frequent with probability P (:0.5)", { CHANCE(0.5) }, RANGE,
	  ls_transform_equalize, NULL, NULL },
	{ "invert", "turn into the negative with probability P (:0.5)", { CHANCE(0.5) }, RANGE, ls_transform_invert,
	  NULL, NULL },
	{ "posterize", "keep N bits of each pixel with probability P (:4:0.5)",
	  { WHOLE("bits", 4, 1, 8), CHANCE(0.5) }, RANGE, ls_transform_posterize, NULL, NULL },
	{ "solarize", "invert levels from N of 255 on with probability P (:128:0.5)",
	  { REAL("level", 128, 0, 255), CHANCE(0.5) }, RANGE, ls_transform_solarize, NULL, NULL },
	{ "randaugment", "RandAugment: N changes of magnitude M of 30 (:2:9)",
	  { WHOLE("changes", 2, 1, 14), WHOLE("magnitude", 9, 0, 30) }, RANGE, ls_transform_randaugment, NULL, NULL },
	{ "mixup", "mix with another sample, share drawn from Beta(A, A) (:0.2); comes last", { REAL("alpha", 0.2, 0.01, 100) },
	  0, NULL, NULL, ls_transform_mixup },
	{ "cutmix", "replace a rectangle by another sample's, share drawn from Beta(A, A) (:1); comes last",
	  { REAL("alpha", 1, 0.01, 100) }, 0, NULL, NULL, ls_transform_cutmix },
	/* clang-format on */
};

const ls_transform *ls_transform_at(size_t i)
{
	return i < LS_COUNT(rows) ? &rows[i] : NULL;
}
