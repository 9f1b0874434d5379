/*
 * outputs.h - what a model says of a sample, as an answer for others.
 */
#ifndef LS_TRAINED_OUTPUTS_H
#define LS_TRAINED_OUTPUTS_H

#include <lockstep/model.h>

#include "base/status.h"

/* ls_model_predict() of images that may be infinite. Where samples of several clients or files are predicted together,
 * one that is not finite must not fail the others: ls_outputs_check() finds it. */
ls_status ls_model_predict_unchecked(ls_model *model, const float *images, int64_t count, float *logits);

/* LS_ENUMERIC: one of them is NaN or infinite, which is no answer. `sample` and what follows name the sample of these
 * outputs, as for printf(): "%s:%d". */
__attribute__((format(printf, 3, 4))) ls_status ls_outputs_check(const float *outputs, int64_t count,
								 const char *sample, ...);

#endif
