#include "tools/report/page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/text.h"

void ls_page_release(ls_page *page)
{
	ls_arena_release(&page->arena);
	*page = (ls_page)LS_PAGE_INIT;
}

void *ls_page_alloc(ls_page *page, size_t bytes)
{
	void *memory = ls_arena_alloc(&page->arena, bytes > 0 ? bytes : 1);
	if (!memory)
		page->failed = 1;
	return memory;
}

static const char *format_text(ls_page *page, const char *format, va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	int length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	char *text = ls_page_alloc(page, (size_t)(length > 0 ? length : 0) + 1);
	if (!text)
		return "";
	vsnprintf(text, (size_t)length + 1, format, arguments);
	return text;
}

const char *ls_page_text(ls_page *page, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	const char *text = format_text(page, format, arguments);
	va_end(arguments);
	return text;
}

static ls_block *append(ls_page *page, ls_block_kind kind)
{
	ls_block *block = ls_page_alloc(page, sizeof(*block));
	if (!block)
		return NULL;
	block->kind = kind;
	if (page->last)
		page->last->next = block;
	else
		page->first = block;
	return page->last = block;
}

static ls_block *append_text(ls_page *page, ls_block_kind kind, const char *format, va_list arguments)
{
	ls_block *block = append(page, kind);
	if (block)
		block->text = format_text(page, format, arguments);
	return block;
}

ls_block *ls_page_heading(ls_page *page, int level, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	ls_block *block = append_text(page, LS_BLOCK_HEADING, format, arguments);
	va_end(arguments);
	if (block)
		block->level = level;
	return block;
}

void ls_page_paragraph(ls_page *page, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	append_text(page, LS_BLOCK_PARAGRAPH, format, arguments);
	va_end(arguments);
}

ls_block *ls_page_item(ls_page *page, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	ls_block *block = append_text(page, LS_BLOCK_ITEM, format, arguments);
	va_end(arguments);
	return block;
}

void ls_page_flag(ls_page *page, ls_block *block, const char *note)
{
	if (!block || !note)
		return;
	block->flag = note;
	page->flags++;
}

ls_grid *ls_page_table(ls_page *page, size_t columns, const char *const *heads)
{
	ls_block *block = append(page, LS_BLOCK_TABLE);
	ls_grid *grid = ls_page_alloc(page, sizeof(*grid));
	if (!block || !grid)
		return NULL;
	grid->page = page;
	grid->columns = columns < LS_GRID_COLUMNS ? columns : LS_GRID_COLUMNS;
	memcpy(grid->heads, heads, grid->columns * sizeof(*heads));
	return block->grid = grid;
}

ls_plot *ls_page_plot(ls_page *page)
{
	ls_plot *plot = ls_page_alloc(page, sizeof(*plot));
	ls_block *block = plot ? append(page, LS_BLOCK_PLOT) : NULL;
	if (!block)
		return NULL;
	plot->page = page;
	return block->plot = plot;
}

static int grow(ls_grid *grid)
{
	size_t room = grid->room ? grid->room * 2 : 64;
	ls_cell *cells = ls_page_alloc(grid->page, room * sizeof(*cells));
	if (!cells)
		return -1;
	if (grid->count > 0)
		memcpy(cells, grid->cells, grid->count * sizeof(*cells));
	grid->cells = cells;
	grid->room = room;
	return 0;
}

void ls_grid_add(ls_grid *grid, const char *format, ...)
{
	va_list arguments;
	if (!grid || (grid->count == grid->room && grow(grid)))
		return;
	va_start(arguments, format);
	grid->cells[grid->count++] = (ls_cell){ .text = format_text(grid->page, format, arguments) };
	va_end(arguments);
}

void ls_grid_number(ls_grid *grid, double value)
{
	char text[LS_NUMBER_TEXT];
	ls_grid_add(grid, "%s", value > 0 ? ls_number_text(text, value) : "-");
}

void ls_grid_fixed(ls_grid *grid, double value, int decimals, const char *suffix)
{
	if (value > 0)
		ls_grid_add(grid, "%.*f%s", decimals, value, suffix);
	else
		ls_grid_add(grid, "-");
}

void ls_grid_whole(ls_grid *grid, int64_t value)
{
	if (value > 0)
		ls_grid_add(grid, "%" PRId64, value);
	else
		ls_grid_add(grid, "-");
}

void ls_grid_note(ls_grid *grid, const char *note)
{
	if (!grid || grid->count == 0 || !note)
		return;
	grid->cells[grid->count - 1].note = note;
	grid->page->flags++;
}

void ls_grid_figure(ls_grid *grid, ls_figure kind)
{
	ls_grid_add(grid, "%s", ls_figure_name(kind));
	if (grid)
		grid->page->figures |= 1u << kind;
}

void ls_page_legend(ls_page *page)
{
	const char *text = "";
	for (int kind = 0; kind < LS_FIGURE_KINDS; kind++)
		if (page->figures & 1u << kind)
			text = ls_page_text(page, "%s%s%s: %s", text, text[0] ? "; " : "",
					    ls_figure_name((ls_figure)kind), ls_figure_meaning((ls_figure)kind));
	if (page->figures & ~(1u << LS_FIGURE_MEASURED))
		ls_page_paragraph(page, "Figures are %s.", text);
	page->figures = 0;
}

void ls_grid_bold(ls_grid *grid)
{
	if (!grid)
		return;
	for (size_t i = 0; i < grid->columns && i < grid->count; i++)
		grid->cells[grid->count - 1 - i].bold = 1;
}

static int is_empty(const ls_grid *grid, size_t column)
{
	for (size_t i = column; i < grid->count; i += grid->columns)
		if (strcmp(grid->cells[i].text, "-") != 0)
			return 0;
	return 1;
}

static void drop(ls_grid *grid, size_t column)
{
	size_t kept = 0;
	for (size_t i = 0; i < grid->count; i++)
		if (i % grid->columns != column)
			grid->cells[kept++] = grid->cells[i];
	memmove(&grid->heads[column], &grid->heads[column + 1], (grid->columns - column - 1) * sizeof(grid->heads[0]));
	grid->count = kept;
	grid->columns--;
	if ((int)column < grid->text_columns)
		grid->text_columns--;
}

void ls_grid_drop_empty(ls_grid *grid)
{
	for (size_t column = grid ? grid->columns : 0; column-- > 0 && grid->columns > 1;)
		if (is_empty(grid, column))
			drop(grid, column);
}

size_t ls_grid_note_number(const char *const *notes, size_t count, const char *note)
{
	for (size_t i = 0; note && i < count; i++)
		if (!strcmp(notes[i], note))
			return i + 1;
	return 0;
}

size_t ls_grid_notes(const ls_grid *grid, const char **notes, size_t most)
{
	size_t count = 0;
	for (size_t i = 0; i < grid->count && count < most; i++)
		if (grid->cells[i].note && !ls_grid_note_number(notes, count, grid->cells[i].note))
			notes[count++] = grid->cells[i].note;
	return count;
}

ls_status ls_page_check(const ls_page *page)
{
	return page->failed ? ls_fail(LS_EMEMORY, "no memory for the report") : LS_OK;
}
