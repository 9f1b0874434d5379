/*
 * Settings as JSON: every row is there exactly, what is read back is the same, and stored text is not trusted.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <lockstep/train.h>

#include "unit/settings/settings_checks.h"
#include "unit/test_main.h"

static void test_json_has_every_row_exactly(void **state)
{
	(void)state;
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	options.lr = 0.1 + 0.2; /* not 0.3 */
	options.dropout = 0.1f;
	options.seed = UINT64_MAX;
	char *text = NULL;
	assert_int_equal(ls_settings_to_json(&options, (ls_settings_context){ 0 }, &text), LS_OK);
	json_t *object = json_loads(text, 0, NULL);
	assert_non_null(object);
	const ls_setting *row;
	size_t rows = 0;
	for (; (row = ls_train_setting_at(rows)); rows++)
		assert_non_null(json_object_get(object, row->name));
	assert_int_equal(json_object_size(object), rows + 1);
	assert_int_equal(json_integer_value(json_object_get(object, "version")), 3);
	assert_true(json_real_value(json_object_get(object, "lr")) == 0.1 + 0.2);
	assert_true(json_real_value(json_object_get(object, "dropout")) == 0.1);
	assert_true(json_is_null(json_object_get(object, "run")));
	assert_int_equal(ls_settings_compare(&options, NULL, (ls_settings_context){ 0 }, text, "run"), LS_OK);
	options.seed--;
	assert_int_equal(ls_settings_compare(&options, NULL, (ls_settings_context){ 0 }, text, "run"), LS_EMISMATCH);
	json_decref(object);
	free(text);
}

static void test_json_refuses_what_it_cannot_hold(void **state)
{
	(void)state;
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	char *text = NULL;
	options.lr = strtod("inf", NULL);
	assert_int_equal(ls_settings_to_json(&options, (ls_settings_context){ 0 }, &text), LS_EINVALID);
	assert_message("options.lr");
	options.lr = 1;
	options.run = "\xff\xfe";
	assert_int_equal(ls_settings_to_json(&options, (ls_settings_context){ 0 }, &text), LS_EINVALID);
	assert_message("options.run");
	assert_null(text);
}

static void test_stored_settings_are_settings(void **state)
{
	(void)state;
	ls_train_options was = LS_TRAIN_OPTIONS_INIT;
	ls_settings_stored stored = { .owner = NULL };
	char *text = NULL;
	set(&was, "model", "transformer");
	set(&was, "vocab", "a/vocab.txt");
	set(&was, "seq-len", "48");
	set(&was, "cased", NULL);
	assert_int_equal(ls_settings_to_json(&was, (ls_settings_context){ .vocabulary = 7 }, &text), LS_OK);
	assert_int_equal(ls_settings_from_json(&stored, text, "x"), LS_OK);
	free(text);
	assert_string_equal(stored.options.model, "transformer");
	assert_string_equal(stored.options.vocab, "a/vocab.txt");
	assert_int_equal(stored.options.seq_len, 48);
	assert_int_equal(stored.options.cased, 1);
	assert_int_equal(stored.options.batch, was.batch);
	ls_settings_stored_release(&stored);
	assert_int_equal(ls_settings_from_json(&stored, "{\"seq-len\": \"48\"}", "x"), LS_EFORMAT);
	ls_settings_stored_release(&stored);
}

static void test_stored_text_is_not_trusted(void **state)
{
	(void)state;
	const ls_train_options now = LS_TRAIN_OPTIONS_INIT;
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, "{}", "x"),
			 LS_OK); /* an older run, all defaults */
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, "[1]", "x"), LS_EFORMAT);
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, "{\"lr\":", "x"), LS_EFORMAT);
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, "", "x"), LS_EFORMAT);
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, "{\"lr\": \"0.001\"}", "x"),
			 LS_EFORMAT);
	assert_message("'lr'");
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, "{\"batch\": 0}", "x"),
			 LS_EINVALID);
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, "{\"nesterov\": 1}", "x"),
			 LS_EFORMAT);
}

