/*
 * sections.h - the parts of a report that are not one sweep's tables.
 */
#ifndef LS_TOOLS_REPORT_SECTIONS_H
#define LS_TOOLS_REPORT_SECTIONS_H

#include "tools/report/page.h"
#include "tools/report/sources.h"
#include "tools/report/study.h"

/* An item per run and sweep: settings and results. */
void ls_section_summary(ls_page *page, const ls_sources *sources);

/* Predicted curves and, of the same model and batch, measured points. */
void ls_section_predicted(ls_page *page, const ls_sources *sources);

/* The published figures with ours beside them, and what is wrong with them. */
void ls_section_published(ls_page *page, const ls_sources *sources);

/* Scores per class and confusion matrices of runs that have an eval.json. */
void ls_section_classes(ls_page *page, const ls_study *study);

/* Which hosts took part in elastic runs, and when: a picture and a table of starts. */
void ls_section_nodes(ls_page *page, const ls_study *study);

#endif
