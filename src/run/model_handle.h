/*
 * model_handle.h - inside of lockstep/model.h: what model_handle.c, which has models, and model_samples.c, which makes
 * samples for them, share.
 */
#ifndef LS_RUN_MODEL_HANDLE_H
#define LS_RUN_MODEL_HANDLE_H

#include <lockstep/model.h>

#include "data/text_input.h"
#include "run/trained.h"
#include "trainer/predict.h"

struct ls_model {
	ls_trained trained; /* of the program's own graph: graph and stores alone */
	uint64_t vocabulary;
	int devices, threads;
	ls_predictor *predictor; /* NULL: nothing was predicted yet */

	ls_tokenizer tokenizer;   /* zero: images, or no vocabulary is known */
	char **class_names;       /* (outputs), of options.labels; NULL: none */
	char *class_text;         /* that they are in */
	const char *const *known; /* of the dataset; NULL: none */
};

/* What samples are made with: vocabulary, normalisation, names of classes. */
ls_status ls_model_open_samples(ls_model *model, const ls_model_load_options *options);
void ls_model_close_samples(ls_model *model);

#endif
