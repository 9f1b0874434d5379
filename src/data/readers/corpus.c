/*
 * corpus.c - a text corpus as BERT's pretraining examples: [CLS] a [SEP] b [SEP], masked words, is b what follows a?
 *
 * When a corpus is opened its documents are cut into chunks of consecutive sentences, as many as fit a sample; a
 * sentence that does not fit one is cut. A chunk is a sample: every token is in one. Every 20th document is for
 * testing; with fewer documents, the last one; with one document, the last twentieth of its chunks.
 *
 * Which pair a sample shows is drawn by (seed, epoch, index), as its masks are. The chunk is cut in two at one of its
 * sentences' ends (in the middle of a single one); half the time b is replaced by sentences of another document, from
 * the beginning of a chunk on, as many as fit. So text that one epoch omits appears in another.
 */
#include "data/readers/corpus.h"

#include <lockstep/text.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/mask.h"
#include "data/sample_rng.h"

enum {
	TOKENS_MIN = 8,
	TOKENS_USUAL = 128,
	FRAME = 3, /* [CLS] and two [SEP] */
	DRAWS = 16 /* for a chunk of another document */
};

typedef struct chunk {
	uint64_t begin; /* of the corpus's tokens */
	uint32_t tokens, document;
} chunk;

typedef struct corpus_set {
	ls_corpus corpus;
	ls_special special;
	int vocabulary;
	uint64_t seed;
	ls_split split;
	int room; /* tokens of a and b together */
	chunk *chunks;
	size_t count, chunk_room;
	int one_document;
} corpus_set;

static void set_free(void *self)
{
	corpus_set *set = self;
	ls_corpus_close(&set->corpus);
	free(set->chunks);
	free(set);
}

static ls_status add_chunk(corpus_set *set, uint64_t document, uint64_t begin, uint64_t end)
{
	LS_TRY(ls_array_grow(&set->chunks, &set->chunk_room, set->count + 1, sizeof(*set->chunks)));
	set->chunks[set->count++] = (chunk){ begin, (uint32_t)(end - begin), (uint32_t)document };
	return LS_OK;
}

/* A pair takes two tokens. The last chunk of a document that has only one takes another from the chunk before it. */
static ls_status add_last(corpus_set *set, uint64_t document, uint64_t first, uint64_t begin, uint64_t end)
{
	if (end - begin == 1 && begin > first)
		begin--;
	return end - begin > 1 ? add_chunk(set, document, begin, end) : LS_OK;
}

static ls_status cut_document(corpus_set *set, uint64_t document)
{
	const ls_corpus *c = &set->corpus;
	uint64_t room = (uint64_t)set->room, first = c->sentence[c->document[document]], begin = first;
	for (uint64_t s = c->document[document]; s < c->document[document + 1]; s++) {
		uint64_t from = c->sentence[s], to = c->sentence[s + 1];
		if (to - begin > room && from > begin) {
			LS_TRY(add_last(set, document, first, begin, from));
			begin = from;
		}
		for (; to - begin > room; begin += room)
			LS_TRY(add_chunk(set, document, begin, begin + room));
	}
	return add_last(set, document, first, begin, c->sentence[c->document[document + 1]]);
}

/* With a single document, the last twentieth of its chunks, at least one, is for testing. */
static void share_chunks(corpus_set *set)
{
	size_t test = (set->count + LS_CORPUS_TEST_EVERY - 1) / LS_CORPUS_TEST_EVERY, train = set->count - test;
	if (set->split == LS_SPLIT_TEST)
		memmove(set->chunks, set->chunks + train, test * sizeof(*set->chunks));
	set->count = set->split == LS_SPLIT_TEST ? test : train;
}

/* Keep `samples` chunks, evenly. */
static void spread(corpus_set *set, uint64_t samples)
{
	if (!samples || samples >= set->count)
		return;
	for (uint64_t i = 0; i < samples; i++)
		set->chunks[i] = set->chunks[i * set->count / samples];
	set->count = (size_t)samples;
}

