/*
 * plot.h - the contents of a plot. plot.c draws curves, bars.c stacked bars, heat.c a matrix, gantt.c bars over time;
 * all as SVG without scripts and external files.
 *
 * Curves differ by colour (Okabe and Ito's, which colour-blind readers can tell apart), marker and dashes at once, and
 * carry their names at their ends. Every mark has its value as a <title>, which browsers show on hover.
 */
#ifndef LS_TOOLS_REPORT_PLOT_H
#define LS_TOOLS_REPORT_PLOT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum ls_curve_kind {
	LS_CURVE_MEASURED,
	LS_CURVE_SIMULATED, /* hollow marks */
	LS_CURVE_IDEAL,     /* grey and dashed, without marks */
	LS_CURVE_PREDICTED, /* dashed */
	LS_CURVE_PUBLISHED  /* dotted, hollow marks */
} ls_curve_kind;

typedef struct ls_mark {
	double x, y;
	const char *tip;
	const char *ring; /* the mark has a ring, and this text beside it; NULL: it has none */
} ls_mark;

typedef struct ls_curve {
	struct ls_plot *plot;
	const char *name;
	ls_curve_kind kind;
	int points_only; /* no line between marks and no name: they belong to the curve of the same style */
	int style;       /* index of colour, marker and dashes */
	size_t count, room;
	ls_mark *marks;
	struct ls_curve *next;
} ls_curve;

enum { LS_BAR_PARTS = 4 };

typedef struct ls_bar {
	const char *name;
	double parts[LS_BAR_PARTS];
	struct ls_bar *next;
} ls_bar;

/* Counts by row and column, with a name for both. */
typedef struct ls_heat {
	size_t count;
	const char *const *names; /* (count) */
	const int64_t *cells;     /* (count, count); borrowed until the page is written */
} ls_heat;

typedef enum ls_gantt_kind { LS_GANTT_LOSS, LS_GANTT_COME } ls_gantt_kind;

typedef struct ls_gantt_span {
	size_t row;
	double begin, end;
	const char *tip;
} ls_gantt_span;

typedef struct ls_gantt_flag {
	size_t row;
	double at;
	ls_gantt_kind kind;
	const char *tip;
} ls_gantt_flag;

/* Names, bars over time, and marks. */
typedef struct ls_gantt {
	size_t rows, span_count, flag_count;
	const char **names; /* (rows) */
	ls_gantt_span *spans;
	ls_gantt_flag *flags;
} ls_gantt;

typedef struct ls_plot {
	struct ls_page *page;
	const char *title, *x_name, *y_name;
	int log_x, log_y; /* with both ideal scaling is a straight line */
	int counts_x;     /* x are a few whole numbers, which the axis shows */
	int whole_x;      /* no fractions on its axis */
	int from_zero;
	double y_most; /* upper bound of y, at which the axis ends; 0: none */
	ls_curve *curves;
	ls_bar *bars; /* instead of curves */
	size_t bar_count;
	const ls_heat *heat;             /* instead of both */
	const ls_gantt *gantt;           /* instead of all three */
	const char *parts[LS_BAR_PARTS]; /* of a bar; NULL past the last */
	const char *unit;                /* of a bar's parts: "ms" */
} ls_plot;

/* NULL: no memory, and the page fails. */
ls_curve *ls_plot_curve(ls_plot *plot, const char *name, ls_curve_kind kind);
void ls_curve_add(ls_curve *curve, double x, double y, const char *tip); /* values that are not finite are left out */
void ls_curve_ring(ls_curve *curve, const char *text);                   /* around the last mark */
void ls_plot_bar(ls_plot *plot, const char *name, const double parts[LS_BAR_PARTS]);

size_t ls_plot_marks(const ls_plot *plot);

void ls_plot_svg(const ls_plot *plot, FILE *to);
void ls_bars_svg(const ls_plot *plot, FILE *to);
void ls_heat_svg(const ls_plot *plot, FILE *to);
void ls_gantt_svg(const ls_plot *plot, FILE *to);

#endif
