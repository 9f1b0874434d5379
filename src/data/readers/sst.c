/*
 * sst.c - sst5, the treebank as a dataset: [CLS] sentence [SEP] and its sentiment class.
 *
 * Everything is tokenized when it is opened, word by word: the tokenizer works word by word, too, so the tokens of a
 * phrase are a run of its sentence's tokens, and a phrase is two numbers and a label. A file of 8,544 sentences and
 * 318,582 phrases takes 0.2 MB of tokens and 4 MB of phrases.
 *
 * The longest sample is the longest sentence of all three files, in either split, so that a model made for one fits the
 * other.
 */
#include "data/readers/sst.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/trees.h"
#include "data/text_input.h"

#define TOKENS_MIN 8
#define FRAME 2               /* [CLS] and [SEP] */
#define LENGTH_MAX UINT16_MAX /* range of sst_sample.length; LS_TOKENS_MAX - 1 */

const ls_sst_file ls_sst_files[LS_SST_FILES] = { { "train.txt", 8544 }, { "dev.txt", 1101 }, { "test.txt", 2210 } };

typedef struct sst_sample {
	uint32_t first; /* of tokens.ids */
	uint16_t length;
	uint16_t label;
} sst_sample;
_Static_assert(sizeof(sst_sample) == 8, "samples are hashed as bytes");

typedef struct sst {
	ls_special special;
	ls_tokens tokens; /* of all sentences */
	sst_sample *samples;
	size_t count, room;
	int tokens_max;
	ls_corpus_counts counts;
} sst;

/* What is found while a file is read. */
typedef struct reading {
	const ls_tokenizer *tokenizer;
	const char *path;
	sst *into;          /* keep samples; NULL: only find the longest */
	int phrases, limit; /* limit: maximum tokens per sample */
	ls_tree tree;
	uint32_t *place; /* (words + 1) in the sentence's tokens */
	size_t place_room;
	ls_tokens tokens; /* of the sentence */
	int longest;      /* before any was cut */
	uint64_t cut, sentences;
} reading;

static void sst_free(void *self)
{
	sst *s = self;
	ls_tokens_free(&s->tokens);
	free(s->samples);
	free(s);
}

static ls_status sst_read(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	const sst *s = self;
	const sst_sample *sample = &s->samples[index];
	(void)epoch;
	out->length = sample->length;
	out->masked = 0;
	out->label = sample->label;
	out->tokens[0] = s->special.cls;
	memcpy(out->tokens + 1, s->tokens.ids + sample->first, (size_t)(sample->length - FRAME) * sizeof(int32_t));
	out->tokens[sample->length - 1] = s->special.sep;
	memset(out->segments, 0, (size_t)sample->length * sizeof(int32_t));
	return LS_OK;
}

static ls_status sst_measure(void *self, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	const sst *s = self;
	(void)epoch;
	*length = s->samples[index].length;
	*masked = 0;
	return LS_OK;
}

/* The tokens of every word of the tree. */
static ls_status tokenize_tree(reading *r, uint64_t line)
{
	const ls_tree *tree = &r->tree;
	LS_TRY(ls_array_grow(&r->place, &r->place_room, tree->words + 1, sizeof(*r->place)));
	r->tokens.count = 0;
	for (size_t i = 0; i < tree->words; i++) {
		size_t bytes = tree->word[i + 1] - 1 - tree->word[i];
		r->place[i] = (uint32_t)r->tokens.count;
		ls_status status =
			ls_wordpiece_encode(r->tokenizer->wordpiece, tree->text + tree->word[i], bytes, &r->tokens);
		if (status == LS_EFORMAT)
			return ls_fail(LS_EFORMAT,
				       "%s:%llu: word %zu is not UTF-8: convert the file, or let it be "
				       "replaced with options.replace_invalid",
				       r->path, (unsigned long long)line, i + 1);
		LS_TRY(status);
	}
	r->place[tree->words] = (uint32_t)r->tokens.count;
	return LS_OK;
}

static ls_status keep_phrase(reading *r, const ls_phrase *phrase, size_t base)
{
	sst *s = r->into;
	size_t first = r->place[phrase->first], end = r->place[phrase->first + phrase->words];
	size_t length = end - first + FRAME;
	r->cut += length > (size_t)r->limit;
	length = length < (size_t)r->limit ? length : (size_t)r->limit;
	LS_TRY(ls_array_grow(&s->samples, &s->room, s->count + 1, sizeof(*s->samples)));
	s->samples[s->count++] = (sst_sample){ (uint32_t)(base + first), (uint16_t)length, (uint16_t)phrase->label };
	return LS_OK;
}

