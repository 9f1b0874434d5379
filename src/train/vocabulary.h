/*
 * vocabulary.h - a run keeps the vocabulary it was trained with: RUN/vocab.txt, without which its weights mean nothing.
 */
#ifndef LS_TRAIN_VOCABULARY_H
#define LS_TRAIN_VOCABULARY_H

#include <lockstep/train.h>

/* Copy the vocabulary whose hash this is to the run's directory, unless a copy is there: the one that the settings
 * name, or the one beside the data. 0: text that has none. */
ls_status ls_vocabulary_keep(const ls_train_options *options, uint64_t hash);

/* The run's copy; "" when it has none. */
void ls_vocabulary_find(char *out, size_t size, const char *run);

#endif
