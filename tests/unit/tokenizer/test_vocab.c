/*
 * Vocabularies: reading, writing back the same bytes, and errors that name the line.
 */
#include "unit/test_main.h"
#include "unit/tokenizer/fixture.h"

#include <xxhash.h>

#define HEAD "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

static ls_status parse(const char *text, size_t bytes)
{
	ls_vocab *vocab = NULL;
	char *exact = malloc(bytes + !bytes); /* a byte too far is seen */
	memcpy(exact, text, bytes);
	ls_status status = ls_vocab_parse(&vocab, exact, bytes, "some.txt");
	free(exact);
	if (status != LS_OK)
		assert_null(vocab);
	ls_vocab_free(vocab);
	return status;
}

static void lines_are_pieces(void **state)
{
	const char *text = "[PAD]\r\n[CLS]\nthe\n[SEP]\n##ing\n\xC3\xA9\n[UNK]\n#\n##\n[MASK]";
	put_file(in_dir(*state, "vocab.txt"), text, strlen(text));
	ls_vocab *vocab;
	assert_ok(ls_vocab_load(&vocab, in_dir(*state, "vocab.txt")));
	const char *pieces[] = { "[PAD]", "[CLS]", "the", "[SEP]", "##ing", "\xC3\xA9", "[UNK]", "#", "##", "[MASK]" };
	assert_int_equal(ls_vocab_size(vocab), COUNT(pieces));
	for (size_t i = 0; i < COUNT(pieces); i++) {
		assert_string_equal(ls_vocab_piece(vocab, (int32_t)i), pieces[i]);
		assert_int_equal(ls_vocab_find(vocab, pieces[i], strlen(pieces[i])), i);
	}
	const ls_special *special = ls_vocab_special(vocab);
	assert_int_equal(special->pad, 0);
	assert_int_equal(special->unk, 6);
	assert_int_equal(special->cls, 1);
	assert_int_equal(special->sep, 3);
	assert_int_equal(special->mask, 9);
	assert_null(ls_vocab_piece(vocab, -1));
	assert_null(ls_vocab_piece(vocab, 10));
	assert_int_equal(ls_vocab_find(vocab, "th", 2), -1);
	assert_int_equal(ls_vocab_find(vocab, "thee", 4), -1);
	assert_int_equal(ls_vocab_find(vocab, "", 0), -1);
	ls_vocab_free(vocab);
}

