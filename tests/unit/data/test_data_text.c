/*
 * Text samples: what a dataset returns is checked before it is used; babble is a function of (seed, index) that
 * can be learned; masks follow BERT's rule.
 */
#include "unit/data/fixture.h"

#include "base/status.h"
#include "data/dataset.h"
#include "data/mask.h"
#include "unit/test_main.h"

enum { TOKENS = 8, MASKED = 3, WORDS = 50, CLASSES = 4 };

/* Sample 5 is as `told` says; all others are fine. */
typedef struct liar {
	int measured_length, measured_masked;
	int length, masked;
	int32_t token, segment, label;
	int32_t places[2], target;
} liar;

static const liar honest = { 6, 2, 6, 2, 7, 1, 3, { 1, 4 }, 9 };

static ls_status liar_read(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	const liar *l = index == 5 ? self : &honest;
	(void)epoch;
	out->length = l->length;
	out->masked = l->masked;
	out->label = l->label;
	for (int i = 0; i < TOKENS; i++)
		out->tokens[i] = l->token, out->segments[i] = l->segment;
	for (int i = 0; i < 2; i++)
		out->places[i] = l->places[i], out->targets[i] = l->target;
	return LS_OK;
}

static ls_status liar_measure(void *self, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	const liar *l = index == 5 ? self : &honest;
	(void)epoch;
	*length = l->measured_length;
	*masked = l->measured_masked;
	return LS_OK;
}

static const ls_dataset_ops liar_ops = { .read_text = liar_read, .measure_text = liar_measure };
static const ls_dataset_info liar_info = { .name = "liar",
					   .samples = 10,
					   .classes = CLASSES,
					   .tokens_max = TOKENS,
					   .vocabulary = WORDS,
					   .masked_max = MASKED };

static ls_status read_liar(liar l, uint64_t index)
{
	ls_dataset *set;
	int32_t tokens[TOKENS], segments[TOKENS], places[MASKED], targets[MASKED];
	ls_text_sample sample = { .tokens = tokens, .segments = segments, .places = places, .targets = targets };
	assert_ok(ls_dataset_new(&set, &liar_info, &liar_ops, &l));
	ls_status status = ls_dataset_read_text(set, index, 0, &sample);
	ls_dataset_free(set);
	return status;
}

static void lies_are_found(void **state)
{
	(void)state;
	static const struct {
		size_t offset;
		int32_t value;
		const char *message;
	} lies[] = {
		{ offsetof(liar, measured_length), 0, "sample 5 has length 0, expected 1..8" },
		{ offsetof(liar, measured_length), 9, "sample 5 has length 9, expected 1..8" },
		{ offsetof(liar, measured_masked), 4, "sample 5 has masked 4, expected 0..3" },
		{ offsetof(liar, measured_masked), -1, "sample 5 has masked -1" },
		{ offsetof(liar, length), 7, "sample 5 has length 7, expected 6..6" },
		{ offsetof(liar, masked), 1, "sample 5 has masked 1, expected 2..2" },
		{ offsetof(liar, token), 50, "sample 5 has token 50, expected 0..49" },
		{ offsetof(liar, token), -1, "sample 5 has token -1" },
		{ offsetof(liar, segment), 2, "sample 5 has segment 2, expected 0..1" },
		{ offsetof(liar, label), 4, "sample 5 has label 4, expected 0..3" },
		{ offsetof(liar, label), -2, "sample 5 has label -2" },
		{ offsetof(liar, places[0]), -1, "sample 5 has place -1" },
		{ offsetof(liar, places[0]), 4, "sample 5 has place 4, expected 5..5" },
		{ offsetof(liar, places[1]), 6, "sample 5 has place 6, expected 2..5" },
		{ offsetof(liar, target), 50, "sample 5 has target 50, expected 0..49" },
	};
	assert_ok(read_liar(honest, 5));
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		liar l = honest;
		memcpy((char *)&l + lies[i].offset, &lies[i].value, sizeof(int32_t));
		assert_fails(read_liar(l, 5), LS_EFORMAT, lies[i].message);
		assert_ok(read_liar(l, 4));
	}
	assert_fails(read_liar(honest, 10), LS_EINVALID, "sample 10 does not exist");
}

static void impossible_datasets(void **state)
{
	(void)state;
	ls_dataset *set = NULL;
	ls_dataset_ops ops = liar_ops;
	ls_dataset_info info = liar_info;
	ops.measure_text = NULL;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "needs read_text and measure_text");
	ops = liar_ops;
	info.channels = 1;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "text has none");
	info = liar_info, info.vocabulary = 0;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "vocabulary of 0");
	info = liar_info, info.masked_max = 9;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "up to 9 masked positions");
	info = liar_info, info.tokens_max = -1;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "up to -1 tokens");
	info = liar_info, info.tokens_max = 0;
	assert_fails(ls_dataset_new(&set, &info, &ops, NULL), LS_EINVALID, "needs a read function");
	assert_null(set);
	float image;
	int32_t label;
	assert_ok(ls_dataset_new(&set, &liar_info, &liar_ops, NULL));
	assert_fails(ls_dataset_read(set, 0, &image, &label), LS_EUNSUPPORTED, "is text");
	ls_dataset_free(set);
}

