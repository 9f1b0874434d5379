/*
 * predict.h - predictions for files: images, tar, IDX, NumPy, CSV or lines of text in, labels and probabilities out.
 *
 *     const char *files[] = { "a.png", "b.jpg" };
 *     ls_predict_options options = LS_PREDICT_OPTIONS_INIT;
 *     options.inputs = files;
 *     options.input_count = 2;
 *     if (ls_predict(model, &options, NULL)) { puts(ls_last_error()); return 1; }
 *
 * lockstep/model.h predicts arrays. What a sample gives has the same bits whatever is predicted with it.
 */
#ifndef LOCKSTEP_PREDICT_H
#define LOCKSTEP_PREDICT_H

#include <lockstep/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an input is. LS_INPUT_ANY: PNG, JPEG, tar files of them, IDX and NumPy's .npy and .npz by their first bytes; what ends
 * with .csv or .csv.gz is CSV; other files are lines of text for a model of text, and CSV for one of images. All but .npz and
 * tar may be gzip. Integers of NumPy are pixels from 0 to 255; floats are taken as they were trained on, or, of a model of
 * bytes, as pixels from 0 to 1. */
typedef enum ls_input_kind {
	LS_INPUT_ANY,
	LS_INPUT_IMAGE,
	LS_INPUT_IDX,
	LS_INPUT_CSV,
	LS_INPUT_TEXT,
	LS_INPUT_NPY
} ls_input_kind;

typedef enum ls_predict_format { LS_PREDICT_CSV, LS_PREDICT_JSONL } ls_predict_format;

typedef struct ls_predict_options {
	size_t size;               /* set by LS_PREDICT_OPTIONS_INIT */
	const char *const *inputs; /* (input_count) files; "-" is standard input */
	size_t input_count;
	ls_input_kind kind;
	const char
		*column; /* CSV of text: the column's name, in the first record, or its number from 1; NULL: "text", or
			       the only one */
	int is_normalised; /* CSV of images: numbers as the model wants them; else pixels from 0 to 255 */
	ls_resize resize;  /* images of another size than the model's */

	int64_t top; /* classes per sample, the most probable first */
	ls_predict_format format;
	const char *out; /* a file, whole or absent; NULL: standard output */

	int64_t batch; /* samples at a time; does not change a prediction. 0: as many as keep the devices busy */
	int skip_bad;  /* warn of what cannot be read, or predicted in finite numbers, and go on; else an error */
	int quiet;     /* no warnings */
} ls_predict_options;
#define LS_PREDICT_OPTIONS_INIT                                                                                        \
	{                                                                                                              \
		.size = sizeof(ls_predict_options), .top = 1                                                           \
	}

typedef struct ls_predict_result {
	uint64_t predicted;
	uint64_t bad;         /* samples, or files, that were left out */
	uint64_t cut;         /* texts of more tokens than the model takes */
	uint64_t reserved[8]; /* 0 */
} ls_predict_result;

/*
 * Predict every sample of every input, in order, in memory that does not grow with their number. Writes a line per
 * sample: the input, the row in it (a line, or of IDX, NumPy and tar the number of an image, from 1), the label with its name, where
 * names are known, and its probability, of `top` classes. `result` may be NULL.
 */
LS_API ls_status ls_predict(ls_model *model, const ls_predict_options *options, ls_predict_result *result);

#ifdef __cplusplus
}
#endif
#endif