static ls_status keep_tree(reading *r)
{
	sst *s = r->into;
	size_t base = s->tokens.count;
	s->counts.sentences++;
	s->counts.bytes += r->tree.bytes;
	s->counts.tokens += r->tokens.count;
	for (size_t i = 0; i < r->tokens.count; i++)
		s->counts.unknown += r->tokens.ids[i] == s->special.unk;
	for (size_t i = 0; i < r->tokens.count; i++)
		LS_TRY(ls_tokens_add(&s->tokens, r->tokens.ids[i]));
	for (size_t i = 0; i < (r->phrases ? r->tree.count : 1); i++)
		LS_TRY(keep_phrase(r, &r->tree.phrases[i], base));
	return LS_OK;
}

static ls_status read_trees(reading *r, const char *text, size_t bytes)
{
	const char *line;
	size_t at = 0, length;
	uint64_t number = 0;
	while ((line = ls_tree_line(text, bytes, &at, &number, &length))) {
		LS_TRY(ls_tree_read(&r->tree, line, length, r->path, number));
		LS_TRY(tokenize_tree(r, number));
		if (r->tokens.count + FRAME > LENGTH_MAX)
			return ls_fail(LS_EFORMAT, "%s:%llu: a sentence of %zu tokens", r->path,
				       (unsigned long long)number, r->tokens.count);
		int framed = (int)r->tokens.count + FRAME;
		r->longest = framed > r->longest ? framed : r->longest;
		r->sentences++;
		if (r->into)
			LS_TRY(keep_tree(r));
	}
	return LS_OK;
}

/* Read one of the files; its longest sentence goes into *longest. */
static ls_status read_file(reading *r, const char *dir, int file, int *longest)
{
	char path[4096];
	ls_file_map map;
	LS_TRY(ls_path_join(path, sizeof(path), dir, ls_sst_files[file].name));
	LS_TRY(ls_file_map_open(&map, path));
	r->path = path;
	ls_status status = read_trees(r, (const char *)map.data, map.bytes);
	status = ls_file_map_end(&map, status);
	ls_tree_free(&r->tree);
	ls_tokens_free(&r->tokens);
	free(r->place);
	if (!status && !r->sentences)
		status = ls_fail(LS_EFORMAT, "%s has no trees", path);
	*longest = r->longest > *longest ? r->longest : *longest;
	return status;
}

/* The split's file is kept, the others only measured; dev.txt is not used and may be missing. */
static ls_status read_files(sst *s, const ls_tokenizer *tokenizer, const char *dir, const ls_dataset_options *options)
{
	int wanted = options->split == LS_SPLIT_TRAIN ? LS_SST_TRAIN : LS_SST_TEST, longest = 0;
	for (int file = 0; file < LS_SST_FILES; file++) {
		reading r = { .tokenizer = tokenizer,
			      .into = file == wanted ? s : NULL,
			      .phrases = options->phrases && file == LS_SST_TRAIN,
			      .limit = options->tokens ? options->tokens : LENGTH_MAX };
		ls_status status = read_file(&r, dir, file, &longest);
		if (status && !(status == LS_ENOTFOUND && file == LS_SST_DEV))
			return status;
		if (r.cut)
			ls_log_warning("sst5: %llu of %zu %s of %s have more than the %d tokens of options.seq_len and "
				       "were cut; "
				       "the longest has %d",
				       (unsigned long long)r.cut, s->count, r.phrases ? "phrases" : "sentences",
				       ls_sst_files[file].name, options->tokens, r.longest);
	}
	s->tokens_max = options->tokens && options->tokens < longest ? options->tokens : longest;
	return LS_OK;
}

/* Keep `samples` of them, evenly: the files begin with good reviews and end with bad ones. */
static void spread(sst *s, uint64_t samples)
{
	if (!samples || samples >= s->count)
		return;
	for (uint64_t i = 0; i < samples; i++)
		s->samples[i] = s->samples[i * s->count / samples];
	s->count = (size_t)samples;
}

/* Tokens, and which of them make samples, with which labels. A sample has no padding bytes. */
static uint64_t hash_samples(const sst *s)
{
	uint64_t tokens = XXH64(s->tokens.ids, s->tokens.count * sizeof(*s->tokens.ids), 0);
	return XXH64(s->samples, s->count * sizeof(*s->samples), tokens);
}

