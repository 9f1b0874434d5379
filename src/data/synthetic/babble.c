/*
 * babble.c - sentences of a toy language, so that everything about text runs without a download.
 *
 * Its words are numbers: there is nothing to tokenize. A few negate, some carry a mood, the rest are plain and belong
 * to one of 64 topics. A sentence keeps to a topic: a plain word is the usual successor of the one before it (1/2), a
 * word of the topic (3/8) or any (1/8), and common words are common. That gives a language model something to learn.
 *
 * `babble` is single sentences in one of five moods, from very bad to very good. Every six words or so there is a word
 * that carries the sentence's mood, one in four of them said by a negator and a word of the opposite mood, and one in
 * eight is of any mood, so that a sentence is judged by most of what it says. A neutral sentence says nothing either
 * way.
 *
 * For language models (options.next_token) `babble` is sentence after sentence, a topic each, without moods.
 *
 * `babble-pairs` is two sentences, [CLS] a [SEP] b [SEP], of the same topic, or of two (label 1), with masked words:
 * BERT's pretraining examples, all of the same length.
 */
#include <lockstep/text.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "data/dataset.h"
#include "data/mask.h"
#include "data/sample_rng.h"

enum { PAD, UNKNOWN, BEGIN, SEPARATOR, MASK, SPECIALS };

enum {
	NEGATORS = 8,
	MOODS = 5, /* 0 very bad .. 4 very good; 2, neutral, has no words of its own */
	MOOD_WORDS = 100,
	TOPICS = 64,
	TOPIC_WORDS = 57,
	PLAIN_WORDS = TOPICS * TOPIC_WORDS,
	FIRST_NEGATOR = SPECIALS,
	FIRST_MOOD = FIRST_NEGATOR + NEGATORS,
	FIRST_PLAIN = FIRST_MOOD + 4 * MOOD_WORDS,
	VOCABULARY = FIRST_PLAIN + PLAIN_WORDS, /* 4061 */

	SHORTEST = 4, /* tokens of a sentence, [CLS] and [SEP] included */
	LONGEST = 64,
	PAIR = 128,
	TOKENS_MIN = 8,
	TRAIN = 60000,
	TEST = 10000
};

static const ls_special specials = { PAD, UNKNOWN, BEGIN, SEPARATOR, MASK };

typedef struct babble {
	uint64_t seed;
	ls_split split;
	int tokens; /* longest */
	int pairs;
	int next_token;
} babble;

static ls_sample_rng sample_draw(const babble *b, uint64_t index)
{
	return ls_sample_rng_begin(
		ls_rng_make(b->seed, LS_RNG_BABBLE,
			    (uint64_t)b->split + 2 * (uint64_t)b->pairs + 4 * (uint64_t)b->next_token),
		index);
}

static int below(ls_sample_rng *draw, int n)
{
	return (int)ls_rng_below(ls_sample_rng_word(draw), (uint32_t)n);
}

/* In [0, n), small numbers more often: density log(n / x)^2 / 2n. */
static int common(ls_sample_rng *draw, int n)
{
	return below(draw, below(draw, below(draw, n) + 1) + 1);
}

static int32_t plain_word(ls_sample_rng *draw, int topic, int32_t before)
{
	int kind = below(draw, 8);
	if (kind < 4 && before >= FIRST_PLAIN) {
		int32_t place = before - FIRST_PLAIN; /* the next word of its topic */
		return FIRST_PLAIN + place / TOPIC_WORDS * TOPIC_WORDS + (place + 1) % TOPIC_WORDS;
	}
	if (kind < 7)
		return FIRST_PLAIN + topic * TOPIC_WORDS + common(draw, TOPIC_WORDS);
	return FIRST_PLAIN + common(draw, PLAIN_WORDS);
}

static void plain_words(ls_sample_rng *draw, int topic, int32_t *words, int count)
{
	for (int i = 0; i < count; i++)
		words[i] = plain_word(draw, topic, i ? words[i - 1] : 0);
}

static int32_t mood_word(ls_sample_rng *draw, int mood)
{
	int group = mood < 2 ? mood : mood - 1;
	return FIRST_MOOD + group * MOOD_WORDS + common(draw, MOOD_WORDS);
}

/* Say a mood somewhere in `count` >= 2 words. */
static void say_mood(ls_sample_rng *draw, int mood, int32_t *words, int count)
{
	int negated = below(draw, 4) == 0;
	int place = below(draw, negated ? count - 1 : count);
	if (mood == 2)
		return;
	if (negated)
		words[place++] = FIRST_NEGATOR + below(draw, NEGATORS);
	words[place] = mood_word(draw, negated ? MOODS - 1 - mood : mood);
}

static void sentence(ls_sample_rng *draw, int mood, int32_t *words, int count)
{
	int says = 1 + count / 6;
	plain_words(draw, below(draw, TOPICS), words, count);
	for (int i = 0; i < says; i++) {
		int from = count * i / says, to = count * (i + 1) / says;
		int stray = i > 0 && below(draw, 8) == 0; /* the first always says what the sentence is about */
		say_mood(draw, stray ? below(draw, MOODS) : mood, words + from, to - from);
	}
}

