/*
 * class_metrics.h - RUN/eval.json, which `lockstep eval RUN --save` writes: loss and accuracy, and of models that
 * classify scores per class and the confusion matrix. Of regression and of several labels: their own metrics instead.
 */
#ifndef LS_TOOLS_REPORT_CLASS_METRICS_H
#define LS_TOOLS_REPORT_CLASS_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tools/results/results.h"

enum { LS_CLASS_NAME = 64, LS_CLASSES_MAX = 4096 };

typedef struct ls_class_row {
	char name[LS_CLASS_NAME]; /* of the class; its number where the data has no names */
	int64_t support;          /* samples with this label */
	double precision, recall, f1;
} ls_class_row;

typedef struct ls_class_metrics {
	char data[LS_RESULTS_TEXT];                      /* that was evaluated; "": not known */
	char fingerprint[LS_RESULTS_NAME];               /* of the weights */
	int64_t samples, top;                            /* top: 5, or fewer classes; 0: there are none */
	double loss, accuracy, top_accuracy, perplexity; /* NaN: not in the file */
	double mae, rmse, r2, micro_f1, macro_f1;        /* the same */
	size_t count;                                    /* of classes; 0: not a classifier */
	ls_class_row *classes;
	int64_t *confusion; /* (count, count) samples by label and prediction */
} ls_class_metrics;

ls_status ls_class_metrics_parse(ls_class_metrics *out, const void *text, size_t bytes, const char *label);
ls_status ls_class_metrics_read(ls_class_metrics *out, const char *path);
void ls_class_metrics_release(ls_class_metrics *metrics); /* harmless when it is zero */

#endif
