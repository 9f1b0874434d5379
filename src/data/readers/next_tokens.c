/*
 * next_tokens.c - a text corpus as examples for language models: consecutive tokens, each of which predicts the next.
 *
 * The texts of all documents are one stream, in which a document begins with the piece that ends a text. A sample is
 * `tokens` tokens of it, and the token behind each; samples lie side by side and no token is padding. Every 20th
 * document is for testing; with fewer documents, the last one; with one document, the last twentieth of it. In training
 * the first sample of an epoch begins at a place drawn by (seed, epoch), less than a sample behind the beginning, so
 * that an epoch cuts the text at other places than the one before.
 */
#include <lockstep/text.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rng.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/corpus.h"

enum { TOKENS_MIN = 2, TOKENS_USUAL = 256 };

/* Tokens [begin, begin + tokens) of the corpus; `before` tokens of the stream lie before them. */
typedef struct span {
	uint64_t begin, tokens, before;
} span;

typedef struct next_tokens {
	ls_corpus corpus;
	uint64_t seed;
	ls_split split;
	int tokens;
	span *spans;
	size_t count;
	uint64_t stream, samples;
} next_tokens;

static void set_free(void *self)
{
	next_tokens *set = self;
	ls_corpus_close(&set->corpus);
	free(set->spans);
	free(set);
}

/* ---- the stream -------------------------------------------------------------------------------------------------- */

static void add_span(next_tokens *set, uint64_t begin, uint64_t end)
{
	if (end == begin)
		return;
	set->spans[set->count++] = (span){ begin, end - begin, set->stream };
	set->stream += end - begin;
}

/* Of a single document the last twentieth is for testing: at least one sample, and at most half of the text. */
static uint64_t cut_place(const next_tokens *set)
{
	uint64_t tokens = set->corpus.counts.tokens, test = (tokens + LS_CORPUS_TEST_EVERY - 1) / LS_CORPUS_TEST_EVERY;
	uint64_t least = (uint64_t)set->tokens + 1;
	if (test < least)
		test = least <= tokens / 2 ? least : tokens / 2;
	return tokens - test;
}

static ls_status lay_out(next_tokens *set)
{
	const ls_corpus *c = &set->corpus;
	uint64_t documents = c->counts.documents;
	int wants_test = set->split == LS_SPLIT_TEST;

	set->spans = calloc(documents ? documents : 1, sizeof(*set->spans));
	if (!set->spans)
		return ls_fail(LS_EMEMORY, "no memory for %llu documents", (unsigned long long)documents);
	if (documents == 1) {
		uint64_t cut = cut_place(set);
		add_span(set, wants_test ? cut : 0, wants_test ? c->counts.tokens : cut);
		return LS_OK;
	}
	for (uint64_t d = 0; d < documents; d++)
		if (ls_corpus_is_test(d, documents) == wants_test)
			add_span(set, c->sentence[c->document[d]], c->sentence[c->document[d + 1]]);
	return LS_OK;
}

/* All samples fit wherever the first one of an epoch starts, and the last one has a token after it to predict. */
static uint64_t count_samples(const next_tokens *set)
{
	uint64_t each = (uint64_t)set->tokens, most = set->stream ? (set->stream - 1) / each : 0;
	return set->split == LS_SPLIT_TRAIN && most > 1 ? most - 1 : most;
}

static uint64_t first_place(const next_tokens *set, uint64_t epoch)
{
	uint64_t each = (uint64_t)set->tokens;
	if (set->split == LS_SPLIT_TEST || (set->stream - 1) / each < 2)
		return 0;
	uint32_t words[4];
	ls_rng_words(ls_rng_make(set->seed, LS_RNG_CUT, epoch), 0, 0, words);
	return ls_rng_below(words[0], (uint32_t)each);
}

