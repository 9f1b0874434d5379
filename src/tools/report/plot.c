/*
 * plot.c - curves in SVG.
 *
 * Names stand in a column at the right, each at the height at which its curve ends; names that would overlap are moved
 * apart, and a thin line leads from a curve to its name.
 */
#include "tools/report/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "tools/report/page.h"
#include "tools/report/scale.h"
#include "tools/report/svg.h"
#include "tools/report/text.h"

enum { LABEL_MOST = 34, LABEL_STEP = 16, MARKS_SHOWN = 40, CURVES_MAX = 64 };
enum { TOP = 30, BOTTOM = 46, LEFT = 62, HEIGHT = 400 };

/* ---- filling ----------------------------------------------------------------------------------------------------- */

ls_curve *ls_plot_curve(ls_plot *plot, const char *name, ls_curve_kind kind)
{
	ls_curve *curve = plot ? ls_page_alloc(plot->page, sizeof(*curve)) : NULL;
	if (!curve)
		return NULL;
	curve->plot = plot;
	curve->name = name;
	curve->kind = kind;
	ls_curve **at = &plot->curves;
	for (; *at; at = &(*at)->next)
		curve->style += (*at)->kind != LS_CURVE_IDEAL;
	return *at = curve;
}

void ls_curve_add(ls_curve *curve, double x, double y, const char *tip)
{
	if (!curve || !isfinite(x) || !isfinite(y))
		return;
	if (curve->count == curve->room) {
		size_t room = curve->room ? curve->room * 2 : 16;
		ls_mark *marks = ls_page_alloc(curve->plot->page, room * sizeof(*marks));
		if (!marks)
			return;
		if (curve->count > 0)
			memcpy(marks, curve->marks, curve->count * sizeof(*marks));
		curve->marks = marks;
		curve->room = room;
	}
	curve->marks[curve->count++] = (ls_mark){ .x = x, .y = y, .tip = tip };
}

void ls_curve_ring(ls_curve *curve, const char *text)
{
	if (curve && curve->count > 0)
		curve->marks[curve->count - 1].ring = text;
}

void ls_plot_bar(ls_plot *plot, const char *name, const double parts[LS_BAR_PARTS])
{
	ls_bar *bar = plot ? ls_page_alloc(plot->page, sizeof(*bar)) : NULL;
	if (!bar)
		return;
	bar->name = name;
	memcpy(bar->parts, parts, sizeof(bar->parts));
	ls_bar **at = &plot->bars;
	while (*at)
		at = &(*at)->next;
	*at = bar;
	plot->bar_count++;
}

size_t ls_plot_marks(const ls_plot *plot)
{
	size_t count = plot->heat    ? plot->heat->count * plot->heat->count
		       : plot->gantt ? plot->gantt->span_count + plot->gantt->flag_count
				     : plot->bar_count;
	for (const ls_curve *curve = plot->curves; curve; curve = curve->next)
		count += curve->kind == LS_CURVE_IDEAL ? 0 : curve->count;
	return count;
}

/* ---- axes -------------------------------------------------------------------------------------------------------- */

typedef struct frame {
	const ls_plot *plot;
	FILE *to;
	ls_scale x, y;
	int height;
	double right; /* of the axes; names stand behind it */
} frame;

static void range_of(const ls_plot *plot, int of_y, double *low, double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (const ls_curve *curve = plot->curves; curve; curve = curve->next)
		for (size_t i = 0; i < curve->count; i++) {
			double value = of_y ? curve->marks[i].y : curve->marks[i].x;
			if ((of_y ? plot->log_y : plot->log_x) && !(value > 0))
				continue;
			*low = fmin(*low, value);
			*high = fmax(*high, value);
		}
	if (!(*low <= *high))
		*low = *high = 1;
}

static ls_scale scale_of_y(const ls_plot *plot, double low, double high)
{
	int limited = plot->y_most > 0 && high <= plot->y_most;
	ls_scale scale = ls_scale_fit(limited && !(high > low) ? 0 : low, high, plot->from_zero, plot->log_y);

	if (limited && scale.high > plot->y_most)
		scale.high = plot->y_most;
	return scale;
}

