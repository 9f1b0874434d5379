/*
 * weights.h - find weights (a run, one of its checkpoints, or a file) and read their file's metadata.
 *
 * A file has, in its metadata, what it takes to evaluate it: the model's name, the data it was trained on, of images
 * the mean and deviation of each channel that they were normalised with ("mean": "0.1307"), the names of classes, a
 * line each, where it is not a run's ("labels": "cat\ndog\n"), and, as far as they are not the defaults, the loss, the
 * weights of classes ("class-weights": "0.5,2"), the precision ("precision": "bf16", of which "attention": "bf16" says
 * that it is not that of earlier versions) and of text the settings that say
 * how it is read and how large the model is ("seq-len": "64"), and the vocabulary's hash. What is not the model, the
 * normalisation or the vocabulary is a row of the table of settings, written and read by its name.
 */
#ifndef LS_TRAINED_WEIGHTS_H
#define LS_TRAINED_WEIGHTS_H

#include <lockstep/train.h>

#include "checkpoint/checkpoint.h"
#include "graph/graph.h"
#include "settings/settings.h"

#define LS_WEIGHTS_MEAN "mean"
#define LS_WEIGHTS_DEVIATION "deviation"
#define LS_WEIGHTS_COLUMNS "columns"
#define LS_WEIGHTS_TASK "task"
#define LS_WEIGHTS_BEST "best.safetensors" /* of a run: the weights of its best evaluation */
#define LS_WEIGHTS_LABELS "labels"

typedef struct ls_weights {
	char file[4096];       /* the safetensors file */
	char checkpoint[4096]; /* its checkpoint's directory; "": a bare file */
	char run[4096];        /* the run's; "": a bare file */
	char home[4096];       /* of a bare file that was named by its directory; "": of others */
} ls_weights;

/* `source` is a run directory (its newest whole checkpoint, or with `best` its best weights), a checkpoint's, a file,
 * or a directory with a bare model.safetensors. RUN/best.safetensors is the run's: its checkpoint says how the run was
 * trained. */
ls_status ls_weights_find(ls_weights *out, const char *source, int best);

/* What a run notes in the metadata of its files. Strings are the options' own. */
typedef struct ls_weights_notes {
	char text[LS_CKPT_METADATA_MAX][32];
	ls_st_pair pair[LS_CKPT_METADATA_MAX];
	size_t count;
	char *mean, *deviation, *labels; /* owned */
} ls_weights_notes;
ls_status ls_weights_note(ls_weights_notes *out, const ls_train_options *options, ls_settings_context trained_on);
void ls_weights_notes_release(ls_weights_notes *notes);

/* Names of classes, a line each, malloc'd; the notes own them from now on. NULL: none. Back from a file: NULL
 * as well where it has none. */
void ls_weights_note_labels(ls_weights_notes *notes, char *labels);
ls_status ls_weights_read_labels(const char *file, char **labels);

/* What a sample of the graph is, for files of models that no dataset was named for: "input": "1x28x28", or of text
 * "tokens": "128", "tokens-known": "30522", "tokens-masked": "20". `out` of a file: its shape; *found: it has one. */
void ls_weights_note_input(ls_weights_notes *notes, const ls_graph *graph);
ls_status ls_weights_read_input(const char *file, ls_dataset_info *out, int *found);

/* Of which evaluation the weights are the best. */
void ls_weights_note_best(ls_weights_notes *notes, const char *metric, double value, uint64_t step);
/* Back from a file: *found = 0 where it is not noted to be the best by `metric`. */
ls_status ls_weights_read_best(const char *file, const char *metric, double *value, uint64_t *step, int *found);

/* "3x224x224" to channels, height and width; 0: it is something else. */
int ls_weights_parse_input(const char *text, ls_dataset_info *out);

/* The strings that a file notes; "" where it does not. */
typedef struct ls_weights_said {
	char model[64], data[4096], data_dir[4096];
	char *class_weights; /* owned */
	int has_vocabulary;  /* it is of text, and a run of ours wrote it */
} ls_weights_said;
void ls_weights_said_release(ls_weights_said *said); /* harmless when it is zero, and twice */

/* The same from a file, into options, whose model, data and data_dir then are of `said` or NULL; of the rest, what it
 * does not say stays. `said` is to be released. */
ls_status ls_weights_read_notes(const char *file, ls_train_options *options, ls_weights_said *said);

#endif
