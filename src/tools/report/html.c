/*
 * html.c - a page as one self-contained HTML file.
 */
#include <inttypes.h>
#include <lockstep/version.h>
#include <string.h>

#include "tools/report/page.h"
#include "tools/report/style.h"
#include "tools/report/text.h"

enum { NOTES = 999, TABLE_ROWS = 400, FOLD_ROWS = 40, DENSE_COLUMNS = 10 };

static void write_element(FILE *to, const char *open, const char *text, const char *close)
{
	fputs(open, to);
	ls_write_html(to, text);
	fputs(close, to);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void write_cell(const ls_grid *grid, size_t i, const char *const *notes, size_t note_count, FILE *to)
{
	const ls_cell *cell = &grid->cells[i];
	size_t number = ls_grid_note_number(notes, note_count, cell->note);

	fputs((int)(i % grid->columns) < grid->text_columns ? "<td class=\"w\">" : "<td>", to);
	fputs(cell->bold ? "<b>" : "", to);
	ls_write_html(to, cell->text);
	fputs(cell->bold ? "</b>" : "", to);
	if (number)
		fprintf(to, "<sup class=\"flag\">†%zu</sup>", number);
	fputs("</td>", to);
}

static void write_table(const ls_grid *grid, FILE *to)
{
	const char *notes[NOTES];
	size_t note_count = ls_grid_notes(grid, notes, NOTES);

	if (grid->summary)
		write_element(to, "<details><summary>", grid->summary, "</summary>\n");
	fprintf(to, "<div class=\"wide\"><table%s><thead><tr>",
		grid->columns >= DENSE_COLUMNS ? " class=\"dense\"" : "");
	for (size_t c = 0; c < grid->columns; c++)
		write_element(to, (int)c < grid->text_columns ? "<th class=\"w\" scope=\"col\">" : "<th scope=\"col\">",
			      grid->heads[c], "</th>");
	fputs("</tr></thead><tbody>\n", to);
	for (size_t i = 0; i < grid->count; i++) {
		fputs(i % grid->columns ? "" : "<tr>", to);
		write_cell(grid, i, notes, note_count, to);
		fputs((i + 1) % grid->columns ? "" : "</tr>\n", to);
	}
	fputs("</tbody></table></div>\n", to);
	for (size_t i = 0; i < note_count; i++) {
		fprintf(to, "<p class=\"flag\">†%zu ", i + 1);
		write_element(to, "", notes[i], "</p>\n");
	}
	fputs(grid->summary ? "</details>\n" : "", to);
}

/* ---- plots ------------------------------------------------------------------------------------------------------- */

static void write_number(FILE *to, double value)
{
	char text[LS_NUMBER_TEXT];
	if (value == (double)(int64_t)value && value < 1e15 && value > -1e15)
		fprintf(to, "<td>%" PRId64 "</td>", (int64_t)value);
	else
		fprintf(to, "<td>%s</td>", ls_number_text(text, value));
}

static void put_curve_data(const ls_plot *plot, FILE *to)
{
	write_element(to, "<th class=\"w\" scope=\"col\">curve</th><th scope=\"col\">", plot->x_name, "</th>");
	write_element(to, "<th scope=\"col\">", plot->y_name, "</th></tr></thead><tbody>\n");
	for (const ls_curve *curve = plot->curves; curve; curve = curve->next) {
		size_t stride = 1 + curve->count / TABLE_ROWS;
		for (size_t i = 0; i < curve->count; i += stride) {
			write_element(to, "<tr><td class=\"w\">", curve->name, "</td>");
			write_number(to, curve->marks[i].x);
			write_number(to, curve->marks[i].y);
			fputs("</tr>\n", to);
		}
	}
}

static void put_bar_data(const ls_plot *plot, FILE *to)
{
	fputs("<th class=\"w\" scope=\"col\"></th>", to);
	for (int k = 0; k < LS_BAR_PARTS && plot->parts[k]; k++) {
		write_element(to, "<th scope=\"col\">", plot->parts[k], " (");
		write_element(to, "", plot->unit, ")</th>");
	}
	fputs("</tr></thead><tbody>\n", to);
	for (const ls_bar *bar = plot->bars; bar; bar = bar->next) {
		write_element(to, "<tr><td class=\"w\">", bar->name, "</td>");
		for (int k = 0; k < LS_BAR_PARTS && plot->parts[k]; k++)
			write_number(to, bar->parts[k]);
		fputs("</tr>\n", to);
	}
}

static void put_heat_data(const ls_heat *heat, FILE *to)
{
	fputs("<th class=\"w\" scope=\"col\">label</th>", to);
	for (size_t k = 0; k < heat->count; k++)
		fprintf(to, "<th scope=\"col\">%zu</th>", k);
	fputs("</tr></thead><tbody>\n", to);
	for (size_t i = 0; i < heat->count; i++) {
		write_element(to, "<tr><td class=\"w\">", heat->names[i], "</td>");
		for (size_t k = 0; k < heat->count; k++)
			fprintf(to, "<td>%" PRId64 "</td>", heat->cells[i * heat->count + k]);
		fputs("</tr>\n", to);
	}
}

static void put_gantt_row(const ls_gantt *g, size_t row, double begin, double end, const char *what, FILE *to)
{
	write_element(to, "<tr><td class=\"w\">", g->names[row], "</td>");
	write_number(to, begin);
	write_number(to, end);
	write_element(to, "<td class=\"w\">", what, "</td></tr>\n");
}

static void put_gantt_data(const ls_gantt *g, FILE *to)
{
	fputs("<th class=\"w\" scope=\"col\">host</th><th scope=\"col\">from (s)</th><th scope=\"col\">to (s)</th>"
	      "<th class=\"w\" scope=\"col\">what</th></tr></thead><tbody>\n",
	      to);
	for (size_t i = 0; i < g->span_count; i++)
		put_gantt_row(g, g->spans[i].row, g->spans[i].begin, g->spans[i].end, g->spans[i].tip, to);
	for (size_t i = 0; i < g->flag_count; i++)
		put_gantt_row(g, g->flags[i].row, g->flags[i].at, g->flags[i].at, g->flags[i].tip, to);
}

static void write_plot(const ls_plot *plot, FILE *to)
{
	if (ls_plot_marks(plot) == 0)
		return;
	fprintf(to, "<figure class=\"plot\" data-marks=\"%zu\">", ls_plot_marks(plot));
	write_element(to, "<figcaption>", plot->title, "</figcaption>\n<div class=\"wide\">");
	if (plot->gantt)
		ls_gantt_svg(plot, to);
	else if (plot->heat)
		ls_heat_svg(plot, to);
	else if (plot->bars)
		ls_bars_svg(plot, to);
	else
		ls_plot_svg(plot, to);
	fprintf(to,
		"</div><details class=\"data\"><summary>The values as a table</summary>"
		"<div class=\"wide\"><table%s><thead><tr>",
		plot->heat && plot->heat->count >= DENSE_COLUMNS ? " class=\"dense\"" : "");
	if (plot->gantt)
		put_gantt_data(plot->gantt, to);
	else if (plot->heat)
		put_heat_data(plot->heat, to);
	else if (plot->bars)
		put_bar_data(plot, to);
	else
		put_curve_data(plot, to);
	fputs("</tbody></table></div></details></figure>\n", to);
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static void write_heading(const ls_block *block, size_t number, FILE *to)
{
	if (block->level == 2)
		fprintf(to, "<h2 id=\"part-%zu\">", number);
	else
		fprintf(to, "<h%d>", block->level);
	ls_write_html(to, block->text);
	fputs(block->flag ? "<sup class=\"flag\">†</sup>" : "", to);
	fprintf(to, "</h%d>\n", block->level);
	if (block->flag)
		write_element(to, "<p class=\"flag\">† ", block->flag, "</p>\n");
}

/* Consecutive items form one list. A long list, the log of a run, is folded. */
static const ls_block *write_items(const ls_block *block, FILE *to)
{
	size_t count = 0;
	for (const ls_block *at = block; at && at->kind == LS_BLOCK_ITEM; at = at->next)
		count++;
	if (count > FOLD_ROWS)
		fprintf(to, "<details><summary>%zu lines</summary>\n", count);
	fputs("<ul>\n", to);
	for (;; block = block->next) {
		write_element(to, "<li>", block->text, "</li>\n");
		if (!block->next || block->next->kind != LS_BLOCK_ITEM)
			break;
	}
	fputs(count > FOLD_ROWS ? "</ul></details>\n" : "</ul>\n", to);
	return block;
}

static void write_contents(const ls_page *page, FILE *to)
{
	size_t number = 0, count = 0;
	for (const ls_block *block = page->first; block; block = block->next)
		count += block->kind == LS_BLOCK_HEADING && block->level == 2;
	if (count < 2)
		return;
	fputs("<nav aria-label=\"Contents\"><ul>\n", to);
	for (const ls_block *block = page->first; block; block = block->next)
		if (block->kind == LS_BLOCK_HEADING && block->level == 2) {
			fprintf(to, "<li><a href=\"#part-%zu\">", ++number);
			write_element(to, "", block->text, "</a></li>\n");
		}
	fputs("</ul></nav>\n", to);
}

static void write_blocks(const ls_page *page, FILE *to)
{
	size_t number = 0;
	for (const ls_block *block = page->first; block; block = block->next) {
		if (block->kind == LS_BLOCK_HEADING && block->level == 2 && number++ == 0)
			write_contents(page, to);
		if (block->kind == LS_BLOCK_HEADING)
			write_heading(block, number, to);
		else if (block->kind == LS_BLOCK_PARAGRAPH)
			write_element(to, "<p>", block->text, "</p>\n");
		else if (block->kind == LS_BLOCK_ITEM)
			block = write_items(block, to);
		else if (block->kind == LS_BLOCK_TABLE)
			write_table(block->grid, to);
		else
			write_plot(block->plot, to);
	}
}

void ls_page_html(const ls_page *page, const char *title, FILE *to)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n",
	      to);
	write_element(to, "<title>", title, "</title>\n");
	fprintf(to, "<link rel=\"icon\" href=\"data:,\">\n<style>\n%s</style></head>\n<body>\n%s<main>\n",
		ls_report_style, ls_report_hatches);
	write_blocks(page, to);
	fprintf(to, "</main>\n<footer>Made by lockstep report %s.</footer>\n<script>\n%s</script>\n</body></html>\n",
		LS_VERSION_STRING, ls_report_script);
}
