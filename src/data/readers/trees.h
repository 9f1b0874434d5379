/*
 * trees.h - sentences as the Stanford Sentiment Treebank writes them: one tree per line, every phrase with a sentiment
 * class.
 *
 *     (3 (2 It) (4 (2 's) (4 (3 (2 a) (4 (3 lovely) (2 film))) (2 .))))
 *
 * A tree is "(LABEL WORD)" or "(LABEL TREE...)", labels 0 (very bad) to 4 (very good). Words are written as the Penn
 * Treebank does, and read as people write: -LRB- -RRB- -LSB- -RSB- -LCB- -RCB- are ( ) [ ] { }, \/ and \* are / and *,
 * `` and '' are ", ` is '.
 */
#ifndef LS_DATA_READERS_TREES_H
#define LS_DATA_READERS_TREES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LS_TREE_LABELS = 5 };

typedef struct ls_phrase {
	int32_t label;
	uint32_t first, words; /* the words [first, first + words) of the sentence */
	uint32_t parent;       /* phrase it is part of; its own number: none */
} ls_phrase;

/* A sentence. Zero it before the first use; reading another one reuses the memory. */
typedef struct ls_tree {
	char *text; /* its words with a space between two of them */
	size_t bytes, text_room;
	uint32_t *word; /* (words + 1) where each begins in text; it ends a byte before the next does */
	size_t words, word_room;
	ls_phrase *phrases; /* the whole sentence is the first; a part comes behind what it is part of */
	size_t count, phrase_room;
} ls_tree;

/* Read a line without its end. `file` and `line`, which counts from 1, are for messages; columns are bytes from 1. */
ls_status ls_tree_read(ls_tree *tree, const char *text, size_t bytes, const char *file, uint64_t line);
void ls_tree_free(ls_tree *tree);

/* The next line of [*at, bytes) that is not blank: its first byte, and its length without "\n" or "\r\n". Counts lines
 * in *line, which begins with 0. NULL at the end. */
const char *ls_tree_line(const char *text, size_t bytes, size_t *at, uint64_t *line, size_t *length);

#endif
