/*
 * Settings compared: a resumed run is refused exactly when it would not give the same bits, with all that differs, and
 * nodes must have the same.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/train.h>
#include <stdio.h>

#include "unit/settings/settings_checks.h"
#include "unit/test_main.h"

/* Store `was`, go on with `now`; NULL expects acceptance, else a refusal whose message contains `expected`. */
static void check_resume(const ls_train_options *was, const ls_train_options *now, const char *expected)
{
	char *text = NULL;
	assert_int_equal(ls_settings_to_json(was, (ls_settings_context){ 0 }, &text), LS_OK);
	ls_status status = ls_settings_compare(now, NULL, (ls_settings_context){ 0 }, text, "runs/x");
	free(text);
	if (!expected) {
		if (status)
			fail_msg("refused: %s", ls_last_error());
		return;
	}
	assert_int_equal(status, LS_EMISMATCH);
	assert_message("runs/x");
	assert_message(expected);
}

/* Some other acceptable value of a row. */
static const char *other_value(const ls_setting *row)
{
	if (row->kind == LS_SETTING_FLAG)
		return NULL;
	return row->max <= 1 ? "0.25" : "7";
}

/* Everything else changes the trained bits; with one device lr-scale-workers is 1. */
static int may_change(const char *name)
{
	static const char *const free_to_change[] = {
		"data-dir",    "test-samples", "epochs",           "steps",          "threads",   "devices",
		"run",         "resume",       "ckpt-every",       "keep",           "log-every", "eval-every",
		"plan-memory", "quiet",        "lr-scale-workers", "init", /* where weights come from on a resume is not
									      the caller's to say */
		"pin",         "hosts",        "strategy",         "servers",        "staleness", "wire",
		"share",       "bucket-bytes", "timeout",          "audit-every",    "trace",     "trace-steps",
		"to-accuracy", "vocab", /* its hash binds */
		"cache",       "elastic",      "min-nodes",        "max-restarts",   "discover",  "eval-steps",
		"keep-best",   "early-stop",   "early-stop-delta", "snapshot-every",
	};
	for (size_t i = 0; i < sizeof(free_to_change) / sizeof(free_to_change[0]); i++)
		if (!strcmp(free_to_change[i], name))
			return 1;
	return 0;
}

static void test_what_changes_the_bits_binds(void **state)
{
	(void)state;
	ls_train_options was = LS_TRAIN_OPTIONS_INIT;
	was.schedule = "constant"; /* the default looks at the length of the run */
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		ls_train_options now = was;
		char expected[LS_SETTING_FIELD];
		ls_setting_field(row, expected);
		set(&now, row->name, other_value(row));
		if (!strcmp(row->name, "batch-per-device")) /* by what it comes to */
			snprintf(expected, sizeof(expected), "options.micro_batch was 32, now 7");
		check_resume(&was, &now, may_change(row->name) ? NULL : expected);
	}
}

/* By its hash: its file may lie elsewhere, and others may lie where it was. */
static void test_the_vocabulary_binds(void **state)
{
	(void)state;
	const ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	char *text = NULL;
	assert_int_equal(
		ls_settings_to_json(&options, (ls_settings_context){ .vocabulary = 0xabcdef0123456789u }, &text),
		LS_OK);
	assert_int_equal(ls_settings_compare(&options, NULL, (ls_settings_context){ .vocabulary = 0xabcdef0123456789u },
					     text, "x"),
			 LS_OK);
	assert_int_equal(ls_settings_compare(&options, NULL, (ls_settings_context){ .vocabulary = 0xabcdef0123456788u },
					     text, "x"),
			 LS_EMISMATCH);
	assert_message("the vocabulary (options.vocab) had xxh64 abcdef0123456789, now abcdef0123456788");
	assert_int_equal(ls_settings_compare(&options, NULL, (ls_settings_context){ 0 }, text, "x"), LS_EMISMATCH);
	assert_message("now there is none");
	free(text);
	assert_int_equal(ls_settings_compare(&options, NULL, (ls_settings_context){ .vocabulary = 5 }, "{}", "x"),
			 LS_OK); /* an older run does not say */
	assert_int_equal(ls_settings_to_json(&options, (ls_settings_context){ .text = 7 }, &text), LS_OK);
	assert_int_equal(ls_settings_compare(&options, NULL, (ls_settings_context){ .text = 7 }, text, "x"), LS_OK);
	assert_int_equal(ls_settings_compare(&options, NULL, (ls_settings_context){ .text = 8 }, text, "x"),
			 LS_EMISMATCH);
	assert_message("the text (or labels) of the training set had xxh64");
	free(text);
}

