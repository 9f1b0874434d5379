/*
 * warp.c - see warp.h.
 *
 * The source gets a black border of one pixel, in scratch memory, and places further out are moved onto it: then every
 * place has four neighbours, and no pixel needs a branch. Places are computed for a run of pixels at a time, which
 * vector units do, and then looked up in each channel.
 *
 * The field: displacements at GRID x GRID nodes spread over the image, blended by uniform cubic B-splines (so it is
 * smooth to the second derivative; Simard et al. 2003 smooth white noise by a Gaussian, at many times the cost). The
 * blend is separable: a row of nodes is blended once per row of pixels, then four values per pixel.
 */
#include "data/transforms/warp.h"

#include <string.h>

#include "data/transforms/image_ops.h"

enum { GRID = LS_WARP_GRID, SPANS = GRID - 3, RUN = 64 };

/* Floats per column: weights of four nodes, and the first of them. */
enum { BLEND = 5 };

/* Where a run of pixels comes from. */
typedef struct places {
	float x[RUN], y[RUN]; /* first places, then the parts of the right and the lower neighbour */
	int32_t at[RUN];      /* of the upper left neighbour, in a plane with its border */
} places;

size_t ls_transform_scratch(int channels, int height, int width)
{
	return (size_t)channels * (size_t)(height + 2) * (size_t)(width + 2) + BLEND * (size_t)width;
}

void ls_warp_centre(ls_warp *w, float x, float y)
{
	w->offset[0] = x - w->m[0][0] * x - w->m[0][1] * y;
	w->offset[1] = y - w->m[1][0] * x - w->m[1][1] * y;
}

/* ---- the field --------------------------------------------------------------------------------------------------- */

static void blend_at(int i, int size, float *b)
{
	float u = size > 1 ? (float)i * SPANS / (float)(size - 1) : 0.0f;
	int first = (int)u < SPANS ? (int)u : SPANS - 1;
	float t = u - (float)first, s = 1.0f - t;

	b[0] = s * s * s / 6.0f;
	b[1] = (4.0f - 6.0f * t * t + 3.0f * t * t * t) / 6.0f;
	b[2] = (4.0f - 6.0f * s * s + 3.0f * s * s * s) / 6.0f;
	b[3] = t * t * t / 6.0f;
	b[4] = (float)first;
}

/* Nodes of the field blended for one row of pixels. */
static void blend_row(const float (*field)[GRID][2], const float *row, float nodes[GRID][2])
{
	int first = (int)row[4];

	for (int j = 0; j < GRID; j++)
		for (int axis = 0; axis < 2; axis++) {
			float sum = 0.0f;
			for (int k = 0; k < 4; k++)
				sum += row[k] * field[first + k][j][axis];
			nodes[j][axis] = sum;
		}
}

static void add_field(places *p, int count, const float *columns, float nodes[GRID][2])
{
	for (int i = 0; i < count; i++) {
		const float *b = columns + BLEND * i;
		float(*n)[2] = nodes + (int)b[4];
		p->x[i] += b[0] * n[0][0] + b[1] * n[1][0] + b[2] * n[2][0] + b[3] * n[3][0];
		p->y[i] += b[0] * n[0][1] + b[1] * n[1][1] + b[2] * n[2][1] + b[3] * n[3][1];
	}
}

/* ---- rows of pixels ---------------------------------------------------------------------------------------------- */

/* The image with its border, (channels, height + 2, width + 2). */
static void copy_with_border(const ls_transform_image *image, float *out)
{
	size_t width = (size_t)image->width, wide = width + 2;

	for (int c = 0; c < image->channels; c++) {
		const float *from = image->values + (size_t)c * ls_image_plane(image);
		float black = image->black[c];
		for (size_t x = 0; x < wide; x++)
			out[x] = out[((size_t)image->height + 1) * wide + x] = black;
		for (int y = 0; y < image->height; y++) {
			float *row = out + (size_t)(y + 1) * wide;
			row[0] = row[width + 1] = black;
			memcpy(row + 1, from + (size_t)y * width, width * sizeof(*row));
		}
		out += wide * ((size_t)image->height + 2);
	}
}

static void map_places(const ls_warp *w, int first, int count, int row, places *p)
{
	float y = (float)row;

	for (int i = 0; i < count; i++) {
		float x = (float)(first + i);
		p->x[i] = w->m[0][0] * x + w->m[0][1] * y + w->offset[0];
		p->y[i] = w->m[1][0] * x + w->m[1][1] * y + w->offset[1];
	}
}

/* Neighbours and their parts; whole pixels are found by truncation, which is floor for what is not negative. */
static void find_neighbours(const ls_transform_image *image, int count, places *p)
{
	float width = (float)image->width, height = (float)image->height;
	int32_t stride = image->width + 2;

	for (int i = 0; i < count; i++) {
		float x = ls_limit(p->x[i], -1.0f, width), y = ls_limit(p->y[i], -1.0f, height);
		int32_t left = (int32_t)(x + 1.0f), top = (int32_t)(y + 1.0f);
		left = left < image->width ? left : image->width;
		top = top < image->height ? top : image->height;
		p->x[i] = x - (float)(left - 1);
		p->y[i] = y - (float)(top - 1);
		p->at[i] = top * stride + left;
	}
}

static void read_places(const float *plane, size_t stride, const places *p, int count, float *out)
{
	for (int i = 0; i < count; i++) {
		const float *v = plane + p->at[i];
		float upper = v[0] + p->x[i] * (v[1] - v[0]);
		float lower = v[stride] + p->x[i] * (v[stride + 1] - v[stride]);
		out[i] = upper + p->y[i] * (lower - upper);
	}
}

static void warp_row(const ls_transform_image *image, const ls_warp *w, int y, const float *columns)
{
	size_t stride = (size_t)image->width + 2, bordered = stride * ((size_t)image->height + 2);
	float nodes[GRID][2], row[BLEND];
	places p;

	if (w->field) {
		blend_at(y, image->height, row);
		blend_row(w->field, row, nodes);
	}
	for (int x = 0; x < image->width; x += RUN) {
		int count = image->width - x < RUN ? image->width - x : RUN;
		float *out = image->values + (size_t)y * (size_t)image->width + (size_t)x;
		map_places(w, x, count, y, &p);
		if (w->field)
			add_field(&p, count, columns + BLEND * (size_t)x, nodes);
		find_neighbours(image, count, &p);
		for (int c = 0; c < image->channels; c++)
			read_places(image->scratch + (size_t)c * bordered, stride, &p, count,
				    out + (size_t)c * ls_image_plane(image));
	}
}

void ls_warp_image(const ls_transform_image *image, const ls_warp *w)
{
	float *columns =
		image->scratch + (size_t)image->channels * (size_t)(image->height + 2) * (size_t)(image->width + 2);

	copy_with_border(image, image->scratch);
	for (int x = 0; w->field && x < image->width; x++)
		blend_at(x, image->width, columns + BLEND * (size_t)x);
	for (int y = 0; y < image->height; y++)
		warp_row(image, w, y, columns);
}
