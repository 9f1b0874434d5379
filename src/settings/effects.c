#include "settings/effects.h"

#include <lockstep/models.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "data/dataset.h"
#include "data/readers/table_files.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "settings/model.h"
#include "settings/settings.h"

typedef ls_effects run;

static int builds_model(const run *r)
{
	return !r->options->graph;
}

static int opens_data(const run *r)
{
	return !r->options->train_set;
}

/* Datasets whose files are in a directory of their own; others are generated, or a path. */
static int has_directory(const run *r)
{
	const ls_dataset_row *row = opens_data(r) && r->options->data ? ls_dataset_row_of(r->options->data) : NULL;
	return row && row->needs_download;
}

/* Whether images are read from files of any size. */
static int opens_files(const run *r)
{
	return opens_data(r) && !r->is_text && r->options->data && !ls_dataset_row_of(r->options->data) &&
	       !ls_directory_is(r->options->data) && !ls_table_is(r->options->data) && !ls_numpy_is(r->options->data);
}

static int opens_path(const run *r)
{
	return opens_data(r) && r->options->data && !ls_dataset_row_of(r->options->data);
}

static int opens_table(const run *r)
{
	return opens_path(r) && (ls_table_rows_named(r->options->data) || ls_table_is(r->options->data));
}

static int is_text(const run *r)
{
	return r->is_text;
}

static int opens_test(const run *r)
{
	return opens_data(r) && r->has_test;
}

static int evaluates(const run *r)
{
	return opens_data(r) || r->options->test_set;
}

static int reads_text(const run *r)
{
	return r->is_text && ls_train_needs_vocabulary(r->options);
}

/* With WordPiece, which GPT does not use. */
static int reads_words(const run *r)
{
	return reads_text(r) && !ls_train_predicts_next(r->options);
}

static int opens_text(const run *r)
{
	return r->is_text && opens_data(r);
}

static int goes_by_epochs(const run *r)
{
	return r->options->steps == 0;
}

static int uses_momentum(const run *r)
{
	return ls_optimizer_default(r->options->optimizer, "momentum") != NULL;
}

static int uses_betas(const run *r)
{
	return ls_optimizer_default(r->options->optimizer, "beta1") != NULL;
}

static int uses_epsilon(const run *r)
{
	return ls_optimizer_default(r->options->optimizer, "epsilon") != NULL;
}

static int has_momentum(const run *r)
{
	return r->options->momentum > 0;
}

/* Goes from lr to lr-min over the run. */
static int ends_at_minimum(const run *r)
{
	const ls_schedule_kind *kind = ls_schedule_find(r->options->schedule);
	return !kind || kind->needs_length;
}

static int cuts_in_steps(const run *r)
{
	return strcmp(r->options->schedule, "step") == 0;
}

static int has_images(const run *r)
{
	return !r->is_text;
}

/* So far as it is known before it is measured. */
static int multiplies_in_fp32(const run *r)
{
	return strcmp(r->options->precision, "fp32") == 0 || strcmp(r->options->precision, "auto") == 0;
}

/* "a:4,b" leaves the number of devices of b to options.devices. */
static int needs_devices(const run *r)
{
	const char *hosts = r->options->hosts;
	for (size_t length; hosts; hosts = hosts[length] != '\0' ? hosts + length + 1 : NULL) {
		length = strcspn(hosts, ",");
		if (!memchr(hosts, ':', length))
			return 1;
	}
	return !r->options->hosts;
}

static int has_nodes(const run *r)
{
	return r->nodes > 1;
}

static int is_elastic(const run *r)
{
	return r->options->elastic;
}

static int has_exchange(const run *r)
{
	return r->has_exchange;
}

static int has_run(const run *r)
{
	return r->options->run != NULL;
}

static int has_trace(const run *r)
{
	return r->options->trace;
}

static int has_test(const run *r)
{
	return r->has_test;
}

static int stops_early(const run *r)
{
	return r->options->early_stop > 0;
}

