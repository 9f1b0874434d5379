/*
 * The sentiment treebank: trees are read to the byte, errors say where, and samples are what the tokenizer makes of the
 * whole sentence.
 */
#include "unit/data/fixture.h"

#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/sst.h"
#include "data/readers/trees.h"
#include "tokenizer/wordpiece.h"
#include "unit/test_main.h"

static ls_status read_text(ls_tree *tree, const char *text)
{
	return ls_tree_read(tree, text, strlen(text), "trees.txt", 7);
}

static void trees_become_sentences(void **state)
{
	(void)state;
	ls_tree tree = { 0 };
	assert_ok(read_text(&tree, "(3 (2 It) (4 (2 's) (4 (3 (2 a) (4 (3 lovely) (2 film))) (2 .))))"));
	assert_int_equal(tree.words, 6);
	assert_int_equal(tree.bytes, strlen("It 's a lovely film ."));
	assert_memory_equal(tree.text, "It 's a lovely film .", tree.bytes);
	assert_int_equal(tree.count, 11);
	static const int expected[][3] = { { 3, 0, 6 }, { 2, 0, 1 }, { 4, 1, 5 }, { 2, 1, 1 }, { 4, 2, 4 }, { 3, 2, 3 },
					   { 2, 2, 1 }, { 4, 3, 2 }, { 3, 3, 1 }, { 2, 4, 1 }, { 2, 5, 1 } };
	for (size_t i = 0; i < tree.count; i++) {
		assert_int_equal(tree.phrases[i].label, expected[i][0]);
		assert_int_equal(tree.phrases[i].first, expected[i][1]);
		assert_int_equal(tree.phrases[i].words, expected[i][2]);
	}
	assert_int_equal(tree.word[3], 8);
	assert_int_equal(tree.word[4] - 1 - tree.word[3], 6); /* "lovely" */
	assert_ok(read_text(&tree, " ( 0 word )"));
	assert_int_equal(tree.count, 1);
	assert_ok(read_text(&tree, "(2 (2 -LRB-) (2 (2 ``) (2 (2 and\\/or) (2 (2 '') (2 (2 `) (2 (2 \\*\\*\\*) "
				   "(2 (2 a\\b) (2 -RRB-))))))))"));
	assert_memory_equal(tree.text, "( \" and/or \" ' *** a\\b )", tree.bytes);
	assert_int_equal(tree.bytes, strlen("( \" and/or \" ' *** a\\b )"));
	ls_tree_free(&tree);
}

static void what_is_no_tree_is_located(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{ "hello", "trees.txt:7:1: expected a tree" },
		{ "(5 x)", "trees.txt:7:2: expected a label, 0 to 4" },
		{ "(", "trees.txt:7:2: expected a label" },
		{ "(22 x)", "trees.txt:7:3: expected a space" },
		{ "(2 (2 a) (3 b)", "trees.txt:7:15: the line ends inside a tree" },
		{ "(2 a) b", "trees.txt:7:7: text after the tree" },
		{ "(2 a) (2 b)", "trees.txt:7:7: text after" },
		{ "(2 a b)", "trees.txt:7:6: expected ')' after the word" },
		{ "(2 (2 a) b)", "trees.txt:7:10: a word next to a tree" },
		{ "(2 )", "trees.txt:7:4: a phrase without a word" },
		{ "(2 (3 ))", "trees.txt:7:7: a phrase without a word" },
	};
	ls_tree tree = { 0 };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_fails(read_text(&tree, cases[i][0]), LS_EFORMAT, cases[i][1]);
	size_t deep = 200000; /* no recursion: depth costs memory, not stack */
	char *text = malloc(4 * deep + 1);
	for (size_t i = 0; i < deep; i++)
		memcpy(text + 3 * i, "(2 ", 3);
	memcpy(text + 3 * deep, "x", 1);
	memset(text + 3 * deep + 1, ')', deep);
	text[4 * deep] = ')';
	assert_ok(ls_tree_read(&tree, text, 4 * deep + 1, "deep", 1));
	assert_int_equal(tree.count, deep);
	assert_fails(ls_tree_read(&tree, text, 4 * deep, "deep", 1), LS_EFORMAT, "a ')' is missing");
	free(text);
	ls_tree_free(&tree);
}

