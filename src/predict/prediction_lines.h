/*
 * prediction_lines.h - predictions as lines of CSV or JSON.
 */
#ifndef LS_PREDICT_PREDICTION_LINES_H
#define LS_PREDICT_PREDICTION_LINES_H

#include <stdio.h>

#include <lockstep/predict.h>

typedef struct ls_prediction_lines {
	FILE *to;
	const ls_model *model;
	ls_predict_format format;
	ls_task task;
	int64_t outputs, top; /* top <= outputs */
	int has_names;
	int has_header; /* is written */
	int64_t *best;  /* (top) */
} ls_prediction_lines;

/* Nothing is written yet: the first sample of CSV comes with a line of names before it. */
ls_status ls_prediction_lines_begin(ls_prediction_lines *out, FILE *to, const ls_model *model,
				    const ls_predict_options *options);
void ls_prediction_lines_end(ls_prediction_lines *lines);

/* One sample; `chances` is (outputs), as ls_model_interpret() leaves them: finite numbers, for JSON has no others. */
void ls_prediction_lines_add(ls_prediction_lines *lines, const char *input, uint64_t row, const float *chances);

#endif
