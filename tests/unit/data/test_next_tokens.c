/*
 * Text for language models: every token is followed by the next, nothing is padded, nothing is lost.
 */
#include "unit/data/fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "data/dataset.h"
#include "data/readers/corpus.h"
#include "tokenizer/bpe.h"
#include "unit/test_main.h"

enum { TOKENS = 16, END = 256 };

static int enter(void **state)
{
	int status = fixture_enter(state);
	setenv("LOCKSTEP_DATA", in_dir(*state, "cache"), 1);
	return status;
}

static void put_text(const char *dir, const char *name, const char *text)
{
	put_file(in_dir(dir, name), text, strlen(text));
}

static ls_status open_text(ls_dataset **out, const char *name, ls_split split, int tokens)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	options.name = name;
	options.split = split;
	options.tokens = tokens;
	options.next_token = 1;
	return ls_dataset_open(out, &options);
}

typedef struct read {
	int32_t tokens[TOKENS], segments[TOKENS], places[TOKENS], targets[TOKENS];
	ls_text_sample sample;
} read_sample;

static const ls_text_sample *read_one(const ls_dataset *set, uint64_t index, uint64_t epoch)
{
	static read_sample r;
	r.sample = (ls_text_sample){
		.tokens = r.tokens, .segments = r.segments, .places = r.places, .targets = r.targets
	};
	assert_ok(ls_dataset_read_text(set, index, epoch, &r.sample));
	return &r.sample;
}

/* The bytes of a token of the vocabulary of bytes. */
static int byte_of(int32_t id)
{
	uint8_t order[256];
	ls_bpe_byte_order(order);
	return id == END ? -1 : order[id];
}

/* 5,000 bytes that never repeat within 256, lines of them. */
static char *long_text(void)
{
	static char text[5001];
	for (int i = 0; i < 5000; i++)
		text[i] = i % 61 == 60 ? '\n' : (char)('!' + i * 7 % 90);
	return text;
}

static void tokens_predict_the_next(void **state)
{
	ls_dataset *set;
	char *text = long_text();
	put_text(*state, "x.txt", text);
	assert_ok(open_text(&set, in_dir(*state, "x.txt"), LS_SPLIT_TRAIN, TOKENS));
	const ls_dataset_info *info = ls_dataset_describe(set);
	assert_int_equal(info->tokens_max, TOKENS);
	assert_int_equal(info->masked_max, TOKENS);
	assert_int_equal(info->vocabulary, 257);
	/* 5,001 tokens with the one that begins the text; 251 of them for testing */
	assert_int_equal(info->samples, (4750 - 1) / TOKENS - 1);
	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		int32_t last = -2;
		for (uint64_t i = 0; i < info->samples; i++) {
			const ls_text_sample *s = read_one(set, i, epoch);
			assert_int_equal(s->length, TOKENS);
			assert_int_equal(s->masked, TOKENS);
			assert_true(last == -2 || last == s->tokens[0]);
			for (int k = 0; k < TOKENS; k++) {
				assert_int_equal(s->places[k], k);
				assert_int_equal(s->segments[k], 0);
				assert_true(k + 1 == TOKENS || s->targets[k] == s->tokens[k + 1]);
			}
			last = s->targets[TOKENS - 1];
		}
	}
	ls_dataset_free(set);
}

static void epochs_cut_elsewhere(void **state)
{
	ls_dataset *set;
	int32_t first[8];
	int differ = 0;
	put_text(*state, "x.txt", long_text());
	assert_ok(open_text(&set, in_dir(*state, "x.txt"), LS_SPLIT_TRAIN, TOKENS));
	for (uint64_t epoch = 0; epoch < 8; epoch++) {
		first[epoch] = read_one(set, 0, epoch)->tokens[0];
		assert_int_equal(read_one(set, 0, epoch)->tokens[0], first[epoch]);
		differ += epoch > 0 && first[epoch] != first[epoch - 1];
	}
	assert_true(differ > 3);
	ls_dataset_free(set);
	assert_ok(open_text(&set, in_dir(*state, "x.txt"), LS_SPLIT_TEST, TOKENS));
	for (uint64_t epoch = 0; epoch < 4; epoch++)
		assert_int_equal(read_one(set, 0, epoch)->tokens[0], read_one(set, 0, 0)->tokens[0]);
	ls_dataset_free(set);
}

/* The test text is the end of the only document, byte for byte. */
static void testing_is_the_end(void **state)
{
	ls_dataset *set;
	char *text = long_text();
	put_text(*state, "x.txt", text);
	assert_ok(open_text(&set, in_dir(*state, "x.txt"), LS_SPLIT_TEST, TOKENS));
	const ls_dataset_info *info = ls_dataset_describe(set);
	assert_int_equal(info->samples, 250 / TOKENS);
	for (uint64_t i = 0; i < info->samples; i++)
		for (int k = 0; k < TOKENS; k++)
			assert_int_equal(byte_of(read_one(set, i, 0)->tokens[k]),
					 text[5000 - 251 + i * TOKENS + (uint64_t)k]);
	ls_dataset_free(set);
}

