/*
 * pool.c - pooling over panels stored [H][W][N][P].
 *
 * All samples and channels of one position are one contiguous run of N*P floats, so a window is a handful of runs that
 * are combined element by element: no shuffles, and padding is simply a tap that is not visited. The backward passes
 * gather: an input position reads the at most ceil(kernel_h/stride) * ceil(kernel_w/stride) windows that contain it, in
 * scan order, and is written once, so rows may be given to threads freely.
 */
#include <math.h>
#include <stddef.h>

#include "kernels/simd/parts.h"
#include "kernels/simd/vec.h"

/* Positions [y0, y1) x [x0, x1) of a map. */
typedef struct rectangle {
	int y0, y1, x0, x1;
} rectangle;

static int at_least(int a, int b)
{
	return a > b ? a : b;
}

static int at_most(int a, int b)
{
	return a < b ? a : b;
}

/* The part of output (oy, ox)'s window that lies inside the image. */
static rectangle window_inside(const ls_pool_geometry *g, int oy, int ox)
{
	int y = oy * g->stride - g->padding, x = ox * g->stride - g->padding;
	return (rectangle){ at_least(y, 0), at_most(y + g->kernel_h, g->in_h), at_least(x, 0),
			    at_most(x + g->kernel_w, g->in_w) };
}

/* First output whose window reaches position i along one axis, and one past the last. */
static int first_window(const ls_pool_geometry *g, int i, int kernel)
{
	int t = i + g->padding - kernel + 1; /* o*stride >= t */
	return t <= 0 ? 0 : (t + g->stride - 1) / g->stride;
}

static int end_window(const ls_pool_geometry *g, int i, int outputs)
{
	return at_most((i + g->padding) / g->stride + 1, outputs);
}

/* The outputs whose windows contain input (iy, ix). */
static rectangle windows_over(const ls_pool_geometry *g, int iy, int ix)
{
	return (rectangle){ first_window(g, iy, g->kernel_h), end_window(g, iy, g->out_h),
			    first_window(g, ix, g->kernel_w), end_window(g, ix, g->out_w) };
}

/* ---- maximum ---- */

/*
 * One run of an output: x is the window's first position inside the image, whose tap is `first`; taps of h rows and w
 * columns. A later value wins when it is greater or NaN, as in PyTorch.
 */
LS_INLINE void max_run(const ls_pool_geometry *g, const float *x, int first, int h, int w, float *y, uint8_t *arg)
{
	const int64_t run = g->n * g->panel, line = g->in_w * run;
	for (int64_t i = 0; i < run; i += LS_LANES) {
		ls_vf best = ls_vf_set(-INFINITY);
		ls_vi chosen = first - (ls_vi){ 0 };
		for (int r = 0; r < h; r++) {
			for (int s = 0; s < w; s++) {
				ls_vf v = ls_vf_load(x + r * line + s * run + i);
				ls_vi wins = (v > best) | (v != v);
				best = ls_vf_select(wins, v, best);
				chosen = ls_vi_select(wins, (first + r * g->kernel_w + s) - (ls_vi){ 0 }, chosen);
			}
		}
		ls_vf_store(y + i, best);
		ls_vi_to_bytes(arg + i, chosen);
	}
}

void LS_ISA_SYMBOL(ls_simd_max_pool)(const ls_pool_geometry *g, const float *x, int oy, float *y, uint8_t *arg)
{
	const int64_t run = g->n * g->panel;
	for (int ox = 0; ox < g->out_w; ox++) {
		const rectangle in = window_inside(g, oy, ox);
		const int h = in.y1 - in.y0, w = in.x1 - in.x0;
		const int first =
			(in.y0 - oy * g->stride + g->padding) * g->kernel_w + in.x0 - ox * g->stride + g->padding;
		const int64_t to = ((int64_t)oy * g->out_w + ox) * run;
		const float *from = x + ((int64_t)in.y0 * g->in_w + in.x0) * run;
		if (h == 2 && w == 2)
			max_run(g, from, first, 2, 2, y + to, arg + to);
		else if (h == 3 && w == 3)
			max_run(g, from, first, 3, 3, y + to, arg + to);
		else
			max_run(g, from, first, h, w, y + to, arg + to);
	}
}

