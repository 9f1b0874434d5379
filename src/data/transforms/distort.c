#include "data/transforms/distort.h"

#include "data/transforms/warp.h"

enum { GRID = LS_WARP_GRID };

static float symmetric(ls_sample_rng *draw, float bound)
{
	return ls_sample_rng_range(draw, -bound, bound);
}

/* m = flip * scale * shear * rotation, as a map from output to source. */
static void draw_matrix(const ls_distortion *how, ls_sample_rng *draw, float m[2][2])
{
	float sine, cosine;
	ls_sine_cosine(symmetric(draw, how->turn), &sine, &cosine);
	float shear_x = symmetric(draw, how->shear), shear_y = symmetric(draw, 0.5f * how->shear);
	float scale_x = 1.0f / (1.0f + symmetric(draw, how->scale)),
	      scale_y = 1.0f / (1.0f + symmetric(draw, how->scale));
	scale_x = ls_sample_rng_range(draw, 0.0f, 1.0f) < how->flip_horizontal ? -scale_x : scale_x;
	scale_y = ls_sample_rng_range(draw, 0.0f, 1.0f) < how->flip_vertical ? -scale_y : scale_y;
	m[0][0] = scale_x * (cosine + shear_x * sine);
	m[0][1] = scale_x * (-sine + shear_x * cosine);
	m[1][0] = scale_y * (sine + shear_y * cosine);
	m[1][1] = scale_y * (cosine - shear_y * sine);
}

static void draw_field(float elastic, const float size[2], ls_sample_rng *draw, float field[GRID][GRID][2])
{
	for (int i = 0; i < GRID; i++)
		for (int j = 0; j < GRID; j++) {
			uint32_t word = ls_sample_rng_word(draw);
			float x = (float)(word & 0xffff) * 0x1p-15f - 1.0f, y = (float)(word >> 16) * 0x1p-15f - 1.0f;
			field[i][j][0] = elastic * size[0] * x;
			field[i][j][1] = elastic * size[1] * y;
		}
}

void ls_distort(const ls_transform_image *image, const ls_distortion *how, ls_sample_rng *draw)
{
	const float size[2] = { (float)image->width, (float)image->height };
	float field[GRID][GRID][2];
	ls_warp warp = { .field = (const float(*)[GRID][2])field };

	draw_matrix(how, draw, warp.m);
	ls_warp_centre(&warp, 0.5f * (size[0] - 1.0f), 0.5f * (size[1] - 1.0f));
	for (int axis = 0; axis < 2; axis++)
		warp.offset[axis] += symmetric(draw, how->shift) * size[axis];
	draw_field(how->elastic, size, draw, field);
	ls_warp_image(image, &warp);
}

void ls_transform_distort(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	ls_distortion how = LS_DISTORTION_INIT;
	float *parts[] = { &how.turn,          &how.shear,  &how.scale, &how.shift, &how.flip_horizontal,
			   &how.flip_vertical, &how.elastic };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		*parts[i] *= (float)numbers[0];
	ls_distort(image, &how, draw);
}

void ls_transform_elastic(const ls_transform_image *image, const double *numbers, ls_sample_rng *draw)
{
	const ls_distortion how = { .elastic = (float)numbers[0] };

	ls_distort(image, &how, draw);
}
