/*
 * svg.h - elements of plots. Colours are classes (style.c), so that one drawing serves light, dark and
 * print.
 */
#ifndef LS_TOOLS_REPORT_SVG_H
#define LS_TOOLS_REPORT_SVG_H

#include <stdio.h>

#include "tools/report/plot.h"

enum { LS_SVG_WIDTH = 760, LS_SVG_COLOURS = 7 };

typedef enum ls_svg_anchor { LS_SVG_START, LS_SVG_MIDDLE, LS_SVG_END } ls_svg_anchor;

void ls_svg_open(FILE *to, int height, const char *about); /* `about`: text for screen readers */
void ls_svg_close(FILE *to);
void ls_svg_line(FILE *to, const char *class, double x1, double y1, double x2, double y2);
/* At most `most` characters, then an ellipsis; 0: all. */
void ls_svg_text(FILE *to, const char *class, double x, double y, ls_svg_anchor anchor, const char *text, size_t most);
void ls_svg_marker(FILE *to, const ls_curve *curve, double x, double y);
void ls_svg_title(FILE *to, const char *text);

/* Attributes of a curve's line: class and dashes. */
void ls_svg_stroke(FILE *to, const ls_curve *curve);

/* Approximate width of a text in pixels; of the first `most` characters where not 0. */
double ls_svg_text_width(const char *text, size_t most);

#endif
