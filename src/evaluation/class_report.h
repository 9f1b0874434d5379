/*
 * class_report.h - what an evaluation says about each class, as a JSON file.
 */
#ifndef LS_EVALUATION_CLASS_REPORT_H
#define LS_EVALUATION_CLASS_REPORT_H

#include <lockstep/train.h>

/* Whole or absent. `data` is the name of what was evaluated; `counts` is NULL of a model that does not classify. */
ls_status ls_class_report_write(const char *data, const ls_eval_result *result, const ls_class_counts *counts,
				const char *path);

#endif
