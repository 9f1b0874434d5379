/*
 * Settings without effect: every row of the table in a run where it counts and, unless it always does, in one where it
 * does not; and real runs warn of exactly those that were given.
 */
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings/effects.h"
#include "settings/settings.h"
#include "unit/test_main.h"

static int own_object; /* only its address counts */
#define OWN ((void *)&own_object)

/* A run: settings "name=value name ...", and what it came to. */
typedef struct context {
	const char *settings;
	int is_text, has_test, has_exchange, nodes, own;
} context;

#define IMAGES "data=glyphs model=mlp"
#define READ_TEXT "data=sst5 model=transformer"

static const context images = { IMAGES, 0, 1, 1, 1, 0 };
static const context folder = { "data=pets", 0, 1, 1, 1, 0 };
static const context table = { "data=houses.csv model=mlp", 0, 1, 1, 1, 0 };
static const context reviews = { "data=reviews.csv model=transformer", 1, 1, 1, 1, 0 };
static const context alone = { IMAGES, 0, 1, 0, 1, 0 };
static const context own = { "", 0, 0, 0, 1, 1 };
static const context text = { READ_TEXT, 1, 1, 1, 1, 0 };
static const context babble = { "data=babble", 1, 1, 1, 1, 0 };
static const context mnist = { "data=mnist", 0, 1, 1, 1, 0 };
static const context nodes = { IMAGES, 0, 1, 1, 3, 0 };
static const context untested = { IMAGES " eval-every=0", 0, 0, 1, 1, 0 };
static const context by_steps = { IMAGES " steps=3", 0, 1, 1, 1, 0 };
static const context sgd = { IMAGES " optimizer=sgd", 0, 1, 1, 1, 0 };
static const context plain_sgd = { IMAGES " optimizer=sgd momentum=0", 0, 1, 1, 1, 0 };
static const context constant = { IMAGES " schedule=constant", 0, 1, 1, 1, 0 };
static const context cuts = { IMAGES " schedule=step lr-step-every=5", 0, 1, 1, 1, 0 };
static const context hosts = { IMAGES " hosts=a:1,b:2", 0, 1, 1, 2, 0 };
static const context elastic = { IMAGES " hosts=a:1,b:2 run=r elastic", 0, 1, 1, 2, 0 };
static const context some_hosts = { IMAGES " hosts=a:1,b", 0, 1, 1, 2, 0 };
static const context kept = { IMAGES " run=r", 0, 1, 1, 1, 0 };
static const context traced = { IMAGES " run=r trace", 0, 1, 1, 1, 0 };
static const context stops_early = { IMAGES " early-stop=3", 0, 1, 1, 1, 0 };
static const context in_bf16 = { IMAGES " precision=bf16", 0, 1, 1, 1, 0 };
static const context silent = { IMAGES " quiet", 0, 1, 1, 1, 0 };

