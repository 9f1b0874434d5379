#include "tokenizer/wordpiece.h"

#include <stdlib.h>

#include "base/array.h"
#include "tokenizer/basic_tokenizer.h"

struct ls_wordpiece {
	const ls_vocab *vocab;
	ls_wordpiece_options options;
	int32_t unknown;
};

ls_status ls_wordpiece_new(ls_wordpiece **out, const ls_vocab *vocab, const ls_wordpiece_options *options)
{
	ls_wordpiece_options o = options ? *options : (ls_wordpiece_options){ 0 };
	o.word_max = o.word_max ? o.word_max : LS_WORD_MAX_DEFAULT;
	if (o.word_max < 1 || o.word_max > LS_WORD_MAX_LIMIT)
		return ls_fail(LS_EINVALID, "words of at most %d characters; 1 to %d is possible", o.word_max,
			       LS_WORD_MAX_LIMIT);
	ls_wordpiece *wordpiece = malloc(sizeof(*wordpiece));
	if (!wordpiece)
		return ls_fail(LS_EMEMORY, "no memory for a tokenizer");
	*wordpiece = (ls_wordpiece){ vocab, o, ls_vocab_special(vocab)->unk };
	*out = wordpiece;
	return LS_OK;
}

void ls_wordpiece_free(ls_wordpiece *wordpiece)
{
	free(wordpiece);
}

ls_status ls_tokens_add(ls_tokens *tokens, int32_t id)
{
	LS_TRY(ls_array_grow(&tokens->ids, &tokens->capacity, tokens->count + 1, sizeof(*tokens->ids)));
	tokens->ids[tokens->count++] = id;
	return LS_OK;
}

void ls_tokens_free(ls_tokens *tokens)
{
	free(tokens->ids);
	*tokens = (ls_tokens){ 0 };
}

typedef struct encode {
	const ls_wordpiece *wordpiece;
	ls_tokens *tokens;
} encode;

/* A special token is a piece as it is, so nothing need be done about its kind. */
static ls_status encode_word(void *context, const char *word, size_t bytes, ls_word_kind kind)
{
	encode *e = context;
	size_t first = e->tokens->count, used;
	if (kind == LS_WORD_LONG)
		return ls_tokens_add(e->tokens, e->wordpiece->unknown);
	for (size_t at = 0; at < bytes; at += used) {
		int32_t id = ls_vocab_longest(e->wordpiece->vocab, word + at, bytes - at, at > 0, &used);
		if (id < 0) {
			e->tokens->count = first;
			return ls_tokens_add(e->tokens, e->wordpiece->unknown);
		}
		LS_TRY(ls_tokens_add(e->tokens, id));
	}
	return LS_OK;
}

ls_status ls_wordpiece_encode(const ls_wordpiece *wordpiece, const char *text, size_t bytes, ls_tokens *append_to)
{
	encode e = { wordpiece, append_to };
	const ls_wordpiece_options *o = &wordpiece->options;
	ls_basic basic = { o->cased, o->replace_invalid, o->word_max, encode_word, &e };
	size_t before = append_to->count;
	ls_status status = ls_basic_split(&basic, text, bytes);
	if (status != LS_OK)
		append_to->count = before;
	return status;
}
