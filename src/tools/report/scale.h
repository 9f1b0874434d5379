/*
 * scale.h - the scale of an axis: values to pixels, and tick values.
 */
#ifndef LS_TOOLS_REPORT_SCALE_H
#define LS_TOOLS_REPORT_SCALE_H

#include <stddef.h>

typedef struct ls_scale {
	double low, high; /* low < high; both above 0 on a logarithmic scale */
	double from, to;  /* where they are, in pixels */
	int logarithmic;
} ls_scale;

enum { LS_TICKS_MAX = 16 };

/* A scale that shows low to high and ends at ticks; `zero`: begins at 0, where it is linear and nothing is below. */
ls_scale ls_scale_fit(double low, double high, int zero, int logarithmic);
double ls_scale_at(const ls_scale *scale, double value);

/* Round numbers inside the scale, in order: 1, 2 or 5 times a power of ten; about `wanted` of them. */
size_t ls_scale_ticks(const ls_scale *scale, int wanted, double out[LS_TICKS_MAX]);

#endif