/* What was taken from the run's last start is not at fault for what was given. */
static void test_recalled_settings_are_not_reported(void **state)
{
	(void)state;
	ls_train_options was = LS_TRAIN_OPTIONS_INIT, last = was, now;
	char *text = NULL;
	was.data = "/a", was.lr = 0.1, was.lr_scale_workers = 1, was.devices = 2;
	assert_int_equal(ls_settings_to_json(&was, (ls_settings_context){ .train = 7 }, &text), LS_OK);
	last = was;
	last.data = "/b", last.lr = 0.05, last.devices = 4;
	last.micro_batch = last.batch = 256;
	now = last;
	assert_int_equal(ls_settings_compare(&now, &last, (ls_settings_context){ .train = 8 }, text, "x"),
			 LS_EMISMATCH);
	assert_message("the training data has different samples than before");
	assert_null(strstr(ls_last_error(), "options.data"));
	now.data = "/c"; /* a program's own field */
	assert_int_equal(ls_settings_compare(&now, &last, (ls_settings_context){ .train = 8 }, text, "x"),
			 LS_EMISMATCH);
	assert_message("options.data was /a, now /c");
	assert_null(strstr(ls_last_error(), "other samples"));
	now = last;
	set(&now, "data", "/b");
	assert_int_equal(ls_settings_compare(&now, &last, (ls_settings_context){ .train = 8 }, text, "x"),
			 LS_EMISMATCH);
	assert_message("options.data was /a, now /b");
	now = last;
	set(&now, "devices", "3");
	assert_int_equal(ls_settings_compare(&now, &last, (ls_settings_context){ .train = 7 }, text, "x"),
			 LS_EMISMATCH);
	assert_message("options.lr times options.devices was 0.2, now 0.15");
	assert_null(strstr(ls_last_error(), "options.lr was"));
	set(&now, "lr", "0.05");
	assert_int_equal(ls_settings_compare(&now, &last, (ls_settings_context){ .train = 7 }, text, "x"),
			 LS_EMISMATCH);
	assert_message("options.lr was 0.1, now 0.05");
	free(text);
}

/* 0 in a field that cannot be 0 stands for the default, and was not given. */
static void test_unset_is_said(void **state)
{
	(void)state;
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		ls_train_options was = LS_TRAIN_OPTIONS_INIT, now = was;
		char *a = NULL, *b = NULL, expected[128], name[LS_SETTING_FIELD];
		if (!(row->marks & LS_SETTING_NOT_0) || !strcmp(row->name, "threads")) /* each node has its own */
			continue;
		const char *value = row->kind == LS_SETTING_REAL ? "0.7" : "7";
		set(&now, row->name, value);
		assert_int_equal(ls_settings_to_json(&was, (ls_settings_context){ 0 }, &a), LS_OK);
		assert_int_equal(ls_settings_to_json(&now, (ls_settings_context){ 0 }, &b), LS_OK);
		assert_int_equal(ls_settings_agree(a, "one", b, "two"), LS_EMISMATCH);
		snprintf(expected, sizeof(expected), "%s is not set on one and %s on two", ls_setting_field(row, name),
			 value);
		assert_message(expected);
		free(a);
		free(b);
	}
}

static void test_both_values_and_all_names_are_reported(void **state)
{
	(void)state;
	const ls_train_options was = LS_TRAIN_OPTIONS_INIT;
	ls_train_options now = was;
	now.lr = 0.01;
	now.seed = 5;
	now.schedule = "cosine";
	check_resume(&was, &now, "options.lr was 0.001, now 0.01");
	assert_message("options.seed was 1, now 5");
	assert_message("options.schedule was wsd, now cosine");
}

static void test_batches_are_compared_by_what_they_give(void **state)
{
	(void)state;
	ls_train_options was = LS_TRAIN_OPTIONS_INIT, now = LS_TRAIN_OPTIONS_INIT;
	was.batch_per_device = 64, was.devices = 2;
	now.batch = 128, now.micro_batch = 64, now.devices = 1;
	check_resume(&was, &now, NULL);
	now.micro_batch = 32;
	check_resume(&was, &now, "options.micro_batch was 64, now 32");
	now = was;
	now.devices = 4;
	check_resume(&was, &now, "options.batch was 128, now 256");
	was.batch = now.batch = 512, was.batch_per_device = now.batch_per_device = 0;
	check_resume(&was, &now, NULL); /* the workers may vary */
	now.batch = 256;
	check_resume(&was, &now, "options.batch was 512, now 256");
}

