/*
 * Text corpora: where sentences and documents are, the cache file, and the samples made from them.
 */
#include "unit/data/fixture.h"

#include <math.h>
#include <sys/wait.h>
#include <time.h>

#include "base/status.h"
#include "data/dataset.h"
#include "data/mask.h"
#include "data/readers/corpus.h"
#include "data/readers/sentences.h"
#include "unit/test_main.h"

static void put_text(const char *dir, const char *name, const char *text)
{
	put_file(in_dir(dir, name), text, strlen(text));
}

/* The sentences of a text with '|' between two of them, '#' before one that begins a document. */
static const char *cut_up(const char *text, int alone)
{
	static char out[65536];
	size_t used = 0;
	ls_sentence_reader prose;
	ls_sentence s;
	ls_sentence_reader_begin(&prose, text, strlen(text), alone);
	while (ls_sentence_reader_next(&prose, &s)) {
		if (s.first)
			out[used++] = '#';
		else
			out[used++] = '|';
		memcpy(out + used, text + s.begin, s.bytes);
		used += s.bytes;
	}
	out[used] = 0;
	return out;
}

static void sentences_end_where_people_end_them(void **state)
{
	(void)state;
	static const struct {
		const char *text, *cut;
		int alone;
	} cases[] = {
		{ "", "", 0 },
		{ " \n\t\n ", "", 1 },
		{ "One.", "#One.", 0 },
		/* prose on one line */
		{ "He came. She went! Did they? Yes.", "#He came.|She went!|Did they?|Yes.", 0 },
		{ "Mr. Smith met J. Doe. They spoke of the U.S. Army... and left. \"Why?\" Nobody knew.",
		  "#Mr. Smith met J. Doe.|They spoke of the U.S. Army... and left.|\"Why?\"|Nobody knew.", 0 },
		{ "It cost 3.50 dollars. (Really.) Yes.", "#It cost 3.50 dollars.|(Really.)|Yes.", 0 },
		{ "\xe4\xbd\xa0\xe5\xa5\xbd\xe3\x80\x82\xe4\xb8\x96\xe7\x95\x8c\xe3\x80\x82",
		  "#\xe4\xbd\xa0\xe5\xa5\xbd\xe3\x80\x82|\xe4\xb8\x96\xe7\x95\x8c\xe3\x80\x82", 0 },
		/* wrapped prose: a line's end is a space, an empty line ends a paragraph, or a document */
		{ "A title\n\nFirst thing. It goes\non here. And\r\nends.\n\nSecond thing. Over.",
		  "#A title|First thing.|It goes\non here.|And\r\nends.|Second thing.|Over.", 0 },
		{ "A title\n\nFirst thing. It goes\non here. And\nends.\n \nSecond thing. Over.",
		  "#A title#First thing.|It goes\non here.|And\nends.#Second thing.|Over.", 1 },
		/* one sentence per line, empty lines between documents */
		{ "the first one\nthe second one .\n\nanother document\nits end\n",
		  "#the first one|the second one .#another document|its end", 0 },
		/* one line in eight may be two sentences */
		{ "Ab. B\nc\nd\ne\nf\ng\nh\ni", "#Ab. B|c|d|e|f|g|h|i", 0 },
		{ "Ab. B\nc\nd\ne\nf\ng\nh", "#Ab.|B\nc\nd\ne\nf\ng\nh", 0 },
		{ "\n\n  one \r\n two\n\n\n\nthree", "#one|two#three", 0 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(cut_up(cases[i].text, cases[i].alone), cases[i].cut);
}

/* Whatever the bytes: sentences are in order, trimmed, not too long, and all that is not white space is in one. */
static void nothing_is_lost(void **state)
{
	(void)state;
	uint64_t seed = (uint64_t)time(NULL);
	const char *set = getenv("LS_TEST_SEED");
	seed = set ? strtoull(set, NULL, 10) : seed;
	print_message("# LS_TEST_SEED=%llu\n", (unsigned long long)seed);
	static const char *const parts[] = { "a",    "Bc",   ". ", ".", "! ",           "?",    " ",   "\n",
					     "\n\n", "Mr. ", "\"", ")", "\xe3\x80\x82", "\xff", "...", "" };
	char *text = malloc(200000);
	for (int round = 0; round < 300; round++) {
		size_t bytes = 0, want = round % 10 ? 2000 : 100000, covered = 0, last = 0, wide = 0;
		int kinds = 2 + round % 15;
		while (bytes < want) {
			uint64_t word = ls_mix64(seed + (uint64_t)round * 1000003 + bytes * 31);
			const char *part = parts[word % (uint64_t)kinds];
			bytes += (size_t)snprintf(text + bytes, 16, "%s", part);
			bytes += !*part;
		}
		ls_sentence_reader prose;
		ls_sentence s;
		ls_sentence_reader_begin(&prose, text, bytes, round & 1);
		for (size_t n = 0; ls_sentence_reader_next(&prose, &s); n++) {
			assert_true(s.bytes > 0 && s.begin >= last && s.begin + s.bytes <= bytes);
			assert_true(s.bytes <= LS_SENTENCE_BYTES_MAX);
			assert_true(n > 0 || s.first);
			assert_false(strchr(" \n", text[s.begin]) && text[s.begin]);
			for (size_t i = last; i < s.begin; i++)
				assert_true(strchr(" \n", text[i]) != NULL);
			last = s.begin + s.bytes;
			covered += s.bytes;
		}
		for (size_t i = last; i < bytes; i++)
			wide += !strchr(" \n", text[i]);
		assert_int_equal(wide, 0);
		assert_true(covered > 0);
	}
	free(text);
}

static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\na\nb\nc\nd\ne\nf\ng\nh\n##a\n##b\n##c\n##d\n##e\n##"
			    "f\n##g\n##h\n";
enum { VOCAB = 22 };

static ls_status open_corpus(ls_dataset **set, const char *path, ls_split split, int tokens)
{
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	options.name = path;
	options.split = split;
	options.tokens = tokens;
	return ls_dataset_open(set, &options);
}

/* A directory of `files` documents of words of one letter, the letter identifying the document, and a cache directory.
 */
static const char *make_corpus(const char *dir, int files, int sentences)
{
	static char home[4096];
	char text[20000], name[32];
	snprintf(home, sizeof(home), "%s", in_dir(dir, "corpus"));
	setenv("LOCKSTEP_DATA", in_dir(dir, "cache"), 1);
	mkdir(home, 0777);
	put_text(home, "vocab.txt", vocab);
	for (int f = 0; f < files; f++) {
		size_t used = 0;
		for (int s = 0; s < sentences; s++) {
			for (int w = 0; w <= (f + s * 3) % 11; w++)
				used += (size_t)snprintf(text + used, 8, "%c ", 'a' + (f + w) % 8);
			used += (size_t)snprintf(text + used, 8, ".\n");
		}
		snprintf(name, sizeof(name), "doc-%03d.txt", f);
		put_text(home, name, text);
	}
	return home;
}

typedef struct sample {
	ls_text_sample text;
	int32_t tokens[256], segments[256], places[LS_MASKED_MAX], targets[LS_MASKED_MAX];
} sample;

/* Read a sample, and put the masked words back. */
static ls_text_sample *read_sample(sample *s, const ls_dataset *set, uint64_t index, uint64_t epoch)
{
	s->text = (ls_text_sample){
		.tokens = s->tokens, .segments = s->segments, .places = s->places, .targets = s->targets
	};
	assert_ok(ls_dataset_read_text(set, index, epoch, &s->text));
	for (int i = 0; i < s->text.masked; i++)
		s->tokens[s->places[i]] = s->targets[i];
	return &s->text;
}

static int middle_of(const ls_text_sample *s)
{
	int middle = 1;
	while (s->tokens[middle] != 3)
		middle++;
	return middle;
}

/* Where `count` tokens are in the corpus; UINT64_MAX: nowhere. */
static uint64_t find_run(const ls_corpus *c, const int32_t *tokens, int count)
{
	for (uint64_t at = 0; at + (uint64_t)count <= c->counts.tokens; at++) {
		int same = 0;
		while (same < count && ls_corpus_token(c, at + (uint64_t)same) == tokens[same])
			same++;
		if (same == count)
			return at;
	}
	return UINT64_MAX;
}

static void pairs_are_what_they_say(void **state)
{
	const char *home = make_corpus(*state, 45, 30);
	for (int split = 0; split < 2; split++) {
		ls_dataset *set;
		sample s;
		assert_ok(open_corpus(&set, home, split ? LS_SPLIT_TEST : LS_SPLIT_TRAIN, 40));
		const ls_corpus *c = ls_corpus_of(set);
		const ls_dataset_info *info = ls_dataset_describe(set);
		assert_int_equal(c->counts.documents, 45);
		assert_int_equal(c->counts.sentences, 45 * 30);
		assert_int_equal(info->tokens_max, 40);
		assert_int_equal(info->vocabulary, VOCAB);
		uint64_t strangers = 0, samples = 0, lengths[2] = { 0 };
		for (uint64_t i = 0; i < info->samples; i++)
			for (uint64_t epoch = 0; epoch < 24; epoch++) {
				const ls_text_sample *text = read_sample(&s, set, i, epoch);
				int middle = middle_of(text), b = text->length - middle - 2;
				assert_int_equal(text->tokens[0], 2);
				assert_int_equal(text->tokens[text->length - 1], 3);
				assert_true(middle > 1 && b > 0);
				assert_int_equal(text->tokens[text->length - 2],
						 5); /* whole sentences, whatever the label */
				lengths[text->label] += (uint64_t)text->length;
				assert_int_equal(text->masked, ls_mask_tokens(text->length));
				for (int k = 0; k < text->length; k++)
					assert_int_equal(text->segments[k], k > middle);
				strangers += (uint64_t)text->label;
				samples++;
				if (text->label) {
					assert_true(find_run(c, text->tokens + middle + 1, b) != UINT64_MAX);
					continue;
				}
				/* a and b lie one behind the other: without the [SEP] they are a run of the corpus */
				int32_t joined[64];
				memcpy(joined, text->tokens + 1, (size_t)(middle - 1) * 4);
				memcpy(joined + middle - 1, text->tokens + middle + 1, (size_t)b * 4);
				assert_true(find_run(c, joined, middle - 1 + b) != UINT64_MAX);
			}
		assert_in_range(strangers * 100 / samples, 42, 58);
		double mean = (double)lengths[0] / (double)(samples - strangers);
		assert_true(fabs(mean - (double)lengths[1] / (double)strangers) <
			    3); /* lengths do not reveal the label, either */
		ls_dataset_free(set);
	}
}

/* Documents of one word each, the n-th "xy" with x and y two of eight letters: the words identify the document of a
 * sentence.
 */
static void strangers_are_from_elsewhere(void **state)
{
	const char *home = make_corpus(*state, 0, 0);
	char words[4096], name[32];
	for (int f = 0; f < 30; f++) {
		size_t used = 0;
		for (int s = 0; s < 40; s++)
			used += (size_t)snprintf(words + used, 16, "%c%c %c%c .\n", 'a' + f % 8, 'a' + f / 8,
						 'a' + f % 8, 'a' + f / 8);
		snprintf(name, sizeof(name), "doc-%03d.txt", f);
		put_text(home, name, words);
	}
	ls_dataset *set;
	sample s;
	int strangers = 0;
	assert_ok(open_corpus(&set, home, LS_SPLIT_TRAIN, 33));
	for (uint64_t i = 0; i < ls_dataset_describe(set)->samples; i++)
		for (uint64_t epoch = 0; epoch < 5; epoch++) {
			const ls_text_sample *text = read_sample(&s, set, i, epoch);
			int middle = middle_of(text);
			int same = memcmp(text->tokens + 1, text->tokens + middle + 1, 2 * sizeof(int32_t)) == 0;
			assert_int_equal(text->label, !same);
			strangers += text->label;
		}
	assert_true(strangers > 100);
	ls_dataset_free(set);
}

/* All chunks of both splits together are the corpus: of a label 0 pair in some epoch, every token is seen. */
static void every_token_is_in_a_sample(void **state)
{
	const char *home = make_corpus(*state, 21, 25);
	uint64_t seen = 0, all = 0;
	for (int split = 0; split < 2; split++) {
		ls_dataset *set;
		sample s;
		assert_ok(open_corpus(&set, home, split ? LS_SPLIT_TEST : LS_SPLIT_TRAIN, 24));
		all = ls_corpus_of(set)->counts.tokens;
		for (uint64_t i = 0; i < ls_dataset_describe(set)->samples; i++)
			for (uint64_t epoch = 0;; epoch++) {
				const ls_text_sample *text = read_sample(&s, set, i, epoch);
				if (text->label)
					continue;
				seen += (uint64_t)text->length - 3;
				break;
			}
		ls_dataset_free(set);
	}
	assert_in_range(seen, all, all + 21); /* a last token alone takes another along */
}

static void epochs_differ_and_reads_repeat(void **state)
{
	const char *home = make_corpus(*state, 5, 60);
	ls_dataset *set, *again;
	int different = 0;
	assert_ok(open_corpus(&set, home, LS_SPLIT_TRAIN, 64));
	assert_ok(open_corpus(&again, home, LS_SPLIT_TRAIN, 64));
	for (uint64_t i = 0; i < ls_dataset_describe(set)->samples; i++) {
		sample a = { 0 }, b = { 0 }, c = { 0 };
		read_sample(&a, set, i, 3);
		read_sample(&b, again, i, 3);
		read_sample(&c, set, i, 4);
		assert_int_equal(a.text.length, b.text.length);
		assert_memory_equal(a.tokens, b.tokens, sizeof(a.tokens));
		assert_memory_equal(a.places, b.places, sizeof(a.places));
		different += memcmp(a.places, c.places, sizeof(a.places)) != 0;
	}
	assert_true(different > 5);
	ls_dataset_free(again);
	ls_dataset_free(set);
}

static void any_number_of_threads_writes_the_same(void **state)
{
	const char *home = make_corpus(*state, 300, 120);
	ls_corpus_files files;
	ls_tokenizer tokenizer;
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	assert_ok(ls_corpus_find(&files, home));
	assert_int_equal(files.count, 300);
	assert_ok(ls_tokenizer_open(&tokenizer, &options, home, ""));
	assert_ok(ls_corpus_build(in_dir(*state, "one"), &files, &tokenizer, 7, 1));
	for (int threads = 2; threads <= 5; threads++) {
		assert_ok(ls_corpus_build(in_dir(*state, "many"), &files, &tokenizer, 7, threads));
		assert_same_files(in_dir(*state, "one"), in_dir(*state, "many"));
	}
	assert_int_equal(count_matches(in_dir(*state, "*.draft")), 0);
	ls_tokenizer_close(&tokenizer);
	ls_corpus_files_free(&files);
}

/* The only cache file there is. */
static const char *cache_file(const char *dir)
{
	static char path[4096];
	char command[4200];
	snprintf(command, sizeof(command), "ls %s/cache/corpus/*.tokens", dir);
	FILE *list = popen(command, "r");
	assert_non_null(list);
	assert_non_null(fgets(path, sizeof(path), list));
	path[strcspn(path, "\n")] = 0;
	assert_null(fgets(command, sizeof(command), list));
	pclose(list);
	return path;
}

/* Wherever the cache file is cut while it is in use: no crash, no sample that is not one, and the error names it. */
static void a_cache_cut_short_is_named(void **state)
{
	const char *home = make_corpus(*state, 300, 1000);
	ls_dataset *set;
	sample s;
	assert_ok(open_corpus(&set, home, LS_SPLIT_TRAIN, 64));
	const char *path = cache_file(*state);
	uint64_t samples = ls_dataset_describe(set)->samples;
	size_t whole = ls_corpus_of(set)->map.bytes;
	assert_non_null(ls_corpus_of(set)->map.guard); /* large enough to be mapped */
	for (int part = 9; part >= 0; part -= 3) {     /* the documents go, then the sentences, then the tokens */
		assert_int_equal(truncate(path, (off_t)(whole * (size_t)part / 10)), 0);
		for (uint64_t i = 0; i < samples; i += 7) {
			s.text = (ls_text_sample){
				.tokens = s.tokens, .segments = s.segments, .places = s.places, .targets = s.targets
			};
			ls_status status = ls_dataset_read_text(set, i, 1, &s.text);
			assert_true(status == LS_OK || status == LS_EIO || status == LS_EFORMAT);
		}
		assert_fails(ls_dataset_check(set), LS_EIO, path);
	}
	ls_dataset_free(set);
}

static void caches_are_whole_or_made_anew(void **state)
{
	const char *dir = *state, *home = make_corpus(dir, 4, 20);
	ls_dataset *set;
	assert_ok(open_corpus(&set, home, LS_SPLIT_TRAIN, 0));
	ls_dataset_free(set);
	size_t bytes, now;
	const char *path = cache_file(dir);
	uint8_t *whole = take_file(path, &bytes), *data;
	size_t places[] = { 0, 9, 60, 127, bytes - 1, bytes - 60 };
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		data = malloc(bytes);
		memcpy(data, whole, bytes);
		data[places[i]] ^= 0x40;
		put_file(path, data, bytes);
		free(data);
		assert_ok(open_corpus(&set, home, LS_SPLIT_TRAIN, 0));
		ls_dataset_free(set);
		data = take_file(path, &now);
		assert_int_equal(now, bytes);
		assert_memory_equal(data, whole, bytes);
		free(data);
	}
	for (size_t cut = 0; cut < bytes; cut += 97) { /* half a file is none */
		ls_corpus corpus;
		data = malloc(cut + 8);
		memcpy(data, whole, cut);
		assert_int_equal(ls_corpus_parse(&corpus, data, cut, "cut"), LS_EFORMAT);
		free(data);
	}
	put_text(home, "doc-000.txt", "a b c . now it is another corpus"); /* a changed file is another corpus */
	assert_ok(open_corpus(&set, home, LS_SPLIT_TRAIN, 0));
	ls_dataset_free(set);
	free(whole);
}

/* Processes that open a corpus at the same time: one makes the cache, all get it. */
static void many_processes_at_once(void **state)
{
	const char *home = make_corpus(*state, 200, 100);
	pid_t children[6];
	for (int i = 0; i < 6; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			ls_dataset *set;
			ls_status status = open_corpus(&set, home, LS_SPLIT_TRAIN, 0);
			_exit(status ? 1 : 0);
		}
	}
	for (int i = 0; i < 6; i++) {
		int result;
		assert_int_equal(waitpid(children[i], &result, 0), children[i]);
		assert_int_equal(result, 0);
	}
	cache_file(*state);
}

