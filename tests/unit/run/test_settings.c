/*
 * The settings table: every row is sound, text becomes fields, JSON gives the same settings back, and a resumed run is
 * refused exactly when it would not give the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>
#include <lockstep/train.h>

#include "optim/optimizer.h"
#include "run/settings.h"

#define assert_message(part)                                                                                           \
	do {                                                                                                           \
		if (!strstr(ls_last_error(), part))                                                                    \
			fail_msg("'%s' does not contain '%s'", ls_last_error(), part);                                 \
	} while (0)

static void set(ls_train_options *options, const char *name, const char *value)
{
	if (ls_train_options_set(options, name, value))
		fail_msg("%s=%s: %s", name, value ? value : "(flag)", ls_last_error());
}

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
		{ offsetof(ls_train_options, graph), sizeof(ls_graph *) },
		{ offsetof(ls_train_options, train_set), sizeof(ls_dataset *) },
		{ offsetof(ls_train_options, test_set), sizeof(ls_dataset *) },
		{ offsetof(ls_train_options, given), sizeof(((ls_train_options *)0)->given) },
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
	static const char *const means_zero[] = { "dropout",        "lr",        "momentum",    "beta1",
						  "weight-decay",   "clip-norm", "warmup",      "lr-min",
						  "lr-step-factor", "seed",      "audit-every", "eval-every" };
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
	assert_int_equal(json_integer_value(json_object_get(object, "version")), 2);
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
		"data-dir",    "test-samples", "epochs",           "steps",       "threads",   "devices",
		"run",         "resume",       "ckpt-every",       "keep",        "log-every", "eval-every",
		"plan-memory", "quiet",        "lr-scale-workers", "init", /* where weights come from on a resume is not
									      the caller's to say */
		"pin",         "hosts",        "strategy",         "servers",     "staleness", "wire",
		"share",       "bucket-bytes", "timeout",          "audit-every", "trace",     "trace-steps",
		"to-accuracy", "vocab", /* its hash binds */
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
	const char *text = "{\"batch\": 64, \"global-batch\": 128, \"leaf\": 64, \"schedule\": \"settle\"}";
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, text, "x"), LS_OK);
	assert_int_equal(ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, "{\"version\": 3}", "x"),
			 LS_EFORMAT);
	assert_message("version 3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_sound),
		cmocka_unit_test(test_rows_cover_the_struct),
		cmocka_unit_test(test_defaults_are_in_range),
		cmocka_unit_test(test_text_becomes_fields),
		cmocka_unit_test(test_bad_values_are_named),
		cmocka_unit_test(test_zero_is_never_a_default_in_disguise),
		cmocka_unit_test(test_options_know_what_was_given),
		cmocka_unit_test(test_json_has_every_row_exactly),
		cmocka_unit_test(test_json_refuses_what_it_cannot_hold),
		cmocka_unit_test(test_what_changes_the_bits_binds),
		cmocka_unit_test(test_the_vocabulary_binds),
		cmocka_unit_test(test_recalled_settings_are_not_reported),
		cmocka_unit_test(test_unset_is_said),
		cmocka_unit_test(test_stored_settings_are_settings),
		cmocka_unit_test(test_both_values_and_all_names_are_reported),
		cmocka_unit_test(test_batches_are_compared_by_what_they_give),
		cmocka_unit_test(test_resolved_settings_resume_on_other_workers),
		cmocka_unit_test(test_beta2_is_the_optimizers),
		cmocka_unit_test(test_defaults_are_the_rows),
		cmocka_unit_test(test_rates_are_compared_by_what_they_give),
		cmocka_unit_test(test_length_binds_where_the_schedule_looks_at_it),
		cmocka_unit_test(test_init_may_be_left_out),
		cmocka_unit_test(test_names_do_not_bind_own_objects),
		cmocka_unit_test(test_stored_text_is_not_trusted),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_micro_batches_of_a_step),
		cmocka_unit_test(test_the_first_edition_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
