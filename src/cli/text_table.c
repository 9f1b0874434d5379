/*
 * text_table.c - aligned columns: numbers to the right, names to the left.
 */
#include "text_table.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_AT_FIRST = 64 };

static int make_room(ls_text_table *table)
{
	int full = table->cells == 0 || (table->cells >= CELLS_AT_FIRST && !(table->cells & (table->cells - 1)));
	if (!full)
		return 1;
	size_t capacity = table->cells ? 2 * (size_t)table->cells : CELLS_AT_FIRST; /* powers of two */
	char **grown = realloc(table->text, capacity * sizeof(*grown));
	table->text = grown ? grown : table->text;
	return grown != NULL;
}

/* The formatted text, owned by the caller, or NULL without memory. */
static char *format_text(const char *format, va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	int length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	char *text = length < 0 ? NULL : malloc((size_t)length + 1);
	if (text)
		vsnprintf(text, (size_t)length + 1, format, arguments);
	for (char *at = text; at && *at; at++) /* names come from files: no line ends, nothing for the terminal */
		*at = iscntrl((unsigned char)*at) ? '?' : *at;
	return text;
}

void ls_text_table_add(ls_text_table *table, const char *format, ...)
{
	if (table->failed)
		return;
	va_list arguments;
	va_start(arguments, format);
	char *text = make_room(table) ? format_text(format, arguments) : NULL;
	va_end(arguments);
	table->failed = !text;
	if (text)
		table->text[table->cells++] = text;
}

static int is_left(const ls_text_table *table, int column)
{
	return table->heads[column][0] == '<';
}

static const char *head(const ls_text_table *table, int column)
{
	return table->heads[column] + is_left(table, column);
}

/* Columns on a screen: characters of UTF-8, not bytes. */
static int columns_of(const char *text)
{
	int columns = 0;
	for (; *text; text++)
		columns += ((unsigned char)*text & 0xC0) != 0x80;
	return columns;
}

static int width_of(const ls_text_table *table, int column)
{
	int width = columns_of(head(table, column));
	for (int cell = column; cell < table->cells; cell += table->columns) {
		int length = columns_of(table->text[cell]);
		width = length > width ? length : width;
	}
	return width;
}

static void print_padded(const ls_text_table *table, int column, int width, const char *text, FILE *to)
{
	int blanks = width - columns_of(text);
	if (is_left(table, column))
		fprintf(to, "%s%*s", text, blanks > 0 ? blanks : 0, "");
	else
		fprintf(to, "%*s%s", blanks > 0 ? blanks : 0, "", text);
}

static void print_cell(const ls_text_table *table, int column, int width, const char *text, FILE *to)
{
	int last = column + 1 == table->columns;
	/* no blanks at the end of a line */
	print_padded(table, column, last && is_left(table, column) ? 0 : width, text, to);
	fputs(last ? "\n" : "  ", to);
}

int ls_text_table_print(const ls_text_table *table, FILE *to)
{
	int widths[LS_TEXT_TABLE_COLUMNS];
	for (int c = 0; c < table->columns; c++)
		widths[c] = width_of(table, c);
	for (int c = 0; c < table->columns; c++)
		print_cell(table, c, widths[c], head(table, c), to);
	for (int cell = 0; cell < table->cells; cell++) {
		int c = cell % table->columns;
		print_cell(table, c, widths[c], table->text[cell], to);
	}
	return table->failed ? -1 : 0;
}

/* |---| under a head, |--:| under one that is aligned to the right */
static void print_rule(const ls_text_table *table, const int *widths, FILE *to)
{
	for (int c = 0; c < table->columns; c++) {
		fputc('|', to);
		for (int i = 0; i < widths[c] + 1; i++)
			fputc('-', to);
		fputc(is_left(table, c) ? '-' : ':', to);
	}
	fputs("|\n", to);
}

static void print_markdown_cell(const ls_text_table *table, int column, int width, const char *text, FILE *to)
{
	fputs("| ", to);
	print_padded(table, column, width, text, to);
	fputs(column + 1 == table->columns ? " |\n" : " ", to);
}

int ls_text_table_print_markdown(const ls_text_table *table, FILE *to)
{
	int widths[LS_TEXT_TABLE_COLUMNS];
	for (int c = 0; c < table->columns; c++)
		widths[c] = width_of(table, c);
	for (int c = 0; c < table->columns; c++)
		print_markdown_cell(table, c, widths[c], head(table, c), to);
	print_rule(table, widths, to);
	for (int cell = 0; cell < table->cells; cell++) {
		int c = cell % table->columns;
		print_markdown_cell(table, c, widths[c], table->text[cell], to);
	}
	return table->failed ? -1 : 0;
}

void ls_text_table_release(ls_text_table *table)
{
	for (int cell = 0; cell < table->cells; cell++)
		free(table->text[cell]);
	free(table->text);
	table->text = NULL;
	table->cells = 0;
}
