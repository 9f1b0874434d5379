/*
 * transform_dump.c - a change of an image as a filter, for torch_transforms.py to compare with.
 *
 *     transform_dump CHANNELS HEIGHT WIDTH NAME NUMBER...   pixels from 0 to 1, float32 (C, H, W), input to output
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/transforms/image_ops.h"

static void move(const ls_transform_image *i, const double *n)
{
	ls_image_move(i, (int)n[0], (int)n[1]);
}
static void enlarge(const ls_transform_image *i, const double *n)
{
	ls_image_enlarge(i, (int)n[0], (int)n[1], (int)n[2], (int)n[3]);
}
static void rotate(const ls_transform_image *i, const double *n)
{
	ls_image_rotate(i, (float)n[0]);
}
static void shear(const ls_transform_image *i, const double *n)
{
	ls_image_shear(i, (float)n[0], (float)n[1], (int)n[2]);
}
static void brightness(const ls_transform_image *i, const double *n)
{
	ls_image_brightness(i, (float)n[0]);
}
static void contrast(const ls_transform_image *i, const double *n)
{
	ls_image_contrast(i, (float)n[0]);
}
static void saturation(const ls_transform_image *i, const double *n)
{
	ls_image_saturation(i, (float)n[0]);
}
static void hue(const ls_transform_image *i, const double *n)
{
	ls_image_hue(i, (float)n[0]);
}
static void sharpness(const ls_transform_image *i, const double *n)
{
	ls_image_sharpness(i, (float)n[0]);
}
static void posterize(const ls_transform_image *i, const double *n)
{
	ls_image_posterize(i, (int)n[0]);
}
static void solarize(const ls_transform_image *i, const double *n)
{
	ls_image_solarize(i, (float)n[0]);
}
static void autocontrast(const ls_transform_image *i, const double *n)
{
	(void)n;
	ls_image_autocontrast(i);
}
static void equalize(const ls_transform_image *i, const double *n)
{
	(void)n;
	ls_image_equalize(i);
}
static void invert(const ls_transform_image *i, const double *n)
{
	(void)n;
	ls_image_invert(i);
}

static const struct {
	const char *name;
	void (*apply)(const ls_transform_image *image, const double *numbers);
} changes[] = {
	{ "move", move },
	{ "enlarge", enlarge },
	{ "rotate", rotate },
	{ "shear", shear },
	{ "brightness", brightness },
	{ "contrast", contrast },
	{ "saturation", saturation },
	{ "hue", hue },
	{ "sharpness", sharpness },
	{ "posterize", posterize },
	{ "solarize", solarize },
	{ "autocontrast", autocontrast },
	{ "equalize", equalize },
	{ "invert", invert },
};

int main(int argc, char **argv)
{
	static const float black[3], white[] = { 1, 1, 1 };
	double numbers[4] = { 0 };

	if (argc < 5 || argc > 9)
		return 2;
	int c = atoi(argv[1]), h = atoi(argv[2]), w = atoi(argv[3]);
	size_t values = (size_t)c * (size_t)h * (size_t)w;
	float *memory = calloc(values + ls_transform_scratch(c, h, w), sizeof(*memory));
	ls_transform_image image = { memory, c, h, w, black, white, memory + values };
	for (int i = 5; i < argc; i++)
		numbers[i - 5] = atof(argv[i]);
	if (!memory || fread(memory, sizeof(*memory), values, stdin) != values)
		return 1;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (!strcmp(changes[i].name, argv[4])) {
			changes[i].apply(&image, numbers);
			return fwrite(memory, sizeof(*memory), values, stdout) != values;
		}
	fprintf(stderr, "transform_dump: there is no change %s\n", argv[4]);
	return 2;
}