/* It names the metric of early_stop, too. */
static int uses_best(const run *r)
{
	return has_run(r) || stops_early(r);
}

static int shows_steps(const run *r)
{
	return has_run(r) || !r->options->quiet;
}

#define OWN_GRAPH "the program brings a graph of its own"
#define OWN_DATA "the program brings a dataset of its own"
#define NOT_A_TABLE "it is not a CSV, TSV or JSONL file"
#define ONE_NODE "there is only one node"
#define NOT_ELASTIC "there is no options.elastic"
#define NO_RUN "nothing is saved without options.run"

/* A setting has an effect when all its rows say so; a row without a function always does. `with` is the setting that
 * decides. */
typedef struct effect {
	const char *name;
	int (*counts)(const run *r);
	const char *with, *why;
} effect;

static const effect effects[] = {
	{ "model", builds_model, NULL, OWN_GRAPH },
	{ "data", opens_data, NULL, OWN_DATA },
	{ "data-dir", has_directory, "data", "its files are not read from there" },
	{ "samples", opens_data, NULL, OWN_DATA },
	{ "test-samples", opens_test, "eval-every", "no test set is opened" },
	{ "image-size", opens_files, "data", "it is not a folder of image files" },
	{ "cache", opens_files, "data", "it is not a folder of image files" },
	{ "target", opens_table, "data", NOT_A_TABLE },
	{ "task", opens_table, "data", NOT_A_TABLE },
	{ "text-column", opens_table, "data", NOT_A_TABLE },
	{ "text-column", is_text, "model", "it does not take text" },
	{ "skip-bad", opens_path, "data", "it is not read from files of any number" },
	{ "augment", NULL, NULL, NULL },
	{ "label-smoothing", builds_model, NULL, OWN_GRAPH },
	{ "class-weights", builds_model, NULL, OWN_GRAPH },
	{ "loss", builds_model, NULL, OWN_GRAPH },
	{ "dropout", builds_model, NULL, OWN_GRAPH },

	{ "vocab", reads_text, "data", "it is not text that is read with a vocabulary" },
	{ "cased", reads_words, "data", "it is not text that is cut into WordPiece tokens" },
	{ "seq-len", opens_text, "data", "it is not text" },
	{ "phrases", opens_text, "data", "it is not text" },
	{ "replace-invalid", reads_words, "data", "it is not text that is cut into WordPiece tokens" },
	{ "layers", builds_model, NULL, OWN_GRAPH },
	{ "width", builds_model, NULL, OWN_GRAPH },
	{ "heads", builds_model, NULL, OWN_GRAPH },
	{ "ffn", builds_model, NULL, OWN_GRAPH },
	{ "max-len", builds_model, NULL, OWN_GRAPH },
	{ "lora", builds_model, NULL, OWN_GRAPH },

	{ "epochs", goes_by_epochs, "steps", NULL },
	{ "steps", NULL, NULL, NULL },
	{ "to-accuracy", NULL, NULL, NULL },
	{ "early-stop", NULL, NULL, NULL },
	{ "early-stop-delta", stops_early, NULL, "there is no options.early_stop" },
	{ "batch", NULL, NULL, NULL },
	{ "micro-batch", NULL, NULL, NULL },
	{ "batch-per-device", NULL, NULL, NULL },

	{ "optimizer", NULL, NULL, NULL },
	{ "lr", NULL, NULL, NULL },
	{ "momentum", uses_momentum, "optimizer", NULL },
	{ "nesterov", uses_momentum, "optimizer", NULL },
	{ "nesterov", has_momentum, "momentum", NULL },
	{ "beta1", uses_betas, "optimizer", NULL },
	{ "beta2", uses_betas, "optimizer", NULL },
	{ "epsilon", uses_epsilon, "optimizer", NULL },
	{ "weight-decay", NULL, NULL, NULL },
	{ "clip-norm", NULL, NULL, NULL },
	{ "freeze", NULL, NULL, NULL },
	{ "schedule", NULL, NULL, NULL },
	{ "warmup", NULL, NULL, NULL },
	{ "lr-min", ends_at_minimum, "schedule", NULL },
	{ "lr-step-every", cuts_in_steps, "schedule", NULL },
	{ "lr-step-factor", cuts_in_steps, "schedule", NULL },
	{ "lr-scale-workers", NULL, NULL, NULL },
	{ "ema", NULL, NULL, NULL },
	{ "seed", NULL, NULL, NULL },

	{ "devices", needs_devices, "hosts", "each host has its number of devices there" },
	{ "threads", NULL, NULL, NULL },
	{ "precision", NULL, NULL, NULL },
	{ "conv", has_images, "model", "it has no convolutions" },
	{ "conv", multiplies_in_fp32, "precision", "convolutions are computed directly there" },
	{ "pin", NULL, NULL, NULL },

	{ "hosts", NULL, NULL, NULL },
	{ "elastic", NULL, NULL, NULL },
	{ "min-nodes", is_elastic, NULL, NOT_ELASTIC },
	{ "max-restarts", is_elastic, NULL, NOT_ELASTIC },
	{ "discover", is_elastic, NULL, NOT_ELASTIC },
	{ "strategy", has_nodes, NULL, ONE_NODE },
	{ "servers", has_nodes, NULL, ONE_NODE },
	{ "staleness", has_nodes, NULL, ONE_NODE },
	{ "wire", has_nodes, NULL, ONE_NODE },
	{ "share", has_nodes, NULL, ONE_NODE },
	{ "bucket-bytes", has_exchange, NULL, "there is one device, and one micro-batch per step" },
	{ "timeout", has_nodes, NULL, ONE_NODE },
	{ "audit-every", has_nodes, NULL, ONE_NODE },

	{ "run", NULL, NULL, NULL },
	{ "resume", NULL, NULL, NULL },
	{ "init", NULL, NULL, NULL },
	{ "ckpt-every", has_run, NULL, NO_RUN },
	{ "snapshot-every", has_run, NULL, NO_RUN },
	{ "keep", has_run, NULL, NO_RUN },
	{ "log-every", shows_steps, NULL, "with options.quiet and without options.run there is no log" },
	{ "eval-every", evaluates, NULL, "the program brings no test set" },
	{ "eval-steps", has_test, NULL, "there is no test set" },
	{ "keep-best", uses_best, NULL, NO_RUN },
	{ "trace", NULL, NULL, NULL },
	{ "trace-steps", has_trace, NULL, "there is no options.trace" },
	{ "plan-memory", NULL, NULL, NULL },
	{ "quiet", NULL, NULL, NULL },
};

