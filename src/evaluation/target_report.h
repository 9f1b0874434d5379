/*
 * target_report.h - what an evaluation says about each target of regression, or each of several labels: for
 * programs, and as a JSON file.
 */
#ifndef LS_EVALUATION_TARGET_REPORT_H
#define LS_EVALUATION_TARGET_REPORT_H

#include <lockstep/train.h>

#include "trainer/target_sums.h"

/* Units of the targets of a table, (outputs), malloc'd; NULL: not a table, or not regression. */
ls_status ls_target_scales(const ls_dataset *dataset, double **out);

/* Scores of all outputs with the names that the dataset has for them. */
ls_status ls_target_scores_make(ls_target_scores *out, const ls_dataset *dataset, const ls_target_sums *sums,
				const double *scale);

/* Whole or absent. */
ls_status ls_target_report_write(const ls_eval_result *result, const ls_target_scores *scores, const char *path);

#endif
