/*
 * Byte-pair encoding: words as GPT-2's expression cuts them, merges against a plain loop, files, learning, characters.
 */
#include "unit/tokenizer/fixture.h"

#include "base/rng.h"
#include "tokenizer/bpe.h"
#include "tokenizer/learn_bpe.h"
#include "unit/test_main.h"
#include "unit/test_seed.h"

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* The words of a text with '|' between them. */
static const char *cut_up(const char *text)
{
	static char out[4096];
	size_t used = 0, bytes = strlen(text);
	for (size_t at = 0, word; at < bytes; at += word) {
		word = ls_bpe_word(text + at, bytes - at);
		assert_true(word > 0 && at + word <= bytes);
		used += (size_t)snprintf(out + used, sizeof(out) - used, "%s%.*s", at ? "|" : "", (int)word, text + at);
	}
	out[used] = 0;
	return out;
}

/* What Python's regex module gives for the same expression. */
static void words_are_gpt2s(void **state)
{
	static const struct {
		const char *text, *cut;
	} cases[] = {
		{ "a", "a" },
		{ "Hello world", "Hello| world" },
		{ "I'm sure they'll've", "I|'m| sure| they|'ll|'ve" },
		{ "it's 'S 'sun", "it|'s| '|S| '|sun" },
		{ "2024's 3.14", "2024|'s| 3|.|14" },
		{ "a  b", "a| | b" },
		{ "a   b", "a|  | b" },
		{ "a \n b", "a| \n| b" },
		{ "a\nb", "a|\n|b" },
		{ "a\n\nb", "a|\n|\n|b" },
		{ "a\n\n\nb", "a|\n\n|\n|b" },
		{ "a  ", "a|  " },
		{ " ", " " },
		{ "\n", "\n" },
		{ "  a", " | a" },
		{ "x!?y", "x|!?|y" },
		{ "x !? y", "x| !?| y" },
		{ "x\302\240y", "x|\302\240|y" },
		{ "x\302\275y", "x|\302\275|y" },
		{ "\xE4\xBD\xA0\xE5\xA5\xBD\xE3\x80\x82x", "\xE4\xBD\xA0\xE5\xA5\xBD|\xE3\x80\x82|x" },
		{ "\303\251t\303\251 \303\234ber", "\303\251t\303\251| \303\234ber" },
		{ "a_b-c", "a|_|b|-|c" },
		{ "\tx", "\t|x" },
		{ "x\xFFy", "x|\xFF|y" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(cut_up(cases[i].text), cases[i].cut);
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

static ls_bpe *learn(const char *text, size_t bytes, ls_learn_bpe_options options)
{
	ls_bpe_learner *learner;
	ls_bpe *bpe = NULL;
	assert_ok(ls_bpe_learner_new(&learner, &options));
	assert_ok(ls_bpe_learner_add(learner, text, bytes));
	assert_ok(ls_bpe_learner_finish(learner, &bpe));
	ls_bpe_learner_free(learner);
	return bpe;
}

static void assert_decodes(const ls_bpe *bpe, const ls_tokens *tokens, const char *text, size_t bytes)
{
	size_t at = 0;
	for (size_t i = 0; i < tokens->count; i++) {
		size_t length = 0;
		const char *piece = ls_bpe_piece(bpe, tokens->ids[i], &length);
		assert_non_null(piece);
		assert_true(at + length <= bytes);
		assert_memory_equal(piece, text + at, length);
		at += length;
	}
	assert_int_equal(at, bytes);
}

/* One word by the definition: the earliest merge of all neighbours, the leftmost of equals, until there is none. */
static void merge_plainly(const ls_bpe *bpe, const char *word, size_t bytes, ls_tokens *to)
{
	int32_t ids[256];
	size_t count = bytes;
	assert_true(bytes <= COUNT(ids));
	for (size_t i = 0; i < bytes; i++)
		ids[i] = ls_bpe_byte(bpe, (uint8_t)word[i]);
	for (;;) {
		int32_t best = INT32_MAX, joined = -1;
		size_t at = 0;
		for (size_t i = 0; i + 1 < count; i++) {
			int32_t rank, id;
			if (ls_bpe_merge_of(bpe, ids[i], ids[i + 1], &rank, &id) && rank < best) {
				best = rank;
				joined = id;
				at = i;
			}
		}
		if (joined < 0)
			break;
		ids[at] = joined;
		memmove(ids + at + 1, ids + at + 2, (count - at - 2) * sizeof(*ids));
		count--;
	}
	for (size_t i = 0; i < count; i++)
		assert_ok(ls_tokens_add(to, ids[i]));
}

static size_t random_text(uint64_t seed, uint64_t number, char *out, size_t most)
{
	static const char *const parts[] = { "ab", "abab", " the", " then",    "a", "b",    "c",    " ",
					     "\n", "'s",   "12",   "\xC3\xA9", "!", "\xFF", "aaaa", "\xE4\xBD\xA0" };
	size_t used = 0;
	for (uint64_t i = 0;; i++) {
		uint32_t words[4];
		ls_rng_words(ls_rng_make(seed, LS_RNG_TEST, number), 0, i, words);
		const char *part = parts[words[0] % COUNT(parts)];
		if (words[1] % 60 == 0 || used + strlen(part) > most)
			return used;
		memcpy(out + used, part, strlen(part));
		used += strlen(part);
	}
}

static void merging_is_by_the_definition(void **state)
{
	uint64_t seed = test_seed();
	char text[20000], small[200];
	size_t bytes = 0;
	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		bytes += random_text(seed, i, text + bytes, 199);
	ls_bpe *bpe = learn(text, bytes, (ls_learn_bpe_options){ .size = 300 });
	for (uint64_t i = 0; i < 500; i++) {
		size_t length = random_text(seed, 1000 + i, small, sizeof(small));
		ls_tokens got = { 0 }, plain = { 0 };
		assert_ok(ls_bpe_encode(bpe, small, length, &got));
		for (size_t at = 0, word; at < length; at += word) {
			word = ls_bpe_word(small + at, length - at);
			merge_plainly(bpe, small + at, word, &plain);
		}
		assert_int_equal(got.count, plain.count);
		assert_true(got.count == 0 || !memcmp(got.ids, plain.ids, got.count * sizeof(*got.ids)));
		assert_decodes(bpe, &got, small, length);
		ls_tokens_free(&got);
		ls_tokens_free(&plain);
	}
	ls_bpe_free(bpe);
}

/* No spaces, no end: n log n, not n^2. */
static void a_long_word_is_quick(void **state)
{
	size_t bytes = (size_t)1 << 20;
	char *text = malloc(bytes);
	ls_tokens tokens = { 0 };
	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < bytes; i++)
		text[i] = "ACGT"[ls_mix64(i) % 4];
	ls_bpe *bpe = learn(text, 4096, (ls_learn_bpe_options){ .size = 400 });
	assert_ok(ls_bpe_encode(bpe, text, bytes, &tokens));
	assert_true(tokens.count < bytes / 2);
	assert_decodes(bpe, &tokens, text, bytes);
	ls_tokens_free(&tokens);
	ls_bpe_free(bpe);
	free(text);
}

/* ---- learning ---------------------------------------------------------------------------------------------------- */

static void assert_piece(const ls_bpe *bpe, int32_t id, const char *text)
{
	size_t bytes = 0;
	const char *piece = ls_bpe_piece(bpe, id, &bytes);
	assert_non_null(piece);
	assert_int_equal(bytes, strlen(text));
	assert_memory_equal(piece, text, bytes);
}

static void learning_has_known_answers(void **state)
{
	const char text[] =
		"low low low low low lower lower newest newest newest newest newest newest widest widest widest";
	(void)state;
	ls_bpe *bpe = learn(text, strlen(text), (ls_learn_bpe_options){ .size = 262 });
	/* es 9, est 9, " l" 7 (of lo 7 in the order of bytes), ... */
	assert_int_equal(ls_bpe_size(bpe), 262);
	assert_piece(bpe, 0, "!");
	assert_piece(bpe, 255, "\xAD");
	assert_piece(bpe, 256, "es");
	assert_piece(bpe, 257, "est");
	assert_piece(bpe, 261, LS_BPE_END);
	assert_int_equal(ls_bpe_end(bpe), 261);
	ls_tokens tokens = { 0 };
	assert_ok(ls_bpe_encode(bpe, "test", 4, &tokens));
	assert_int_equal(tokens.count, 2);
	assert_int_equal(tokens.ids[1], 257);
	ls_tokens_free(&tokens);
	ls_bpe_free(bpe);
	ls_bpe_learner *learner = NULL;
	assert_fails(ls_bpe_learner_new(&learner, &(ls_learn_bpe_options){ .size = 256 }), LS_EINVALID, "257");
}

/* A run of one byte would make pieces that double without end. */
static void pieces_are_not_too_long(void **state)
{
	size_t bytes = (size_t)400 << 10;
	char *text = malloc(bytes);
	assert_non_null(text);
	memset(text, '=', bytes);
	ls_bpe *bpe = learn(text, bytes, (ls_learn_bpe_options){ .size = 300 });
	for (size_t id = 0; id < ls_bpe_size(bpe); id++) {
		size_t length = 0;
		ls_bpe_piece(bpe, (int32_t)id, &length);
		assert_true(length <= LS_PIECE_BYTES_MAX);
	}
	assert_ok(ls_bpe_save(bpe, *state));
	ls_bpe_free(bpe);
	assert_ok(ls_bpe_load(&bpe, *state));
	ls_bpe_free(bpe);
	free(text);
}

static void learning_ignores_order(void **state)
{
	const char *texts[] = { "one two three two", " three three\nfour", "one\n\none two" };
	uint64_t hash = 0;
	(void)state;
	for (int first = 0; first < 3; first++) {
		ls_learn_bpe_options options = { .size = 280, .min_count = 1 };
		ls_bpe_learner *learner;
		ls_bpe *bpe = NULL;
		assert_ok(ls_bpe_learner_new(&learner, &options));
		for (int i = 0; i < 3; i++)
			assert_ok(ls_bpe_learner_add(learner, texts[(first + i) % 3], strlen(texts[(first + i) % 3])));
		assert_ok(ls_bpe_learner_finish(learner, &bpe));
		assert_true(hash == 0 || hash == ls_bpe_hash(bpe));
		hash = ls_bpe_hash(bpe);
		ls_bpe_learner_free(learner);
		ls_bpe_free(bpe);
	}
}

static void characters_are_those_that_occur(void **state)
{
	const char text[] = "b\xC3\xA9"
			    "a\na";
	ls_tokens tokens = { 0 };
	(void)state;
	ls_bpe *bpe = learn(text, strlen(text), (ls_learn_bpe_options){ .characters = 1 });
	assert_int_equal(ls_bpe_size(bpe), 5);
	assert_true(ls_bpe_has_characters(bpe));
	assert_piece(bpe, 0, "\n");
	assert_piece(bpe, 3, "\xC3\xA9");
	assert_ok(ls_bpe_encode(bpe, "ab\xC3\xA9\n", 5, &tokens));
	const int32_t expected[] = { 1, 2, 3, 0 };
	assert_int_equal(tokens.count, 4);
	assert_memory_equal(tokens.ids, expected, sizeof(expected));
	assert_fails(ls_bpe_encode(bpe, "abx", 3, &tokens), LS_EFORMAT, "byte 2: the character U+0078");
	assert_fails(ls_bpe_encode(bpe, "a\xFF", 2, &tokens), LS_EFORMAT, "byte 1 (0xff) is not UTF-8");
	assert_int_equal(tokens.count, 4);
	ls_tokens_free(&tokens);
	ls_bpe_free(bpe);
}

static void bytes_take_any_text(void **state)
{
	char text[256];
	ls_tokens tokens = { 0 };
	ls_bpe *bpe;
	(void)state;
	for (int i = 0; i < 256; i++)
		text[i] = (char)i;
	assert_ok(ls_bpe_load(&bpe, "bytes"));
	assert_int_equal(ls_bpe_size(bpe), 257);
	assert_ok(ls_bpe_encode(bpe, text, sizeof(text), &tokens));
	assert_int_equal(tokens.count, 256);
	assert_decodes(bpe, &tokens, text, sizeof(text));
	ls_tokens_free(&tokens);
	ls_bpe_free(bpe);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void assert_same_after_files(const ls_bpe *bpe, const char *dir)
{
	ls_bpe *again = NULL;
	assert_ok(ls_bpe_save(bpe, dir));
	assert_true(ls_bpe_is(dir));
	assert_ok(ls_bpe_load(&again, dir));
	assert_true(ls_bpe_hash(bpe) == ls_bpe_hash(again));
	assert_int_equal(ls_bpe_has_characters(bpe), ls_bpe_has_characters(again));
	ls_bpe_free(again);
	assert_ok(ls_bpe_load(&again, in_dir(dir, "vocab.json")));
	assert_true(ls_bpe_hash(bpe) == ls_bpe_hash(again));
	ls_bpe_free(again);
	remove(in_dir(dir, "vocab.json"));
	remove(in_dir(dir, "merges.txt"));
	assert_false(ls_bpe_is(dir));
}

static void files_keep_everything(void **state)
{
	const char text[] = "\"quoted\" and \\ back\\slashed\n\t \xC3\xA9\xFF the the the then\n";
	ls_bpe *bpe;
	bpe = learn(text, strlen(text), (ls_learn_bpe_options){ .size = 290, .min_count = 1 });
	assert_same_after_files(bpe, *state);
	ls_bpe_free(bpe);
	bpe = learn("a\"b\\\n \xC3\xA9", 8, (ls_learn_bpe_options){ .characters = 1 });
	assert_same_after_files(bpe, *state);
	ls_bpe_free(bpe);
	assert_ok(ls_bpe_new_bytes(&bpe));
	assert_same_after_files(bpe, *state);
	ls_bpe_free(bpe);
}

/* Characters into a directory that has merges: they are gone. */
static void an_older_vocabulary_is_replaced(void **state)
{
	ls_bpe *bpe = learn("ab ab", 5, (ls_learn_bpe_options){ .size = 258 }), *again = NULL;
	assert_ok(ls_bpe_save(bpe, *state));
	ls_bpe_free(bpe);
	bpe = learn("abc", 3, (ls_learn_bpe_options){ .characters = 1 });
	assert_ok(ls_bpe_save(bpe, *state));
	assert_ok(ls_bpe_load(&again, *state));
	assert_true(ls_bpe_hash(bpe) == ls_bpe_hash(again));
	ls_bpe_free(again);
	ls_bpe_free(bpe);
}

static void bad_files_are_refused(void **state)
{
	static const struct {
		const char *vocab, *merges, *says;
	} cases[] = {
		{ "{", NULL, "vocab.json:1" },
		{ "[]", NULL, "not a vocabulary" },
		{ "{}", NULL, "not a vocabulary" },
		{ "{\"a\": 0, \"b\": 2}", NULL, "not in 0..1" },
		{ "{\"a\": 0, \"b\": -1}", NULL, "not in 0..1" },
		{ "{\"a\": 0, \"b\": \"x\"}", NULL, "not in 0..1" },
		{ "{\"a\": 0, \"b\": 0}", NULL, "same number, 0" },
		{ "{\"a\": 0, \"a\": 1}", NULL, "vocab.json:1" },
		{ "{\"ab\": 0}", NULL, "piece 0 is not one character" },
		{ "{\"\": 0}", NULL, "stands for no byte" },
		{ "{\"\xE4\xBD\xA0\": 0}", NULL, "stands for no byte" },
		{ "{\"a\": 0}", "", "no piece is byte 0x00" },
	};
	ls_bpe *bpe = NULL;
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_fails(ls_bpe_parse(&bpe, cases[i].vocab, strlen(cases[i].vocab), "vocab.json", cases[i].merges,
					  cases[i].merges ? strlen(cases[i].merges) : 0, "merges.txt"),
			     LS_EFORMAT, cases[i].says);
}

static char *read_all(const char *path)
{
	static char text[65536];
	FILE *from = fopen(path, "r");
	assert_non_null(from);
	size_t got = fread(text, 1, sizeof(text) - 1, from);
	fclose(from);
	text[got] = 0;
	return text;
}

static void bad_merges_are_refused(void **state)
{
	static const struct {
		const char *merges, *says;
	} cases[] = { { "#version: 0.2\nab\n", "merges.txt:2: not two pieces" },
		      { "a zz\n", "merges.txt:1: not two pieces" },
		      { "a b\nb c\n", "merges.txt:2: the two pieces together" },
		      { "a b\na b\n", "merges.txt:2: the same pair is on line 1" },
		      { "#version: 0.2\na b\n\xFF b\n", "merges.txt:3: not two pieces" } };
	ls_bpe *bpe = learn("ab ab", 5, (ls_learn_bpe_options){ .size = 258 });
	assert_ok(ls_bpe_save(bpe, *state));
	ls_bpe_free(bpe);
	char *vocab = read_all(in_dir(*state, "vocab.json"));
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_fails(ls_bpe_parse(&bpe, vocab, strlen(vocab), "vocab.json", cases[i].merges,
					  strlen(cases[i].merges), "merges.txt"),
			     LS_EFORMAT, cases[i].says);
	assert_ok(ls_bpe_parse(&bpe, vocab, strlen(vocab), "vocab.json", "a b\r\n", 5, "merges.txt"));
	ls_bpe_free(bpe);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, words_are_gpt2s, merging_is_by_the_definition, a_long_word_is_quick,
	       learning_has_known_answers, pieces_are_not_too_long, learning_ignores_order,
	       characters_are_those_that_occur, bytes_take_any_text, files_keep_everything,
	       an_older_vocabulary_is_replaced, bad_files_are_refused, bad_merges_are_refused)
