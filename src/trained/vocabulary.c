#include "trained/vocabulary.h"

#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "data/dataset.h"
#include "data/readers/corpus.h"
#include "data/readers/image_list.h"
#include "data/readers/table_files.h"
#include "data/text_input.h"
#include "settings/model.h"
#include "tokenizer/bpe.h"
#include "tokenizer/vocab.h"
#include "trained/weights.h"

#define COPY "vocab.txt"

ls_status ls_vocabulary_beside(char *out, size_t size, const ls_train_options *o)
{
	char directory[4096];
	if (ls_dataset_row_of(o->data))
		LS_TRY(ls_data_directory(directory, sizeof(directory), o->data_dir, o->data));
	else
		LS_TRY(ls_corpus_home(directory, sizeof(directory), o->data));
	return ls_vocabulary_of(out, size, directory, ls_train_predicts_next(o));
}

static ls_status copy_bpe_if_same(const char *from, uint64_t hash, const char *run, int *copied)
{
	ls_bpe *bpe = NULL;
	LS_TRY(ls_bpe_load(&bpe, from));
	*copied = ls_bpe_hash(bpe) == hash;
	ls_status status = *copied ? ls_bpe_save(bpe, run) : LS_OK;
	ls_bpe_free(bpe);
	return status;
}

/* Another file may be there by now: compare the hash. */
static ls_status copy_if_same(const char *from, uint64_t hash, const char *run, const char *to, int *copied)
{
	ls_vocab *vocab = NULL;
	if (ls_bpe_is(from))
		return copy_bpe_if_same(from, hash, run, copied);
	LS_TRY(ls_vocab_load(&vocab, from));
	*copied = ls_vocab_hash(vocab) == hash;
	ls_status status = *copied ? ls_vocab_save(vocab, to) : LS_OK;
	ls_vocab_free(vocab);
	return status;
}

/* The run has this vocabulary; another one, or half of one, is replaced. */
static int is_kept(const char *path, uint64_t hash)
{
	int pieces;
	uint64_t found;
	return ls_path_exists(path) && ls_vocabulary_describe(path, &pieces, &found) == LS_OK && found == hash;
}

ls_status ls_vocabulary_keep(const ls_train_options *o, uint64_t hash)
{
	char from[4096] = "", to[4096];
	int copied = 0;

	LS_TRY(ls_path_join(to, sizeof(to), o->run, ls_train_predicts_next(o) ? LS_BPE_VOCAB : COPY));
	if (hash == 0 || is_kept(to, hash))
		return LS_OK;
	if (o->vocab)
		snprintf(from, sizeof(from), "%s", o->vocab);
	else if (!o->train_set)
		LS_TRY(ls_vocabulary_beside(from, sizeof(from), o));
	if (from[0] != '\0' && (ls_path_exists(from) || ls_bpe_is(from)))
		LS_TRY(copy_if_same(from, hash, o->run, to, &copied));
	if (!copied)
		ls_log_warning("the vocabulary is not copied to %s: no file with xxh64 %016llx was found%s%s", to,
			       (unsigned long long)hash, from[0] != '\0' ? " at " : "", from);
	return LS_OK;
}

void ls_vocabulary_find(char *out, size_t size, const char *run)
{
	static const char *const names[] = { COPY, LS_BPE_VOCAB };

	for (size_t i = 0; run[0] != '\0' && i < sizeof(names) / sizeof(names[0]); i++)
		if (ls_path_join(out, size, run, names[i]) == LS_OK && ls_path_exists(out))
			return;
	out[0] = '\0';
}

void ls_vocabulary_choose(char *out, size_t size, const ls_train_options *o)
{
	ls_weights weights = { .run = "" };

	out[0] = '\0';
	if (o->vocab || !ls_train_needs_vocabulary(o))
		return;
	if (o->resume && o->run)
		ls_vocabulary_find(out, size, o->run);
	else if (o->init && ls_weights_find(&weights, o->init, 0) == LS_OK) /* else reported when they are read */
		ls_vocabulary_find(out, size, weights.run[0] != '\0' ? weights.run : weights.home);
}
