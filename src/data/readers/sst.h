/*
 * sst.h - the Stanford Sentiment Treebank with its five classes (SST-5): train.txt, dev.txt and test.txt, one tree per
 * line.
 */
#ifndef LS_DATA_READERS_SST_H
#define LS_DATA_READERS_SST_H

#include <lockstep/data.h>

#include "data/readers/corpus.h"

enum { LS_SST_TRAIN, LS_SST_DEV, LS_SST_TEST, LS_SST_FILES };

typedef struct ls_sst_file {
	const char *name;   /* "train.txt" */
	uint64_t sentences; /* of the published treebank */
} ls_sst_file;
extern const ls_sst_file ls_sst_files[LS_SST_FILES];

/* Parse every tree of a file in memory; `name` is for messages. Writes the sentences as text, one per line, to `to`
 * unless that is NULL. *count: sentences. */
ls_status ls_sst_check(const char *text, size_t bytes, const char *name, FILE *to, uint64_t *count);

/* Whether a directory holds trees: train.txt and test.txt, the first of which begins as a tree does. */
int ls_sst_is(const char *dir);

/* Counts of a treebank dataset, of its split's file; returns 0 for another kind of dataset. */
int ls_sst_counts(const ls_dataset *dataset, ls_corpus_counts *out);

#endif
