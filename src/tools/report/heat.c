/*
 * heat.c - a matrix of counts in SVG: a row per label, a column per prediction. A cell's colour is its share of the
 * row, laid over the page's ground, so that one drawing serves light and dark; its number stands in it where it fits.
 */
#include <inttypes.h>
#include <math.h>

#include "tools/report/page.h"
#include "tools/report/svg.h"
#include "tools/report/text.h"

enum { NAME_MOST = 24, CELL_MOST = 46, TOP = 46, BOTTOM = 14 };

typedef struct frame {
	const ls_heat *heat;
	FILE *to;
	double left, cell;
} frame;

static int64_t row_sum(const ls_heat *h, size_t row)
{
	int64_t sum = 0;
	for (size_t k = 0; k < h->count; k++)
		sum += h->cells[row * h->count + k];
	return sum;
}

static frame frame_of(const ls_heat *heat, FILE *to)
{
	frame f = { .heat = heat, .to = to };
	double widest = ls_svg_text_width("label", 0);

	for (size_t i = 0; i < heat->count; i++)
		widest = fmax(widest, ls_svg_text_width(heat->names[i], NAME_MOST));
	f.left = widest + 14;
	f.cell = fmin(CELL_MOST, (LS_SVG_WIDTH - f.left - 12) / (double)heat->count);
	return f;
}

static void draw_cell(const frame *f, size_t row, size_t column)
{
	const ls_heat *h = f->heat;
	int64_t value = h->cells[row * h->count + column], all = row_sum(h, row);
	double share = all > 0 ? (double)value / (double)all : 0, least = row == column ? 0.06 : 0.18;
	double x = f->left + f->cell * (double)column, y = TOP + f->cell * (double)row;
	char text[32], tip[256];

	snprintf(text, sizeof(text), "%" PRId64, value);
	snprintf(tip, sizeof(tip), "%s predicted as %s: %" PRId64 " of %" PRId64 " (%.1f %%)", h->names[row],
		 h->names[column], value, all, 100 * share);
	fprintf(f->to,
		"<g class=\"pt\"><rect class=\"heat%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		"style=\"fill-opacity:%.3f\"/>",
		row == column ? " right" : "", x, y, f->cell - 1, f->cell - 1,
		value > 0 ? least + (1 - least) * share : 0);
	if (value > 0 && ls_svg_text_width(text, 0) < f->cell - 2 && f->cell >= 15)
		ls_svg_text(f->to, share > 0.5 ? "count over" : "count", x + f->cell / 2, y + f->cell / 2 + 4,
			    LS_SVG_MIDDLE, text, 0);
	ls_svg_title(f->to, tip);
	fputs("</g>\n", f->to);
}

/* Columns have numbers: names would lie over one another. */
static void draw_names(const frame *f)
{
	char number[32];

	ls_svg_text(f->to, "name", 4, 14, LS_SVG_START, "label", 0);
	ls_svg_text(f->to, "name", f->left, 14, LS_SVG_START, "prediction", 0);
	for (size_t i = 0; i < f->heat->count; i++) {
		double middle = f->cell * ((double)i + 0.5);
		snprintf(number, sizeof(number), "%zu", i);
		ls_svg_text(f->to, "label", f->left - 8, TOP + middle + 4, LS_SVG_END, f->heat->names[i], NAME_MOST);
		ls_svg_text(f->to, "tick", f->left + middle, TOP - 8, LS_SVG_MIDDLE, number, 0);
	}
}

void ls_heat_svg(const ls_plot *plot, FILE *to)
{
	const ls_heat *heat = plot->heat;
	frame f = frame_of(heat, to);
	char about[512];

	snprintf(about, sizeof(about), "%s: samples by label and prediction. The values are in the table below.",
		 plot->title);
	ls_svg_open(to, (int)(TOP + BOTTOM + f.cell * (double)heat->count), about);
	draw_names(&f);
	for (size_t row = 0; row < heat->count; row++)
		for (size_t column = 0; column < heat->count; column++)
			draw_cell(&f, row, column);
	ls_svg_close(to);
}
