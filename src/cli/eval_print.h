/*
 * eval_print.h - what an evaluation says about each class, as a table.
 */
#ifndef LS_CLI_EVAL_PRINT_H
#define LS_CLI_EVAL_PRINT_H

#include <stdio.h>

#include <lockstep/train.h>

/* Accuracy among the most probable classes, a line per class, and with few classes the confusion matrix. */
void ls_eval_print_classes(const ls_class_counts *counts, FILE *to);

/* A line per target of regression, or per label of several. */
void ls_eval_print_targets(const ls_target_scores *scores, FILE *to);

#endif
