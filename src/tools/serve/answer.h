/*
 * answer.h - what a server says, as JSON text that the caller frees. NULL: no memory.
 */
#ifndef LS_TOOLS_SERVE_ANSWER_H
#define LS_TOOLS_SERVE_ANSWER_H

#include <lockstep/model.h>

/* {"predictions": [{"label": 7, "name": "seven", "probability": 0.9, "top": [...]}, ...]}; `chances` is (count,
 * outputs). */
char *ls_answer_predictions(const ls_model *model, const ls_model_facts *facts, const float *chances, int64_t count,
			    int64_t top);
/* {"error": "..."} */
char *ls_answer_error(const char *message);
/* The model, its input and outputs, and what can be asked. */
char *ls_answer_description(const ls_model *model, const ls_model_facts *facts);

#endif