/* The first draw of a sample: its length. */
static int draw_length(const babble *b, ls_sample_rng *draw)
{
	return b->pairs || b->next_token ? b->tokens : SHORTEST + below(draw, b->tokens - SHORTEST + 1);
}

static void read_sentence(const babble *b, uint64_t index, ls_text_sample *out)
{
	ls_sample_rng draw = sample_draw(b, index);
	out->length = draw_length(b, &draw);
	out->label = below(&draw, MOODS);
	out->tokens[0] = BEGIN;
	sentence(&draw, out->label, out->tokens + 1, out->length - 2);
	out->tokens[out->length - 1] = SEPARATOR;
	memset(out->segments, 0, (size_t)out->length * sizeof(*out->segments));
}

static void read_pair(const babble *b, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	ls_sample_rng draw = sample_draw(b, index);
	out->length = draw_length(b, &draw);
	out->label = below(&draw, 2);
	int words = out->length - 3, first = words / 4 + below(&draw, words / 2 + 1), middle = first + 1;
	int topic = below(&draw, TOPICS);
	int other = out->label ? (topic + 1 + below(&draw, TOPICS - 1)) % TOPICS : topic;
	out->tokens[0] = BEGIN;
	plain_words(&draw, topic, out->tokens + 1, first);
	out->tokens[middle] = SEPARATOR;
	plain_words(&draw, other, out->tokens + middle + 1, words - first);
	out->tokens[out->length - 1] = SEPARATOR;
	for (int i = 0; i < out->length; i++)
		out->segments[i] = i > middle;
	ls_mask_draw(b->seed, epoch, index, &specials, VOCABULARY, middle, out);
}

/* Sentences of 6 to 23 words, whose ends are separators. */
static ls_status read_stream(const babble *b, uint64_t index, ls_text_sample *out)
{
	ls_sample_rng draw = sample_draw(b, index);
	int left = 0, topic = 0;
	int32_t before = SEPARATOR;

	out->length = b->tokens;
	for (int i = 0; i < b->tokens; i++) {
		if (left-- == 0) {
			topic = below(&draw, TOPICS);
			left = 6 + below(&draw, 18);
		}
		out->tokens[i] = before;
		before = left == 0 ? SEPARATOR : plain_word(&draw, topic, before);
		out->targets[i] = before;
		out->segments[i] = 0;
	}
	return ls_text_sample_set_targets(out, out->targets);
}

static ls_status babble_read(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	const babble *b = self;
	if (b->next_token)
		return read_stream(b, index, out);
	if (b->pairs)
		read_pair(b, index, epoch, out);
	else
		read_sentence(b, index, out);
	return LS_OK;
}

static ls_status babble_measure(void *self, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	const babble *b = self;
	ls_sample_rng draw = sample_draw(b, index);
	(void)epoch;
	*length = draw_length(b, &draw);
	*masked = b->next_token ? *length : b->pairs ? ls_mask_tokens(*length) : 0;
	return LS_OK;
}

static ls_status babble_new(ls_dataset **out, const ls_dataset_options *options, int pairs)
{
	static const ls_dataset_ops ops = { .read_text = babble_read, .measure_text = babble_measure, .free = free };
	int usual = pairs || options->next_token ? PAIR : LONGEST;
	ls_dataset_info info = { .samples = options->split == LS_SPLIT_TRAIN ? TRAIN : TEST,
				 .classes = options->next_token ? 1
					    : pairs             ? 2
								: MOODS,
				 .tokens_max = options->tokens ? options->tokens : usual,
				 .vocabulary = VOCABULARY };
	snprintf(info.name, sizeof(info.name), "%s", pairs ? "babble-pairs" : "babble");
	if (pairs && options->next_token)
		return ls_fail(LS_EMISMATCH,
			       "babble-pairs is for bert models; a language model takes babble, sotu or texts");
	if (info.tokens_max < TOKENS_MIN || info.tokens_max > LS_TOKENS_MAX)
		return ls_fail(LS_EINVALID, "%s: samples of %d tokens (options.seq_len); they can have %d to %d",
			       info.name, info.tokens_max, TOKENS_MIN, LS_TOKENS_MAX);
	info.masked_max = options->next_token ? info.tokens_max : pairs ? ls_mask_tokens(info.tokens_max) : 0;
	if (options->samples)
		info.samples = options->samples;
	babble *b = malloc(sizeof(*b));
	if (!b)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%s'", info.name);
	*b = (babble){ options->seed, options->split, info.tokens_max, pairs, options->next_token };
	ls_status status = ls_dataset_new(out, &info, &ops, b);
	if (status)
		free(b);
	return status;
}

ls_status ls_babble_open(ls_dataset **out, const ls_dataset_options *options)
{
	return babble_new(out, options, 0);
}

ls_status ls_babble_pairs_open(ls_dataset **out, const ls_dataset_options *options)
{
	return babble_new(out, options, 1);
}