static ls_dataset_info sst_describe(const sst *s, const ls_tokenizer *tokenizer)
{
	ls_dataset_info info = { .name = "sst5",
				 .samples = s->count,
				 .classes = LS_TREE_LABELS,
				 .tokens_max = s->tokens_max,
				 .vocabulary = (int)ls_vocab_size(tokenizer->vocab),
				 .vocabulary_hash = ls_vocab_hash(tokenizer->vocab),
				 .text_hash = hash_samples(s) };
	return info;
}

static ls_status sst_open(ls_dataset **out, const char *dir, const ls_dataset_options *options)
{
	static const ls_dataset_ops ops = { .read_text = sst_read, .measure_text = sst_measure, .free = sst_free };
	ls_tokenizer tokenizer;
	LS_TRY(ls_tokenizer_open(&tokenizer, options, dir,
				 "`lockstep data get sst5` learns one; or name one with options.vocab"));
	sst *s = calloc(1, sizeof(*s));
	ls_status status = s ? LS_OK : ls_fail(LS_EMEMORY, "no memory for dataset 'sst5'");
	if (!status) {
		s->special = tokenizer.special;
		status = read_files(s, &tokenizer, dir, options);
	}
	if (!status) {
		spread(s, options->samples);
		ls_dataset_info info = sst_describe(s, &tokenizer);
		status = ls_dataset_new(out, &info, &ops, s);
	}
	if (!status && options->split == LS_SPLIT_TRAIN)
		ls_corpus_warn_unknown("sst5", &s->counts);
	if (status && s)
		sst_free(s);
	ls_tokenizer_close(&tokenizer);
	return status;
}

ls_status ls_sst_open(ls_dataset **out, const ls_dataset_options *options)
{
	char dir[4096], train[4096];
	if (options->next_token)
		return ls_fail(LS_EMISMATCH,
			       "sst5 is sentences with labels, for transformer and bert models; a language model takes "
			       "babble, sotu or texts");
	if (options->tokens && options->tokens < TOKENS_MIN)
		return ls_fail(LS_EINVALID, "sst5: samples of %d tokens (options.seq_len); they need at least %d",
			       options->tokens, TOKENS_MIN);
	LS_TRY(ls_data_directory(dir, sizeof(dir), options->dir, "sst5"));
	LS_TRY(ls_path_join(train, sizeof(train), dir, ls_sst_files[LS_SST_TRAIN].name));
	if (!ls_path_exists(train))
		return ls_fail(LS_ENOTFOUND,
			       "sst5 is not on this machine: there is no %s; run `lockstep data get sst5` or use "
			       "`options.data babble`",
			       train);
	return sst_open(out, dir, options);
}

int ls_sst_counts(const ls_dataset *dataset, ls_corpus_counts *out)
{
	if (dataset->ops.read_text != sst_read)
		return 0;
	*out = ((const sst *)dataset->self)->counts;
	return 1;
}

int ls_sst_is(const char *dir)
{
	char train[4096], test[4096];
	ls_file_map map;
	if (ls_path_join(train, sizeof(train), dir, ls_sst_files[LS_SST_TRAIN].name) != LS_OK ||
	    ls_path_join(test, sizeof(test), dir, ls_sst_files[LS_SST_TEST].name) != LS_OK || !ls_path_exists(train) ||
	    !ls_path_exists(test) || ls_file_map_open(&map, train) != LS_OK)
		return 0;
	int tree = map.bytes > 2 && map.data[0] == '(' && map.data[1] >= '0' && map.data[1] <= '4' &&
		   (map.data[2] == ' ' || map.data[2] == '(');
	ls_file_map_close(&map);
	return tree;
}

ls_status ls_sst_check(const char *text, size_t bytes, const char *name, FILE *to, uint64_t *count)
{
	ls_tree tree = { 0 };
	ls_status status = LS_OK;
	const char *line;
	size_t at = 0, length;
	uint64_t number = 0;
	*count = 0;
	while (!status && (line = ls_tree_line(text, bytes, &at, &number, &length))) {
		status = ls_tree_read(&tree, line, length, name, number);
		if (!status && to && (fwrite(tree.text, 1, tree.bytes, to) != tree.bytes || putc('\n', to) == EOF))
			status = ls_fail_errno(LS_EIO, "cannot write the sentences of %s", name);
		*count += !status;
	}
	ls_tree_free(&tree);
	return status;
}
