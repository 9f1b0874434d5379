/*
 * augment.c - see augment.h.
 *
 * The field: random displacements at GRID x GRID nodes spread over the image, blended by uniform cubic B-splines (so it
 * is smooth to the second derivative; Simard et al. 2003 smooth white noise by a Gaussian, at many times the cost). The
 * blend is separable: a row of nodes is blended once per row of pixels, then four values per pixel. All weights depend
 * on the size alone and are computed once. About 40 flops per pixel.
 */
#include "data/augment.h"

#include <stdlib.h>

#include "base/rng.h"
#include "data/sample_rng.h"

#define GRID 8
#define SPANS (GRID - 3)

/* Weights of the four nodes from `first` on. */
typedef struct blend {
	float w[4];
	int first;
} blend;

struct ls_augment {
	int channels, height, width;
	ls_augment_options options;
	blend *rows; /* (height) */
	blend *cols; /* (width) */
};

/* One drawn distortion: source = m (pixel - centre) + centre + shift + field. */
typedef struct warp {
	float m[2][2], offset[2]; /* x, y in pixels */
	float field[GRID][GRID][2];
} warp;

static void blend_table(blend *table, int size)
{
	for (int i = 0; i < size; i++) {
		float u = size > 1 ? (float)i * SPANS / (float)(size - 1) : 0.0f;
		int first = (int)u < SPANS ? (int)u : SPANS - 1;
		float t = u - (float)first, s = 1.0f - t;
		table[i].first = first;
		table[i].w[0] = s * s * s / 6.0f;
		table[i].w[1] = (4.0f - 6.0f * t * t + 3.0f * t * t * t) / 6.0f;
		table[i].w[2] = (4.0f - 6.0f * s * s + 3.0f * s * s * s) / 6.0f;
		table[i].w[3] = t * t * t / 6.0f;
	}
}

ls_status ls_augment_new(ls_augment **out, int channels, int height, int width, const ls_augment_options *options)
{
	ls_augment *augment = calloc(1, sizeof(*augment));
	if (!augment)
		return ls_fail(LS_EMEMORY, "no memory for augmentation");
	*augment = (ls_augment){ .channels = channels, .height = height, .width = width, .options = *options };
	augment->rows = calloc((size_t)height, sizeof(blend));
	augment->cols = calloc((size_t)width, sizeof(blend));
	if (!augment->rows || !augment->cols) {
		ls_augment_free(augment);
		return ls_fail(LS_EMEMORY, "no memory for augmentation of %d x %d images", height, width);
	}
	blend_table(augment->rows, height);
	blend_table(augment->cols, width);
	*out = augment;
	return LS_OK;
}

void ls_augment_free(ls_augment *augment)
{
	if (!augment)
		return;
	free(augment->cols);
	free(augment->rows);
	free(augment);
}

static float symmetric(ls_sample_rng *draw, float bound)
{
	return ls_sample_rng_range(draw, -bound, bound);
}

/* m = flip * scale * shear * rotation, as a map from output to source. */
static void draw_matrix(const ls_augment_options *o, ls_sample_rng *draw, float m[2][2])
{
	float sine, cosine;
	ls_sine_cosine(symmetric(draw, o->turn), &sine, &cosine);
	float shear_x = symmetric(draw, o->shear), shear_y = symmetric(draw, 0.5f * o->shear);
	float scale_x = 1.0f / (1.0f + symmetric(draw, o->scale)), scale_y = 1.0f / (1.0f + symmetric(draw, o->scale));
	scale_x = ls_sample_rng_range(draw, 0.0f, 1.0f) < o->flip_horizontal ? -scale_x : scale_x;
	scale_y = ls_sample_rng_range(draw, 0.0f, 1.0f) < o->flip_vertical ? -scale_y : scale_y;
	m[0][0] = scale_x * (cosine + shear_x * sine);
	m[0][1] = scale_x * (-sine + shear_x * cosine);
	m[1][0] = scale_y * (sine + shear_y * cosine);
	m[1][1] = scale_y * (cosine - shear_y * sine);
}

