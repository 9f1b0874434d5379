/*
 * glyphs.c - digits drawn by the program, so that everything runs without a download.
 *
 * A digit is a few strokes through points in a box of 100 x 100 (y down), with one to three ways of writing each. A
 * sample moves every point a little, bends the whole by a slow wave (elastic noise), scales, leans, turns and shifts
 * it, and draws the strokes with a round pen whose width and pressure vary. The picture is a distance field: each pixel
 * keeps how deep it lies inside the nearest stroke, and ink is that depth through a soft edge. Only the pixels around
 * a piece of stroke are visited, about 3,000 distances a sample.
 */
#include "data/glyphs.h"

#include <stdlib.h>

#include "base/status.h"
#include "data/dataset.h"
#include "data/draw.h"

enum { CORNER = 1, PEN_UP = 2 }; /* the curve has a corner here; the pen is lifted before this point */

typedef struct glyph_point {
	int8_t x, y, flags;
} glyph_point;

#define POINTS_MAX 16
#define PIECES 5 /* straight pieces between two points */

typedef struct glyph_form {
	int digit;
	int count;
	glyph_point points[POINTS_MAX];
} glyph_form;

/* clang-format off */
static const glyph_form forms[] = {
	{ 0, 9, { { 54, 1, 0 }, { 26, 10, 0 }, { 10, 45, 0 }, { 20, 86, 0 }, { 50, 100, 0 }, { 80, 84, 0 }, { 90, 48, 0 }, { 76, 12, 0 }, { 50, 2, 0 } } },
	{ 0, 9, { { 68, 8, 0 }, { 38, 2, 0 }, { 16, 30, 0 }, { 14, 68, 0 }, { 36, 98, 0 }, { 66, 94, 0 }, { 86, 62, 0 }, { 82, 26, 0 }, { 58, 3, 0 } } },
	{ 1, 3, { { 52, 0, 0 }, { 50, 50, 0 }, { 48, 100, 0 } } },
	{ 1, 4, { { 28, 24, 0 }, { 54, 0, CORNER }, { 53, 50, 0 }, { 52, 100, 0 } } },
	{ 1, 6, { { 30, 22, 0 }, { 52, 0, CORNER }, { 52, 50, 0 }, { 52, 99, 0 }, { 24, 100, PEN_UP }, { 80, 99, 0 } } },
	{ 2, 8, { { 14, 26, 0 }, { 28, 6, 0 }, { 56, 0, 0 }, { 80, 16, 0 }, { 76, 40, 0 }, { 48, 70, 0 }, { 12, 98, CORNER }, { 90, 95, 0 } } },
	{ 2, 10, { { 16, 22, 0 }, { 36, 3, 0 }, { 66, 4, 0 }, { 80, 26, 0 }, { 66, 58, 0 }, { 36, 90, 0 }, { 15, 90, 0 }, { 22, 75, 0 }, { 48, 84, 0 }, { 92, 98, 0 } } },
	{ 3, 9, { { 16, 13, 0 }, { 44, 0, 0 }, { 76, 12, 0 }, { 72, 37, 0 }, { 40, 47, CORNER }, { 78, 58, 0 }, { 82, 84, 0 }, { 50, 100, 0 }, { 12, 88, 0 } } },
	{ 3, 7, { { 14, 4, 0 }, { 80, 3, CORNER }, { 44, 42, CORNER }, { 80, 57, 0 }, { 78, 88, 0 }, { 44, 100, 0 }, { 10, 89, 0 } } },
	{ 4, 6, { { 26, 0, 0 }, { 17, 30, 0 }, { 12, 56, CORNER }, { 88, 54, 0 }, { 70, 14, PEN_UP }, { 64, 100, 0 } } },
	{ 4, 4, { { 92, 66, 0 }, { 8, 67, CORNER }, { 66, 0, CORNER }, { 64, 100, 0 } } },
	{ 5, 8, { { 82, 3, 0 }, { 26, 3, CORNER }, { 19, 42, CORNER }, { 54, 38, 0 }, { 84, 62, 0 }, { 72, 91, 0 }, { 40, 100, 0 }, { 10, 88, 0 } } },
	{ 5, 9, { { 27, 4, 0 }, { 22, 44, CORNER }, { 52, 37, 0 }, { 82, 58, 0 }, { 76, 88, 0 }, { 44, 100, 0 }, { 12, 90, 0 }, { 26, 4, PEN_UP }, { 86, 0, 0 } } },
	{ 6, 9, { { 72, 2, 0 }, { 36, 26, 0 }, { 13, 64, 0 }, { 24, 94, 0 }, { 58, 100, 0 }, { 82, 78, 0 }, { 66, 55, 0 }, { 36, 58, 0 }, { 17, 78, 0 } } },
	{ 6, 9, { { 50, 0, 0 }, { 24, 34, 0 }, { 14, 72, 0 }, { 34, 98, 0 }, { 66, 96, 0 }, { 80, 74, 0 }, { 58, 52, 0 }, { 28, 62, 0 }, { 16, 80, 0 } } },
	{ 7, 4, { { 10, 6, 0 }, { 88, 4, CORNER }, { 58, 46, 0 }, { 38, 100, 0 } } },
	{ 7, 6, { { 12, 5, 0 }, { 86, 4, CORNER }, { 56, 48, 0 }, { 40, 100, 0 }, { 26, 52, PEN_UP }, { 78, 48, 0 } } },
	{ 7, 5, { { 12, 22, 0 }, { 16, 4, CORNER }, { 88, 5, CORNER }, { 60, 44, 0 }, { 44, 100, 0 } } },
	{ 8, 11, { { 78, 15, 0 }, { 50, 0, 0 }, { 22, 16, 0 }, { 38, 40, 0 }, { 68, 58, 0 }, { 82, 80, 0 }, { 50, 100, 0 }, { 18, 80, 0 }, { 35, 56, 0 }, { 64, 40, 0 }, { 77, 14, 0 } } },
	{ 8, 10, { { 50, 2, 0 }, { 24, 22, 0 }, { 50, 46, 0 }, { 76, 22, 0 }, { 50, 2, 0 }, { 50, 46, PEN_UP }, { 14, 74, 0 }, { 50, 100, 0 }, { 86, 74, 0 }, { 50, 46, 0 } } },
	{ 9, 8, { { 80, 18, 0 }, { 50, 0, 0 }, { 18, 20, 0 }, { 26, 46, 0 }, { 56, 49, 0 }, { 80, 20, CORNER }, { 77, 60, 0 }, { 68, 100, 0 } } },
	{ 9, 9, { { 80, 20, 0 }, { 52, 1, 0 }, { 20, 18, 0 }, { 24, 44, 0 }, { 54, 48, 0 }, { 80, 20, 0 }, { 82, 62, 0 }, { 62, 97, 0 }, { 24, 94, 0 } } },
};
/* clang-format on */
#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* A point on paper: pixels, and the pen's radius there. */
typedef struct pen {
	float x, y, r;
} pen;

