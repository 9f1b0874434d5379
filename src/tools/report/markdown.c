/*
 * markdown.c - a page as Markdown: tables are aligned, so that the source reads well, too.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/report/page.h"
#include "tools/report/text.h"

enum { NOTES = 999 };

/* malloc'd; NULL: no memory */
static char *cell_text(const ls_cell *cell, size_t number)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);
	if (!to)
		return NULL;
	fputs(cell->bold ? "**" : "", to);
	ls_write_markdown(to, cell->text);
	fputs(cell->bold ? "**" : "", to);
	if (number)
		fprintf(to, " †%zu", number);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}

/* Approximate width on a terminal: bytes that begin a UTF-8 character. */
static size_t width_of(const char *text)
{
	size_t width = 0;
	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void write_padded(FILE *to, const char *text, size_t width)
{
	fprintf(to, " %s%*s |", text, (int)(width > width_of(text) ? width - width_of(text) : 0), "");
}

/* `cells` are the heads, then the rows. */
static void write_rows(const ls_grid *grid, char *const *cells, const size_t *widths, FILE *to)
{
	fputc('|', to);
	for (size_t c = 0; c < grid->columns; c++)
		write_padded(to, cells[c] ? cells[c] : "", widths[c]);
	fputs("\n|", to);
	for (size_t c = 0; c < grid->columns; c++) {
		fputc(' ', to);
		for (size_t i = 0; i < widths[c]; i++)
			fputc('-', to);
		fputs(" |", to);
	}
	for (size_t i = grid->columns; i < grid->columns + grid->count; i++) {
		fputs(i % grid->columns ? "" : "\n|", to);
		write_padded(to, cells[i] ? cells[i] : "", widths[i % grid->columns]);
	}
	fputs("\n\n", to);
}

static void write_table(const ls_grid *grid, FILE *to)
{
	const char *notes[NOTES];
	size_t note_count = ls_grid_notes(grid, notes, NOTES), widths[LS_GRID_COLUMNS], columns = grid->columns;
	char **cells = calloc(columns + grid->count, sizeof(*cells));

	if (!cells) {
		fputs("(This table is missing: out of memory.)\n\n", to);
		return;
	}
	for (size_t i = 0; i < columns + grid->count; i++) {
		const ls_cell head = { .text = i < columns ? grid->heads[i] : "" };
		const ls_cell *cell = i < columns ? &head : &grid->cells[i - columns];
		size_t *width = &widths[i % columns];
		cells[i] = cell_text(cell, ls_grid_note_number(notes, note_count, cell->note));
		if (i < columns)
			*width = 3;
		if (cells[i] && width_of(cells[i]) > *width)
			*width = width_of(cells[i]);
	}
	write_rows(grid, cells, widths, to);
	for (size_t i = 0; i < note_count; i++) {
		fprintf(to, "†%zu ", i + 1);
		ls_write_markdown(to, notes[i]);
		fputs("\n\n", to);
	}
	for (size_t i = 0; i < columns + grid->count; i++)
		free(cells[i]);
	free(cells);
}

static void write_flag(const ls_block *block, FILE *to)
{
	if (!block->flag)
		return;
	fputs("† ", to);
	ls_write_markdown(to, block->flag);
	fputs("\n\n", to);
}

static void write_block(const ls_block *block, FILE *to)
{
	switch (block->kind) {
	case LS_BLOCK_HEADING:
		fprintf(to, "%.*s ", block->level, "######");
		ls_write_markdown(to, block->text);
		fputs(block->flag ? " †\n\n" : "\n\n", to);
		write_flag(block, to);
		break;
	case LS_BLOCK_PARAGRAPH:
		ls_write_markdown(to, block->text);
		fputs("\n\n", to);
		break;
	case LS_BLOCK_ITEM:
		fputs("- ", to);
		ls_write_markdown(to, block->text);
		fputs(block->next && block->next->kind == LS_BLOCK_ITEM ? "\n" : "\n\n", to);
		break;
	case LS_BLOCK_TABLE:
		write_table(block->grid, to);
		break;
	case LS_BLOCK_PLOT:
		break;
	}
}

void ls_page_markdown(const ls_page *page, int brief, FILE *to)
{
	for (const ls_block *block = page->first; block; block = block->next)
		if (!brief || !block->grid || !block->grid->summary)
			write_block(block, to);
}
