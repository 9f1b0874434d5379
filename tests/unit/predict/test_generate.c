/*
 * ls_generate(): a program that stops a text gets the same one whether tokens were guessed or not.
 */
#include <stdio.h>
#include <string.h>

#include <lockstep/generate.h>
#include <lockstep/train.h>

#include "unit/assert_status.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

enum { MOST = 60 };

typedef struct listener {
	char text[16 * MOST];
	int tokens, last; /* stop after so many */
} listener;

static void hear(void *context, int64_t sample, const char *bytes, size_t count)
{
	listener *l = context;
	assert_int_equal(sample, 0);
	assert_true(strlen(l->text) + count < sizeof(l->text));
	strncat(l->text, bytes, count);
	l->tokens += count > 0;
}

static int has_heard_enough(void *context)
{
	const listener *l = context;
	return l->tokens >= l->last;
}

/* One step is enough: what such a model finds most probable soon repeats itself. */
static ls_model *make_model(const char *dir)
{
	ls_train_options train = LS_TRAIN_OPTIONS_INIT;
	ls_model *model = NULL;
	const char *text = in_dir(dir, "text.txt"), *run = in_dir(dir, "run");
	ls_model_load_options load = LS_MODEL_LOAD_OPTIONS_INIT;

	FILE *to = fopen(text, "w");
	assert_non_null(to);
	for (int i = 0; i < 500; i++)
		fprintf(to, "line %d of the text\n", i);
	assert_int_equal(fclose(to), 0);
	train.model = "gpt-nano", train.data = text, train.vocab = "bytes", train.run = run;
	train.seq_len = 64, train.batch = 4, train.micro_batch = 4, train.steps = 1, train.threads = 1, train.quiet = 1;
	assert_ok(ls_train(&train, NULL));
	load.source = run;
	assert_ok(ls_model_load(&model, &load));
	return model;
}

static void test_a_stop_between_guesses(void **state)
{
	static const int64_t lookups[] = { 0, 1, 15, 31 };
	ls_model *model = make_model(*state);

	for (int last = 1; last <= MOST; last += 7) {
		listener expected = { .tokens = 0 };
		for (size_t i = 0; i < sizeof(lookups) / sizeof(lookups[0]); i++) {
			listener l = { .last = last };
			ls_generate_options o = LS_GENERATE_OPTIONS_INIT;
			ls_generate_result result;
			o.prompt = "line", o.max_new_tokens = 2 * MOST, o.temperature = 0, o.ignore_eos = 1;
			o.threads = 1, o.write = hear, o.stop = has_heard_enough, o.context = &l;
			o.lookup = lookups[i];
			assert_fails(ls_generate(model, &o, &result), LS_EINTERRUPTED, "stopped after");
			assert_int_equal(result.tokens, last);
			if (i == 0)
				expected = l;
			assert_string_equal(l.text, expected.text);
			if (lookups[i] == 15 && last > MOST / 2)
				assert_true(result.right_guesses > 0); /* else nothing was tried */
		}
	}
	ls_model_free(model);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_a_stop_between_guesses)