static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nit\n'\ns\na\nlove\n##ly\nfilm\n.\n(\n)\nbad\n";
static const char train[] = "(3 (2 It) (4 (2 's) (4 (3 (2 a) (4 (3 lovely) (2 film))) (2 .))))\r\n"
			    "\n"
			    "(0 (0 bad) (2 .))\n";
static const char test[] = "(1 (2 -LRB-) (1 (2 (2 a) (2 (0 bad) (2 zebra))) (2 -RRB-)))\n"
			   "(2 (2 (2 a) (2 film)) (2 (2 (2 a) (2 film)) (2 (2 (2 a) (2 film)) (2 .))))";

static void put_text(const char *dir, const char *name, const char *text)
{
	put_file(in_dir(dir, name), text, strlen(text));
}

static void put_treebank(const char *dir)
{
	put_text(dir, "train.txt", train);
	put_text(dir, "test.txt", test);
	put_text(dir, "vocab.txt", vocab);
}

static ls_status open_sst(ls_dataset **set, const char *dir, ls_split split, int tokens, int phrases)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	options.name = "sst5";
	options.dir = dir;
	options.split = split;
	options.tokens = tokens;
	options.phrases = phrases;
	return ls_dataset_open(set, &options);
}

static void expect_sample(const ls_dataset *set, uint64_t index, int32_t label, const int32_t *tokens, int length)
{
	int32_t ids[64], segments[64];
	ls_text_sample sample = { .tokens = ids, .segments = segments };
	assert_ok(ls_dataset_read_text(set, index, 0, &sample));
	assert_int_equal(sample.length, length);
	assert_int_equal(sample.label, label);
	for (int i = 0; i < length; i++) {
		assert_int_equal(ids[i], tokens[i]);
		assert_int_equal(segments[i], 0);
	}
}

static void sentences_and_phrases(void **state)
{
	const char *dir = *state;
	ls_dataset *set;
	put_treebank(dir);
	assert_ok(open_sst(&set, dir, LS_SPLIT_TRAIN, 0, 0));
	const ls_dataset_info *info = ls_dataset_describe(set);
	assert_int_equal(info->samples, 2);
	assert_int_equal(info->classes, 5);
	assert_int_equal(info->vocabulary, 16);
	assert_int_equal(info->tokens_max, 10); /* of the first sentence to train on: it ' s a love ##ly film . */
	assert_true(info->vocabulary_hash != 0);
	expect_sample(set, 0, 3, (int32_t[]){ 2, 5, 6, 7, 8, 9, 10, 11, 12, 3 }, 10);
	expect_sample(set, 1, 0, (int32_t[]){ 2, 15, 12, 3 }, 4);
	ls_dataset_free(set);
	assert_ok(open_sst(&set, dir, LS_SPLIT_TEST, 0, 1)); /* phrases are for training */
	assert_int_equal(ls_dataset_describe(set)->samples, 2);
	assert_int_equal(ls_dataset_describe(set)->tokens_max, 10);
	expect_sample(set, 0, 1, (int32_t[]){ 2, 13, 8, 15, 1, 14, 3 }, 7);
	ls_dataset_free(set);
	assert_ok(open_sst(&set, dir, LS_SPLIT_TRAIN, 0, 1));
	assert_int_equal(ls_dataset_describe(set)->samples, 14);
	expect_sample(set, 3, 2, (int32_t[]){ 2, 6, 7, 3 }, 4);      /* 's */
	expect_sample(set, 7, 4, (int32_t[]){ 2, 9, 10, 11, 3 }, 5); /* lovely film */
	expect_sample(set, 12, 0, (int32_t[]){ 2, 15, 3 }, 3);       /* bad */
	ls_dataset_free(set);
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT; /* three of 14, evenly: 0, 4 and 9 */
	options.name = "sst5";
	options.dir = dir;
	options.phrases = 1;
	options.samples = 3;
	assert_ok(ls_dataset_open(&set, &options));
	assert_int_equal(ls_dataset_describe(set)->samples, 3);
	expect_sample(set, 0, 3, (int32_t[]){ 2, 5, 6, 7, 8, 9, 10, 11, 12, 3 }, 10);
	expect_sample(set, 2, 2, (int32_t[]){ 2, 11, 3 }, 3); /* film */
	ls_dataset_free(set);
	assert_ok(open_sst(&set, dir, LS_SPLIT_TRAIN, 8, 0));
	assert_int_equal(ls_dataset_describe(set)->tokens_max, 8);
	expect_sample(set, 0, 3, (int32_t[]){ 2, 5, 6, 7, 8, 9, 10, 3 }, 8);
	ls_dataset_free(set);
}

