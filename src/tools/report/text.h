/*
 * text.h - text from files into Markdown, HTML and SVG, and numbers as people read them.
 *
 * Names of models and hosts come from files that anybody may have written: every text goes through one of these.
 */
#ifndef LS_TOOLS_REPORT_TEXT_H
#define LS_TOOLS_REPORT_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Text of HTML or SVG, and of their attributes in double quotes. Control characters become spaces. */
void ls_write_html(FILE *to, const char *text);

/* Text inside a line or a cell of Markdown: characters that would begin markup, a cell or a tag are escaped. */
void ls_write_markdown(FILE *to, const char *text);

enum { LS_NUMBER_TEXT = 48 };

/* About four digits: 4456.0, 98.25, 1.648, 0.0123. */
const char *ls_number_text(char out[LS_NUMBER_TEXT], double value);
/* The shortest form with up to four digits, for labels of axes: 0, 250, 1.5k, 2M. */
const char *ls_short_text(char out[LS_NUMBER_TEXT], double value);
/* 14:36:52; with hundredths of a second below a minute. */
const char *ls_runtime_text(char out[LS_NUMBER_TEXT], double seconds);
/* 1.25 MB, powers of 1000. */
const char *ls_bytes_text(char out[LS_NUMBER_TEXT], double bytes);

#endif
