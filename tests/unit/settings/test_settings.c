/*
 * The settings table: every row is sound, text becomes fields, and batches and defaults are what they say.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/train.h>

#include "optim/optimizer.h"
#include "unit/assert_status.h"
#include "unit/settings/settings_checks.h"
#include "unit/test_main.h"

/* Bytes of a field, to check that rows do not overlap and cover what they should. */
static size_t field_bytes(ls_setting_kind kind)
{
	return kind == LS_SETTING_FLOAT ? sizeof(float) : kind == LS_SETTING_FLAG ? sizeof(int) : 8;
}

static void test_rows_are_sound(void **state)
{
	(void)state;
	unsigned char taken[sizeof(ls_train_options)] = { 0 };
	char keys[64] = "h"; /* --help has it */
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		assert_ptr_equal(ls_train_setting_of(row->name), row); /* no name twice */
		assert_true(strlen(row->name) <= 16);
		assert_true((row->kind == LS_SETTING_FLAG) == (!row->arg));
		assert_true(row->min <= row->max);
		for (size_t b = 0; b < field_bytes(row->kind); b++)
			assert_int_equal(taken[row->offset + b]++, 0);
		if (row->key) {
			assert_null(strchr(keys, row->key));
			keys[strlen(keys)] = row->key;
		}
	}
	assert_null(ls_train_setting_of("batch-size"));
	assert_null(ls_train_setting_of("batc"));
}

/* 1 for every byte of a field, 0 for padding: gcc knows. Elsewhere what no row covers may be padding as far as it is
 * shorter than the alignment of what follows. */
static void mark_fields(unsigned char *bytes, const unsigned char *covered)
{
	ls_train_options options;
	memset(&options, 0xff, sizeof(options));
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
	(void)covered;
	__builtin_clear_padding(&options);
	memcpy(bytes, &options, sizeof(options));
#else
	memset(bytes, 0xff, sizeof(options));
	for (size_t b = 0; b < sizeof(options); b += 8)
		if (covered[b] && !covered[b + 4])
			memset(bytes + b + 4, 0, 4);
#endif
}

/* A field without a row cannot be set by name, which is a mistake: only a program's own objects, and the note of what
 * was set, have no row. */
static void test_rows_cover_the_struct(void **state)
{
	(void)state;
	static const struct {
		size_t offset, bytes;
	} own[] = {
		{ offsetof(ls_train_options, size), sizeof(size_t) },
		{ offsetof(ls_train_options, graph), sizeof(ls_graph *) },
		{ offsetof(ls_train_options, model_handle), sizeof(struct ls_model *) },
		{ offsetof(ls_train_options, train_set), sizeof(ls_dataset *) },
		{ offsetof(ls_train_options, test_set), sizeof(ls_dataset *) },
		{ offsetof(ls_train_options, hooks), sizeof(const ls_train_hooks *) },
		{ offsetof(ls_train_options, stop), sizeof(ls_stop *) },
		{ offsetof(ls_train_options, given), sizeof(((ls_train_options *)0)->given) },
		{ offsetof(ls_train_options, unused), sizeof(int) },
	};
	unsigned char covered[sizeof(ls_train_options)] = { 0 }, fields[sizeof(ls_train_options)];
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++)
		memset(covered + row->offset, 1, field_bytes(row->kind));
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		memset(covered + own[i].offset, 1, own[i].bytes);
	mark_fields(fields, covered);
	for (size_t b = 0; b < sizeof(fields); b++)
		if (!fields[b] != !covered[b])
			fail_msg("byte %zu of ls_train_options is %s", b,
				 covered[b] ? "padding, but a row sets it" : "part of a field that no row sets");
}

/* Options of a program that was compiled before the last settings existed. */
static void test_older_options_have_fewer_settings(void **state)
{
	(void)state;
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	const ls_setting *seed = ls_train_setting_of("seed"), *model = ls_train_setting_of("model");
	char text[64];

	options.size = seed->offset;
	options.seed = 99; /* whatever lies behind the struct */
	assert_fails(ls_train_options_set(&options, "seed", "7"), LS_EUNSUPPORTED,
		     "options.seed is newer than this program's ls_train_options");
	assert_int_equal(options.seed, 99);
	ls_setting_format(seed, &options, text, sizeof(text));
	assert_string_equal(text, "1"); /* the default */
	assert_ok(ls_train_options_set(&options, "model", "cnn"));
	ls_setting_format(model, &options, text, sizeof(text));
	assert_string_equal(text, "cnn");
	options.size = 0;
	assert_fails(ls_train_options_set(&options, "model", "cnn"), LS_EUNSUPPORTED,
		     "start from LS_TRAIN_OPTIONS_INIT");
}

