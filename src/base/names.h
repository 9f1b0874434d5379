/*
 * names.h - parsing what users type: names, numbers, sizes. lockstep/names.h has the public part.
 */
#ifndef LS_BASE_NAMES_H
#define LS_BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/names.h>

#include "base/status.h"

/*
 * Families (datasets, models, optimizers, strategies, ...) are tables; `at` returns the name of row i, or NULL past the
 * end. ls_name_row() is the row named `typed`, LS_NO_ROW where there is none or `typed` is NULL: past the end of every
 * table. ls_name_find() fails there, with ls_name_unknown().
 */
#define LS_NO_ROW SIZE_MAX
size_t ls_name_row(const char *typed, const char *(*at)(size_t i));
ls_status ls_name_find(const char *kind, const char *typed, const char *(*at)(size_t i), size_t *row);

/* Fail with "unknown <kind> 'typed'; did you mean 'x'? Known: a, b, c". */
ls_status ls_name_unknown(const char *kind, const char *typed, const char *(*at)(size_t i));

/* Whole-string decimal numbers: no blanks, plus sign, hexadecimal, infinity or NaN; neither overflow nor underflow (of
 * a float). `what` names the value in the error. */
ls_status ls_parse_int(const char *text, const char *what, int64_t *out);
ls_status ls_parse_real(const char *text, const char *what, double *out);
/* Length of the decimal number that `text` begins with (-12, 0.5, .5, 5., 1e-3); 0: none. */
size_t ls_decimal_span(const char *text);
/* Sizes people write: 72000000, 72M, 64k, 1.5G (decimal). */
ls_status ls_parse_count(const char *text, const char *what, uint64_t *out);

/* `text` with control characters as '?', cut to `size`. Returns `out`. */
const char *ls_text_printable(char *out, size_t size, const char *text);

/* Whether `text` ends with `end`. */
int ls_text_ends_with(const char *text, const char *end);

#endif
