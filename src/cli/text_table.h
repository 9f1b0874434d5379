/*
 * text_table.h - rows of text in aligned columns.
 */
#ifndef LS_CLI_TEXT_TABLE_H
#define LS_CLI_TEXT_TABLE_H

#include <stdio.h>

enum { LS_TEXT_TABLE_COLUMNS = 13 };

/* Zero one ({ 0 }), set `columns`, add rows cell by cell. A column whose head starts with '<' is aligned to the left.
 */
typedef struct ls_text_table {
	int columns, cells;
	const char *heads[LS_TEXT_TABLE_COLUMNS];
	char **text; /* (rows, columns); owned, of any length */
	int failed;  /* out of memory: print says so */
} ls_text_table;

void ls_text_table_add(ls_text_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns 0, or -1 when a row could not be kept. */
int ls_text_table_print(const ls_text_table *table, FILE *to);
/* The same as a Markdown table, which reads well as it is, too. */
int ls_text_table_print_markdown(const ls_text_table *table, FILE *to);
void ls_text_table_release(ls_text_table *table);

#endif