static uint64_t text_hash_of(const char *dir)
{
	ls_dataset *set;
	assert_ok(open_sst(&set, dir, LS_SPLIT_TRAIN, 0, 0));
	uint64_t hash = ls_dataset_describe(set)->text_hash;
	ls_dataset_free(set);
	return hash;
}

/* Nodes compare the hash, and so does a run that goes on. */
static void labels_are_hashed_with_the_text(void **state)
{
	const char *dir = *state;
	put_treebank(dir);
	uint64_t first = text_hash_of(dir);
	assert_true(first == text_hash_of(dir));
	put_text(dir, "train.txt",
		 "(3 (2 It) (4 (2 's) (4 (3 (2 a) (4 (3 lovely) (2 film))) (2 .))))\n(1 (0 bad) (2 .))\n");
	assert_true(first != text_hash_of(dir));
}

static void what_is_missing_is_said(void **state)
{
	const char *dir = *state;
	ls_dataset *set;
	assert_fails(open_sst(&set, dir, LS_SPLIT_TRAIN, 0, 0), LS_ENOTFOUND, "lockstep data get sst5");
	put_treebank(dir);
	assert_fails(open_sst(&set, dir, LS_SPLIT_TRAIN, 7, 0), LS_EINVALID, "samples of 7 tokens");
	unlink(in_dir(dir, "vocab.txt"));
	assert_fails(open_sst(&set, dir, LS_SPLIT_TRAIN, 0, 0), LS_ENOTFOUND, "no vocabulary");
	put_text(dir, "vocab.txt", vocab);
	put_text(dir, "train.txt", "(2 good)\n(2 (2 a)\n");
	assert_fails(open_sst(&set, dir, LS_SPLIT_TEST, 0, 0), LS_EFORMAT, "train.txt:2:9: the line ends");
	put_text(dir, "train.txt",
		 "(2 good)\n(2 (2 a) (2 b\xff"
		 "c))\n");
	assert_fails(open_sst(&set, dir, LS_SPLIT_TRAIN, 0, 0), LS_EFORMAT, "train.txt:2: word 2 is not UTF-8");
	put_text(dir, "train.txt", "\n\n");
	assert_fails(open_sst(&set, dir, LS_SPLIT_TRAIN, 0, 0), LS_EFORMAT, "train.txt has no trees");
	unlink(in_dir(dir, "test.txt"));
	put_text(dir, "train.txt", train);
	assert_fails(open_sst(&set, dir, LS_SPLIT_TRAIN, 0, 0), LS_ENOTFOUND, "test.txt");
}

TEST_MAIN_EACH(fixture_enter, temp_dir_remove, trees_become_sentences, what_is_no_tree_is_located,
	       sentences_and_phrases, labels_are_hashed_with_the_text, what_is_missing_is_said)
