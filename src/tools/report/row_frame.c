#include "tools/report/row_frame.h"

#include "tools/report/svg.h"
#include "tools/report/text.h"

ls_row_frame ls_row_frame_make(const ls_plot *plot, FILE *to, int top, int rows, double widest, double most)
{
	ls_row_frame f = { .plot = plot, .to = to, .top = top, .height = top + rows + LS_ROW_BOTTOM };

	f.left = widest + 18;
	f.x = ls_scale_fit(0, most, 1, 0);
	f.x.from = f.left;
	f.x.to = LS_SVG_WIDTH - 22;
	return f;
}

double ls_row_frame_floor(const ls_row_frame *f)
{
	return f->height - LS_ROW_BOTTOM;
}

void ls_row_frame_axis(const ls_row_frame *f, int wanted)
{
	double ticks[LS_TICKS_MAX], floor_y = ls_row_frame_floor(f);
	char text[LS_NUMBER_TEXT];
	size_t count = ls_scale_ticks(&f->x, wanted, ticks);

	for (size_t i = 0; i < count; i++) {
		double x = ls_scale_at(&f->x, ticks[i]);
		ls_svg_line(f->to, "grid", x, f->top - 4, x, floor_y);
		ls_svg_text(f->to, "tick", x, floor_y + 16, LS_SVG_MIDDLE, ls_short_text(text, ticks[i]), 0);
	}
	ls_svg_text(f->to, "name", (f->left + f->x.to) / 2, f->height - 8, LS_SVG_MIDDLE, f->plot->x_name, 0);
}