static void draw_warp(const ls_augment *augment, uint64_t seed, uint64_t index, warp *w)
{
	const ls_augment_options *o = &augment->options;
	const float size[2] = { (float)augment->width, (float)augment->height };
	ls_sample_rng draw = ls_sample_rng_begin(ls_rng_make(seed, LS_RNG_AUGMENT, 0), index);
	draw_matrix(o, &draw, w->m);
	for (int axis = 0; axis < 2; axis++) {
		float centre_x = 0.5f * (size[0] - 1.0f), centre_y = 0.5f * (size[1] - 1.0f);
		float centre = axis ? centre_y : centre_x;
		w->offset[axis] = centre - w->m[axis][0] * centre_x - w->m[axis][1] * centre_y +
				  symmetric(&draw, o->shift) * size[axis];
	}
	for (int i = 0; i < GRID; i++)
		for (int j = 0; j < GRID; j++) {
			uint32_t word = ls_sample_rng_word(&draw);
			float x = (float)(word & 0xffff) * 0x1p-15f - 1.0f, y = (float)(word >> 16) * 0x1p-15f - 1.0f;
			w->field[i][j][0] = o->elastic * size[0] * x;
			w->field[i][j][1] = o->elastic * size[1] * y;
		}
}

/* Source value at (x, y), zero outside, and half way between at the border. */
static uint8_t sample(const uint8_t *in, int height, int width, float x, float y)
{
	if (!(x > -1.0f && y > -1.0f && x < (float)width && y < (float)height))
		return 0;
	int x0 = (int)(x + 1.0f) - 1, y0 = (int)(y + 1.0f) - 1; /* floor, for values above -1 */
	float fx = x - (float)x0, fy = y - (float)y0;
	float v[4] = { 0 };
	int left = x0 >= 0, right = x0 + 1 < width, top = y0 >= 0, bottom = y0 + 1 < height;
	const uint8_t *p = in + (int64_t)y0 * width + x0;
	if (top && left)
		v[0] = p[0];
	if (top && right)
		v[1] = p[1];
	if (bottom && left)
		v[2] = p[width];
	if (bottom && right)
		v[3] = p[width + 1];
	float upper = v[0] + fx * (v[1] - v[0]), lower = v[2] + fx * (v[3] - v[2]);
	return (uint8_t)(upper + fy * (lower - upper) + 0.5f);
}

/* Nodes of the field blended for one row of pixels. */
static void blend_row(const warp *w, const blend *row, float nodes[GRID][2])
{
	for (int j = 0; j < GRID; j++)
		for (int axis = 0; axis < 2; axis++) {
			float sum = 0.0f;
			for (int k = 0; k < 4; k++)
				sum += row->w[k] * w->field[row->first + k][j][axis];
			nodes[j][axis] = sum;
		}
}

static float blend_nodes(const blend *col, float nodes[GRID][2], int axis)
{
	return col->w[0] * nodes[col->first][axis] + col->w[1] * nodes[col->first + 1][axis] +
	       col->w[2] * nodes[col->first + 2][axis] + col->w[3] * nodes[col->first + 3][axis];
}

void ls_augment_apply(const ls_augment *augment, uint64_t seed, uint64_t index, const uint8_t *in, uint8_t *out)
{
	int height = augment->height, width = augment->width;
	size_t plane = (size_t)height * (size_t)width;
	warp w;
	draw_warp(augment, seed, index, &w);
	for (int y = 0; y < height; y++) {
		float nodes[GRID][2];
		blend_row(&w, &augment->rows[y], nodes);
		for (int x = 0; x < width; x++) {
			const blend *col = &augment->cols[x];
			float fx = (float)x, fy = (float)y;
			float sx = w.m[0][0] * fx + w.m[0][1] * fy + w.offset[0] + blend_nodes(col, nodes, 0);
			float sy = w.m[1][0] * fx + w.m[1][1] * fy + w.offset[1] + blend_nodes(col, nodes, 1);
			size_t at = (size_t)y * (size_t)width + (size_t)x;
			for (int c = 0; c < augment->channels; c++)
				out[(size_t)c * plane + at] = sample(in + (size_t)c * plane, height, width, sx, sy);
		}
	}
}