/* With a few documents of unequal length the test document may be most of the text. */
static void warn_of_shares(const corpus_set *set, const char *name)
{
	const ls_corpus *c = &set->corpus;
	uint64_t documents = c->counts.documents, tokens[2] = { 0, 0 };
	for (uint64_t d = 0; documents > 1 && d < documents; d++)
		tokens[ls_corpus_is_test(d, documents)] +=
			c->sentence[c->document[d + 1]] - c->sentence[c->document[d]];
	if (tokens[1] > tokens[0])
		ls_log_warning(
			"%s: the test part (%llu tokens) is larger than the training part (%llu): 1 of %llu "
			"documents is kept for testing; split the text into more documents",
			name, (unsigned long long)tokens[1], (unsigned long long)tokens[0],
			(unsigned long long)(documents < LS_CORPUS_TEST_EVERY ? documents : LS_CORPUS_TEST_EVERY));
}

static ls_status make_plan(corpus_set *set, uint64_t samples)
{
	uint64_t documents = set->corpus.counts.documents;
	for (uint64_t d = 0; d < documents; d++)
		if (documents == 1 || ls_corpus_is_test(d, documents) == (set->split == LS_SPLIT_TEST))
			LS_TRY(cut_document(set, d));
	if (documents == 1 && set->count > 1)
		share_chunks(set);
	else if (documents == 1 && set->split == LS_SPLIT_TEST)
		ls_log_warning("the corpus makes only one sample: test and training data are the same");
	spread(set, samples);
	set->one_document = set->count && set->chunks[0].document == set->chunks[set->count - 1].document;
	return LS_OK;
}

/* A pair, as ranges of the corpus's tokens. */
typedef struct pair {
	uint64_t a, b;
	int a_tokens, b_tokens;
	int strange; /* b does not follow a */
} pair;