static void documents_are_shared_out(void **state)
{
	const char *dir = *state;
	static const int cases[][3] = { { 2, 1, 1 }, { 19, 18, 1 }, { 20, 19, 1 }, { 40, 38, 2 } };
	for (size_t i = 0; i < 4; i++) {
		char name[32];
		snprintf(name, sizeof(name), "case-%zu", i);
		mkdir(in_dir(dir, name), 0777);
		const char *home = make_corpus(in_dir(dir, name), cases[i][0], 3);
		for (int split = 0; split < 2; split++) {
			ls_dataset *set;
			assert_ok(open_corpus(&set, home, split ? LS_SPLIT_TEST : LS_SPLIT_TRAIN, 0));
			assert_int_equal(ls_dataset_describe(set)->samples, cases[i][1 + split]);
			ls_dataset_free(set);
		}
	}
	/* one document: its last twentieth */
	const char *home = make_corpus(dir, 1, 400);
	ls_dataset *train, *test;
	assert_ok(open_corpus(&train, home, LS_SPLIT_TRAIN, 32));
	assert_ok(open_corpus(&test, home, LS_SPLIT_TEST, 32));
	uint64_t a = ls_dataset_describe(train)->samples, b = ls_dataset_describe(test)->samples;
	assert_in_range(b, (a + b) / 20, (a + b) / 20 + 1);
	sample s;
	int strangers = 0;
	for (uint64_t i = 0; i < a; i++)
		strangers += read_sample(&s, train, i, 0)->label;
	double sigma = sqrt((double)a) / 2; /* each of them with even odds */
	assert_true(a > 100 && fabs(strangers - (double)a / 2) < 5 * sigma);
	ls_dataset_free(test);
	ls_dataset_free(train);
}

