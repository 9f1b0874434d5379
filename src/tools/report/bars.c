/*
 * bars.c - stacked bars in SVG, one per row with its name at the left. Parts differ by colour and hatching, and show
 * their values where they fit.
 */
#include <math.h>
#include <string.h>

#include "tools/report/page.h"
#include "tools/report/row_frame.h"
#include "tools/report/svg.h"
#include "tools/report/text.h"

enum { NAME_MOST = 34, ROW = 28, BAR = 19 };

static double total_of(const ls_bar *bar)
{
	double total = 0;
	for (int k = 0; k < LS_BAR_PARTS; k++)
		total += bar->parts[k];
	return total;
}

static ls_row_frame frame_of(const ls_plot *plot, FILE *to)
{
	double widest = 0, most = 0;

	for (const ls_bar *bar = plot->bars; bar; bar = bar->next) {
		widest = fmax(widest, ls_svg_text_width(bar->name, NAME_MOST));
		most = fmax(most, total_of(bar));
	}
	return ls_row_frame_make(plot, to, plot->parts[1] ? LS_ROW_KEY + 8 : 8, (int)plot->bar_count * ROW, widest,
				 most);
}

/* What the colours mean, above the bars. */
static void draw_key(const ls_row_frame *f)
{
	double x = f->left;
	for (int k = 0; k < LS_BAR_PARTS && f->plot->parts[k] && f->plot->parts[1]; k++) {
		fprintf(f->to, "<rect class=\"part p%d\" x=\"%.1f\" y=\"7\" width=\"13\" height=\"13\"/>", k, x);
		fprintf(f->to, "<rect class=\"hatch h%d\" x=\"%.1f\" y=\"7\" width=\"13\" height=\"13\"/>\n", k, x);
		ls_svg_text(f->to, "label", x + 18, 18, LS_SVG_START, f->plot->parts[k], 0);
		x += 34 + ls_svg_text_width(f->plot->parts[k], 0);
	}
}

static void draw_part(const ls_row_frame *f, const ls_bar *bar, int k, double from, double y)
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
	ls_row_frame f = frame_of(plot, to);
	double y = f.top;

	snprintf(about, sizeof(about), "%s: %s. The values are in the table below.", plot->title, plot->x_name);
	ls_svg_open(to, f.height, about);
	draw_key(&f);
	ls_row_frame_axis(&f, 6);
	ls_svg_line(to, "axis", f.left, f.top - 4, f.left, ls_row_frame_floor(&f));
	for (const ls_bar *bar = plot->bars; bar; bar = bar->next, y += ROW) {
		double from = 0;
		ls_svg_text(to, "label", f.left - 8, y + BAR - 5, LS_SVG_END, bar->name, NAME_MOST);
		for (int k = 0; k < LS_BAR_PARTS && plot->parts[k]; from += bar->parts[k++])
			if (bar->parts[k] > 0)
				draw_part(&f, bar, k, from, y);
	}
	ls_svg_close(to);
}
