/*
 * inputs.h - samples for a model from files, one after another: what ls_predict() reads.
 */
#ifndef LS_PREDICT_INPUTS_H
#define LS_PREDICT_INPUTS_H

#include <lockstep/predict.h>

typedef struct ls_inputs ls_inputs;

/* Both are borrowed. Nothing is opened yet. */
ls_status ls_inputs_new(ls_inputs **out, const ls_model *model, const ls_predict_options *options);
void ls_inputs_free(ls_inputs *inputs); /* harmless on NULL */

/* Where a sample is written: (C, H, W) or tokens, by the model's kind. */
typedef struct ls_input_sample {
	float *image;
	ls_text_sample *text;
	const char *input; /* set: file, valid as long as the options; "-" is standard input */
	uint64_t row;      /* set: line or image, from 1 */
	int is_cut;        /* set: the text had more tokens */
} ls_input_sample;

/*
 * The next sample; *found is 0 behind the last one. After a failure, which names file and row, the next call goes on
 * behind what could not be read: the row, or the file where nothing can be found in it any more. LS_EMEMORY and
 * LS_EINVALID (of options) are for all samples.
 */
ls_status ls_inputs_next(ls_inputs *inputs, ls_input_sample *sample, int *found);

#endif
