/*
 * panels.h - between PyTorch's layout (n, C, H, W) and panels [blocks][H][W][N][panel], one element at a time.
 */
#ifndef LS_TESTS_PANELS_H
#define LS_TESTS_PANELS_H

#include <stdint.h>

#include "params/panel.h"

typedef struct panels_shape {
	int64_t n;
	int c, h, w;
} panels_shape;

static inline int64_t panels_dense(const panels_shape *s) /* floats of (n, C, H, W) */
{
	return s->n * s->c * s->h * s->w;
}

static inline int64_t panels_floats(const panels_shape *s) /* floats of the panels, padded channels included */
{
	return s->n * s->h * s->w * ls_panel_blocks(s->c) * ls_panel_width(s->c);
}

/* Where channel c (a padded one, too) of position p of sample i lies in panels. */
static inline int64_t panels_at(const panels_shape *s, int64_t i, int c, int p)
{
	int width = ls_panel_width(s->c);
	return (((int64_t)(c / width) * s->h * s->w + p) * s->n + i) * width + c % width;
}

static inline void panels_pack(const panels_shape *s, const float *dense, float *panels)
{
	for (int64_t k = 0; k < panels_floats(s); k++)
		panels[k] = 0;
	for (int64_t i = 0; i < s->n; i++)
		for (int c = 0; c < s->c; c++)
			for (int p = 0; p < s->h * s->w; p++)
				panels[panels_at(s, i, c, p)] = dense[(i * s->c + c) * s->h * s->w + p];
}

static inline void panels_unpack(const panels_shape *s, const float *panels, float *dense)
{
	for (int64_t i = 0; i < s->n; i++)
		for (int c = 0; c < s->c; c++)
			for (int p = 0; p < s->h * s->w; p++)
				dense[(i * s->c + c) * s->h * s->w + p] = panels[panels_at(s, i, c, p)];
}

/* The first padded channel that is not zero, as an index into panels; -1 when all are. */
static inline int64_t panels_stain(const panels_shape *s, const float *panels)
{
	int padded = ls_panel_blocks(s->c) * ls_panel_width(s->c);
	for (int64_t i = 0; i < s->n; i++)
		for (int c = s->c; c < padded; c++)
			for (int p = 0; p < s->h * s->w; p++)
				if (panels[panels_at(s, i, c, p)] != 0)
					return panels_at(s, i, c, p);
	return -1;
}

#endif
