/*
 * weights.h - find weights (a run, one of its checkpoints, or a file) and read their file's metadata.
 *
 * A file has, in its metadata, what it takes to evaluate it: the model's name, the data it was trained on, of images
 * the mean and deviation of each channel that they were normalised with ("mean": "0.1307"), and of text the settings
 * that say how it is read and how large the model is ("seq-len": "64"), as far as they are not the defaults, and the
 * vocabulary's hash. What is not the model, the normalisation or the vocabulary is a row of the table of settings,
 * written and read by its name.
 */
#ifndef LS_RUN_WEIGHTS_H
#define LS_RUN_WEIGHTS_H

#include <lockstep/train.h>

#include "checkpoint/checkpoint.h"
#include "graph/graph.h"
#include "run/settings.h"

#define LS_WEIGHTS_MEAN "mean"
#define LS_WEIGHTS_DEVIATION "deviation"

typedef struct ls_weights {
	char file[4096];       /* the safetensors file */
	char checkpoint[4096]; /* its checkpoint's directory; "": a bare file */
	char run[4096];        /* the run's; "": a bare file */
} ls_weights;

/* `source` is a run directory (its newest whole checkpoint), a checkpoint's, or a file. */
ls_status ls_weights_find(ls_weights *out, const char *source);

/* What a run notes in the metadata of its files. Strings are the options' own. */
typedef struct ls_weights_notes {
	char text[LS_CKPT_METADATA_MAX][32];
	ls_st_pair pair[LS_CKPT_METADATA_MAX];
	size_t count;
	char *mean, *deviation; /* owned */
} ls_weights_notes;
ls_status ls_weights_note(ls_weights_notes *out, const ls_train_options *options, ls_settings_context trained_on);
void ls_weights_notes_release(ls_weights_notes *notes);

/* What a sample of the graph is, for files of models that no dataset was named for: "input": "1x28x28", or of text
 * "tokens": "128", "tokens-known": "30522", "tokens-masked": "20". `out` of a file: its shape; *found: it has one. */
void ls_weights_note_input(ls_weights_notes *notes, const ls_graph *graph);
ls_status ls_weights_read_input(const char *file, ls_dataset_info *out, int *found);

/* "3x224x224" to channels, height and width; 0: it is something else. */
int ls_weights_parse_input(const char *text, ls_dataset_info *out);

/* The strings that a file notes; "" where it does not. */
typedef struct ls_weights_said {
	char model[64], data[4096], data_dir[4096];
	int has_vocabulary; /* it is of text, and a run of ours wrote it */
} ls_weights_said;

/* The same from a file, into options, whose model, data and data_dir then are of `said` or NULL; of the rest, what it
 * does not say stays. */
ls_status ls_weights_read_notes(const char *file, ls_train_options *options, ls_weights_said *said);

#endif