static frame frame_of(const ls_plot *plot, FILE *to)
{
	frame f = { .plot = plot, .to = to };
	double low, high, widest = 0;
	int names = 0;

	for (const ls_curve *curve = plot->curves; curve; curve = curve->next) {
		if (curve->points_only)
			continue;
		names++;
		widest = fmax(widest, ls_svg_text_width(curve->name, LABEL_MOST));
	}
	f.height = names * LABEL_STEP + TOP + BOTTOM > HEIGHT ? names * LABEL_STEP + TOP + BOTTOM : HEIGHT;
	f.right = LS_SVG_WIDTH - (widest + 44);
	range_of(plot, 0, &low, &high);
	f.x = plot->counts_x && !plot->log_x
		      ? (ls_scale){ .low = low < 2 ? 0 : low - 1, .high = high > low ? high : low + 1 }
		      : ls_scale_fit(low, high, 0, plot->log_x);
	if ((!plot->counts_x || plot->log_x) && high > low)
		f.x.low = low, f.x.high = high; /* a curve fills the width */
	f.x.from = LEFT + (plot->log_x ? 10 : 0);
	f.x.to = f.right - 8;
	if (plot->whole_x && !(high > low)) /* one mark stands in the middle */
		f.x.low = low - 0.5, f.x.high = low + 0.5;
	range_of(plot, 1, &low, &high);
	f.y = scale_of_y(plot, low, high);
	f.y.from = f.height - BOTTOM;
	f.y.to = TOP;
	return f;
}

/* Ticks at the counts that occur, without those too close to the previous one; the last one always. */
static size_t count_ticks(const frame *f, double out[LS_TICKS_MAX])
{
	double seen[256];
	size_t count = 0, kept = 0;
	for (const ls_curve *curve = f->plot->curves; curve; curve = curve->next)
		for (size_t i = 0; i < curve->count && count < 256; i++)
			if (!f->plot->log_x || curve->marks[i].x > 0)
				seen[count++] = curve->marks[i].x;
	ls_sort_numbers(seen, count);
	for (size_t i = count; i-- > 0 && kept < LS_TICKS_MAX;)
		if (kept == 0 || ls_scale_at(&f->x, out[kept - 1]) - ls_scale_at(&f->x, seen[i]) > 26)
			out[kept++] = seen[i];
	return kept;
}

