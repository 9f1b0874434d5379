/*
 * glyphs.c - digits drawn by the program, so that everything runs without a download.
 *
 * A digit is a few strokes through points in a box of 100 x 100 (y down), with one to three ways of writing each. A
 * sample moves every point a little, bends the whole by a slow wave (elastic noise), scales, leans, turns and shifts
 * it, and draws the strokes with a round pen whose width and pressure vary. The picture is a distance field: each pixel
 * keeps how deep it lies inside the nearest stroke, and ink is that depth through a soft edge. Only the pixels around
 * a piece of stroke are visited, about 3,000 distances per sample.
 */
#include "data/synthetic/glyphs.h"

#include <stdlib.h>

#include "base/status.h"
#include "data/dataset.h"
#include "data/normalise.h"
#include "data/sample_rng.h"

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
#define P(x, y) { x, y, 0 }
#define C(x, y) { x, y, CORNER }
#define U(x, y) { x, y, PEN_UP }
static const glyph_form forms[] = {
	{ 0, 9, { P(54, 1), P(26, 10), P(10, 45), P(20, 86), P(50, 100), P(80, 84), P(90, 48), P(76, 12),
	          P(50, 2) } },
	{ 0, 9, { P(68, 8), P(38, 2), P(16, 30), P(14, 68), P(36, 98), P(66, 94), P(86, 62), P(82, 26),
	          P(58, 3) } },
	{ 1, 3, { P(52, 0), P(50, 50), P(48, 100) } },
	{ 1, 4, { P(28, 24), C(54, 0), P(53, 50), P(52, 100) } },
	{ 1, 6, { P(30, 22), C(52, 0), P(52, 50), P(52, 99), U(24, 100), P(80, 99) } },
	{ 2, 8, { P(14, 26), P(28, 6), P(56, 0), P(80, 16), P(76, 40), P(48, 70), C(12, 98), P(90, 95) } },
	{ 2, 10, { P(16, 22), P(36, 3), P(66, 4), P(80, 26), P(66, 58), P(36, 90), P(15, 90), P(22, 75),
	          P(48, 84), P(92, 98) } },
	{ 3, 9, { P(16, 13), P(44, 0), P(76, 12), P(72, 37), C(40, 47), P(78, 58), P(82, 84), P(50, 100),
	          P(12, 88) } },
	{ 3, 7, { P(14, 4), C(80, 3), C(44, 42), P(80, 57), P(78, 88), P(44, 100), P(10, 89) } },
	{ 4, 6, { P(26, 0), P(17, 30), C(12, 56), P(88, 54), U(70, 14), P(64, 100) } },
	{ 4, 4, { P(92, 66), C(8, 67), C(66, 0), P(64, 100) } },
	{ 5, 8, { P(82, 3), C(26, 3), C(19, 42), P(54, 38), P(84, 62), P(72, 91), P(40, 100), P(10, 88) } },
	{ 5, 9, { P(27, 4), C(22, 44), P(52, 37), P(82, 58), P(76, 88), P(44, 100), P(12, 90), U(26, 4),
	          P(86, 0) } },
	{ 6, 9, { P(72, 2), P(36, 26), P(13, 64), P(24, 94), P(58, 100), P(82, 78), P(66, 55), P(36, 58),
	          P(17, 78) } },
	{ 6, 9, { P(50, 0), P(24, 34), P(14, 72), P(34, 98), P(66, 96), P(80, 74), P(58, 52), P(28, 62),
	          P(16, 80) } },
	{ 7, 4, { P(10, 6), C(88, 4), P(58, 46), P(38, 100) } },
	{ 7, 6, { P(12, 5), C(86, 4), P(56, 48), P(40, 100), U(26, 52), P(78, 48) } },
	{ 7, 5, { P(12, 22), C(16, 4), C(88, 5), P(60, 44), P(44, 100) } },
	{ 8, 11, { P(78, 15), P(50, 0), P(22, 16), P(38, 40), P(68, 58), P(82, 80), P(50, 100), P(18, 80),
	          P(35, 56), P(64, 40), P(77, 14) } },
	{ 8, 10, { P(50, 2), P(24, 22), P(50, 46), P(76, 22), P(50, 2), U(50, 46), P(14, 74), P(50, 100),
	          P(86, 74), P(50, 46) } },
	{ 9, 8, { P(80, 18), P(50, 0), P(18, 20), P(26, 46), P(56, 49), C(80, 20), P(77, 60), P(68, 100) } },
	{ 9, 9, { P(80, 20), P(52, 1), P(20, 18), P(24, 44), P(54, 48), P(80, 20), P(82, 62), P(62, 97),
	          P(24, 94) } },
};
#undef P
#undef C
#undef U
/* clang-format on */
#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* A point on paper: pixels, and the pen's radius there. */
typedef struct pen {
	float x, y, r;
} pen;

