/*
 * corpus.h - a text corpus, tokenized once and kept in the data cache.
 *
 * A corpus is a file, or the .txt files of a directory and its subdirectories in the order of their names (without
 * hidden files, vocab.txt and a vocabulary's merges.txt). sentences.h says what its documents and sentences are.
 *
 * The cache file (CACHE/corpus/KEY.tokens, little-endian) is
 *
 *     header    128 bytes: magic, version, key, counts, xxh64 of the tokens, checksum of the header
 *     tokens    (tokens) uint16, or uint32 when the vocabulary has more than 65,536; padded to 8 bytes
 *     sentence  (sentences + 1) uint64: where each begins in tokens
 *     document  (documents + 1) uint64: which sentence each begins with
 *
 * Invariants
 *  1. The key is a hash of paths, sizes, inodes, times of change, vocabulary and options: any change gives another
 *     file.
 *  2. A file has its final name only when it is complete; a damaged one is made again.
 *  3. Sentences and documents without a token are left out.
 *  4. Its contents do not depend on the number of threads that made it.
 */
#ifndef LS_DATA_READERS_CORPUS_H
#define LS_DATA_READERS_CORPUS_H

#include <lockstep/data.h>

#include "base/files.h"
#include "data/text_input.h"

typedef struct ls_corpus_counts {
	uint64_t files, documents, sentences, tokens;
	uint64_t bytes;   /* of text */
	uint64_t unknown; /* tokens that are [UNK] */
} ls_corpus_counts;

/* A cache file, as it is mapped. */
typedef struct ls_corpus {
	ls_file_map map;
	ls_corpus_counts counts;
	uint64_t key;
	uint64_t hash;                       /* xxh64 of the tokens */
	int wide;                            /* tokens are uint32 */
	const void *tokens;                  /* (tokens) */
	const uint64_t *sentence, *document; /* (sentences + 1), (documents + 1) */
} ls_corpus;

enum { LS_CORPUS_HEADER = 128 };

/* Write the header of a cache file; check a whole one in memory, which must lie at a multiple of 8. */
void ls_corpus_encode(uint8_t header[LS_CORPUS_HEADER], uint64_t key, uint64_t hash, int wide,
		      const ls_corpus_counts *counts);
ls_status ls_corpus_parse(ls_corpus *corpus, const uint8_t *data, size_t bytes, const char *name);
/* Warn if the vocabulary does not fit the texts: more than a tenth of the tokens are [UNK]. */
void ls_corpus_warn_unknown(const char *name, const ls_corpus_counts *counts);

/* Bytes that the tokens take, padding included. */
uint64_t ls_corpus_token_bytes(uint64_t tokens, int wide);

/* The corpus's files, sorted. */
typedef struct ls_corpus_file {
	char *path;
	uint64_t bytes;
	int64_t changed,
		entry_changed; /* the contents and the inode, nanoseconds: who sets back the first changes the second */
	uint64_t inode;
} ls_corpus_file;
typedef struct ls_corpus_files {
	ls_corpus_file *file;
	size_t count, room;
	uint64_t bytes;
} ls_corpus_files;
ls_status ls_corpus_find(ls_corpus_files *files, const char *path);
void ls_corpus_files_free(ls_corpus_files *files);
int ls_corpus_is_text(const char *path); /* a directory that has .txt files, or a file that is not IDX or gzip */

/* Tokenize `files` to the cache file `path`, with `threads` threads; 0: all cores. */
ls_status ls_corpus_build(const char *path, const ls_corpus_files *files, const ls_tokenizer *tokenizer, uint64_t key,
			  int threads);

/* Open the cache file of a corpus; make it if there is none. */
ls_status ls_corpus_load(ls_corpus *corpus, const char *path, const ls_tokenizer *tokenizer,
			 const ls_dataset_options *options);
void ls_corpus_close(ls_corpus *corpus);

/* Token `i`; i < counts.tokens. */
static inline int32_t ls_corpus_token(const ls_corpus *corpus, uint64_t i)
{
	return corpus->wide ? (int32_t)((const uint32_t *)corpus->tokens)[i] : ((const uint16_t *)corpus->tokens)[i];
}

/* Every 20th document is for testing; with fewer documents, the last one. Of a single document a part is: what a reader
 * makes of it. */
enum { LS_CORPUS_TEST_EVERY = 20 };
static inline int ls_corpus_is_test(uint64_t document, uint64_t documents)
{
	return documents < LS_CORPUS_TEST_EVERY ? document + 1 == documents
						: document % LS_CORPUS_TEST_EVERY == LS_CORPUS_TEST_EVERY - 1;
}

/* The last part of a path, as a dataset's name. */
void ls_corpus_name(char *out, size_t size, const char *path);

/* The corpus behind a dataset; NULL: another kind of dataset. */
const ls_corpus *ls_corpus_of(const ls_dataset *dataset);
const ls_corpus *ls_next_tokens_corpus(const ls_dataset *dataset);

/* Open the corpus `path` with `open` and its tokenizer: that of options, or else of the directory the corpus is in.
 * Samples have `least` tokens or more; `advice` is for those who have no vocabulary. */
typedef ls_status ls_corpus_opener(ls_dataset **out, const char *path, const ls_tokenizer *tokenizer,
				   const ls_dataset_options *options);
ls_status ls_corpus_open_with(ls_dataset **out, const char *path, const ls_dataset_options *options, int least,
			      const char *advice, ls_corpus_opener *open);

/* next_tokens.c: the corpus `path` for language models. */
ls_status ls_next_tokens_open(ls_dataset **out, const char *path, const ls_dataset_options *options);

/* The directory of a corpus's vocabulary: the corpus directory, or the one that contains the file. */
ls_status ls_corpus_home(char *out, size_t size, const char *path);

#endif
