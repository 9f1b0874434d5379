/*
 * Learning: small corpora with known answers, a plain trainer to compare with, and what must hold for any text.
 */
#include "unit/tokenizer/fixture.h"

#include "base/rng.h"
#include "tokenizer/learn_vocab.h"
#include "unit/test_main.h"

static ls_vocab *learn(const char *text, ls_learn_options options)
{
	ls_learner *learner;
	ls_vocab *vocab = NULL;
	assert_ok(ls_learner_new(&learner, &options));
	assert_ok(ls_learner_add(learner, text, strlen(text)));
	assert_ok(ls_learner_finish(learner, &vocab));
	ls_learner_free(learner);
	return vocab;
}

/* All pieces behind the special ones, with spaces between them. */
static void assert_pieces(const ls_vocab *vocab, const char *expected)
{
	const char *head[] = { SPECIALS };
	ls_tokens tokens = { 0 };
	for (size_t i = 0; i < ls_vocab_size(vocab); i++)
		if (i < COUNT(head))
			assert_string_equal(ls_vocab_piece(vocab, (int32_t)i), head[i]);
		else
			assert_ok(ls_tokens_add(&tokens, (int32_t)i));
	char *pieces = pieces_of(vocab, &tokens);
	assert_string_equal(pieces, expected);
	free(pieces);
	ls_tokens_free(&tokens);
}

static void known_answers(void **state)
{
	(void)state;
	struct {
		const char *text;
		size_t size;
		uint64_t min_count;
		int cased;
		const char *pieces;
	} cases[] = {
		{ "a", 100, 2, 0, "a ##a" },
		{ "ab ab", 100, 2, 0, "a b ##a ##b ab" },
		{ "ab ab", 100, 3, 0, "a b ##a ##b" },
		{ "AB ab", 100, 2, 0, "a b ##a ##b ab" },
		{ "AB ab", 100, 2, 1, "A B a b ##A ##B ##a ##b" },
		{ "[MASK] ab ab", 100, 2, 0, "a b ##a ##b ab" },
		/* punctuation and ideographs never continue a word */
		{ "a,a,\xE4\xBD\xA0", 100, 2, 0, ", a \xE4\xBD\xA0 ##a" },
		/* ab 3, ##b##c 2: then abc, whose parts are ab and ##c */
		{ "ab abc abc", 100, 2, 0, "a b c ##a ##b ##c ab abc" },
		/* equal counts: ##b##c comes before ab in the order of bytes, and makes it rare */
		{ "abc abc", 100, 2, 0, "a b c ##a ##b ##c ##bc abc" },
		{ "abc abc", 12, 2, 0, "a b c ##a ##b ##c ##bc" },
		{ "abc abc", 11, 2, 0, "a b c ##a ##b ##c" },
		/* neighbours that overlap: ##a##a occurs twice in aaaa, then once */
		{ "aaaa aaaa", 100, 2, 0, "a ##a ##aa ##aaa aaaa" },
		{ "low low low lower lower newest newest newest newest widest widest", 29, 2, 0,
		  "d e i l n o r s t w ##d ##e ##i ##l ##n ##o ##r ##s ##t ##w ##es ##est ##ow low" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		ls_learn_options o = { .size = cases[i].size,
				       .min_count = cases[i].min_count,
				       .cased = cases[i].cased };
		ls_vocab *vocab = learn(cases[i].text, o);
		assert_pieces(vocab, cases[i].pieces);
		ls_vocab_free(vocab);
	}
}

static void rare_characters_are_left_out(void **state)
{
	(void)state;
	ls_learn_options o = { .size = 100, .alphabet_max = 2 };
	ls_vocab *vocab = learn("ab ab ab cb ca a", o); /* a 5, b 4, c 2 */
	ls_wordpiece *wordpiece;
	ls_tokens tokens = { 0 };
	assert_pieces(vocab, "a b ##a ##b ab");
	assert_ok(ls_wordpiece_new(&wordpiece, vocab, NULL));
	assert_ok(ls_wordpiece_encode(wordpiece, "ab cb ba", 8, &tokens));
	char *pieces = pieces_of(vocab, &tokens);
	assert_string_equal(pieces, "ab [UNK] b ##a");
	free(pieces);
	ls_tokens_free(&tokens);
	ls_wordpiece_free(wordpiece);
	ls_vocab_free(vocab);
}

static void what_cannot_be_learnt(void **state)
{
	(void)state;
	ls_learner *learner = NULL;
	ls_vocab *vocab = NULL;
	ls_learn_options o = { .size = 10 };
	assert_ok(ls_learner_new(&learner, &o));
	assert_fails(ls_learner_finish(learner, &vocab), LS_EFORMAT, "no words");
	assert_fails(ls_learner_add(learner, "abc\n\x80", 5), LS_EFORMAT, "byte 4 (line 2) is not UTF-8: 0x80");
	assert_int_equal(ls_learner_words(learner), 1);
	assert_fails(ls_learner_finish(learner, &vocab), LS_EINVALID, "it takes at least 11");
	ls_learner_free(learner);
	learner = NULL;
	o.size = LS_VOCAB_PIECES_MAX + 1;
	assert_fails(ls_learner_new(&learner, &o), LS_EINVALID, "16777217 pieces");
	assert_null(learner);
	assert_null(vocab);
	ls_learner_free(NULL);
}

/* --- a corpus of random words, some of them frequent --- */

enum { WORDS = 3000, LETTERS = 5 };
static const char *const letters[LETTERS] = { "a", "b", "c", "\xC3\x9F", "\xD0\xB6" };

static char *random_words(uint64_t seed, int backwards)
{
	ls_rng rng = ls_rng_make(seed, LS_RNG_TEST, 0);
	char *text = calloc(1, WORDS * 16), *end = text;
	assert_non_null(text);
	for (uint32_t i = 0; i < WORDS; i++) {
		uint32_t w[4], which = backwards ? WORDS - 1 - i : i;
		ls_rng_words(rng, 0, which, w);
		ls_rng_words(rng, 1, ls_rng_below(w[0], 1 + ls_rng_below(w[1], 400)), w); /* words come again */
		uint32_t length = 1 + ls_rng_below(w[0], 6), bits = w[1];
		for (uint32_t k = 0; k < length; k++, bits /= LETTERS)
			end = (char *)memccpy(end, letters[bits % LETTERS], 0, 8) - 1;
		*end++ = i % 7 ? ' ' : '\n';
	}
	*end = 0;
	return text;
}

static void order_does_not_matter(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 4; seed++) {
		print_message("# seed %d\n", (int)seed);
		char *text = random_words(seed, 0), *turned = random_words(seed, 1);
		ls_learn_options o = { .size = 200 };
		ls_vocab *a = learn(text, o), *b = learn(text, o), *c = learn(turned, o);
		assert_string_not_equal(text, turned);
		assert_int_equal(ls_vocab_size(a), 200);
		assert_int_equal(ls_vocab_hash(a), ls_vocab_hash(b));
		assert_int_equal(ls_vocab_hash(a), ls_vocab_hash(c));
		ls_vocab_free(a);
		ls_vocab_free(b);
		ls_vocab_free(c);
		free(text);
		free(turned);
	}
}

