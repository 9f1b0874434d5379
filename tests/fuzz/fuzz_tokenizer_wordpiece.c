/*
 * Any bytes as a text, in every mode: ids of the vocabulary, or an error that names a byte. A vocabulary learnt from
 * the text writes all of its words that are not too long.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/learn_vocab.h"
#include "tokenizer/wordpiece.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

/* The first byte has the options; the rest is the text. */
static void encode(const ls_vocab *vocab, ls_wordpiece_options options, const char *text, size_t size, int all_known)
{
	ls_wordpiece *wordpiece;
	ls_tokens tokens = { 0 };
	size_t byte = 0, unknown = 0;
	require(ls_wordpiece_new(&wordpiece, vocab, &options) == LS_OK);
	if (ls_wordpiece_encode(wordpiece, text, size, &tokens) != LS_OK) {
		require(!options.replace_invalid && tokens.count == 0);
		require(sscanf(ls_last_error(), "byte %zu (line ", &byte) == 1 && byte < size);
	}
	for (size_t i = 0; i < tokens.count; i++) {
		require(ls_vocab_piece(vocab, tokens.ids[i]) != NULL);
		unknown += tokens.ids[i] == ls_vocab_special(vocab)->unk;
	}
	require(tokens.count <= 4 * size); /* a character has at most four parts */
	require(!all_known || unknown == 0);
	ls_tokens_free(&tokens);
	ls_wordpiece_free(wordpiece);
}

static int may_be_unknown(const char *text, size_t size)
{
	return size > 100 || memmem(text, size, "[", 1); /* a long word, or [UNK] itself */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const pieces[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",
					      "##a",   "ab",    ".",     "##b",   "b",      "\xC3\xA9" };
	ls_vocab *vocab;
	ls_learner *learner;
	if (!size)
		return 0;
	const char *text = (const char *)data + 1;
	ls_wordpiece_options o = { data[0] & 1, data[0] >> 1 & 1, data[0] >> 2 & 15 };
	require(ls_vocab_new(&vocab, pieces, sizeof(pieces) / sizeof(pieces[0])) == LS_OK);
	encode(vocab, o, text, size - 1, 0);
	ls_vocab_free(vocab);

	ls_learn_options learn = { .size = 3000, .cased = o.cased, .replace_invalid = 1, .alphabet_max = 1u << 20 };
	require(ls_learner_new(&learner, &learn) == LS_OK);
	require(ls_learner_add(learner, text, size - 1) == LS_OK);
	if (ls_learner_finish(learner, &vocab) == LS_OK) {
		o = (ls_wordpiece_options){ o.cased, 1, 0 };
		encode(vocab, o, text, size - 1, !may_be_unknown(text, size - 1));
		ls_vocab_free(vocab);
	}
	ls_learner_free(learner);
	return 0;
}