static void sentences_that_fit_no_sample(void **state)
{
	const char *dir = *state;
	setenv("LOCKSTEP_DATA", in_dir(dir, "cache"), 1);
	put_text(dir, "vocab.txt", vocab);
	char text[1000] = "a b c d e f g h a b c d e f g h a b c d e f g h\n\na\n\nb c\n";
	put_text(dir, "long.txt", text);
	ls_dataset *set;
	assert_ok(open_corpus(&set, in_dir(dir, "long.txt"), LS_SPLIT_TRAIN, 8));
	const ls_corpus *c = ls_corpus_of(set);
	assert_int_equal(c->counts.documents, 3);
	assert_int_equal(ls_dataset_describe(set)->samples,
			 5); /* 24 tokens in fives, the last four; 'a' alone is no pair */
	sample s;
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(read_sample(&s, set, i, 0)->length <= 8, 1);
	ls_dataset_free(set);
}

static uint64_t text_hash(const char *dir, const char *text)
{
	ls_dataset *set;
	put_text(dir, "one.txt", text);
	assert_ok(open_corpus(&set, in_dir(dir, "one.txt"), LS_SPLIT_TRAIN, 8));
	uint64_t hash = ls_dataset_describe(set)->text_hash;
	ls_dataset_free(set);
	return hash;
}