static const glyph_form *pick_form(ls_draw *draw, int digit)
{
	size_t first = 0, count = 0;
	while (forms[first].digit != digit)
		first++;
	while (first + count < FORMS && forms[first + count].digit == digit)
		count++;
	return &forms[first + ls_rng_below(ls_draw_word(draw), (uint32_t)count)];
}

/* How box coordinates (centred, about -0.5 .. 0.5) become pixels. */
typedef struct placement {
	float m[2][2], shift[2];
	float wave[2], pace[2], phase[2]; /* x += wave[0] sin(pace[0] y + phase[0]), y likewise */
	float radius;
} placement;

static placement draw_placement(ls_draw *draw)
{
	placement p;
	float tall = ls_draw_range(draw, 15.0f, 21.5f), wide = tall * ls_draw_range(draw, 0.6f, 1.0f);
	float lean = 0.12f + 0.42f * ls_draw_bell(draw), sine, cosine;
	ls_draw_turn(0.075f * ls_draw_bell(draw), &sine, &cosine);
	/* rotate * lean * scale; a positive lean moves the top (y < 0) to the right */
	p.m[0][0] = cosine * wide;
	p.m[0][1] = (-cosine * lean - sine) * tall;
	p.m[1][0] = sine * wide;
	p.m[1][1] = (-sine * lean + cosine) * tall;
	for (int axis = 0; axis < 2; axis++) {
		p.shift[axis] = 0.5f * (LS_GLYPH_SIZE - 1) + 2.2f * ls_draw_bell(draw);
		p.wave[axis] = 0.085f * ls_draw_bell(draw);
		p.pace[axis] = ls_draw_range(draw, 0.4f, 1.4f);
		p.phase[axis] = ls_draw_range(draw, 0.0f, 1.0f);
	}
	p.radius = ls_draw_range(draw, 0.55f, 1.75f);
	return p;
}

static pen place_point(const placement *p, ls_draw *draw, glyph_point point)
{
	const float jitter = 0.075f;
	float x = (float)point.x * 0.01f - 0.5f + jitter * ls_draw_bell(draw);
	float y = (float)point.y * 0.01f - 0.5f + jitter * ls_draw_bell(draw);
	float bend_x, bend_y, unused;
	ls_draw_turn(p->pace[0] * y + p->phase[0], &bend_x, &unused);
	ls_draw_turn(p->pace[1] * x + p->phase[1], &bend_y, &unused);
	x += p->wave[0] * bend_x;
	y += p->wave[1] * bend_y;
	return (pen){ .x = p->m[0][0] * x + p->m[0][1] * y + p->shift[0],
		      .y = p->m[1][0] * x + p->m[1][1] * y + p->shift[1],
		      .r = p->radius * (1.0f + 0.25f * ls_draw_bell(draw)) };
}

/* Catmull-Rom: through b and c at t = 0 and 1, with tangents (c - a) / 2 and (d - b) / 2. */
static float curve(float a, float b, float c, float d, float t)
{
	return b + 0.5f * t * (c - a + t * (2.0f * a - 5.0f * b + 4.0f * c - d + t * (3.0f * (b - c) + d - a)));
}