static void explain(const run *r, const effect *e, char *out, size_t size)
{
	char value[128], name[LS_SETTING_FIELD];
	const ls_setting *with = e->with ? ls_train_setting_of(e->with) : NULL;
	int used = snprintf(out, size, "%s has no effect", ls_setting_field(ls_train_setting_of(e->name), name));

	if (with)
		ls_setting_format(with, r->options, value, sizeof(value));
	if (with && value[0] != '\0' && used < (int)size)
		used += snprintf(out + used, size - (size_t)used, " with %s %s", ls_setting_field(with, name), value);
	if (e->why && used < (int)size)
		snprintf(out + used, size - (size_t)used, ": %s", e->why);
}

int ls_effects_of(const ls_effects *r, const ls_setting *setting, char *why, size_t size)
{
	for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++)
		if (strcmp(effects[i].name, setting->name) == 0 && effects[i].counts && !effects[i].counts(r)) {
			explain(r, &effects[i], why, size);
			return 0;
		}
	return 1;
}

void ls_effects_warn(const ls_effects *r)
{
	const ls_setting *row;
	char why[512];

	for (size_t i = 0; (row = ls_train_setting_at(i)); i++)
		if (ls_train_setting_is_given(r->options, row) && !ls_effects_of(r, row, why, sizeof(why)))
			ls_log_warning("%s", why);
}