/* By which nodes know that they have the same texts: any word counts. */
static void a_word_changes_the_hash(void **state)
{
	const char *dir = *state;
	setenv("LOCKSTEP_DATA", in_dir(dir, "cache"), 1);
	put_text(dir, "vocab.txt", vocab);
	uint64_t hash = text_hash(dir, "a b c d e f g h a b c d e f\n\nb c d\n");
	assert_true(hash != 0 && hash == text_hash(dir, "a  b c d e f g h a b c d e f\n\nb c d\n"));
	assert_true(hash != text_hash(dir, "a b c d e f g h a b c d e g\n\nb c d e\n"));
}

/* Millions of full stops in a row are looked at once, not once for every 16 kB of them. */
static void endless_marks_are_cheap(void **state)
{
	(void)state;
	size_t bytes = 32 << 20;
	char *text = malloc(bytes);
	assert_non_null(text);
	memset(text, '!', bytes);
	ls_sentence_reader prose;
	ls_sentence s;
	clock_t begin = clock();
	ls_sentence_reader_begin(&prose, text, bytes, 1);
	while (ls_sentence_reader_next(&prose, &s))
		;
	assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 10); /* it took minutes */
	free(text);
}

static void what_is_wrong_is_said(void **state)
{
	const char *dir = *state;
	ls_dataset *set = NULL;
	setenv("LOCKSTEP_DATA", in_dir(dir, "cache"), 1);
	put_text(dir, "x.txt", "a b c.\nd e f.\n");
	assert_fails(open_corpus(&set, in_dir(dir, "x.txt"), LS_SPLIT_TRAIN, 0), LS_ENOTFOUND,
		     "there is no vocabulary");
	put_text(dir, "vocab.txt", vocab);
	assert_fails(open_corpus(&set, in_dir(dir, "x.txt"), LS_SPLIT_TRAIN, 7), LS_EINVALID,
		     "samples of 7 tokens (options.seq_len); they can have 8");
	put_text(dir, "x.txt", "  \n\n ");
	assert_fails(open_corpus(&set, in_dir(dir, "x.txt"), LS_SPLIT_TRAIN, 0), LS_EFORMAT, "the corpus is empty");
	put_text(dir, "x.txt", "a b c.\nd \xc3( e\n");
	assert_fails(open_corpus(&set, in_dir(dir, "x.txt"), LS_SPLIT_TRAIN, 0), LS_EFORMAT,
		     "x.txt: byte 9 (0xc3) is not UTF-8");
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	options.name = in_dir(dir, "x.txt");
	options.replace_invalid = 1;
	assert_ok(ls_dataset_open(&set, &options));
	ls_dataset_free(set);
	mkdir(in_dir(dir, "none"), 0777);
	assert_fails(open_corpus(&set, in_dir(dir, "none"), LS_SPLIT_TRAIN, 0), LS_ENOTFOUND, "none");
	put_file(in_dir(dir, "binary"), "\0\0\10\3", 4);
	assert_fails(open_corpus(&set, in_dir(dir, "binary"), LS_SPLIT_TRAIN, 0), LS_EINVALID, "not text");
	put_text(dir, "x.txt", "a\n");
	assert_fails(open_corpus(&set, in_dir(dir, "x.txt"), LS_SPLIT_TEST, 0), LS_ENOTFOUND, "no text to test on");
}

TEST_MAIN_EACH(fixture_enter, temp_dir_remove, sentences_end_where_people_end_them, nothing_is_lost,
	       pairs_are_what_they_say, strangers_are_from_elsewhere, every_token_is_in_a_sample,
	       epochs_differ_and_reads_repeat, any_number_of_threads_writes_the_same, a_cache_cut_short_is_named,
	       caches_are_whole_or_made_anew, many_processes_at_once, documents_are_shared_out,
	       sentences_that_fit_no_sample, a_word_changes_the_hash, endless_marks_are_cheap, what_is_wrong_is_said)