static int clamp_pixel(float x)
{
	return x < 0.0f ? 0 : x > LS_GLYPH_SIZE - 1 ? LS_GLYPH_SIZE - 1 : (int)x;
}

/* depth[y][x] = max(depth, radius - distance to the piece from a to b), near the piece. */
static void draw_piece(float *depth, pen a, pen b)
{
	float ux = b.x - a.x, uy = b.y - a.y;
	float inverse = 1.0f / (ux * ux + uy * uy + 1e-6f);
	float reach = (a.r > b.r ? a.r : b.r) + 1.5f;
	int x0 = clamp_pixel((a.x < b.x ? a.x : b.x) - reach), x1 = clamp_pixel((a.x > b.x ? a.x : b.x) + reach);
	int y0 = clamp_pixel((a.y < b.y ? a.y : b.y) - reach), y1 = clamp_pixel((a.y > b.y ? a.y : b.y) + reach);
	for (int y = y0; y <= y1; y++) {
		float *row = depth + y * LS_GLYPH_SIZE;
		float py = (float)y - a.y;
		for (int x = x0; x <= x1; x++) {
			float px = (float)x - a.x;
			float t = (px * ux + py * uy) * inverse;
			t = t < 0.0f ? 0.0f : t > 1.0f ? 1.0f : t;
			float dx = px - t * ux, dy = py - t * uy;
			float d = a.r + t * (b.r - a.r) - sqrtf(dx * dx + dy * dy);
			row[x] = row[x] > d ? row[x] : d;
		}
	}
}

/* The curve between points i and i+1; at an end or a corner the missing neighbour is the point itself. */
static void draw_span(float *depth, const glyph_form *form, const pen *points, int i)
{
	int before_ends = i == 0 || form->points[i].flags;
	int after_ends = i + 2 >= form->count || form->points[i + 1].flags || (form->points[i + 2].flags & PEN_UP);
	pen b = points[i], c = points[i + 1];
	pen a = before_ends ? b : points[i - 1], d = after_ends ? c : points[i + 2];
	pen from = b;
	for (int k = 1; k <= PIECES; k++) {
		float t = (float)k / PIECES;
		pen to = { curve(a.x, b.x, c.x, d.x, t), curve(a.y, b.y, c.y, d.y, t), b.r + t * (c.r - b.r) };
		draw_piece(depth, from, to);
		from = to;
	}
}

static void ink(const float *depth, float peak, float edge, uint8_t *image)
{
	float sharp = 1.0f / edge;
	for (int i = 0; i < LS_GLYPH_SIZE * LS_GLYPH_SIZE; i++) {
		float cover = depth[i] * sharp + 0.5f;
		cover = cover < 0.0f ? 0.0f : cover > 1.0f ? 1.0f : cover;
		image[i] = (uint8_t)(cover * peak + 0.5f);
	}
}

void ls_glyph_draw(uint64_t seed, ls_split split, uint64_t index, uint8_t *image, int32_t *label)
{
	float depth[LS_GLYPH_SIZE * LS_GLYPH_SIZE];
	pen points[POINTS_MAX];
	ls_draw draw = ls_draw_begin(ls_rng_make(seed, LS_RNG_GLYPH, (uint64_t)split), index);
	int digit = (int)ls_rng_below(ls_draw_word(&draw), 10);
	const glyph_form *form = pick_form(&draw, digit);
	placement p = draw_placement(&draw);
	float peak = ls_draw_range(&draw, 170.0f, 255.0f), edge = ls_draw_range(&draw, 0.9f, 1.8f);

	for (int i = 0; i < LS_GLYPH_SIZE * LS_GLYPH_SIZE; i++)
		depth[i] = -9.0f;
	for (int i = 0; i < form->count; i++)
		points[i] = place_point(&p, &draw, form->points[i]);
	for (int i = 0; i + 1 < form->count; i++)
		if (!(form->points[i + 1].flags & PEN_UP))
			draw_span(depth, form, points, i);
	ink(depth, peak, edge, image);
	*label = digit;
}

typedef struct glyph_set {
	uint64_t seed;
	ls_split split;
} glyph_set;

static ls_status glyphs_read(void *self, uint64_t index, uint8_t *image, int32_t *label)
{
	const glyph_set *set = self;
	ls_glyph_draw(set->seed, set->split, index, image, label);
	return LS_OK;
}

ls_status ls_glyphs_open(ls_dataset **out, const ls_dataset_options *options)
{
	uint64_t usual = options->split == LS_SPLIT_TRAIN ? LS_GLYPH_TRAIN : LS_GLYPH_TEST;
	ls_dataset_info info = { .name = "glyphs",
		                 .samples = options->samples ? options->samples : usual,
		                 .channels = 1,
		                 .height = LS_GLYPH_SIZE,
		                 .width = LS_GLYPH_SIZE,
		                 .classes = 10 };
	glyph_set *set = malloc(sizeof(*set));
	if (!set)
		return ls_fail(LS_EMEMORY, "no memory for dataset 'glyphs'");
	*set = (glyph_set){ options->seed, options->split };
	ls_status status = ls_dataset_new_bytes(out, &info, glyphs_read, free, set);
	if (status)
		free(set);
	return status;
}