static void draw_axes(const frame *f)
{
	double ticks[LS_TICKS_MAX], floor_y = f->height - BOTTOM;
	char text[LS_NUMBER_TEXT];

	size_t count = ls_scale_ticks(&f->y, 6, ticks);
	for (size_t i = 0; i < count; i++) {
		double y = ls_scale_at(&f->y, ticks[i]);
		ls_svg_line(f->to, "grid", LEFT, y, f->right, y);
		ls_svg_text(f->to, "tick", LEFT - 7, y + 4, LS_SVG_END, ls_short_text(text, ticks[i]), 0);
	}
	count = f->plot->counts_x ? count_ticks(f, ticks) : ls_scale_ticks(&f->x, 7, ticks);
	for (size_t i = 0; i < count; i++) {
		double x = ls_scale_at(&f->x, ticks[i]);
		if (f->plot->whole_x && ticks[i] != floor(ticks[i]))
			continue;
		ls_svg_line(f->to, "axis", x, floor_y, x, floor_y + 5);
		ls_svg_text(f->to, "tick", x, floor_y + 18, LS_SVG_MIDDLE, ls_short_text(text, ticks[i]), 0);
	}
	ls_svg_line(f->to, "axis", LEFT, floor_y, f->right, floor_y);
	ls_svg_text(f->to, "name", (LEFT + f->right) / 2, f->height - 8, LS_SVG_MIDDLE, f->plot->x_name, 0);
	ls_svg_text(f->to, "name", 4, 14, LS_SVG_START, f->plot->y_name, 0);
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

static int shows(const frame *f, const ls_mark *mark)
{
	return (!f->plot->log_x || mark->x > 0) && (!f->plot->log_y || mark->y > 0);
}

/* A single mark has no line. */
static void draw_line(const frame *f, const ls_curve *curve)
{
	size_t count = 0, begun = 0;

	for (size_t i = 0; i < curve->count; i++)
		count += (size_t)shows(f, &curve->marks[i]);
	if (count < 2 || curve->points_only)
		return;
	fputs("<path ", f->to);
	ls_svg_stroke(f->to, curve);
	fputs(" d=\"", f->to);
	for (size_t i = 0; i < curve->count; i++) {
		const ls_mark *m = &curve->marks[i];
		if (shows(f, m))
			fprintf(f->to, "%s%.1f %.1f", begun++ ? "L" : "M", ls_scale_at(&f->x, m->x),
				ls_scale_at(&f->y, m->y));
	}
	fputs("\"/>\n", f->to);
}

/* With its text above, or below where there is no room. */
static void draw_ring(const frame *f, const ls_curve *curve, const ls_mark *m, double x, double y)
{
	ls_svg_anchor anchor = x > f->right - 60 ? LS_SVG_END : x < LEFT + 60 ? LS_SVG_START : LS_SVG_MIDDLE;

	fprintf(f->to, "<circle class=\"ring c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"8\"/>", curve->style % LS_SVG_COLOURS, x,
		y);
	if (m->ring[0] != '\0')
		ls_svg_text(f->to, "tick", x, y < TOP + 24 ? y + 22 : y - 13, anchor, m->ring, 0);
}

static void draw_marks(const frame *f, const ls_curve *curve)
{
	if (curve->kind == LS_CURVE_IDEAL)
		return;
	for (size_t i = 0; i < curve->count; i++) {
		const ls_mark *m = &curve->marks[i];
		double x = shows(f, m) ? ls_scale_at(&f->x, m->x) : 0, y = shows(f, m) ? ls_scale_at(&f->y, m->y) : 0;
		if (!shows(f, m))
			continue;
		fputs("<g class=\"pt\">", f->to);
		if (curve->count <= MARKS_SHOWN && curve->kind != LS_CURVE_PREDICTED)
			ls_svg_marker(f->to, curve, x, y);
		if (m->ring)
			draw_ring(f, curve, m, x, y);
		fprintf(f->to, "<circle class=\"hit\" cx=\"%.1f\" cy=\"%.1f\" r=\"9\"/>", x, y);
		ls_svg_title(f->to, m->tip);
		fputs("</g>\n", f->to);
	}
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

typedef struct label {
	const ls_curve *curve;
	double x, y, end; /* where the curve ends, and the height of the name */
} label;

static int by_height(const void *a, const void *b)
{
	const label *left = a, *right = b;
	return (left->end > right->end) - (left->end < right->end);
}

static size_t collect_labels(const frame *f, label labels[CURVES_MAX])
{
	size_t count = 0;
	for (const ls_curve *curve = f->plot->curves; curve && count < CURVES_MAX; curve = curve->next) {
		const ls_mark *last = curve->count > 0 ? &curve->marks[curve->count - 1] : NULL;
		if (!last || !shows(f, last) || curve->points_only)
			continue;
		double y = ls_scale_at(&f->y, last->y);
		labels[count++] = (label){ curve, ls_scale_at(&f->x, last->x), y, y };
	}
	return count;
}

/* Down where they are too near, then up from the bottom. */
static void spread_labels(const frame *f, label *labels, size_t count)
{
	qsort(labels, count, sizeof(*labels), by_height);
	for (size_t i = 1; i < count; i++)
		labels[i].y = fmax(labels[i].y, labels[i - 1].y + LABEL_STEP);
	double floor_y = f->height - BOTTOM;
	for (size_t i = count; i-- > 0; floor_y = labels[i].y - LABEL_STEP)
		labels[i].y = fmin(labels[i].y, floor_y);
}

static void draw_lead(const frame *f, const label *l, double to)
{
	fputs("<path ", f->to);
	if (l->curve->kind == LS_CURVE_IDEAL)
		fputs("class=\"lead ideal\"", f->to);
	else
		fprintf(f->to, "class=\"lead c%d\"", l->curve->style % LS_SVG_COLOURS);
	fprintf(f->to, " d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/>\n", l->x, l->end, f->right, l->end, to, l->y);
}

static void draw_label(const frame *f, const label *l)
{
	double x = f->right + 14;
	if (l->curve->count > 1) /* from a single mark it would look like a curve */
		draw_lead(f, l, x);
	if (l->curve->kind != LS_CURVE_IDEAL)
		ls_svg_marker(f->to, l->curve, x + 6, l->y);
	ls_svg_text(f->to, "label", x + (l->curve->kind == LS_CURVE_IDEAL ? 2 : 16), l->y + 4, LS_SVG_START,
		    l->curve->name, LABEL_MOST);
}

void ls_plot_svg(const ls_plot *plot, FILE *to)
{
	label labels[CURVES_MAX];
	char about[512];
	frame f = frame_of(plot, to);

	snprintf(about, sizeof(about), "%s: %s by %s. The values are in the table below.", plot->title, plot->y_name,
		 plot->x_name);
	ls_svg_open(to, f.height, about);
	draw_axes(&f);
	size_t count = collect_labels(&f, labels);
	spread_labels(&f, labels, count);
	for (size_t i = 0; i < count; i++)
		draw_label(&f, &labels[i]);
	for (const ls_curve *curve = plot->curves; curve; curve = curve->next)
		draw_line(&f, curve);
	for (const ls_curve *curve = plot->curves; curve; curve = curve->next)
		draw_marks(&f, curve);
	ls_svg_close(to);
}