/* A window that contains an input position: where its run starts, and which of its taps the position is. */
typedef struct seen_by {
	int64_t at;
	int tap;
} seen_by;

/* One run of dx at a position that `count` windows contain: the gradients of those that chose it. */
LS_INLINE void max_backward_run(const float *dy, const uint8_t *arg, const seen_by *windows, int count, int64_t run,
				int accumulate, float *dx)
{
	for (int64_t i = 0; i < run; i += LS_LANES) {
		ls_vf sum = accumulate ? ls_vf_load(dx + i) : (ls_vf){ 0 };
		for (int k = 0; k < count; k++) {
			ls_vi chosen = ls_vi_from_bytes(arg + windows[k].at + i);
			sum += ls_vf_where(chosen == windows[k].tap, ls_vf_load(dy + windows[k].at + i));
		}
		ls_vf_store(dx + i, sum);
	}
}

/* The windows over (iy, ix), in scan order; an arg is a byte, so there are at most 256. */
static int list_windows(const ls_pool_geometry *g, int iy, int ix, seen_by *windows)
{
	const rectangle over = windows_over(g, iy, ix);
	int count = 0;
	for (int oy = over.y0; oy < over.y1; oy++)
		for (int ox = over.x0; ox < over.x1; ox++) {
			const int r = iy + g->padding - oy * g->stride, s = ix + g->padding - ox * g->stride;
			windows[count++] = (seen_by){ .at = ((int64_t)oy * g->out_w + ox) * g->n * g->panel,
						      .tap = r * g->kernel_w + s };
		}
	return count;
}

void LS_ISA_SYMBOL(ls_simd_max_pool_backward)(const ls_pool_geometry *g, const float *dy, const uint8_t *arg, int iy,
					      int accumulate, float *dx)
{
	const int64_t run = g->n * g->panel;
	seen_by windows[256];
	dx += (int64_t)iy * g->in_w * run;
	for (int ix = 0; ix < g->in_w; ix++, dx += run) {
		const int count = list_windows(g, iy, ix, windows);
		if (count == 1)
			max_backward_run(dy, arg, windows, 1, run, accumulate, dx);
		else if (count == 2)
			max_backward_run(dy, arg, windows, 2, run, accumulate, dx);
		else
			max_backward_run(dy, arg, windows, count, run, accumulate, dx);
	}
}

/* ---- average ---- */

/* to (+)= sum of the runs of a rectangle of a map `width` positions wide, divided by `divisor`. */
LS_INLINE void average_run(const float *from, rectangle area, int width, int64_t run, float divisor, int accumulate,
			   float *to)
{
	for (int64_t i = 0; i < run; i += LS_LANES) {
		ls_vf sum = { 0 };
		for (int y = area.y0; y < area.y1; y++)
			for (int x = area.x0; x < area.x1; x++)
				sum += ls_vf_load(from + ((int64_t)y * width + x) * run + i);
		sum /= divisor;
		ls_vf_store(to + i, accumulate ? ls_vf_load(to + i) + sum : sum);
	}
}

void LS_ISA_SYMBOL(ls_simd_avg_pool)(const ls_pool_geometry *g, const float *x, int oy, float *y)
{
	const int64_t run = g->n * g->panel;
	const float divisor = (float)(g->kernel_h * g->kernel_w);
	for (int ox = 0; ox < g->out_w; ox++)
		average_run(x, window_inside(g, oy, ox), g->in_w, run, divisor, 0,
			    y + ((int64_t)oy * g->out_w + ox) * run);
}

void LS_ISA_SYMBOL(ls_simd_avg_pool_backward)(const ls_pool_geometry *g, const float *dy, int iy, int accumulate,
					      float *dx)
{
	const int64_t run = g->n * g->panel;
	const float divisor = (float)(g->kernel_h * g->kernel_w);
	for (int ix = 0; ix < g->in_w; ix++)
		average_run(dy, windows_over(g, iy, ix), g->out_w, run, divisor, accumulate,
			    dx + ((int64_t)iy * g->in_w + ix) * run);
}