/* The first sentence of [low, high) that begins behind token `at`; high: none. */
static uint64_t sentence_behind(const uint64_t *sentence, uint64_t low, uint64_t high, uint64_t at)
{
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (sentence[middle] > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The first sentence of a chunk's document that begins behind token `at`; the one behind the document counts, too, for
 * that is where the last one ends. One more: none. */
static uint64_t first_behind(const ls_corpus *c, const chunk *inside, uint64_t at)
{
	uint64_t first = c->document[inside->document], last = c->document[inside->document + 1];
	return sentence_behind(c->sentence, first, last + 1, at);
}

/* Where a chunk is cut: at the beginning of one of its sentences but the first, or in the middle. */
static uint64_t cut_place(const ls_corpus *c, const chunk *own, uint32_t word)
{
	uint64_t from = first_behind(c, own, own->begin), to = first_behind(c, own, own->begin + own->tokens - 1);
	if (from >= to) /* more: the file was cut short, see draw_whole() */
		return own->begin + own->tokens / 2;
	return c->sentence[from + ls_rng_below(word, (uint32_t)(to - from))];
}

/* How many of at most `room` tokens from the chunk's beginning on make whole sentences; 0: not even one fits. */
static int whole_sentences(const ls_corpus *c, const chunk *from, int room)
{
	uint64_t first = first_behind(c, from, from->begin),
		 behind = first_behind(c, from, from->begin + (uint64_t)room);
	return behind > first ? (int)(c->sentence[behind - 1] - from->begin) : 0;
}

/* A chunk of another document, or of another place if there is only one document. */
static int is_strange(const corpus_set *set, uint64_t index, uint64_t other)
{
	if (set->one_document)
		return other != index && other != index + 1;
	return set->chunks[other].document != set->chunks[index].document;
}

/* Set b to the beginning of a chunk: whole sentences (returns 1), else as many tokens as fit (returns 0). */
static int take_stranger(const corpus_set *set, uint64_t other, pair *p)
{
	const chunk *from = &set->chunks[other];
	int room = set->room - p->a_tokens, whole = whole_sentences(&set->corpus, from, room);
	p->strange = 1;
	p->b = from->begin;
	p->b_tokens = whole ? whole : (int)from->tokens < room ? (int)from->tokens : room;
	return whole > 0;
}

/*
 * Replace b by sentences from elsewhere, whole ones: b must end as it does where it follows a, or its end would reveal
 * the label. If none of many draws fits after a, a keeps only its first sentence. If no other document was drawn, b
 * stays.
 */
static void draw_stranger(const corpus_set *set, ls_sample_rng *draw, uint64_t index, pair *p)
{
	const chunk *own = &set->chunks[index];
	uint64_t other = index;
	for (int i = 0; i < DRAWS; i++) {
		uint64_t words = (uint64_t)ls_sample_rng_word(draw) << 32 | ls_sample_rng_word(draw),
			 drawn = words % set->count;
		if (!is_strange(set, index, drawn))
			continue;
		other = drawn;
		if (take_stranger(set, other, p))
			return;
	}
	if (other == index)
		return;
	uint64_t cut = cut_place(&set->corpus, own, 0);
	p->a_tokens = (int)(cut - own->begin);
	take_stranger(set, other, p);
}

static pair draw_pair(const corpus_set *set, uint64_t index, uint64_t epoch)
{
	ls_sample_rng draw =
		ls_sample_rng_begin(ls_rng_make(set->seed, LS_RNG_PAIRS, 2 * epoch + (uint64_t)set->split), index);
	const chunk *own = &set->chunks[index];
	uint64_t cut = cut_place(&set->corpus, own, ls_sample_rng_word(&draw));
	pair p = { .a = own->begin, .a_tokens = (int)(cut - own->begin), .b = cut };
	p.b_tokens = (int)own->tokens - p.a_tokens;
	if (ls_sample_rng_word(&draw) & 1)
		draw_stranger(set, &draw, index, &p);
	return p;
}

static void copy_tokens(const ls_corpus *c, uint64_t from, int count, int32_t *to)
{
	for (int i = 0; i < count; i++)
		to[i] = ls_corpus_token(c, from + (uint64_t)i);
}

static ls_status set_check(void *self)
{
	const corpus_set *set = self;
	return ls_file_map_check(&set->corpus.map);
}

/* Where a file that was cut short reads as zeros, sentences begin anywhere: only a pair that lies inside is one. */
static ls_status draw_whole(const corpus_set *set, uint64_t index, uint64_t epoch, pair *out)
{
	uint64_t tokens = set->corpus.counts.tokens;
	pair p = draw_pair(set, index, epoch);
	if (p.a_tokens < 0 || p.b_tokens < 0 || p.a_tokens > set->room || p.b_tokens > set->room - p.a_tokens ||
	    p.a > tokens || p.b > tokens || (uint64_t)p.a_tokens > tokens - p.a || (uint64_t)p.b_tokens > tokens - p.b)
		return ls_fail(LS_EFORMAT, "sample %llu of the tokenized corpus is damaged", (unsigned long long)index);
	*out = p;
	return LS_OK;
}

static ls_status set_read(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	const corpus_set *set = self;
	pair p;
	LS_TRY(draw_whole(set, index, epoch, &p));
	int middle = p.a_tokens + 1;
	out->length = p.a_tokens + p.b_tokens + FRAME;
	out->label = p.strange;
	out->tokens[0] = set->special.cls;
	copy_tokens(&set->corpus, p.a, p.a_tokens, out->tokens + 1);
	out->tokens[middle] = set->special.sep;
	copy_tokens(&set->corpus, p.b, p.b_tokens, out->tokens + middle + 1);
	out->tokens[out->length - 1] = set->special.sep;
	for (int i = 0; i < out->length; i++)
		out->segments[i] = i > middle;
	ls_mask_draw(set->seed, epoch, index, &set->special, set->vocabulary, middle, out);
	return ls_file_map_lost(&set->corpus.map) ? set_check(self) : LS_OK;
}

static ls_status set_measure(void *self, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	pair p;
	LS_TRY(draw_whole(self, index, epoch, &p));
	*length = p.a_tokens + p.b_tokens + FRAME;
	*masked = ls_mask_tokens(*length);
	return LS_OK;
}

static ls_status set_describe(const corpus_set *set, const ls_tokenizer *tokenizer, const ls_dataset_options *options,
			      ls_dataset_info *info)
{
	if (!set->count)
		return ls_fail(LS_ENOTFOUND,
			       "the corpus %s has no text to %s: it has %llu documents of %llu tokens in all, and one "
			       "document in %d is kept for testing",
			       options->name, options->split == LS_SPLIT_TRAIN ? "train on" : "test on",
			       (unsigned long long)set->corpus.counts.documents,
			       (unsigned long long)set->corpus.counts.tokens, LS_CORPUS_TEST_EVERY);
	*info = (ls_dataset_info){ .samples = set->count,
				   .classes = 2,
				   .tokens_max = set->room + FRAME,
				   .vocabulary = set->vocabulary,
				   .masked_max = ls_mask_tokens(set->room + FRAME),
				   .vocabulary_hash = ls_vocab_hash(tokenizer->vocab),
				   .text_hash = set->corpus.hash };
	ls_corpus_name(info->name, sizeof(info->name), options->name);
	return LS_OK;
}

void ls_corpus_warn_unknown(const char *name, const ls_corpus_counts *counts)
{
	if (counts->unknown > counts->tokens / 10)
		ls_log_warning(
			"%s: %.0f %% of the tokens are [UNK]: the vocabulary does not fit these texts or their case "
			"(options.cased); `lockstep data make vocab` learns one",
			name, 100.0 * (double)counts->unknown / (double)counts->tokens);
}

static ls_status set_open(ls_dataset **out, const char *path, const ls_tokenizer *tokenizer,
			  const ls_dataset_options *options)
{
	static const ls_dataset_ops ops = { .read_text = set_read, .measure_text = set_measure, .free = set_free };
	corpus_set *set = calloc(1, sizeof(*set));
	if (!set)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%s'", options->name);
	set->special = tokenizer->special;
	set->vocabulary = (int)ls_vocab_size(tokenizer->vocab);
	set->seed = options->seed;
	set->split = options->split;
	set->room = (options->tokens ? options->tokens : TOKENS_USUAL) - FRAME;
	ls_dataset_info info;
	ls_status status = ls_corpus_load(&set->corpus, path, tokenizer, options);
	if (!status)
		status = make_plan(set, options->samples);
	if (!status)
		status = set_describe(set, tokenizer, options, &info);
	if (!status)
		status = set_check(set);
	if (!status)
		status = ls_dataset_new(out, &info, &ops, set);
	if (!status)
		(*out)->check = set_check;
	if (!status && options->split == LS_SPLIT_TRAIN) {
		ls_corpus_warn_unknown(options->name, &set->corpus.counts);
		warn_of_shares(set, options->name);
	}
	if (status)
		set_free(set);
	return status;
}

ls_status ls_corpus_open_with(ls_dataset **out, const char *path, const ls_dataset_options *options, int least,
			      const char *advice, ls_corpus_opener *open)
{
	char home[4096];
	ls_tokenizer tokenizer;
	if (options->tokens && (options->tokens < least || options->tokens > LS_TOKENS_MAX))
		return ls_fail(LS_EINVALID, "%s: samples of %d tokens (options.seq_len); they can have %d to %d",
			       options->name, options->tokens, least, LS_TOKENS_MAX);
	LS_TRY(ls_corpus_home(home, sizeof(home), path));
	LS_TRY(ls_tokenizer_open(&tokenizer, options, home, advice));
	ls_status status = open(out, path, &tokenizer, options);
	ls_tokenizer_close(&tokenizer);
	return status;
}

static ls_status open_at(ls_dataset **out, const char *path, const ls_dataset_options *options)
{
	const char *advice = "`lockstep data make vocab` learns one; or name one with options.vocab (bytes: as GPT)";

	return options->next_token ? ls_next_tokens_open(out, path, options)
				   : ls_corpus_open_with(out, path, options, TOKENS_MIN, advice, set_open);
}

const ls_corpus *ls_corpus_of(const ls_dataset *dataset)
{
	return dataset->ops.read_text == set_read ? &((const corpus_set *)dataset->self)->corpus
						  : ls_next_tokens_corpus(dataset);
}

ls_status ls_corpus_open(ls_dataset **out, const ls_dataset_options *options)
{
	return open_at(out, options->name, options);
}

ls_status ls_sotu_open(ls_dataset **out, const ls_dataset_options *options)
{
	char dir[4096];
	LS_TRY(ls_data_directory(dir, sizeof(dir), options->dir, "sotu"));
	if (!ls_path_is_directory(dir) || !ls_corpus_is_text(dir))
		return ls_fail(
			LS_ENOTFOUND,
			"sotu is not on this machine: there is no text in %s; run `lockstep data get sotu` or use "
			"`options.data babble-pairs`",
			dir);
	return open_at(out, dir, options);
}
