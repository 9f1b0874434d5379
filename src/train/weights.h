/*
 * weights.h - where weights come from: a run, a checkpoint of it, or a file; and what their file says of itself.
 *
 * A file of a model of text has, in its metadata, the settings that say how text is read and how large the model is
 * ("seq-len": "64"), as far as they are not the defaults, and the vocabulary's hash: rows of the table of settings,
 * written and read by their names.
 */
#ifndef LS_TRAIN_WEIGHTS_H
#define LS_TRAIN_WEIGHTS_H

#include <lockstep/train.h>

#include "ckpt/checkpoint.h"

typedef struct ls_weights {
	char file[4096];       /* the safetensors file */
	char checkpoint[4096]; /* its checkpoint's directory; "": a bare file */
	char run[4096];        /* the run's; "": a bare file */
} ls_weights;

/* `source` is a run directory (its newest whole checkpoint), a checkpoint's, or a file. */
ls_status ls_weights_find(ls_weights *out, const char *source);

/* What a run notes in the metadata of its files. */
typedef struct ls_weights_notes {
	char text[LS_CKPT_NOTES][32];
	ls_st_pair pair[LS_CKPT_NOTES];
	size_t count;
} ls_weights_notes;
void ls_weights_note(ls_weights_notes *out, const ls_train_options *options, uint64_t vocabulary);

/* The same from a file, into options; what it does not say stays. `model` receives its name, "" when it has none. */
ls_status ls_weights_read_notes(const char *file, ls_train_options *options, char *model, size_t size);

#endif