static const struct {
	const char *name;
	const context *idle, *counts; /* idle is NULL: it always counts */
	const char *why;
} cases[] = {
	{ "model", &own, &images, "options.model has no effect: the program brings a graph of its own" },
	{ "data", &own, &images, "options.data has no effect: the program brings a dataset" },
	{ "data-dir", &images, &mnist,
	  "options.data_dir has no effect with options.data glyphs: its files are not read" },
	{ "samples", &own, &images, "options.samples has no effect: the program brings a dataset" },
	{ "test-samples", &untested, &images,
	  "options.test_samples has no effect with options.eval_every 0: no test set" },
	{ "image-size", &images, &folder,
	  "options.image_size has no effect with options.data glyphs: it is not a folder of image files" },
	{ "cache", &images, &folder,
	  "options.cache has no effect with options.data glyphs: it is not a folder of image files" },
	{ "target", &images, &table, "options.target has no effect with options.data glyphs: it is not a CSV" },
	{ "task", &images, &table, "options.task has no effect with options.data glyphs: it is not a CSV" },
	{ "text-column", &images, &reviews,
	  "options.text_column has no effect with options.data glyphs: it is not a CSV" },
	{ "text-column", &table, &reviews,
	  "options.text_column has no effect with options.model mlp: it does not take" },
	{ "skip-bad", &images, &folder, "options.skip_bad has no effect with options.data glyphs" },
	{ "augment", NULL, &images, NULL },
	{ "precision", NULL, &images, NULL },
	{ "conv", &text, &images, "options.conv has no effect with options.model transformer: it has no convolutions" },
	{ "conv", &in_bf16, &images,
	  "options.conv has no effect with options.precision bf16: convolutions are computed" },
	{ "label-smoothing", &own, &images, "options.label_smoothing has no effect: the program brings a graph" },
	{ "class-weights", &own, &images, "options.class_weights has no effect: the program brings a graph" },
	{ "loss", &own, &images, "options.loss has no effect: the program brings a graph" },
	{ "dropout", &own, &images, "options.dropout has no effect: the program brings a graph" },
	{ "vocab", &images, &text, "options.vocab has no effect with options.data glyphs: it is not text" },
	{ "vocab", &babble, &text,
	  "options.vocab has no effect with options.data babble: it is not text that is read" },
	{ "cased", &images, &text, "options.cased has no effect with options.data glyphs" },
	{ "seq-len", &images, &babble, "options.seq_len has no effect with options.data glyphs: it is not text" },
	{ "phrases", &images, &text, "options.phrases has no effect with options.data glyphs" },
	{ "replace-invalid", &images, &text, "options.replace_invalid has no effect with options.data glyphs" },
	{ "layers", &own, &text, "options.layers has no effect: the program brings a graph" },
	{ "width", &own, &text, "options.width has no effect: the program brings a graph" },
	{ "heads", &own, &text, "options.heads has no effect: the program brings a graph" },
	{ "ffn", &own, &text, "options.ffn has no effect: the program brings a graph" },
	{ "max-len", &own, &text, "options.max_len has no effect: the program brings a graph" },
	{ "lora", &own, &text, "options.lora has no effect: the program brings a graph" },
	{ "epochs", &by_steps, &images, "options.epochs has no effect with options.steps 3" },
	{ "steps", NULL, &images, NULL },
	{ "to-accuracy", NULL, &images, NULL },
	{ "early-stop", NULL, &images, NULL },
	{ "early-stop-delta", &images, &stops_early,
	  "options.early_stop_delta has no effect: there is no options.early_stop" },
	{ "batch", NULL, &images, NULL },
	{ "micro-batch", NULL, &images, NULL },
	{ "batch-per-device", NULL, &images, NULL },
	{ "optimizer", NULL, &images, NULL },
	{ "lr", NULL, &images, NULL },
	{ "momentum", &images, &sgd, "options.momentum has no effect with options.optimizer adam" },
	{ "nesterov", &images, &sgd, "options.nesterov has no effect with options.optimizer adam" },
	{ "nesterov", &plain_sgd, &sgd, "options.nesterov has no effect with options.momentum 0" },
	{ "beta1", &sgd, &images, "options.beta1 has no effect with options.optimizer sgd" },
	{ "beta2", &sgd, &images, "options.beta2 has no effect with options.optimizer sgd" },
	{ "epsilon", &sgd, &images, "options.epsilon has no effect with options.optimizer sgd" },
	{ "weight-decay", NULL, &images, NULL },
	{ "clip-norm", NULL, &images, NULL },
	{ "freeze", NULL, &images, NULL },
	{ "schedule", NULL, &images, NULL },
	{ "warmup", NULL, &images, NULL },
	{ "lr-min", &constant, &images, "options.lr_min has no effect with options.schedule constant" },
	{ "lr-step-every", &images, &cuts, "options.lr_step_every has no effect with options.schedule wsd" },
	{ "lr-step-factor", &images, &cuts, "options.lr_step_factor has no effect with options.schedule wsd" },
	{ "lr-scale-workers", NULL, &images, NULL },
	{ "ema", NULL, &images, NULL },
	{ "seed", NULL, &images, NULL },
	{ "devices", &hosts, &some_hosts,
	  "options.devices has no effect with options.hosts a:1,b:2: each host has its number" },
	{ "threads", NULL, &images, NULL },
	{ "pin", NULL, &images, NULL },
	{ "hosts", NULL, &images, NULL },
	{ "elastic", NULL, &images, NULL },
	{ "min-nodes", &hosts, &elastic, "options.min_nodes has no effect: there is no options.elastic" },
	{ "max-restarts", &hosts, &elastic, "options.max_restarts has no effect: there is no options.elastic" },
	{ "discover", &hosts, &elastic, "options.discover has no effect: there is no options.elastic" },
	{ "snapshot-every", &images, &kept,
	  "options.snapshot_every has no effect: nothing is saved without options.run" },
	{ "strategy", &images, &nodes, "options.strategy has no effect: there is only one node" },
	{ "servers", &images, &nodes, "options.servers has no effect: there is only one node" },
	{ "staleness", &images, &nodes, "options.staleness has no effect: there is only one node" },
	{ "wire", &images, &nodes, "options.wire has no effect: there is only one node" },
	{ "share", &images, &nodes, "options.share has no effect: there is only one node" },
	{ "bucket-bytes", &alone, &images, "options.bucket_bytes has no effect: there is one device" },
	{ "timeout", &images, &nodes, "options.timeout has no effect: there is only one node" },
	{ "audit-every", &images, &nodes, "options.audit_every has no effect: there is only one node" },
	{ "run", NULL, &images, NULL },
	{ "resume", NULL, &images, NULL },
	{ "init", NULL, &images, NULL },
	{ "ckpt-every", &images, &kept, "options.ckpt_every has no effect: nothing is saved without options.run" },
	{ "keep", &images, &kept, "options.keep has no effect: nothing is saved without options.run" },
	{ "log-every", &silent, &images,
	  "options.log_every has no effect: with options.quiet and without options.run" },
	{ "eval-every", &own, &images, "options.eval_every has no effect: the program brings no test set" },
	{ "eval-steps", &untested, &images, "options.eval_steps has no effect: there is no test set" },
	{ "keep-best", &images, &kept, "options.keep_best has no effect: nothing is saved without options.run" },
	{ "keep-best", &images, &stops_early, "options.keep_best has no effect: nothing is saved without options.run" },
	{ "trace", NULL, &images, NULL },
	{ "trace-steps", &kept, &traced, "options.trace_steps has no effect: there is no options.trace" },
	{ "plan-memory", NULL, &images, NULL },
	{ "quiet", NULL, &images, NULL },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

/* `words` is cut up, and strings of the options point into it. */
static void read_settings(ls_train_options *options, char *words)
{
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
		char *value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		if (ls_train_options_set(options, word, value) != LS_OK)
			fail_msg("%s: %s", word, ls_last_error());
	}
}