static const glyph_form *masked_form(ls_sample_rng *draw, int digit)
{
	size_t first = 0, count = 0;
	while (forms[first].digit != digit)
		first++;
	while (first + count < FORMS && forms[first + count].digit == digit)
		count++;
	return &forms[first + ls_rng_below(ls_sample_rng_word(draw), (uint32_t)count)];
}

/* How box coordinates (centred, about -0.5 .. 0.5) become pixels. */
typedef struct placement {
	float m[2][2], shift[2];
	float wave[2], pace[2], phase[2]; /* x += wave[0] sin(pace[0] y + phase[0]), y with index 1 */
	float radius;
} placement;

static placement draw_placement(ls_sample_rng *draw)
{
	placement p;
	float tall = ls_sample_rng_range(draw, 13.5f, 21.5f), wide = tall * ls_sample_rng_range(draw, 0.6f, 1.0f);
	float lean = 0.12f + 0.5f * ls_sample_rng_bell(draw), sine, cosine;
	ls_sine_cosine(0.095f * ls_sample_rng_bell(draw), &sine, &cosine);
	/* rotate * lean * scale; a positive lean moves the top (y < 0) to the right */
	p.m[0][0] = cosine * wide;
	p.m[0][1] = (-cosine * lean - sine) * tall;
	p.m[1][0] = sine * wide;
	p.m[1][1] = (-sine * lean + cosine) * tall;
	for (int axis = 0; axis < 2; axis++) {
		p.shift[axis] = 0.5f * (LS_GLYPH_SIZE - 1) + 2.6f * ls_sample_rng_bell(draw);
		p.wave[axis] = 0.11f * ls_sample_rng_bell(draw);
		p.pace[axis] = ls_sample_rng_range(draw, 0.4f, 1.4f);
		p.phase[axis] = ls_sample_rng_range(draw, 0.0f, 1.0f);
	}
	p.radius = ls_sample_rng_range(draw, 0.55f, 1.75f);
	return p;
}

static pen place_point(const placement *p, ls_sample_rng *draw, glyph_point point)
{
	const float jitter = 0.11f;
	float x = (float)point.x * 0.01f - 0.5f + jitter * ls_sample_rng_bell(draw);
	float y = (float)point.y * 0.01f - 0.5f + jitter * ls_sample_rng_bell(draw);
	float bend_x, bend_y, unused;
	ls_sine_cosine(p->pace[0] * y + p->phase[0], &bend_x, &unused);
	ls_sine_cosine(p->pace[1] * x + p->phase[1], &bend_y, &unused);
	x += p->wave[0] * bend_x;
	y += p->wave[1] * bend_y;
	return (pen){ .x = p->m[0][0] * x + p->m[0][1] * y + p->shift[0],
		      .y = p->m[1][0] * x + p->m[1][1] * y + p->shift[1],
		      .r = p->radius * (1.0f + 0.25f * ls_sample_rng_bell(draw)) };
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
	ls_sample_rng draw = ls_sample_rng_begin(ls_rng_make(seed, LS_RNG_GLYPH, (uint64_t)split), index);
	int digit = (int)ls_rng_below(ls_sample_rng_word(&draw), 10);
	const glyph_form *form = masked_form(&draw, digit);
	placement p = draw_placement(&draw);
	float peak = ls_sample_rng_range(&draw, 170.0f, 255.0f), edge = ls_sample_rng_range(&draw, 0.9f, 1.8f);

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
	ls_status status = ls_dataset_new_bytes(out, &info, &ls_mnist_normalisation, glyphs_read, free, set);
	if (status)
		free(set);
	return status;
}