/* Documents begin with the end of a text; every 20th, here the last, is for testing. */
static void documents_are_one_stream(void **state)
{
	ls_dataset *set;
	char dir[2048];
	snprintf(dir, sizeof(dir), "%s/many", (const char *)*state);
	mkdir(dir, 0777);
	put_text(dir, "a.txt", "first text");
	put_text(dir, "b.txt", "the second one, which is longer\n");
	put_text(dir, "c.txt", "the third is for testing and long enough");
	assert_ok(open_text(&set, dir, LS_SPLIT_TRAIN, TOKENS));
	assert_int_equal(ls_dataset_describe(set)->samples, 1);
	ls_dataset_free(set);
	assert_ok(open_text(&set, dir, LS_SPLIT_TRAIN, 4));
	char stream[64] = "";
	for (uint64_t i = 0; i < ls_dataset_describe(set)->samples && i < 4; i++)
		for (int k = 0; k < 4; k++) {
			int byte = byte_of(read_one(set, i, 0)->tokens[k]);
			stream[strlen(stream)] = byte < 0 ? '#' : (char)byte;
		}
	if (!strstr("#first text#the second one, which is longer\n", stream))
		fail_msg("the stream has \"%s\"", stream);
	ls_dataset_free(set);
	assert_ok(open_text(&set, dir, LS_SPLIT_TEST, 4));
	assert_int_equal(byte_of(read_one(set, 0, 0)->tokens[0]), -1);
	assert_int_equal(byte_of(read_one(set, 0, 0)->tokens[1]), 't');
	ls_dataset_free(set);
}

/* A text of many blocks gives the tokens of the whole. */
static void blocks_are_cut_between_words(void **state)
{
	size_t bytes = 400000;
	char *text = malloc(bytes + 1);
	ls_tokens whole = { 0 };
	ls_bpe *bpe;
	ls_dataset *set;
	assert_non_null(text);
	for (size_t i = 0; i < bytes; i++)
		text[i] = ls_mix64(i) % 9 == 0 ? '\n' : ls_mix64(i) % 7 == 0 ? ' ' : "abcd'st"[ls_mix64(i) % 7];
	text[bytes] = 0;
	put_text(*state, "x.txt", text);
	assert_ok(ls_bpe_new_bytes(&bpe));
	assert_ok(ls_bpe_encode(bpe, text, bytes, &whole));
	assert_ok(open_text(&set, in_dir(*state, "x.txt"), LS_SPLIT_TRAIN, TOKENS));
	const ls_corpus *corpus = ls_corpus_of(set);
	assert_int_equal(corpus->counts.tokens, whole.count + 1);
	assert_true(corpus->counts.sentences > 3);
	for (size_t i = 0; i < whole.count; i++)
		assert_int_equal(ls_corpus_token(corpus, i + 1), whole.ids[i]);
	ls_dataset_free(set);
	ls_tokens_free(&whole);
	ls_bpe_free(bpe);
	free(text);
}

static void what_is_wrong_is_said(void **state)
{
	ls_dataset *set;
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	put_text(*state, "x.txt", "short");
	assert_fails(open_text(&set, in_dir(*state, "x.txt"), LS_SPLIT_TRAIN, TOKENS), LS_ENOTFOUND,
		     "a sample needs 17");
	assert_fails(open_text(&set, in_dir(*state, "x.txt"), LS_SPLIT_TRAIN, 1), LS_EINVALID, "they can have 2");
	assert_fails(open_text(&set, "babble-pairs", LS_SPLIT_TRAIN, TOKENS), LS_EMISMATCH, "bert");
	put_text(*state, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
	options.name = in_dir(*state, "x.txt");
	options.next_token = 1;
	char vocab[4096];
	snprintf(vocab, sizeof(vocab), "%s/vocab.txt", (const char *)*state);
	options.vocab = vocab;
	assert_fails(ls_dataset_open(&set, &options), LS_EINVALID, "no vocabulary for a language model");
	options.next_token = 0;
	options.vocab = "bytes";
	assert_fails(ls_dataset_open(&set, &options), LS_EINVALID, "this model takes a vocab.txt");
}

static void babble_is_a_stream(void **state)
{
	ls_dataset *set;
	(void)state;
	assert_ok(open_text(&set, "babble", LS_SPLIT_TRAIN, TOKENS));
	for (uint64_t i = 0; i < 50; i++) {
		const ls_text_sample *s = read_one(set, i, 0);
		for (int k = 0; k + 1 < TOKENS; k++)
			assert_int_equal(s->targets[k], s->tokens[k + 1]);
	}
	ls_dataset_free(set);
}

static uint64_t hash_of(const char *path)
{
	ls_dataset *set = NULL;
	assert_ok(open_text(&set, path, LS_SPLIT_TRAIN, TOKENS));
	uint64_t hash = ls_dataset_describe(set)->text_hash;
	ls_dataset_free(set);
	return hash;
}

/* Another text of the same size whose time was set back is not taken from the cache. */
static void a_changed_text_is_read_again(void **state)
{
	char *text = long_text(), path[4096];
	struct stat facts;
	snprintf(path, sizeof(path), "%s", in_dir(*state, "text.txt"));
	put_text(*state, "text.txt", text);
	uint64_t before = hash_of(path);
	assert_int_equal(hash_of(path), before);
	assert_int_equal(stat(path, &facts), 0);
	text[10] = text[10] == 'x' ? 'y' : 'x';
	put_text(*state, "text.txt", text);
	const struct timespec times[2] = { facts.st_atim, facts.st_mtim };
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_true(hash_of(path) != before);
}

TEST_MAIN_EACH(enter, temp_dir_remove, tokens_predict_the_next, epochs_cut_elsewhere, testing_is_the_end,
	       a_changed_text_is_read_again, documents_are_one_stream, blocks_are_cut_between_words,
	       what_is_wrong_is_said, babble_is_a_stream)