static void test_defaults_are_in_range(void **state)
{
	(void)state;
	const ls_train_options defaults = LS_TRAIN_OPTIONS_INIT;
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		ls_train_options options = LS_TRAIN_OPTIONS_INIT;
		char text[64], again[64];
		ls_setting_format(row, &defaults, text, sizeof(text));
		if (row->kind == LS_SETTING_FLAG || !*text)
			continue;
		if ((row->marks & LS_SETTING_NOT_0) && !strcmp(text, "0"))
			continue; /* not given */
		set(&options, row->name, text);
		ls_setting_format(row, &options, again, sizeof(again));
		assert_string_equal(text, again);
	}
}

static void test_text_becomes_fields(void **state)
{
	(void)state;
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	set(&options, "model", "cnn");
	set(&options, "samples", "72M");
	set(&options, "test-samples", "1.5k");
	set(&options, "dropout", "0.25");
	set(&options, "lr", "3e-4");
	set(&options, "lr-step-every", "300");
	set(&options, "seed", "9007199254740991");
	set(&options, "nesterov", NULL);
	assert_string_equal(options.model, "cnn");
	assert_int_equal(options.samples, 72000000);
	assert_int_equal(options.test_samples, 1500);
	assert_true(options.dropout == 0.25f);
	assert_true(options.lr == 3e-4);
	assert_int_equal(options.lr_step_every, 300);
	assert_int_equal(options.seed, 9007199254740991);
	assert_int_equal(options.nesterov, 1);
}

static void test_bad_values_are_named(void **state)
{
	(void)state;
	static const struct {
		const char *name, *value, *message;
	} bad[] = {
		{ "lr", "-1", "options.lr must be at least 0, not -1" },
		{ "lr", "fast", "options.lr" },
		{ "lr", "", "options.lr needs a value" },
		{ "lr", NULL, "options.lr needs a value" },
		{ "lr", "nan", "options.lr" },
		{ "lr", "1e400", "options.lr" },
		{ "lr", "0.1x", "options.lr" },
		{ "lr", "0x1p-3", "options.lr: '0x1p-3' is not a number" },
		{ "lr", "1e-400", "options.lr: 1e-400 is too small" },
		{ "dropout", "1e-40", "options.dropout: 1e-40 is too small" },
		{ "batch", "0x10", "options.batch: '0x10' is not a whole number" },
		{ "batch", "+8", "options.batch: '+8' is not a whole number" },
		{ "samples", "-0", "options.samples: '-0' is not a count" },
		{ "steps", "-0", "options.steps must be at least 1, not -0" },
		{ "batch", "0", "options.batch must be between 1 and 1000000000000, not 0" },
		{ "batch", "1.5", "options.batch" },
		{ "samples", "-5", "options.samples must be at least 0, not -5" },
		{ "samples", "12Q", "options.samples" },
		{ "dropout", "1", "options.dropout must be between 0 and 0.99, not 1" },
		{ "seed", "-1", "options.seed must be at least 0, not -1" },
		{ "quiet", "yes", "options.quiet takes no value" },
		{ "epoch", "1", "unknown setting 'epoch'; did you mean '--epochs'?" },
		{ "zzzzzzzzz", "1", "unknown setting 'zzzzzzzzz'" },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ls_train_options options = LS_TRAIN_OPTIONS_INIT;
		const ls_train_options before = options;
		assert_int_equal(ls_train_options_set(&options, bad[i].name, bad[i].value), LS_EINVALID);
		assert_message(bad[i].message);
		assert_memory_equal(&options, &before, sizeof(options));
	}
}

/* Where 0 in a field stands for a default that is another number, 0 as text is refused: --steps 0 must not train an
 * epoch. Where it is a value of its own (no warm-up, never evaluate) it is taken. */
static void test_zero_is_never_a_default_in_disguise(void **state)
{
	(void)state;
	static const char *const means_zero[] = { "dropout",         "lr",
						  "momentum",        "beta1",
						  "weight-decay",    "clip-norm",
						  "warmup",          "lr-min",
						  "lr-step-factor",  "seed",
						  "audit-every",     "eval-every",
						  "label-smoothing", "early-stop-delta",
						  "skip-bad",        "max-restarts" };
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		ls_train_options options = LS_TRAIN_OPTIONS_INIT;
		int taken = 0;
		if (row->kind == LS_SETTING_STRING || row->kind == LS_SETTING_FLAG)
			continue;
		for (size_t k = 0; k < sizeof(means_zero) / sizeof(means_zero[0]); k++)
			taken |= !strcmp(row->name, means_zero[k]);
		ls_status status = ls_train_options_set(&options, row->name, "0");
		if ((status == LS_OK) != taken)
			fail_msg("--%s 0 gives status %d", row->name, (int)status);
		if (!taken)
			assert_message("must be");
	}
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	assert_int_equal(ls_train_options_set(&options, "steps", "0"), LS_EINVALID);
	assert_message("options.steps must be at least 1, not 0; leave it out for the default");
}

