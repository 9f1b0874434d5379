/*
 * gantt.c - who was there when, in SVG: a row per name, bars over time, and marks on the rows.
 */
#include <math.h>

#include "tools/report/page.h"
#include "tools/report/row_frame.h"
#include "tools/report/svg.h"
#include "tools/report/text.h"

enum { NAME_MOST = 30, ROW = 26, BAR = 16 };

static ls_row_frame frame_of(const ls_plot *plot, FILE *to)
{
	const ls_gantt *g = plot->gantt;
	double widest = 0, last = 0;

	for (size_t i = 0; i < g->rows; i++)
		widest = fmax(widest, ls_svg_text_width(g->names[i], NAME_MOST));
	for (size_t i = 0; i < g->span_count; i++)
		last = fmax(last, g->spans[i].end);
	for (size_t i = 0; i < g->flag_count; i++)
		last = fmax(last, g->flags[i].at);
	return ls_row_frame_make(plot, to, LS_ROW_KEY + 8, (int)g->rows * ROW, widest, last > 0 ? last : 1);
}

static double row_y(const ls_row_frame *f, size_t row)
{
	return f->top + (double)row * ROW;
}

/* A cross: it was lost; a triangle: it came. */
static void draw_shape(FILE *to, ls_gantt_kind kind, double x, double y)
{
	if (kind == LS_GANTT_LOSS)
		for (int halo = 1; halo >= 0; halo--) /* a cross is to be seen on a bar, too */
			fprintf(to, "<path class=\"cross%s\" d=\"M%.1f %.1fl9 9m0-9l-9 9\"/>", halo ? " halo" : "",
				x - 4.5, y - 4.5);
	else
		fprintf(to, "<path class=\"come\" d=\"M%.1f %.1fl5 9h-10z\"/>", x, y - 5);
}

static void draw_key(const ls_row_frame *f)
{
	static const struct {
		const char *name;
		ls_gantt_kind kind;
	} keys[] = { { "lost, excluded or removed", LS_GANTT_LOSS }, { "joined or came back", LS_GANTT_COME } };
	double x = f->left;

	fprintf(f->to, "<rect class=\"part p0\" x=\"%.1f\" y=\"7\" width=\"22\" height=\"13\"/>\n", x);
	ls_svg_text(f->to, "label", x + 28, 18, LS_SVG_START, "trained", 0);
	x += 44 + ls_svg_text_width("trained", 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		draw_shape(f->to, keys[i].kind, x + 6, 13.5);
		ls_svg_text(f->to, "label", x + 18, 18, LS_SVG_START, keys[i].name, 0);
		x += 30 + ls_svg_text_width(keys[i].name, 0);
	}
}

/* A start of a moment in a run of days is still to be seen. */
static void draw_span(const ls_row_frame *f, const ls_gantt_span *s)
{
	double from = ls_scale_at(&f->x, s->begin), width = fmax(ls_scale_at(&f->x, s->end) - from, 1.5);

	fprintf(f->to, "<g class=\"pt\"><rect class=\"part p0\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>",
		from, row_y(f, s->row), width, BAR);
	ls_svg_title(f->to, s->tip);
	fputs("</g>\n", f->to);
}

static void draw_flag(const ls_row_frame *f, const ls_gantt_flag *flag)
{
	double x = ls_scale_at(&f->x, flag->at), y = row_y(f, flag->row) + BAR / 2.0;

	fprintf(f->to, "<g class=\"pt\"><circle class=\"hit\" cx=\"%.1f\" cy=\"%.1f\" r=\"8\"/>", x, y);
	draw_shape(f->to, flag->kind, x, y);
	ls_svg_title(f->to, flag->tip);
	fputs("</g>\n", f->to);
}

void ls_gantt_svg(const ls_plot *plot, FILE *to)
{
	const ls_gantt *g = plot->gantt;
	const char *about = ls_page_text(
		plot->page, "%s: a row per host, bars while it trained, by %s. The values are in the table below.",
		plot->title, plot->x_name);
	ls_row_frame f = frame_of(plot, to);

	ls_svg_open(to, f.height, about ? about : plot->title);
	draw_key(&f);
	ls_row_frame_axis(&f, 7);
	ls_svg_line(to, "axis", f.left, ls_row_frame_floor(&f), f.x.to, ls_row_frame_floor(&f));
	for (size_t i = 0; i < g->rows; i++)
		ls_svg_text(to, "label", f.left - 8, row_y(&f, i) + BAR - 3, LS_SVG_END, g->names[i], NAME_MOST);
	for (size_t i = 0; i < g->span_count; i++)
		draw_span(&f, &g->spans[i]);
	for (size_t i = 0; i < g->flag_count; i++)
		draw_flag(&f, &g->flags[i]);
	ls_svg_close(to);
}
