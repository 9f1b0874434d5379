/*
 * sentences.h - where the sentences and documents of a text file are.
 *
 * A file is read in one of two ways, which its first lines decide:
 *
 *  lines   One sentence per line, an empty line between documents: the usual form of corpora for language models. A
 * file is read so when at most one line in eight has the end of a sentence inside it. prose   All others. A sentence
 * ends at . ! ? (and closing quotes, brackets) before white space, unless a lower-case letter follows, or it is an
 * initial or a common abbreviation; at an ideographic full stop; and at an empty line. The end of a line is a space.
 * The file is a document; where it is the whole corpus, an empty line ends a document here, too.
 *
 * A sentence of more than 16 kB is cut, at white space when there is some. Sentences are spans of the file, without
 * white space around them, and never empty; together they are all that is not white space.
 */
#ifndef LS_DATA_READERS_SENTENCES_H
#define LS_DATA_READERS_SENTENCES_H

#include <stddef.h>

enum { LS_SENTENCE_BYTES_MAX = 16384 };

typedef struct ls_sentence_reader {
	const char *text;
	size_t bytes, at;
	int lines;      /* one sentence per line */
	int blank_ends; /* an empty line ends the document */
	int starts;     /* the next sentence is the first of a document */
} ls_sentence_reader;

typedef struct ls_sentence {
	size_t begin, bytes;
	int first; /* of a document */
} ls_sentence;

/* `alone`: the file is the whole corpus. */
void ls_sentence_reader_begin(ls_sentence_reader *prose, const char *text, size_t bytes, int alone);

/* The next sentence; 0 when there is none. */
int ls_sentence_reader_next(ls_sentence_reader *prose, ls_sentence *out);

#endif
