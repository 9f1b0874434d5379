/*
 * model_handle.h - the inside of an ls_model, for the files that work on one: model_*.c here, those of predict/, and
 * run/trainer_handle.c, which trains one.
 */
#ifndef LS_TRAINED_MODEL_HANDLE_H
#define LS_TRAINED_MODEL_HANDLE_H

#include <lockstep/model.h>
#include <stdatomic.h>

#include "data/readers/table_schema.h"
#include "data/text_input.h"
#include "trained/trained.h"
#include "trainer/predict.h"

#define LS_MODEL_KIND "model" /* handles.h */

struct ls_model {
	ls_trained trained; /* of the program's own graph: graph and stores alone */
	uint64_t vocabulary;
	int devices, threads;
	ls_predictor *predictor; /* NULL: nothing was predicted yet */
	size_t buffers_floats;   /* that trained.buffers has room for; 0: just the running statistics */
	float *values; /* all of its values as the outside world has them, while it has no stores; else NULL */
	size_t value_count;
	atomic_int holders; /* the program, its trainer: the last one frees it */
	int is_trained;     /* it has a trainer */

	/* samples */
	ls_tokenizer tokenizer;   /* zero: images, or no vocabulary is known */
	char **class_names;       /* (outputs); NULL: none */
	char *class_text;         /* that they are in */
	const char *const *known; /* of the dataset; NULL: none */
	ls_table_schema table;    /* that it was trained on; zero: none */
};

/* It is a model, and its weights are there. */
ls_status ls_model_check_usable(const ls_model *model);

/* What samples are made with: vocabulary, normalisation, names of classes. */
ls_status ls_model_open_samples(ls_model *model, const ls_model_load_options *options);
void ls_model_close_samples(ls_model *model);

/* In place: floats of an array as a model takes them, (value - mean) / deviation; of a model of bytes
 * they are pixels from 0 to 1. */
ls_status ls_model_normalise_floats(const ls_model *model, float *values);

/* Names of classes: those in the file `labels`, where that is not NULL, else what is known of run, weights or data. */
ls_status ls_model_open_classes(ls_model *model, const char *labels);
void ls_model_close_classes(ls_model *model);
/* A name per line, as files of weights note them, malloc'd; NULL: not known. */
ls_status ls_model_class_lines(const ls_model *model, char **out);
/* Those of the data, where the model knows none and there is one for each of its outputs. */
ls_status ls_model_learn_classes(ls_model *model, const ls_dataset *data);

/*
 * A trainer begins; fails where another has begun. From now on the parameters of its graph may be laid out anew, and
 * when that is done the model lends its stores: trained.params and trained.buffers, where behind the running statistics
 * there is room for `floats` in all.
 */
ls_status ls_model_begin_training(ls_model *model);
ls_status ls_model_lend(ls_model *model, size_t floats);
void ls_model_end_training(ls_model *model);

/* In which precision and by which algorithm its graph multiplies has changed: files of the model say so from now on. */
void ls_model_note_arithmetic(ls_model *model);

/* It is trained on this data: where it does not know the normalisation of its images, its vocabulary or the names of
 * its classes, they are the data's. */
ls_status ls_model_learn_data(ls_model *model, const ls_dataset *data);

/* One of its parameters, of that many elements. */
ls_status ls_model_find_param(const ls_model *model, const char *name, uint64_t elements, const ls_param **out);
ls_status ls_model_check_finite(const char *what, const char *name, const float *values, uint64_t elements);

#endif
