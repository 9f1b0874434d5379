/*
 * Any bytes as a tokenized corpus: refused, or one whose offsets lie inside it. The header's checksum is put right
 * first, or nothing behind it would ever be reached. And any bytes as prose: sentences in order, inside the text, none
 * empty.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "data/readers/corpus.h"
#include "data/readers/sentences.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const ls_corpus *c)
{
	uint64_t sum = 0, sentences = 0;
	for (uint64_t d = 0; d < c->counts.documents; d++)
		for (uint64_t s = c->document[d]; s < c->document[d + 1]; s++, sentences++)
			for (uint64_t t = c->sentence[s]; t < c->sentence[s + 1]; t++)
				sum += (uint64_t)ls_corpus_token(c, t);
	if (sentences != c->counts.sentences || sum == UINT64_MAX)
		abort();
}

static void parse(const uint8_t *data, size_t size)
{
	uint64_t *copy = malloc(size ? size : 1); /* aligned, as a map is */
	ls_corpus corpus;
	if (!copy)
		return;
	memcpy(copy, data, size);
	if (size >= LS_CORPUS_HEADER) {
		memcpy(copy, "LSTOKENS", 8);
		copy[LS_CORPUS_HEADER / 8 - 1] = XXH64(copy, LS_CORPUS_HEADER - 8, 0);
	}
	if (ls_corpus_parse(&corpus, (const uint8_t *)copy, size, "input") == LS_OK)
		walk(&corpus);
	free(copy);
}

static void read_prose(const char *text, size_t size, int alone)
{
	ls_sentence_reader prose;
	ls_sentence s;
	size_t last = 0;
	ls_sentence_reader_begin(&prose, text, size, alone);
	while (ls_sentence_reader_next(&prose, &s)) {
		if (!s.bytes || s.begin < last || s.bytes > size - s.begin)
			abort();
		last = s.begin + s.bytes;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	parse(data, size);
	read_prose((const char *)data, size, 0);
	read_prose((const char *)data, size, 1);
	return 0;
}
