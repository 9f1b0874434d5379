/*
 * bars.c - stacked bars in SVG, one per row with its name at the left. Parts differ by colour and hatching, and show
 * their values where they fit.
 */
#include <math.h>
#include <string.h>

#include "tools/report/page.h"
#include "tools/report/scale.h"
#include "tools/report/svg.h"
#include "tools/report/text.h"

enum { NAME_MOST = 34, ROW = 28, BAR = 19, KEY = 26, BOTTOM = 44 };

typedef struct frame {
	const ls_plot *plot;
	FILE *to;
	ls_scale x;
	double left;
	int top, height;
} frame;

static double total_of(const ls_bar *bar)
{
	double total = 0;
	for (int k = 0; k < LS_BAR_PARTS; k++)
		total += bar->parts[k];
	return total;
}

static frame frame_of(const ls_plot *plot, FILE *to)
{
	frame f = { .plot = plot, .to = to, .top = plot->parts[1] ? KEY + 8 : 8 };
	double widest = 0, most = 0;
	f.height = f.top + BOTTOM + (int)plot->bar_count * ROW;
	for (const ls_bar *bar = plot->bars; bar; bar = bar->next) {
		widest = fmax(widest, ls_svg_text_width(bar->name, NAME_MOST));
		most = fmax(most, total_of(bar));
	}
	f.left = widest + 18;
	f.x = ls_scale_fit(0, most, 1, 0);
	f.x.from = f.left;
	f.x.to = LS_SVG_WIDTH - 22;
	return f;
}

/* What the colours mean, above the bars. */
static void draw_key(const frame *f)
{
	double x = f->left;
	for (int k = 0; k < LS_BAR_PARTS && f->plot->parts[k] && f->plot->parts[1]; k++) {
		fprintf(f->to, "<rect class=\"part p%d\" x=\"%.1f\" y=\"7\" width=\"13\" height=\"13\"/>", k, x);
		fprintf(f->to, "<rect class=\"hatch h%d\" x=\"%.1f\" y=\"7\" width=\"13\" height=\"13\"/>\n", k, x);
		ls_svg_text(f->to, "label", x + 18, 18, LS_SVG_START, f->plot->parts[k], 0);
		x += 34 + ls_svg_text_width(f->plot->parts[k], 0);
	}
}

static void draw_axis(const frame *f)
{
	double ticks[LS_TICKS_MAX], floor_y = f->height - BOTTOM;
	char text[LS_NUMBER_TEXT];
	size_t count = ls_scale_ticks(&f->x, 6, ticks);

	for (size_t i = 0; i < count; i++) {
		double x = ls_scale_at(&f->x, ticks[i]);
		ls_svg_line(f->to, "grid", x, f->top - 4, x, floor_y);
		ls_svg_text(f->to, "tick", x, floor_y + 16, LS_SVG_MIDDLE, ls_short_text(text, ticks[i]), 0);
	}
	ls_svg_line(f->to, "axis", f->left, f->top - 4, f->left, floor_y);
	ls_svg_text(f->to, "name", (f->left + f->x.to) / 2, f->height - 8, LS_SVG_MIDDLE, f->plot->x_name, 0);
}

static void draw_part(const frame *f, const ls_bar *bar, int k, double from, double y)
{
	double x = ls_scale_at(&f->x, from), width = fmax(0.6, ls_scale_at(&f->x, from + bar->parts[k]) - x);
	char value[LS_NUMBER_TEXT], tip[512];

	ls_number_text(value, bar->parts[k]);
	snprintf(tip, sizeof(tip), "%s: %s %s %s (%.0f %%)", bar->name, f->plot->parts[k], value, f->plot->unit,
		 100 * bar->parts[k] / total_of(bar));
	fprintf(f->to, "<g class=\"pt\"><rect class=\"part p%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>",
		k, x, y, width, BAR);
	fprintf(f->to, "<rect class=\"hatch h%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>", k, x, y, width,
		BAR);
	if (width > ls_svg_text_width(value, 0) + 6)
		ls_svg_text(f->to, "inside", x + width / 2, y + BAR - 5, LS_SVG_MIDDLE, value, 0);
	ls_svg_title(f->to, tip);
	fputs("</g>\n", f->to);
}

void ls_bars_svg(const ls_plot *plot, FILE *to)
{
	char about[512];
	frame f = frame_of(plot, to);
	double y = f.top;

	snprintf(about, sizeof(about), "%s: %s. The values are in the table below.", plot->title, plot->x_name);
	ls_svg_open(to, f.height, about);
	draw_key(&f);
	draw_axis(&f);
	for (const ls_bar *bar = plot->bars; bar; bar = bar->next, y += ROW) {
		double from = 0;
		ls_svg_text(to, "label", f.left - 8, y + BAR - 5, LS_SVG_END, bar->name, NAME_MOST);
		for (int k = 0; k < LS_BAR_PARTS && plot->parts[k]; from += bar->parts[k++])
			if (bar->parts[k] > 0)
				draw_part(&f, bar, k, from, y);
	}
	ls_svg_close(to);
}