typedef struct sample {
	ls_text_sample text;
	int32_t tokens[512], segments[512], places[LS_MASKED_MAX], targets[LS_MASKED_MAX];
} sample;

static ls_text_sample *read_sample(sample *s, const ls_dataset *set, uint64_t index, uint64_t epoch)
{
	memset(s, 0, sizeof(*s));
	s->text = (ls_text_sample){
		.tokens = s->tokens, .segments = s->segments, .places = s->places, .targets = s->targets
	};
	assert_ok(ls_dataset_read_text(set, index, epoch, &s->text));
	return &s->text;
}

static ls_dataset *open_named(const char *name, ls_split split, uint64_t seed, uint64_t samples, int tokens)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set;
	options.name = name;
	options.split = split;
	options.seed = seed;
	options.samples = samples;
	options.tokens = tokens;
	assert_ok(ls_dataset_open(&set, &options));
	return set;
}

/* Mood words count for themselves, and the other way round behind a negator: how a reader would judge it. */
static int judge(const ls_text_sample *s)
{
	int sum = 0, count = 0;
	for (int i = 1; i < s->length - 1; i++) {
		int word = s->tokens[i] - 13;
		static const int values[] = { -2, -1, 1, 2 };
		if (word < 0 || word >= 400)
			continue;
		int negated = s->tokens[i - 1] >= 5 && s->tokens[i - 1] < 13;
		sum += (negated ? -1 : 1) * values[word / 100];
		count++;
	}
	double mean = count ? (double)sum / count : 0;
	return mean < -1.4 ? 0 : mean < -0.4 ? 1 : mean < 0.4 ? 2 : mean < 1.4 ? 3 : 4;
}

static void babble_can_be_understood(void **state)
{
	(void)state;
	enum { SAMPLES = 4000 };
	ls_dataset *set = open_named("babble", LS_SPLIT_TRAIN, 7, SAMPLES, 0);
	const ls_dataset_info *info = ls_dataset_describe(set);
	int labels[5] = { 0 }, lengths[65] = { 0 }, right = 0;
	sample s;
	assert_int_equal(info->tokens_max, 64);
	assert_int_equal(info->masked_max, 0);
	assert_int_equal(info->classes, 5);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		const ls_text_sample *text = read_sample(&s, set, i, 0);
		assert_int_equal(text->tokens[0], 2);
		assert_int_equal(text->tokens[text->length - 1], 3);
		for (int k = 1; k < text->length - 1; k++)
			assert_true(text->tokens[k] >= 5 && text->segments[k] == 0);
		labels[text->label]++;
		lengths[text->length]++;
		right += judge(text) == text->label;
	}
	for (int i = 0; i < 5; i++)
		assert_in_range(labels[i], SAMPLES / 5 - 150, SAMPLES / 5 + 150);
	for (int i = 4; i <= 64; i++)
		assert_true(lengths[i] > 20);
	print_message("# %d of %d judged right\n", right, SAMPLES);
	assert_true(right > SAMPLES * 85 / 100);
	ls_dataset_free(set);
}

/* Bytes of the first samples as one hash. */
static uint64_t fingerprint(const char *name, ls_split split, uint64_t seed, uint64_t epoch, uint64_t samples)
{
	ls_dataset *set = open_named(name, split, seed, samples, 0);
	uint64_t hash = 0;
	sample s;
	for (uint64_t i = 0; i < 50; i++) {
		const ls_text_sample *text = read_sample(&s, set, i, epoch);
		for (int k = 0; k < text->length; k++)
			hash = ls_mix64(hash + (uint64_t)text->tokens[k]);
	}
	ls_dataset_free(set);
	return hash;
}

static void babble_is_a_function_of_its_index(void **state)
{
	(void)state;
	static const char *const names[] = { "babble", "babble-pairs" };
	for (int i = 0; i < 2; i++) {
		uint64_t train = fingerprint(names[i], LS_SPLIT_TRAIN, 1, 0, 100);
		assert_true(train == fingerprint(names[i], LS_SPLIT_TRAIN, 1, 0, 1000));
		assert_false(train == fingerprint(names[i], LS_SPLIT_TEST, 1, 0, 100));
		assert_false(train == fingerprint(names[i], LS_SPLIT_TRAIN, 2, 0, 100));
		assert_int_equal(train == fingerprint(names[i], LS_SPLIT_TRAIN, 1, 1, 100), i == 0);
	}
}

