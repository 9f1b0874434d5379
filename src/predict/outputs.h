/*
 * outputs.h - what a model says of a sample, as an answer for others.
 */
#ifndef LS_PREDICT_OUTPUTS_H
#define LS_PREDICT_OUTPUTS_H

#include <stdint.h>

#include "base/status.h"

/* LS_ENUMERIC: one of them is NaN or infinite, which is no answer. `sample` and what follows say of what the outputs
 * are, as printf() would: "%s:%d". */
__attribute__((format(printf, 3, 4))) ls_status ls_outputs_check(const float *outputs, int64_t count,
								 const char *sample, ...);

#endif
