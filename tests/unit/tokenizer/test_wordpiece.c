/*
 * The tokenizer on tests/golden/wordpiece.tsv, and what a table cannot show: appending, failing, sharing, long texts.
 */
#include "unit/test_main.h"
#include "unit/tokenizer/fixture.h"

#include <pthread.h>

static size_t unescape(char *text)
{
	size_t bytes = 0;
	unsigned value;
	for (const char *p = text; *p; bytes++) {
		if (*p == '\\' && sscanf(p, "\\x%2x", &value) == 1) {
			text[bytes] = (char)value;
			p += 4;
		} else {
			text[bytes] = *p++;
		}
	}
	return bytes;
}

static ls_wordpiece *tokenizer(const ls_vocab *vocab, const char *options)
{
	ls_wordpiece *wordpiece = NULL;
	const char *max = strstr(options, "max=");
	ls_wordpiece_options o = { strstr(options, "cased") != NULL, strstr(options, "replace") != NULL,
				   max ? atoi(max + 4) : 0 };
	assert_ok(ls_wordpiece_new(&wordpiece, vocab, &o));
	return wordpiece;
}

static void check_case(const ls_vocab *vocab, const char *options, char *text, const char *expected)
{
	ls_wordpiece *wordpiece = tokenizer(vocab, options);
	ls_tokens tokens = { 0 };
	size_t bytes = unescape(text);
	char *exact = malloc(bytes + !bytes), message[64];
	memcpy(exact, text, bytes);
	ls_status status = ls_wordpiece_encode(wordpiece, exact, bytes, &tokens);
	if (expected[0] == '!' && expected[1] >= '0' && expected[1] <= '9') {
		snprintf(message, sizeof(message), "byte %s (line ", expected + 1);
		assert_fails(status, LS_EFORMAT, message);
		assert_int_equal(tokens.count, 0);
	} else {
		assert_int_equal(status, LS_OK);
		char *pieces = pieces_of(vocab, &tokens);
		assert_string_equal(pieces, expected);
		free(pieces);
	}
	free(exact);
	ls_tokens_free(&tokens);
	ls_wordpiece_free(wordpiece);
}

static ls_vocab *golden_vocab(void)
{
	ls_vocab *vocab;
	assert_ok(ls_vocab_load(&vocab, LS_GOLDEN_DIR "/wordpiece-vocab.txt"));
	return vocab;
}

static void hard_cases(void **state)
{
	(void)state;
	ls_vocab *vocab = golden_vocab();
	FILE *table = fopen(LS_GOLDEN_DIR "/wordpiece.tsv", "r");
	char *line = NULL;
	size_t capacity = 0, cases = 0;
	assert_non_null(table);
	for (; getline(&line, &capacity, table) > 0; cases++) {
		line[strcspn(line, "\n")] = 0;
		char *rest = line, *options = strsep(&rest, "\t"), *text = strsep(&rest, "\t");
		assert_non_null(rest);
		check_case(vocab, options, text, rest);
	}
	assert_true(cases > 100);
	free(line);
	fclose(table);
	ls_vocab_free(vocab);
}

static void tokens_are_appended_or_left(void **state)
{
	(void)state;
	ls_vocab *vocab = golden_vocab();
	ls_wordpiece *wordpiece;
	ls_tokens tokens = { 0 };
	assert_ok(ls_wordpiece_new(&wordpiece, vocab, NULL));
	assert_ok(ls_wordpiece_encode(wordpiece, NULL, 0, &tokens));
	assert_int_equal(tokens.count, 0);
	assert_ok(ls_tokens_add(&tokens, 7));
	assert_ok(ls_wordpiece_encode(wordpiece, "hello", 5, &tokens));
	assert_int_equal(tokens.count, 2);
	assert_fails(ls_wordpiece_encode(wordpiece, "hello\nhello \xFF", 13, &tokens), LS_EFORMAT,
		     "byte 12 (line 2) is not UTF-8: 0xff");
	assert_int_equal(tokens.count, 2);
	assert_int_equal(tokens.ids[0], 7);
	assert_string_equal(ls_vocab_piece(vocab, tokens.ids[1]), "hello");
	ls_tokens_free(&tokens);
	assert_int_equal(tokens.capacity, 0);
	ls_wordpiece_free(wordpiece);
	ls_vocab_free(vocab);
}

