#include "data/text_input.h"

#include "base/files.h"
#include "base/log.h"
#include "tokenizer/unicode.h"

static int has_between(const char *text, char first, char last)
{
	for (; *text; text++)
		if (*text >= first && *text <= last)
			return 1;
	return 0;
}

/* Special pieces such as [CLS] do not count. Vocabularies of scripts without case count as cased. */
static int is_lower_case(const ls_vocab *vocab)
{
	int lower = 0;
	for (int32_t id = 0; id < (int32_t)ls_vocab_size(vocab); id++) {
		const char *piece = ls_vocab_piece(vocab, id);
		if (piece[0] != '[' && has_between(piece, 'A', 'Z'))
			return 0;
		lower |= has_between(piece, 'a', 'z');
	}
	return lower;
}

static void warn_of_case(const ls_vocab *vocab, const char *path, const ls_dataset_options *options)
{
	if (options->cased && options->split == LS_SPLIT_TRAIN && is_lower_case(vocab))
		ls_log_warning(
			"options.cased: the vocabulary %s has no capital letters, so every word with one becomes "
			"[UNK]; omit options.cased, or use a vocabulary that was made with options.cased",
			path);
}

ls_status ls_vocabulary_of(char *out, size_t size, const char *directory, int next_token)
{
	LS_TRY(ls_path_join(out, size, directory, next_token ? LS_BPE_VOCAB : "vocab.txt"));
	if (next_token && !ls_path_exists(out))
		snprintf(out, size, LS_BPE_BYTES);
	return LS_OK;
}

static ls_status open_bpe(ls_tokenizer *tokenizer, const ls_dataset_options *options, const char *beside)
{
	char path[4096];

	LS_TRY(ls_vocabulary_of(path, sizeof(path), beside, 1));
	const char *file = options->vocab ? options->vocab : path;
	if (!ls_bpe_is(file))
		return ls_fail(LS_EINVALID,
			       "%s is no vocabulary for a language model: name a directory with " LS_BPE_VOCAB
			       " and " LS_BPE_MERGES ", a " LS_BPE_VOCAB " of characters, or " LS_BPE_BYTES,
			       file);
	LS_TRY(ls_bpe_load(&tokenizer->bpe, file));
	tokenizer->special = (ls_special){ -1, -1, -1, -1, -1 };
	return LS_OK;
}

ls_status ls_tokenizer_open(ls_tokenizer *tokenizer, const ls_dataset_options *options, const char *beside,
			    const char *hint)
{
	char path[4096];
	const ls_wordpiece_options how = { .cased = options->cased, .replace_invalid = options->replace_invalid };
	*tokenizer = (ls_tokenizer){ 0 };
	if (options->next_token)
		return open_bpe(tokenizer, options, beside);
	if (options->vocab && ls_bpe_is(options->vocab))
		return ls_fail(LS_EINVALID,
			       "%s is a vocabulary for language models, such as gpt-nano; this model takes a vocab.txt",
			       options->vocab);
	LS_TRY(ls_vocabulary_of(path, sizeof(path), beside, 0));
	if (!options->vocab && !ls_path_exists(path))
		return ls_fail(LS_ENOTFOUND, "there is no vocabulary %s; %s", path, hint);
	const char *file = options->vocab ? options->vocab : path;
	LS_TRY(ls_vocab_load(&tokenizer->vocab, file));
	warn_of_case(tokenizer->vocab, file, options);
	ls_status status = ls_wordpiece_new(&tokenizer->wordpiece, tokenizer->vocab, &how);
	if (status) {
		ls_tokenizer_close(tokenizer);
		return status;
	}
	tokenizer->special = *ls_vocab_special(tokenizer->vocab);
	return LS_OK;
}

void ls_tokenizer_close(ls_tokenizer *tokenizer)
{
	if (tokenizer->wordpiece)
		ls_wordpiece_free(tokenizer->wordpiece);
	if (tokenizer->vocab)
		ls_vocab_free(tokenizer->vocab);
	ls_bpe_free(tokenizer->bpe);
	*tokenizer = (ls_tokenizer){ 0 };
}

size_t ls_tokenizer_size(const ls_tokenizer *tokenizer)
{
	return tokenizer->bpe ? ls_bpe_size(tokenizer->bpe) : ls_vocab_size(tokenizer->vocab);
}

uint64_t ls_tokenizer_hash(const ls_tokenizer *tokenizer)
{
	return tokenizer->bpe ? ls_bpe_hash(tokenizer->bpe) : ls_vocab_hash(tokenizer->vocab);
}

ls_status ls_vocabulary_describe(const char *path, int *pieces, uint64_t *hash)
{
	ls_tokenizer t = { 0 };

	LS_TRY(ls_bpe_is(path) ? ls_bpe_load(&t.bpe, path) : ls_vocab_load(&t.vocab, path));
	*pieces = (int)ls_tokenizer_size(&t);
	*hash = ls_tokenizer_hash(&t);
	ls_tokenizer_close(&t);
	return LS_OK;
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