static void every_word_can_be_written(void **state)
{
	(void)state;
	char *text = random_words(11, 0);
	for (size_t size = 15; size < 400; size += 77) {
		ls_learn_options o = { .size = size };
		ls_vocab *vocab = learn(text, o);
		ls_wordpiece *wordpiece;
		ls_tokens tokens = { 0 };
		assert_true(ls_vocab_size(vocab) <= size);
		assert_ok(ls_wordpiece_new(&wordpiece, vocab, NULL));
		assert_ok(ls_wordpiece_encode(wordpiece, text, strlen(text), &tokens));
		assert_true(tokens.count >= WORDS);
		for (size_t i = 0; i < tokens.count; i++)
			assert_int_not_equal(tokens.ids[i], ls_vocab_special(vocab)->unk);
		ls_tokens_free(&tokens);
		ls_wordpiece_free(wordpiece);
		ls_vocab_free(vocab);
	}
	free(text);
}

/* --- the plain way: count all pairs anew for every joining --- */

enum { PLAIN_WORDS = 400, PLAIN_LENGTH = 8, PLAIN_PIECES = 400 };

typedef struct plain {
	char pieces[PLAIN_PIECES][64];
	int piece_count;
	char words[PLAIN_WORDS][PLAIN_LENGTH][64]; /* pieces by their texts */
	int lengths[PLAIN_WORDS], word_count;
} plain;

static void plain_join_text(char out[64], const char *left, const char *right)
{
	snprintf(out, 64, "%.31s%.31s", left, right + 2);
}

