/*
 * text.h - vocabularies for models of text.
 *
 * A vocabulary is BERT's vocab.txt: one word piece per line; line 1 is token 0. Language models have GPT-2's vocab.json
 * and merges.txt. `lockstep train` takes one made here or one that came with a model.
 *
 *     const char *texts[] = { "addresses" };
 *     ls_vocab_make_options options = LS_VOCAB_MAKE_OPTIONS_INIT;
 *     options.paths = texts;
 *     options.path_count = 1;
 *     options.out = "vocab.txt";
 *     if (ls_vocab_make(&options) != LS_OK)
 *             puts(ls_last_error());
 */
#ifndef LOCKSTEP_TEXT_H
#define LOCKSTEP_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LS_TOKENS_MAX 65536 /* maximum number of tokens per text sample */

typedef struct ls_vocab_make_options {
	size_t size;              /* set by LS_VOCAB_MAKE_OPTIONS_INIT */
	const char *const *paths; /* (path_count) text files, directories of *.txt, or tables; UTF-8 */
	size_t path_count;
	const char *out;     /* the file to write; an old one is replaced when the new one is complete */
	uint64_t pieces;     /* maximum number of pieces: 5 special ones, characters, and learnt pieces */
	uint64_t min_count;  /* a pair that occurs less often is not joined to a piece; 0: 2. Not with `chars` */
	int cased;           /* keep capitals and accents */
	int replace_invalid; /* drop bytes that are not UTF-8; else they are an error */
	int quiet;           /* no progress bar, no line at the end */
	int unused;          /* fills the struct up; stays 0 */
	/* For language models, one of the two; `out` is then a directory. Pieces are byte-level (GPT-2's vocab.json and
	 * merges.txt, 256 bytes, learnt pieces and the end of a text), or the characters of the texts (vocab.json). */
	int bpe, chars;
	const char *text_column; /* tables (.csv, .tsv, .jsonl): the column that has the text; NULL: "text" */
} ls_vocab_make_options;
#define LS_VOCAB_MAKE_OPTIONS_INIT                                                                                     \
	{                                                                                                              \
		.size = sizeof(ls_vocab_make_options), .pieces = 30522, .min_count = 2                                 \
	}

/* Learn a vocabulary from texts: WordPiece, or for language models byte-pair encoding. The same texts and options give
 * the same file, byte for byte. */
LS_API ls_status ls_vocab_make(const ls_vocab_make_options *options);

#ifdef __cplusplus
}
#endif
#endif
