/*
 * page.h - a report before it is written: headings, paragraphs, lists, tables and plots in reading order. It is written
 * as Markdown, which leaves plots out, or as one HTML page.
 *
 *     ls_page page = LS_PAGE_INIT;
 *     ls_page_heading(&page, 2, "batch size = %d", 96);
 *     ls_grid *grid = ls_page_table(&page, 2, (const char *const[]){ "devices", "throughput" });
 *     ls_grid_add(grid, "8");
 *     ls_grid_add(grid, "%.1f", rate);
 *     ls_grid_note(grid, "above ideal");       a mark on the last cell, and a note below the table
 *
 * Invariants
 *  1. Text is stored unescaped and escaped when it is written (text.h).
 *  2. When memory runs out, the block is left out and `failed` is set; every function accepts the NULL that follows.
 */
#ifndef LS_TOOLS_REPORT_PAGE_H
#define LS_TOOLS_REPORT_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/status.h"
#include "tools/report/plot.h"
#include "tools/results/figure.h"

typedef struct ls_cell {
	const char *text;
	const char *note; /* NULL: none */
	int bold;
} ls_cell;

enum { LS_GRID_COLUMNS = 18 };

typedef struct ls_grid {
	struct ls_page *page;
	const char *heads[LS_GRID_COLUMNS];
	size_t columns, count, room;
	ls_cell *cells;      /* row by row */
	const char *summary; /* HTML folds the table behind this line; NULL: it is open */
	int text_columns;    /* number of text columns at the left */
} ls_grid;

typedef enum ls_block_kind {
	LS_BLOCK_HEADING,
	LS_BLOCK_PARAGRAPH,
	LS_BLOCK_ITEM,
	LS_BLOCK_TABLE,
	LS_BLOCK_PLOT
} ls_block_kind;

typedef struct ls_block {
	struct ls_block *next;
	ls_block_kind kind;
	int level;        /* of a heading: 1 to 4 */
	const char *text; /* of a heading, paragraph or item */
	const char *flag; /* what is wrong with an item's or heading's figure; NULL: nothing */
	ls_grid *grid;
	ls_plot *plot;
} ls_block;

typedef struct ls_page {
	ls_arena arena;
	ls_block *first, *last;
	int failed;
	size_t flags;     /* figures that are marked */
	size_t published; /* those of them that are published figures */
	unsigned figures; /* kinds that occur since the last legend, 1 << ls_figure */
} ls_page;
#define LS_PAGE_INIT                                                                                                   \
	{                                                                                                              \
		.arena = LS_ARENA_INIT                                                                                 \
	}
void ls_page_release(ls_page *page);

void *ls_page_alloc(ls_page *page, size_t bytes); /* zeroed; NULL makes the page fail */
const char *ls_page_text(ls_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

ls_block *ls_page_heading(ls_page *page, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ls_page_paragraph(ls_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
ls_block *ls_page_item(ls_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ls_page_flag(ls_page *page, ls_block *block, const char *note); /* NULL: nothing to flag */
ls_grid *ls_page_table(ls_page *page, size_t columns, const char *const *heads);
ls_plot *ls_page_plot(ls_page *page); /* empty: to be filled in */

void ls_grid_add(ls_grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ls_grid_number(ls_grid *grid, double value);                                  /* "-" where it is not above 0 */
void ls_grid_fixed(ls_grid *grid, double value, int decimals, const char *suffix); /* the same */
void ls_grid_whole(ls_grid *grid, int64_t value);                                  /* the same */
void ls_grid_note(ls_grid *grid, const char *note);
void ls_grid_figure(ls_grid *grid, ls_figure kind); /* a cell that names the kind of the row's figures */
void ls_grid_bold(ls_grid *grid);                   /* the last complete row */
void ls_grid_drop_empty(ls_grid *grid);             /* columns in which every cell is "-" */

/* Distinct notes of a table in the order they appear; the number of a note counts from 1, 0: none. */
size_t ls_grid_notes(const ls_grid *grid, const char **notes, size_t most);
size_t ls_grid_note_number(const char *const *notes, size_t count, const char *note);

/* A paragraph that explains the kinds of figures since the last one; none where all were measured. */
void ls_page_legend(ls_page *page);

ls_status ls_page_check(const ls_page *page);                    /* fails when memory ran out */
void ls_page_markdown(const ls_page *page, int brief, FILE *to); /* brief: without tables that HTML folds */
void ls_page_html(const ls_page *page, const char *title, FILE *to);

#endif