static int counts_in(const context *c, const char *name, char *why, size_t size)
{
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	char words[256];
	const ls_setting *row = ls_train_setting_of(name);
	snprintf(words, sizeof(words), "%s", c->settings);
	read_settings(&options, words);
	if (c->own) {
		options.graph = OWN;
		options.train_set = OWN;
	}
	assert_non_null(row);
	ls_effects run = { .options = &options,
			   .is_text = c->is_text,
			   .has_test = c->has_test,
			   .has_exchange = c->has_exchange,
			   .nodes = c->nodes };
	return ls_effects_of(&run, row, why, size);
}

static void every_setting_is_judged(void **state)
{
	(void)state;
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		size_t k = 0;
		while (k < CASES && strcmp(cases[k].name, row->name) != 0)
			k++;
		if (k == CASES)
			fail_msg("no case for --%s: when does it have no effect? (src/settings/effects.c)", row->name);
	}
}

static void idle_and_counting(void **state)
{
	(void)state;
	for (size_t k = 0; k < CASES; k++) {
		char why[512] = "";
		if (!counts_in(cases[k].counts, cases[k].name, why, sizeof(why)))
			fail_msg("in '%s': %s", cases[k].counts->settings, why);
		if (!cases[k].idle)
			continue;
		if (counts_in(cases[k].idle, cases[k].name, why, sizeof(why)))
			fail_msg("--%s counts in '%s'", cases[k].name, cases[k].idle->settings);
		if (!strstr(why, cases[k].why))
			fail_msg("'%s' does not contain '%s'", why, cases[k].why);
	}
}

/* A setting that always counts does so in every context. */
static void always_means_always(void **state)
{
	(void)state;
	char why[512];
	for (size_t k = 0; k < CASES; k++)
		for (size_t other = 0; !cases[k].idle && other < CASES; other++)
			if (cases[other].idle && !counts_in(cases[other].idle, cases[k].name, why, sizeof(why)))
				fail_msg("in '%s': %s", cases[other].idle->settings, why);
}

/* What ls_effects_warn() prints, until the next call. */
static char *warnings_of(const ls_effects *run)
{
	char path[] = "/tmp/lockstep-effects-XXXXXX";
	int saved = dup(STDERR_FILENO), file = mkstemp(path);
	static char printed[4096];
	assert_true(saved >= 0 && file >= 0);
	unlink(path);
	fflush(stderr);
	dup2(file, STDERR_FILENO);
	ls_effects_warn(run);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	ssize_t length = pread(file, printed, sizeof(printed) - 1, 0);
	close(file);
	close(saved);
	printed[length > 0 ? length : 0] = '\0';
	return printed;
}

static void only_what_was_given_is_warned_of(void **state)
{
	(void)state;
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	ls_effects run = { .options = &options, .has_test = 1, .nodes = 1 };
	assert_string_equal(warnings_of(&run), "");
	options.beta1 = 0.5;
	assert_int_equal(ls_train_options_set(&options, "momentum", "0.9"), LS_OK); /* the default, but it was given */
	assert_int_equal(ls_train_options_set(&options, "beta2", "0.9"), LS_OK);
	assert_int_equal(ls_train_options_set(&options, "wire", "bf16"), LS_OK);
	assert_string_equal(warnings_of(&run), "warning: options.momentum has no effect with options.optimizer adam\n"
					       "warning: options.wire has no effect: there is only one node\n");
}

TEST_MAIN(every_setting_is_judged, idle_and_counting, always_means_always, only_what_was_given_is_warned_of)
