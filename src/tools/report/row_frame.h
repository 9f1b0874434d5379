/*
 * row_frame.h - a plot with a row per item: its name at the left, a linear scale from 0 along the rows, ticks below.
 */
#ifndef LS_TOOLS_REPORT_ROW_FRAME_H
#define LS_TOOLS_REPORT_ROW_FRAME_H

#include <stdio.h>

#include "tools/report/plot.h"
#include "tools/report/scale.h"

/* Pixels: of the key above the rows, and of ticks and the axis' name below. */
enum { LS_ROW_KEY = 26, LS_ROW_BOTTOM = 44 };

typedef struct ls_row_frame {
	const ls_plot *plot;
	FILE *to;
	ls_scale x;
	double left;     /* where rows begin, behind their names */
	int top, height; /* of the first row; of the whole plot */
} ls_row_frame;

/* `rows` pixels of rows, names of at most `widest` pixels, values up to `most`. */
ls_row_frame ls_row_frame_make(const ls_plot *plot, FILE *to, int top, int rows, double widest, double most);

/* Where the rows end. */
double ls_row_frame_floor(const ls_row_frame *frame);

/* A line and a number for each of about `wanted` ticks, and the name of the axis. */
void ls_row_frame_axis(const ls_row_frame *frame, int wanted);

#endif
