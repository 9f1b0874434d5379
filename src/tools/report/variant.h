/*
 * variant.h - the options in which the points of one model differ.
 *
 * A recipe may have a model twice: with 6 layers and with 8, with gradient clipping and without. Tables and plots then
 * name the points "transformer --layers 8" and "bert-base no --clip-norm".
 */
#ifndef LS_TOOLS_REPORT_VARIANT_H
#define LS_TOOLS_REPORT_VARIANT_H

#include "tools/report/page.h"
#include "tools/results/results.h"

/* "--layers 8", "no --clip-norm"; "" where all points of this model and kind have the same options. */
const char *ls_variant(ls_page *page, const ls_results *results, const ls_point *point);

/* Whether two points have the same optimizer and other options. */
int ls_variant_same(const ls_point *a, const ls_point *b);

/* The model with its variant. */
const char *ls_variant_model(ls_page *page, const ls_results *results, const ls_point *point);

#endif