/* Share of b's words that are of the topic a's words are of most. */
static double same_topic(const ls_text_sample *s)
{
	int votes[2][64] = { { 0 } }, count = 0, best = 0;
	for (int i = 0; i < s->length; i++)
		if (s->tokens[i] >= 413) {
			votes[s->segments[i]][(s->tokens[i] - 413) / 57]++;
			count += s->segments[i];
		}
	for (int t = 0; t < 64; t++)
		best = votes[0][t] > votes[0][best] ? t : best;
	return count ? (double)votes[1][best] / count : 0;
}

static void pairs_are_as_bert_reads_them(void **state)
{
	(void)state;
	enum { SAMPLES = 2000 };
	ls_dataset *set = open_named("babble-pairs", LS_SPLIT_TRAIN, 3, SAMPLES, 0);
	int right = 0, strangers = 0;
	sample s;
	assert_int_equal(ls_dataset_describe(set)->masked_max, 19);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		const ls_text_sample *text = read_sample(&s, set, i, 2);
		int separators = 0;
		assert_int_equal(text->length, 128);
		assert_int_equal(text->tokens[0], 2);
		for (int k = 0; k < text->length; k++) {
			assert_int_equal(text->segments[k], separators);
			separators += text->tokens[k] == 3 && k < 127;
		}
		assert_int_equal(separators, 1);
		assert_int_equal(text->tokens[127], 3);
		strangers += text->label;
		right += (same_topic(text) < 0.4) == text->label;
	}
	assert_in_range(strangers, SAMPLES / 2 - 100, SAMPLES / 2 + 100);
	assert_true(right > SAMPLES * 95 / 100);
	ls_dataset_free(set);
	set = open_named("babble-pairs", LS_SPLIT_TEST, 3, 5, 300);
	assert_int_equal(ls_dataset_describe(set)->masked_max, 20);
	assert_int_equal(read_sample(&s, set, 0, 0)->masked, 20);
	ls_dataset_free(set);
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	options.name = "babble-pairs";
	options.tokens = 7;
	assert_fails(ls_dataset_open(&set, &options), LS_EINVALID,
		     "samples of 7 tokens (options.seq_len); they can have 8");
}

static void masks_follow_the_rule(void **state)
{
	(void)state;
	enum { LENGTH = 100, MIDDLE = 40, ROUNDS = 4000, VOCAB = 1000 };
	static const ls_special special = { 0, 1, 2, 3, 4 };
	int hit[LENGTH] = { 0 }, masked = 0, other = 0, kept = 0;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		sample s = { .text.length = LENGTH };
		s.text.tokens = s.tokens, s.text.places = s.places, s.text.targets = s.targets;
		for (int i = 0; i < LENGTH; i++)
			s.tokens[i] = 500 + i;
		ls_mask_draw(1, round % 7, round, &special, VOCAB, MIDDLE, &s.text);
		assert_int_equal(s.text.masked, 15);
		int next = 0;
		for (int i = 0; i < LENGTH; i++) {
			int is_masked = next < 15 && s.places[next] == i;
			if (!is_masked) {
				assert_int_equal(s.tokens[i], 500 + i);
				continue;
			}
			assert_int_equal(s.targets[next++], 500 + i);
			hit[i]++;
			masked += s.tokens[i] == 4;
			kept += s.tokens[i] == 500 + i;
			other += s.tokens[i] != 4 && s.tokens[i] != 500 + i;
			assert_true(s.tokens[i] >= 4);
		}
		assert_int_equal(next, 15);
	}
	int all = 15 * ROUNDS;
	assert_in_range(masked, all * 79 / 100, all * 81 / 100);
	assert_in_range(kept, all * 9 / 100, all * 11 / 100);
	assert_in_range(other, all * 9 / 100, all * 11 / 100);
	for (int i = 0; i < LENGTH; i++) {
		int fixed = i == 0 || i == MIDDLE || i == LENGTH - 1;
		assert_in_range(hit[i], fixed ? 0 : 620 - 120, fixed ? 0 : 620 + 120); /* 4000 * 15 / 97, 5 sigma */
	}
	static const int counts[][2] = { { 5, 1 }, { 8, 1 }, { 10, 2 }, { 128, 19 }, { 133, 20 }, { 512, 20 } };
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		assert_int_equal(ls_mask_tokens(counts[i][0]), counts[i][1]);
}

TEST_MAIN(lies_are_found, impossible_datasets, babble_can_be_understood, babble_is_a_function_of_its_index,
	  pairs_are_as_bert_reads_them, masks_follow_the_rule)