static void wrong_files_are_refused(void **state)
{
	(void)state;
	struct {
		const char *text;
		size_t bytes;
		const char *message;
	} cases[] = {
#define CASE(text, message) { text, sizeof(text) - 1, message }
		CASE("", "some.txt: empty"),
		CASE("\n\r\n\n", "some.txt: empty"),
		CASE(HEAD "a\n\nb\n", "some.txt:7: an empty piece"),
		CASE("\n" HEAD, "some.txt:1: an empty piece"),
		CASE(HEAD "a\n\r\nb\n", "some.txt:7: an empty piece"),
		CASE(HEAD "a\nb\na\n", "some.txt:8: 'a' is already line 6"),
		CASE(HEAD "[PAD]", "some.txt:6: '[PAD]' is already line 1"),
		CASE(HEAD "a\nb\xFFz\n", "some.txt:7: not UTF-8"),
		CASE(HEAD "\xED\xA0\x80", "some.txt:6: not UTF-8"),
		CASE(HEAD "\xE2\x82\n\xAC", "some.txt:6: not UTF-8"),
		CASE(HEAD "a\nb\0c\n", "some.txt:7: a byte of 0"),
		CASE("\xEF\xBB\xBF" HEAD, "some.txt:1: begins with a byte order mark"),
		CASE("[UNK]\n[CLS]\n[SEP]\n[MASK]\n", "some.txt: [PAD] is missing among its 4 pieces"),
		CASE("[PAD]\n[CLS]\n[SEP]\n[MASK]\n", "[UNK] is missing"),
		CASE("[PAD]\n[UNK]\n[SEP]\n[MASK]\n", "[CLS] is missing"),
		CASE("[PAD]\n[UNK]\n[CLS]\n[MASK]\n", "[SEP] is missing"),
		CASE("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[mask]\n", "[MASK] is missing"),
#undef CASE
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_fails(parse(cases[i].text, cases[i].bytes), LS_EFORMAT, cases[i].message);
	assert_ok(parse(HEAD, strlen(HEAD)));
	assert_ok(parse(HEAD "a\r\n\n\n", strlen(HEAD) + 5));
}

static void sizes_have_limits(void **state)
{
	(void)state;
	size_t head = strlen(HEAD), bytes = head + 2 * ((size_t)LS_VOCAB_PIECES_MAX - 4);
	char *text = malloc(bytes);
	memcpy(text, HEAD, head);
	memset(text + head, 'a', 1001);
	assert_ok(parse(text, head + 1000));
	assert_fails(parse(text, head + 1001), LS_EFORMAT, "some.txt:6: a piece of more than 1000 bytes");
	for (size_t i = head; i < bytes; i += 2)
		memcpy(text + i, "a\n", 2);
	assert_fails(parse(text, bytes), LS_EFORMAT, "some.txt: 16777217 lines; a vocabulary has at most 16777216");
	assert_fails(parse(text, bytes - 2), LS_EFORMAT, "some.txt:7: 'a' is already line 6");
	free(text);
}

static void missing_files_are_named(void **state)
{
	ls_vocab *vocab = NULL;
	assert_fails(ls_vocab_load(&vocab, in_dir(*state, "absent")), LS_ENOTFOUND, "absent");
	assert_int_not_equal(ls_vocab_load(&vocab, *state), LS_OK);
	assert_null(vocab);
}

static void arrays_are_refused_by_piece(void **state)
{
	(void)state;
	ls_vocab *vocab = NULL;
	const char *twice[] = { SPECIALS, "a", "b", "a" }, *empty[] = { SPECIALS, "" }, *few[] = { "[PAD]", "[UNK]" };
	assert_fails(ls_vocab_new(&vocab, twice, 8), LS_EINVALID, "piece 7 of the vocabulary: 'a' is already piece 5");
	assert_fails(ls_vocab_new(&vocab, empty, 6), LS_EINVALID, "piece 5 of the vocabulary: an empty piece");
	assert_fails(ls_vocab_new(&vocab, few, 2), LS_EFORMAT, "[CLS] is missing");
	assert_fails(ls_vocab_new(&vocab, few, 0), LS_EFORMAT, "[PAD] is missing");
	assert_null(vocab);
}

static void saved_is_what_was_loaded(void **state)
{
	const char *pieces[] = { SPECIALS, "b", "##b", "\xF0\x9F\x98\x80", "[PAD", "a b" };
	const char *text = HEAD "b\n##b\n\xF0\x9F\x98\x80\n[PAD\na b\n", *path = in_dir(*state, "saved.txt");
	ls_vocab *made, *loaded;
	ls_file_map map;
	assert_ok(ls_vocab_new(&made, pieces, COUNT(pieces)));
	put_file(path, "old", 3);
	assert_ok(ls_vocab_save(made, path));
	assert_ok(ls_file_map_open(&map, path));
	assert_int_equal(map.bytes, strlen(text));
	assert_memory_equal(map.data, text, map.bytes);
	assert_int_equal(ls_vocab_hash(made), XXH64(text, strlen(text), 0));
	ls_file_map_close(&map);
	assert_ok(ls_vocab_load(&loaded, path));
	assert_int_equal(ls_vocab_size(loaded), COUNT(pieces));
	assert_int_equal(ls_vocab_hash(loaded), ls_vocab_hash(made));
	assert_fails(ls_vocab_save(made, in_dir(*state, "no/such/place")), LS_EIO, "no/such/place");
	ls_vocab_free(made);
	ls_vocab_free(loaded);
}

static void hashes_tell_vocabularies_apart(void **state)
{
	(void)state;
	const char *one[] = { SPECIALS, "a", "bc" }, *two[] = { SPECIALS, "ab", "c" },
		   *three[] = { SPECIALS, "bc", "a" };
	ls_vocab *a, *b, *c;
	assert_ok(ls_vocab_new(&a, one, 7));
	assert_ok(ls_vocab_new(&b, two, 7));
	assert_ok(ls_vocab_new(&c, three, 7));
	assert_int_not_equal(ls_vocab_hash(a), ls_vocab_hash(b));
	assert_int_not_equal(ls_vocab_hash(a), ls_vocab_hash(c));
	ls_vocab_free(a);
	ls_vocab_free(b);
	ls_vocab_free(c);
}

static void the_longest_piece_is_found(void **state)
{
	(void)state;
	const char *pieces[] = { SPECIALS, "a", "abc", "##b", "##bcd", "\xC3\xA9t", "##\xC3\xA9" };
	ls_vocab *vocab;
	size_t used = 0;
	assert_ok(ls_vocab_new(&vocab, pieces, COUNT(pieces)));
	assert_int_equal(ls_vocab_longest(vocab, "abcd", 4, 0, &used), 6);
	assert_int_equal(used, 3);
	assert_int_equal(ls_vocab_longest(vocab, "abd", 3, 0, &used), 5);
	assert_int_equal(used, 1);
	assert_int_equal(ls_vocab_longest(vocab, "abcd", 2, 0, &used), 5);
	assert_int_equal(ls_vocab_longest(vocab, "bcd", 3, 1, &used), 8);
	assert_int_equal(used, 3);
	assert_int_equal(ls_vocab_longest(vocab, "bcd", 3, 0, &used), -1);
	assert_int_equal(ls_vocab_longest(vocab, "a", 1, 1, &used), -1);
	assert_int_equal(ls_vocab_longest(vocab, "\xC3\xA9", 2, 1, &used), 10);
	assert_int_equal(ls_vocab_longest(vocab, "\xC3\xA9", 2, 0, &used), -1);
	ls_vocab_free(vocab);
	ls_vocab_free(NULL);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, lines_are_pieces, wrong_files_are_refused, sizes_have_limits,
	       missing_files_are_named, arrays_are_refused_by_piece, saved_is_what_was_loaded,
	       hashes_tell_vocabularies_apart, the_longest_piece_is_found)