static void test_options_know_what_was_given(void **state)
{
	(void)state;
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	const ls_setting *row;
	set(&options, "momentum", "0.9"); /* its default */
	set(&options, "quiet", NULL);
	assert_int_equal(ls_train_options_set(&options, "batch", "none"), LS_EINVALID);
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		int given = !strcmp(row->name, "momentum") || !strcmp(row->name, "quiet");
		if (ls_train_setting_is_given(&options, row) != given)
			fail_msg("--%s counts as %s", row->name, given ? "not given" : "given");
	}
}

/* A beta2 that is not given is the optimizer's: a run keeps the number, not the absence. */
static void test_beta2_is_the_optimizers(void **state)
{
	(void)state;
	ls_train_options given = LS_TRAIN_OPTIONS_INIT, resolved;
	assert_int_equal(ls_settings_resolve(&given, 1, &resolved), LS_OK);
	assert_true(resolved.beta2 == *ls_optimizer_default(given.optimizer, "beta2"));
	given.beta2 = 0.5;
	assert_int_equal(ls_settings_resolve(&given, 1, &resolved), LS_OK);
	assert_true(resolved.beta2 == 0.5);
	assert_int_equal(ls_train_options_set(&given, "beta2", "0"), LS_EINVALID);
	assert_message("options.beta2 must be above 0; leave it out for the default");
}

/* Only beta2 differs between optimizers. Others have one default in the options, which every row that uses them has. */
static void test_defaults_are_the_rows(void **state)
{
	static const ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	static const struct {
		const char *name;
		const double *value;
	} shared[] = { { "momentum", &options.momentum },
		       { "beta1", &options.beta1 },
		       { "epsilon", &options.epsilon } };
	const ls_optimizer_kind *kind;
	(void)state;
	for (size_t i = 0; (kind = ls_optimizer_at(i)); i++)
		for (size_t k = 0; k < sizeof(shared) / sizeof(shared[0]); k++) {
			const double *row = ls_optimizer_default(kind->name, shared[k].name);
			if (row && *row != *shared[k].value)
				fail_msg("%s: %s is %g in its row and %g in LS_TRAIN_OPTIONS_INIT", kind->name,
					 shared[k].name, *row, *shared[k].value);
		}
}

static void test_batches(void **state)
{
	(void)state;
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	ls_settings_batches batches;
	static const struct {
		int64_t batch, micro_batch;
	} by_default[] = { { 128, 32 }, { 1, 1 }, { 32, 32 }, { 33, 17 }, { 48, 24 }, { 97, 25 }, { 1024, 32 } };

	for (size_t i = 0; i < sizeof(by_default) / sizeof(by_default[0]); i++)
		for (options.devices = 0; options.devices < 4; options.devices++) { /* which do not matter */
			options.batch = by_default[i].batch;
			assert_int_equal(ls_settings_get_batches(&options, &batches), LS_OK);
			assert_int_equal(batches.global, by_default[i].batch);
			assert_int_equal(batches.microbatch, by_default[i].micro_batch);
		}
	options = (ls_train_options)LS_TRAIN_OPTIONS_INIT;
	options.batch_per_device = 100, options.devices = 3;
	assert_int_equal(ls_settings_get_batches(&options, &batches), LS_OK);
	assert_int_equal(batches.microbatch, 100);
	assert_int_equal(batches.global, 300);
	options.batch = 50;
	assert_int_equal(ls_settings_get_batches(&options, &batches), LS_EINVALID);
	assert_message(
		"options.batch_per_device already determines the batch and the micro-batch; leave out options.batch");
	options.batch = 128, options.micro_batch = 50;
	assert_int_equal(ls_settings_get_batches(&options, &batches), LS_EINVALID);
	assert_message("leave out options.micro_batch");
	options.batch_per_device = INT64_MAX, options.micro_batch = 0;
	assert_int_equal(ls_settings_get_batches(&options, &batches), LS_EINVALID);
	options.batch_per_device = 0, options.batch = 50, options.micro_batch = 51;
	assert_int_equal(ls_settings_resolve(&options, 1, &options), LS_EINVALID);
	assert_message("options.micro_batch 51 is larger than options.batch 50");
}

/* Micro-batches of a step, by which devices are counted. */
static void test_micro_batches_of_a_step(void **state)
{
	(void)state;
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	assert_int_equal(ls_settings_micro_batches(&options, 60000), 4);
	assert_int_equal(ls_settings_micro_batches(&options, 40), 2);
	options.micro_batch = 8;
	assert_int_equal(ls_settings_micro_batches(&options, 60000), 16);
	options.micro_batch = 0, options.batch_per_device = 8;
	assert_int_equal(ls_settings_micro_batches(&options, 60000), 0);
}

TEST_MAIN(test_rows_are_sound, test_rows_cover_the_struct, test_older_options_have_fewer_settings,
	  test_defaults_are_in_range, test_text_becomes_fields, test_bad_values_are_named,
	  test_zero_is_never_a_default_in_disguise, test_options_know_what_was_given, test_beta2_is_the_optimizers,
	  test_defaults_are_the_rows, test_batches, test_micro_batches_of_a_step)
