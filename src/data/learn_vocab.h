/*
 * learn_vocab.h - a vocabulary learned from the text of a dataset, written as vocab.txt.
 */
#ifndef LS_DATA_LEARN_VOCAB_H
#define LS_DATA_LEARN_VOCAB_H

#include <lockstep/data.h>

typedef struct ls_learn_job {
	const char *out; /* file to write */
	size_t pieces;   /* at most */
	int cased, replace_invalid, quiet;
} ls_learn_job;

/* From a corpus (corpus.h): a file or a directory; from what is to train on, where that is a directory of trees. */
ls_status ls_learn_vocab(const ls_learn_job *job, const char *path);

#endif