/* The span that place `at` of the stream is in. */
static size_t find_span(const next_tokens *set, uint64_t at)
{
	size_t low = 0, high = set->count;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (set->spans[middle].before <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* `count` tokens of the stream from `at` on. */
static void copy_stream(const next_tokens *set, uint64_t at, int count, int32_t *to)
{
	const span *s = &set->spans[find_span(set, at)];
	uint64_t inside = at - s->before;
	for (int i = 0; i < count; i++, inside++) {
		if (inside == s->tokens) {
			s++;
			inside = 0;
		}
		to[i] = ls_corpus_token(&set->corpus, s->begin + inside);
	}
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static ls_status set_check(void *self)
{
	const next_tokens *set = self;
	return ls_file_map_check(&set->corpus.map);
}

static ls_status set_read(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	const next_tokens *set = self;
	uint64_t at = first_place(set, epoch) + index * (uint64_t)set->tokens;

	out->length = set->tokens;
	copy_stream(set, at, set->tokens, out->tokens);
	copy_stream(set, at + 1, set->tokens, out->targets);
	memset(out->segments, 0, (size_t)set->tokens * sizeof(*out->segments));
	LS_TRY(ls_text_sample_set_targets(out, out->targets));
	return ls_file_map_lost(&set->corpus.map) ? set_check(self) : LS_OK;
}

static ls_status set_measure(void *self, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	(void)index, (void)epoch;
	*length = *masked = ((const next_tokens *)self)->tokens;
	return LS_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static ls_status describe(const next_tokens *set, const ls_tokenizer *tokenizer, const ls_dataset_options *options,
			  ls_dataset_info *info)
{

	if (set->samples == 0)
		return ls_fail(
			LS_ENOTFOUND,
			"%s has %llu tokens to %s%s, and a sample needs %d: use more text or a smaller options.seq_len",
			options->name, (unsigned long long)set->stream,
			set->split == LS_SPLIT_TRAIN ? "train on" : "test on",
			set->split == LS_SPLIT_TEST && set->corpus.counts.documents > 1
				? " (of fewer than 20 files, the last one)"
				: "",
			set->tokens + 1);
	*info = (ls_dataset_info){ .samples = set->samples,
				   .classes = 1,
				   .tokens_max = set->tokens,
				   .vocabulary = (int)ls_tokenizer_size(tokenizer),
				   .masked_max = set->tokens,
				   .vocabulary_hash = ls_tokenizer_hash(tokenizer),
				   .text_hash = set->corpus.hash };
	ls_corpus_name(info->name, sizeof(info->name), options->name);
	return LS_OK;
}

static ls_status set_open(ls_dataset **out, const char *path, const ls_tokenizer *tokenizer,
			  const ls_dataset_options *options)
{
	static const ls_dataset_ops ops = { .read_text = set_read, .measure_text = set_measure, .free = set_free };
	next_tokens *set = calloc(1, sizeof(*set));
	if (!set)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%s'", options->name);
	set->seed = options->seed;
	set->split = options->split;
	set->tokens = options->tokens ? options->tokens : TOKENS_USUAL;
	ls_dataset_info info;
	ls_status status = ls_corpus_load(&set->corpus, path, tokenizer, options);
	if (!status)
		status = lay_out(set);
	if (!status) {
		set->samples = count_samples(set);
		if (options->samples && options->samples < set->samples)
			set->samples = options->samples;
		status = describe(set, tokenizer, options, &info);
	}
	if (!status)
		status = set_check(set);
	if (!status)
		status = ls_dataset_new(out, &info, &ops, set);
	if (!status)
		(*out)->check = set_check;
	else
		set_free(set);
	return status;
}

ls_status ls_next_tokens_open(ls_dataset **out, const char *path, const ls_dataset_options *options)
{
	return ls_corpus_open_with(out, path, options, TOKENS_MIN, "", set_open);
}

const ls_corpus *ls_next_tokens_corpus(const ls_dataset *dataset)
{
	return dataset->ops.read_text == set_read ? &((const next_tokens *)dataset->self)->corpus : NULL;
}
