/*
 * vocabulary.h - a run keeps the vocabulary it was trained with, without which its weights mean nothing: RUN/vocab.txt,
 * of language models RUN/vocab.json and RUN/merges.txt.
 * Runs that start from its weights read text with that copy.
 */
#ifndef LS_TRAINED_VOCABULARY_H
#define LS_TRAINED_VOCABULARY_H

#include <lockstep/train.h>

/* Copy the vocabulary whose hash this is to the run's directory, unless a copy is there: the one that the settings
 * name, or the one beside the data. 0: text that has none. */
ls_status ls_vocabulary_keep(const ls_train_options *options, uint64_t hash);

/* Where a dataset that was opened without one has found its own. */
ls_status ls_vocabulary_beside(char *out, size_t size, const ls_train_options *options);

/* The run's copy; "" when it has none. */
void ls_vocabulary_find(char *out, size_t size, const char *run);

/* Where settings name no vocabulary, and the data is read with one: the copy of the run that the weights come from
 * (--init) or of the one that goes on (--resume). "": there is none, and the one beside the data is meant. */
void ls_vocabulary_choose(char *out, size_t size, const ls_train_options *options);

#endif
