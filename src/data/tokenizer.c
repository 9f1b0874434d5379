#include "data/tokenizer.h"

#include "base/files.h"
#include "text/chars.h"

ls_status ls_tokenizer_open(ls_tokenizer *tokenizer, const ls_dataset_options *options, const char *beside,
			    const char *hint)
{
	char path[4096];
	const ls_wordpiece_options how = { .cased = options->cased, .replace_invalid = options->replace_invalid };
	*tokenizer = (ls_tokenizer){ 0 };
	LS_TRY(ls_path_join(path, sizeof(path), beside, "vocab.txt"));
	if (!options->vocab && !ls_path_exists(path))
		return ls_fail(LS_ENOTFOUND, "there is no vocabulary %s; %s", path, hint);
	LS_TRY(ls_vocab_load(&tokenizer->vocab, options->vocab ? options->vocab : path));
	ls_status status = ls_wordpiece_new(&tokenizer->wordpiece, tokenizer->vocab, &how);
	if (status) {
		ls_tokenizer_close(tokenizer);
		return status;
	}
	const ls_special *s = ls_vocab_special(tokenizer->vocab);
	tokenizer->special = (ls_special_ids){ s->pad, s->unk, s->cls, s->sep, s->mask };
	return LS_OK;
}

void ls_tokenizer_close(ls_tokenizer *tokenizer)
{
	if (tokenizer->wordpiece)
		ls_wordpiece_free(tokenizer->wordpiece);
	if (tokenizer->vocab)
		ls_vocab_free(tokenizer->vocab);
	*tokenizer = (ls_tokenizer){ 0 };
}

size_t ls_text_invalid(const char *text, size_t bytes)
{
	size_t at = 0;
	while (at < bytes) {
		int32_t c;
		size_t used = (unsigned char)text[at] < 0x80 ? 1 : ls_char_decode(text + at, bytes - at, &c);
		if (!used)
			return at;
		at += used;
	}
	return bytes;
}