static int plain_count(const plain *p, const char *left, const char *right)
{
	int count = 0;
	for (int w = 0; w < p->word_count; w++)
		for (int i = 0; i + 1 < p->lengths[w]; i++)
			count += !strcmp(p->words[w][i], left) && !strcmp(p->words[w][i + 1], right);
	return count;
}

/* The best pair; returns its count. Pairs are tried once: `seen` has them. */
static int plain_best(const plain *p, char best_left[64], char best_right[64])
{
	static char seen[20000][2][64];
	int seen_count = 0, best = 0;
	char joined[64], best_joined[64] = "";
	for (int w = 0; w < p->word_count; w++)
		for (int i = 0; i + 1 < p->lengths[w]; i++) {
			const char *left = p->words[w][i], *right = p->words[w][i + 1];
			int known = 0;
			for (int k = 0; k < seen_count && !known; k++)
				known = !strcmp(seen[k][0], left) && !strcmp(seen[k][1], right);
			if (known)
				continue;
			snprintf(seen[seen_count][0], 64, "%s", left);
			snprintf(seen[seen_count++][1], 64, "%s", right);
			int count = plain_count(p, left, right);
			plain_join_text(joined, left, right);
			int order = strcmp(joined, best_joined);
			if (count > best ||
			    (count == best && (order < 0 || (order == 0 && strlen(left) > strlen(best_left))))) {
				best = count;
				snprintf(best_left, 64, "%s", left);
				snprintf(best_right, 64, "%s", right);
				snprintf(best_joined, 64, "%s", joined);
			}
		}
	return best;
}

static void plain_join(plain *p, const char *left, const char *right)
{
	char joined[64];
	plain_join_text(joined, left, right);
	for (int w = 0; w < p->word_count; w++) {
		int kept = 0;
		for (int i = 0; i < p->lengths[w]; i++) {
			int here = i + 1 < p->lengths[w] && !strcmp(p->words[w][i], left) &&
				   !strcmp(p->words[w][i + 1], right);
			memmove(p->words[w][kept++], here ? joined : p->words[w][i], 64);
			i += here;
		}
		p->lengths[w] = kept;
	}
	for (int i = 0; i < p->piece_count; i++)
		if (!strcmp(p->pieces[i], joined))
			return;
	snprintf(p->pieces[p->piece_count++], 64, "%s", joined);
}

/* Words of a and b, so that the same text is joined in several ways. */
static void plain_words(plain *p, uint64_t seed, int count, char *text)
{
	ls_rng rng = ls_rng_make(seed, LS_RNG_TEST, 0);
	memset(p, 0, sizeof(*p));
	p->word_count = count;
	for (int i = 0; i < count; i++) {
		uint32_t w[4];
		ls_rng_words(rng, 0, (uint64_t)i, w);
		p->lengths[i] = 1 + (int)ls_rng_below(w[0], PLAIN_LENGTH);
		for (int k = 0; k < p->lengths[i]; k++) {
			*text = "aab"[(w[1] >> (3 * k)) % 3];
			snprintf(p->words[i][k], 64, "%s%c", k ? "##" : "", *text++);
		}
		*text++ = ' ';
	}
	*text = 0;
}

static void agrees_with_the_plain_way(void **state)
{
	(void)state;
	static plain p;
	static char text[PLAIN_WORDS * (PLAIN_LENGTH + 1) + 1];
	char left[64], right[64];
	for (uint64_t seed = 1; seed <= 60; seed++) {
		plain_words(&p, seed, seed == 1 ? 400 : 20 + (int)seed, text);
		while (p.piece_count < 60 && plain_best(&p, left, right) >= 2)
			plain_join(&p, left, right);
		ls_learn_options o = { .size = 9 + 60 };
		ls_vocab *vocab = learn(text, o);
		print_message("# seed %d: %d joined\n", (int)seed, p.piece_count);
		assert_int_equal(ls_vocab_size(vocab), 9 + p.piece_count);
		for (int i = 0; i < p.piece_count; i++)
			assert_string_equal(ls_vocab_piece(vocab, 9 + i), p.pieces[i]);
		ls_vocab_free(vocab);
	}
}

TEST_MAIN(known_answers, rare_characters_are_left_out, what_cannot_be_learnt, order_does_not_matter,
	  every_word_can_be_written, agrees_with_the_plain_way)