/* What is kept does not depend on the workers that a run happened to have. */
static void test_resolved_settings_resume_on_other_workers(void **state)
{
	(void)state;
	ls_train_options was = LS_TRAIN_OPTIONS_INIT, now = LS_TRAIN_OPTIONS_INIT, kept, other;
	was.batch_per_device = 128;
	assert_int_equal(ls_settings_resolve(&was, 2, &kept), LS_OK);
	assert_int_equal(kept.batch, 256);
	assert_int_equal(kept.micro_batch, 128);
	assert_int_equal(kept.batch_per_device, 0);
	now.batch = 256, now.micro_batch = 128;
	assert_int_equal(ls_settings_resolve(&now, 1, &other), LS_OK);
	check_resume(&kept, &other, NULL);
	check_resume(&other, &kept, NULL);
	assert_int_equal(ls_settings_resolve(&was, 3, &other), LS_OK);
	check_resume(&kept, &other, "was 256, now 384");
	now.batch = 97, now.micro_batch = 0; /* micro-batches of 25, 25, 25 and 22 */
	assert_int_equal(ls_settings_resolve(&now, 2, &kept), LS_OK);
	assert_int_equal(kept.micro_batch, 25);
	assert_int_equal(ls_settings_resolve(&now, 3, &other), LS_OK);
	check_resume(&kept, &other, NULL);
	kept.resume = 1; /* a resumed run keeps its micro-batch */
	assert_int_equal(ls_settings_resolve(&kept, 1, &other), LS_OK);
	now.batch = 300, now.micro_batch = 128;
	assert_int_equal(ls_settings_resolve(&now, 2, &kept), LS_EINVALID);
	assert_message("options.batch 300 is not a multiple of options.micro_batch 128; use batch 256 or 384");
}

static void test_rates_are_compared_by_what_they_give(void **state)
{
	(void)state;
	ls_train_options was = LS_TRAIN_OPTIONS_INIT, now = LS_TRAIN_OPTIONS_INIT;
	was.lr_scale_workers = now.lr_scale_workers = 1;
	was.devices = 1, now.devices = 2;
	check_resume(&was, &now, "options.lr times options.devices was 0.001, now 0.002");
	now.lr = 0.0005;
	check_resume(&was, &now, NULL);
	now.lr = 0.001, now.lr_scale_workers = 0;
	check_resume(&was, &now, NULL);
}

static void test_length_binds_where_the_schedule_looks_at_it(void **state)
{
	(void)state;
	ls_train_options was = LS_TRAIN_OPTIONS_INIT, now = LS_TRAIN_OPTIONS_INIT;
	was.schedule = now.schedule = "constant";
	now.epochs = 5;
	check_resume(&was, &now, NULL);
	was.schedule = now.schedule = "cosine";
	check_resume(&was, &now, "options.epochs was 1, now 5");
	was.steps = now.steps = 100; /* epochs are ignored then */
	check_resume(&was, &now, NULL);
	now.steps = 200;
	check_resume(&was, &now, "options.steps was 100, now 200");
}

static void test_init_may_be_left_out(void **state)
{
	(void)state;
	ls_train_options was = LS_TRAIN_OPTIONS_INIT, now = LS_TRAIN_OPTIONS_INIT;
	was.init = "a.safetensors";
	check_resume(&was, &now, NULL);
}

static void test_names_do_not_bind_own_objects(void **state)
{
	(void)state;
	ls_train_options was = LS_TRAIN_OPTIONS_INIT, now = LS_TRAIN_OPTIONS_INIT;
	was.graph = now.graph = (ls_graph *)&was; /* never looked into */
	now.model = "anything";
	check_resume(&was, &now, NULL);
	now.graph = NULL;
	check_resume(&was, &now, "options.model was not set, now anything");
}

TEST_MAIN(test_what_changes_the_bits_binds, test_the_vocabulary_binds, test_recalled_settings_are_not_reported,
	  test_unset_is_said, test_both_values_and_all_names_are_reported, test_batches_are_compared_by_what_they_give,
	  test_resolved_settings_resume_on_other_workers, test_rates_are_compared_by_what_they_give,
	  test_length_binds_where_the_schedule_looks_at_it, test_init_may_be_left_out,
	  test_names_do_not_bind_own_objects)