/* bf16 was of layers alone; a model without attention has the same bits in both. */
static void test_old_runs_keep_attention_in_fp32(void **state)
{
	static const struct {
		const char *text, *precision;
	} cases[] = {
		{ "{\"version\": 2, \"batch\": 64, \"model\": \"bert-tiny\", \"precision\": \"bf16\"}", "bf16-layers" },
		{ "{\"version\": 2, \"batch\": 64, \"model\": null, \"precision\": \"bf16\"}", "bf16-layers" },
		{ "{\"version\": 2, \"batch\": 64, \"model\": \"vit-tiny\", \"precision\": \"bf16-amx\"}", "bf16-amx" },
		{ "{\"version\": 2, \"batch\": 64, \"model\": \"gpt2\", \"precision\": \"fp32\"}", "fp32" },
		{ "{\"version\": 2, \"batch\": 64, \"model\": \"resnet18\", \"precision\": \"bf16\"}", "bf16" },
		{ "{\"version\": 3, \"batch\": 64, \"model\": \"bert-tiny\", \"precision\": \"bf16\"}", "bf16" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ls_settings_stored stored;
		assert_int_equal(ls_settings_from_json(&stored, cases[i].text, "x"), LS_OK);
		assert_string_equal(stored.options.precision, cases[i].precision);
		ls_settings_stored_release(&stored);
	}
}

/* A run of a version without the option computed its convolutions directly. */
static void test_old_runs_are_direct(void **state)
{
	ls_settings_stored stored;
	(void)state;
	assert_int_equal(ls_settings_from_json(&stored, "{\"version\": 2, \"batch\": 64}", "x"), LS_OK);
	assert_string_equal(stored.options.conv, "direct");
	ls_settings_stored_release(&stored);
	assert_int_equal(ls_settings_from_json(&stored, "{\"version\": 2, \"batch\": 64, \"conv\": \"auto\"}", "x"),
			 LS_OK);
	assert_string_equal(stored.options.conv, "auto");
	ls_settings_stored_release(&stored);
}

/* What the first edition stored means the same bits: batch was per device, global-batch and leaf stood beside it. */
static void test_the_first_edition_is_read(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t batch, micro_batch;
		const char *strategy;
	} old[] = {
		{ "{\"batch\": 64, \"global-batch\": 128, \"leaf\": 64, \"devices\": 2}", 128, 64, "allreduce" },
		{ "{\"batch\": 64, \"global-batch\": 96, \"leaf\": 16, \"devices\": 4, \"placement\": \"ps\"}", 96, 16,
		  "ps" },
		{ "{\"batch\": 64, \"global-batch\": 0, \"leaf\": 0, \"devices\": 3}", 192, 64, "allreduce" },
		{ "{\"batch\": 64, \"global-batch\": 32, \"exchange\": \"mpi\"}", 32, 32, "mpi" },
		{ "{\"batch\": 8, \"placement\": \"ps\", \"staleness\": 2}", 8, 8, "ps-async" },
	};
	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
		ls_settings_stored stored = { .owner = NULL };
		assert_int_equal(ls_settings_from_json(&stored, old[i].text, "x"), LS_OK);
		assert_int_equal(stored.options.batch, old[i].batch);
		assert_int_equal(stored.options.micro_batch, old[i].micro_batch);
		assert_string_equal(stored.options.strategy, old[i].strategy);
		ls_settings_stored_release(&stored);
	}
	ls_train_options now = LS_TRAIN_OPTIONS_INIT;
	now.micro_batch = 64;
	now.conv = "direct";
	const char *text = "{\"batch\": 64, \"global-batch\": 128, \"leaf\": 64, \"schedule\": \"settle\"}";
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, text, "x"), LS_OK);
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, "{\"version\": 4}", "x"),
			 LS_EFORMAT);
	assert_message("version 4");
}

TEST_MAIN(test_json_has_every_row_exactly, test_json_refuses_what_it_cannot_hold, test_stored_settings_are_settings,
	  test_stored_text_is_not_trusted, test_the_first_edition_is_read, test_old_runs_are_direct,
	  test_old_runs_keep_attention_in_fp32)