static void options_have_ranges(void **state)
{
	(void)state;
	ls_vocab *vocab = golden_vocab();
	ls_wordpiece *wordpiece = NULL;
	ls_wordpiece_options o = { .word_max = 1001 };
	assert_fails(ls_wordpiece_new(&wordpiece, vocab, &o), LS_EINVALID, "words of at most 1001 characters");
	o.word_max = -1;
	assert_fails(ls_wordpiece_new(&wordpiece, vocab, &o), LS_EINVALID, "1 to 1000");
	assert_null(wordpiece);
	ls_wordpiece_free(NULL);
	ls_vocab_free(vocab);
}

/* A run of a million characters without a space, with marks in the worst order, takes no time that matters. */
static void long_runs_are_linear(void **state)
{
	(void)state;
	const char *units[] = { "a\xCC\x81", "\xF0\x9D\x85\xAD\xF0\x9D\x85\xA5", "\xCE\xA3'", "\xCC\x81\xCC\xA3",
				"\xED\x95\x9C" };
	ls_vocab *vocab = golden_vocab();
	ls_wordpiece *wordpiece;
	assert_ok(ls_wordpiece_new(&wordpiece, vocab, NULL));
	for (size_t i = 0; i < COUNT(units); i++) {
		size_t unit = strlen(units[i]), count = 300000;
		char *text = malloc(unit * count);
		for (size_t k = 0; k < count; k++)
			memcpy(text + k * unit, units[i], unit);
		ls_tokens tokens = { 0 };
		assert_ok(ls_wordpiece_encode(wordpiece, text, unit * count, &tokens));
		assert_int_equal(tokens.count, i == 2 ? 2 * count : i == 3 ? 0 : 1);
		ls_tokens_free(&tokens);
		free(text);
	}
	ls_wordpiece_free(wordpiece);
	ls_vocab_free(vocab);
}

typedef struct sharer {
	const ls_wordpiece *wordpiece;
	ls_tokens tokens;
	ls_status status;
} sharer;

static void *share(void *argument)
{
	sharer *s = argument;
	const char *text = "Hello, w\xC3\xB6rld! running \xE4\xBD\xA0\xE5\xA5\xBD [MASK]";
	for (int i = 0; i < 2000 && s->status == LS_OK; i++)
		s->status = ls_wordpiece_encode(s->wordpiece, text, strlen(text), &s->tokens);
	return NULL;
}

static void threads_share_a_tokenizer(void **state)
{
	(void)state;
	ls_vocab *vocab = golden_vocab();
	ls_wordpiece *wordpiece;
	pthread_t threads[4];
	sharer sharers[4];
	assert_ok(ls_wordpiece_new(&wordpiece, vocab, NULL));
	for (int i = 0; i < 4; i++) {
		sharers[i] = (sharer){ .wordpiece = wordpiece };
		assert_int_equal(pthread_create(&threads[i], NULL, share, &sharers[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(sharers[i].status, LS_OK);
		assert_int_equal(sharers[i].tokens.count, 2000 * 9);
		assert_memory_equal(sharers[i].tokens.ids, sharers[0].tokens.ids, 2000 * 9 * sizeof(int32_t));
	}
	for (int i = 0; i < 4; i++)
		ls_tokens_free(&sharers[i].tokens);
	ls_wordpiece_free(wordpiece);
	ls_vocab_free(vocab);
}

TEST_MAIN(hard_cases, tokens_are_appended_or_left, options_have_ranges, long_runs_are_linear, threads_share_a_tokenizer)
