/*
 * csv_quote.h - a field of a CSV file in quotes.
 */
#ifndef LS_BASE_CSV_QUOTE_H
#define LS_BASE_CSV_QUOTE_H

#include <stdio.h>

/* Quotes inside are doubled. */
void ls_csv_quote(FILE *to, const char *text);

#endif
