/*
 * settings.c - the one table of settings, and setting a field through a row of it.
 *
 * The command line, its help, run.json, the check of a resumed run and the test of the manual page are all made from
 * this table: a new setting is a field of ls_train_options and a row here. A help text says in a line, with a verb and
 * a unit, what the option does; the default is added to it where it is a value, and {values}
 * becomes the names in values.c. The manual page has room for the rest.
 */
#include "settings/settings.h"

#include <inttypes.h>
#include <lockstep/text.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/handles.h"
#include "base/names.h"
#include "base/status.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

#define DATA "Model and data"
#define TEXT LS_SETTINGS_TEXT
#define LENGTH "Length"
#define UPDATE "Update"
#define MACHINE "Machine"
#define NODES LS_SETTINGS_NODES
#define OUTPUT "Output"

#define AT(member) offsetof(ls_train_options, member)
#define NO_LIMIT 0x1p53 /* every integer up to here is a double, too */
#define REAL_MAX 1e38

#define BINDS LS_SETTING_BINDS   /* changes the trained bits */
#define COMMON LS_SETTING_COMMON /* is shown in the short help */
#define NOT_0 LS_SETTING_NOT_0   /* 0 stands for "not given" */
#define ONCE LS_SETTING_ONCE     /* concerns one start of a run */

/* name, key, placeholder, group, help, kind, offset, min, max, marks */
static const ls_setting settings[] = {
	{ "model", 'm', "NAME", DATA, "train this model", LS_SETTING_STRING, AT(model), 0, 0, BINDS | COMMON },
	{ "data", 'd', "NAME", DATA, "train on this dataset, folder or file", LS_SETTING_STRING, AT(data), 0, 0,
	  BINDS | COMMON },
	{ "data-dir", 0, "DIR", DATA, "read the dataset's files from DIR", LS_SETTING_STRING, AT(data_dir), 0, 0, 0 },
	{ "samples", 0, "N", DATA, "use N training samples (default: all)", LS_SETTING_COUNT, AT(samples), 0, NO_LIMIT,
	  BINDS | COMMON | NOT_0 },
	{ "test-samples", 0, "N", DATA, "use N test samples (default: all)", LS_SETTING_COUNT, AT(test_samples), 0,
	  NO_LIMIT, NOT_0 },
	{ "image-size", 0, "N", DATA, "scale images of a folder to NxN pixels", LS_SETTING_INT, AT(image_size), 0,
	  65535, BINDS | NOT_0 },
	{ "cache", 0, "WHERE", DATA, "keep decoded images of a folder: {values}, or a folder", LS_SETTING_STRING,
	  AT(cache), 0, 0, 0 },
	{ "target", 0, "NAME,...", DATA, "tables: predict these columns (default: target or label)", LS_SETTING_STRING,
	  AT(target), 0, 0, BINDS | COMMON },
	{ "task", 0, "NAME", DATA, "tables: learn {values}", LS_SETTING_STRING, AT(task), 0, 0, BINDS },
	{ "skip-bad", 0, "N", DATA, "leave out up to N rows or files that cannot be read", LS_SETTING_COUNT,
	  AT(skip_bad), 0, NO_LIMIT, BINDS },
	{ "augment", 0, "LIST", DATA, "change training images at random by a list of transforms", LS_SETTING_STRING,
	  AT(augment), 0, 0, BINDS | COMMON },
	{ "label-smoothing", 0, "S", DATA, "smooth the labels of cross-entropy by S", LS_SETTING_REAL,
	  AT(label_smoothing), 0, 0.99, BINDS },
	{ "class-weights", 0, "LIST", DATA, "weigh the loss of classes: {values}, or a list", LS_SETTING_STRING,
	  AT(class_weights), 0, 0, BINDS },
	{ "loss", 0, "NAME", DATA, "minimise {values}", LS_SETTING_STRING, AT(loss), 0, 0, BINDS },
	{ "dropout", 0, "P", DATA, "drop activations with probability P", LS_SETTING_FLOAT, AT(dropout), 0, 0.99,
	  BINDS | COMMON },

	{ "vocab", 0, "FILE", TEXT, "tokenize with this vocab.txt; GPT: this directory, or bytes", LS_SETTING_STRING,
	  AT(vocab), 0, 0, COMMON },
	{ "cased", 0, NULL, TEXT, "keep capitals and accents", LS_SETTING_FLAG, AT(cased), 0, 1, BINDS },
	{ "seq-len", 0, "N", TEXT, "cut samples to N tokens (default: the longest; 128; GPT 256)", LS_SETTING_INT,
	  AT(seq_len), 0, LS_TOKENS_MAX, BINDS | COMMON | NOT_0 },
	{ "phrases", 0, NULL, TEXT, "sst5: train on all phrases, not only on sentences", LS_SETTING_FLAG, AT(phrases),
	  0, 1, BINDS },
	{ "replace-invalid", 0, NULL, TEXT, "replace bytes that are not UTF-8", LS_SETTING_FLAG, AT(replace_invalid), 0,
	  1, BINDS },
	{ "text-column", 0, "NAME", TEXT, "tables: read the text from this column (default: text)", LS_SETTING_STRING,
	  AT(text_column), 0, 0, BINDS },
	{ "layers", 0, "N", TEXT, "transformer: number of layers (default 6)", LS_SETTING_INT, AT(layers), 0, 1000,
	  BINDS | NOT_0 },
	{ "width", 0, "N", TEXT, "transformer: hidden size (default 256)", LS_SETTING_INT, AT(width), 0, 65536,
	  BINDS | NOT_0 },
	{ "heads", 0, "N", TEXT, "transformer: number of attention heads (default 4)", LS_SETTING_INT, AT(heads), 0,
	  4096, BINDS | NOT_0 },
	{ "ffn", 0, "N", TEXT, "transformer: feed-forward size (default 4 x width)", LS_SETTING_INT, AT(ffn), 0,
	  1 << 20, BINDS | NOT_0 },
	{ "max-len", 0, "N", TEXT, "transformer: number of positions (default 256)", LS_SETTING_INT, AT(max_len), 0,
	  LS_TOKENS_MAX, BINDS | NOT_0 },
	{ "lora", 0, "R", TEXT, "gpt: train adapters of rank R (LoRA) and nothing else", LS_SETTING_INT, AT(lora), 0,
	  65536, BINDS | NOT_0 },

	{ "epochs", 'e', "N", LENGTH, "train for N passes over the data", LS_SETTING_INT, AT(epochs), 1, 1e9, COMMON },
	{ "steps", 0, "N", LENGTH, "stop after N steps in all, whatever the epochs", LS_SETTING_INT, AT(steps), 0, 1e15,
	  COMMON | NOT_0 },
	{ "to-accuracy", 0, "X", LENGTH, "stop when the test accuracy reaches X", LS_SETTING_REAL, AT(to_accuracy), 0,
	  1, NOT_0 },
	{ "early-stop", 0, "N", LENGTH, "stop after N evaluations without a better one", LS_SETTING_INT, AT(early_stop),
	  0, 1e9, COMMON | NOT_0 },
	{ "early-stop-delta", 0, "X", LENGTH, "count evaluations as better by more than X", LS_SETTING_REAL,
	  AT(early_stop_delta), 0, REAL_MAX, 0 },
	{ "batch", 'b', "N", LENGTH, "use N samples per step, over all devices", LS_SETTING_INT, AT(batch), 1, 1e12,
	  BINDS | COMMON },
	{ "micro-batch", 0, "N", LENGTH, "compute N samples at a time (default: up to 32)", LS_SETTING_INT,
	  AT(micro_batch), 0, 1e9, BINDS | COMMON | NOT_0 },
	{ "batch-per-device", 0, "N", LENGTH, "set the batch to N x devices, the micro-batch to N", LS_SETTING_INT,
	  AT(batch_per_device), 0, 1e9, BINDS | NOT_0 },

	{ "optimizer", 0, "NAME", UPDATE, "update by {values}", LS_SETTING_STRING, AT(optimizer), 0, 0,
	  BINDS | COMMON },
	{ "lr", 0, "X", UPDATE, "set the learning rate", LS_SETTING_REAL, AT(lr), 0, REAL_MAX, BINDS | COMMON },
	{ "momentum", 0, "X", UPDATE, "sgd: set the momentum", LS_SETTING_REAL, AT(momentum), 0, 1, BINDS },
	{ "nesterov", 0, NULL, UPDATE, "sgd: use Nesterov's form of momentum", LS_SETTING_FLAG, AT(nesterov), 0, 1,
	  BINDS },
	{ "beta1", 0, "X", UPDATE, "set the decay of the mean gradient", LS_SETTING_REAL, AT(beta1), 0, 0.999999,
	  BINDS },
	{ "beta2", 0, "X", UPDATE, "set the other decay (default: the optimizer's)", LS_SETTING_REAL, AT(beta2), 0,
	  0.999999, BINDS | NOT_0 },
	{ "epsilon", 0, "X", UPDATE, "add X to the denominator for stability", LS_SETTING_REAL, AT(epsilon), 1e-30, 1,
	  BINDS },
	{ "weight-decay", 0, "X", UPDATE, "set the weight decay", LS_SETTING_REAL, AT(weight_decay), 0, 1000,
	  BINDS | COMMON },
	{ "clip-norm", 0, "X", UPDATE, "clip the gradient's norm to X, 0 for never", LS_SETTING_REAL, AT(clip_norm), 0,
	  REAL_MAX, BINDS | COMMON },
	{ "freeze", 0, "PATTERN,...", UPDATE, "keep the parameters with these names as they are", LS_SETTING_STRING,
	  AT(freeze), 0, 0, BINDS | COMMON },
	{ "schedule", 0, "NAME", UPDATE, "change lr by {values}", LS_SETTING_STRING, AT(schedule), 0, 0,
	  BINDS | COMMON },
	{ "warmup", 0, "N", UPDATE, "raise lr from 0 over the first N steps", LS_SETTING_INT, AT(warmup), 0, 1e15,
	  BINDS | COMMON },
	{ "lr-min", 0, "X", UPDATE, "end wsd, cosine and linear at X", LS_SETTING_REAL, AT(lr_min), 0, REAL_MAX,
	  BINDS },
	{ "lr-step-every", 0, "N", UPDATE, "schedule step: change lr every N steps", LS_SETTING_INT, AT(lr_step_every),
	  0, 1e15, BINDS | NOT_0 },
	{ "lr-step-factor", 0, "X", UPDATE, "schedule step: multiply lr by X", LS_SETTING_REAL, AT(lr_step_factor), 0,
	  1e6, BINDS },
	{ "lr-scale-workers", 0, NULL, UPDATE, "multiply lr by the number of devices", LS_SETTING_FLAG,
	  AT(lr_scale_workers), 0, 1, BINDS },
	{ "ema", 0, "D", UPDATE, "evaluate and save a moving average of weights, decay D", LS_SETTING_REAL, AT(ema), 0,
	  0.9999999, BINDS | NOT_0 },
	{ "seed", 's', "N", UPDATE, "seed weights, sample order, dropout, data", LS_SETTING_SEED, AT(seed), 0, NO_LIMIT,
	  BINDS | COMMON },

	{ "devices", 0, "N", MACHINE, "use N devices (default: cores, or micro-batches)", LS_SETTING_INT, AT(devices),
	  0, 4096, COMMON | NOT_0 },
	{ "threads", 't', "N", MACHINE, "use N threads per device (default: the cores left)", LS_SETTING_INT,
	  AT(threads), 0, LS_THREADS_MAX, COMMON | NOT_0 },
	{ "precision", 0, "TYPE", MACHINE, "multiply in {values}", LS_SETTING_STRING, AT(precision), 0, 0,
	  BINDS | COMMON },
	{ "conv", 0, "NAME", MACHINE, "compute convolutions by {values}", LS_SETTING_STRING, AT(conv), 0, 0, BINDS },
	{ "pin", 0, "WHEN", MACHINE, "pin threads to cores: {values}", LS_SETTING_STRING, AT(pin), 0, 0, 0 },

	{ "hosts", 0, "HOST:N,...", NODES, "start a node with N devices on each host", LS_SETTING_STRING, AT(hosts), 0,
	  0, COMMON | ONCE },
	{ "elastic", 0, NULL, NODES, "go on when hosts die, leave or join", LS_SETTING_FLAG, AT(elastic), 0, 0, ONCE },
	{ "min-nodes", 0, "N", NODES, "elastic: wait while fewer than N hosts can take part", LS_SETTING_INT,
	  AT(min_nodes), 1, 4096, ONCE },
	{ "max-restarts", 0, "N", NODES, "elastic: end after N restarts in a row", LS_SETTING_INT, AT(max_restarts), 0,
	  1e6, ONCE },
	{ "discover", 0, "COMMAND", NODES, "elastic: take the hosts that COMMAND prints", LS_SETTING_STRING,
	  AT(discover), 0, 0, ONCE },
	{ "strategy", 0, "NAME", NODES, "exchange by {values}", LS_SETTING_STRING, AT(strategy), 0, 0, 0 },
	{ "servers", 0, "N", NODES, "ps, ps-async: use N parameter servers (default 1)", LS_SETTING_INT, AT(servers), 0,
	  4096, NOT_0 },
	{ "staleness", 0, "N", NODES, "ps-async: run up to N steps ahead (default 4)", LS_SETTING_INT, AT(staleness), 0,
	  1000, NOT_0 },
	{ "wire", 0, "TYPE", NODES, "send {values} numbers between nodes", LS_SETTING_STRING, AT(wire), 0, 0, 0 },
	{ "share", 0, "WAY", NODES, "share micro-batches: 3:2, {values}", LS_SETTING_STRING, AT(share), 0, 0, 0 },
	{ "bucket-bytes", 0, "N", NODES, "send N bytes of gradient at a time", LS_SETTING_INT, AT(bucket_bytes), 0,
	  1e12, NOT_0 },
	{ "timeout", 0, "N", NODES, "give up on a silent node after N seconds", LS_SETTING_INT, AT(timeout), 1, 1e6,
	  0 },
	{ "audit-every", 0, "N", NODES, "compare parameters between nodes every N steps", LS_SETTING_INT,
	  AT(audit_every), 0, 1e15, 0 },

	{ "run", 'r', "DIR", OUTPUT, "keep settings, metrics and checkpoints in DIR", LS_SETTING_STRING, AT(run), 0, 0,
	  COMMON | ONCE },
	{ "resume", 0, NULL, OUTPUT, "continue the run in its directory", LS_SETTING_FLAG, AT(resume), 0, 1,
	  COMMON | ONCE },
	{ "init", 0, "FILE|RUN", OUTPUT, "start from the weights of a file or a run", LS_SETTING_STRING, AT(init), 0, 0,
	  COMMON | ONCE },
	{ "ckpt-every", 0, "N", OUTPUT, "save every N steps (default: after each epoch)", LS_SETTING_INT,
	  AT(ckpt_every), 0, 1e15, NOT_0 },
	{ "snapshot-every", 0, "N", OUTPUT, "copy the state into memory every N steps (elastic: by cost)",
	  LS_SETTING_INT, AT(snapshot_every), 0, 1e15, NOT_0 },
	{ "keep", 0, "N", OUTPUT, "keep the N newest checkpoints", LS_SETTING_INT, AT(keep), 1, 1e6, 0 },
	{ "log-every", 0, "N", OUTPUT, "log every N steps", LS_SETTING_INT, AT(log_every), 1, 1e15, 0 },
	{ "eval-every", 0, "N", OUTPUT, "evaluate every N epochs, 0 for never", LS_SETTING_INT, AT(eval_every), 0, 1e9,
	  0 },
	{ "eval-steps", 0, "N", OUTPUT, "evaluate every N steps, not by epochs", LS_SETTING_INT, AT(eval_steps), 0,
	  1e15, NOT_0 },
	{ "keep-best", 0, "METRIC", OUTPUT, "keep the best weights by {values}", LS_SETTING_STRING, AT(keep_best), 0, 0,
	  COMMON },
	{ "trace", 0, NULL, OUTPUT, "write the first steps as a timeline", LS_SETTING_FLAG, AT(trace), 0, 1, ONCE },
	{ "trace-steps", 0, "N", OUTPUT, "write N steps of a timeline", LS_SETTING_INT, AT(trace_steps), 1, 1e6, 0 },
	{ "plan-memory", 0, NULL, OUTPUT, "print the memory plan and stop", LS_SETTING_FLAG, AT(plan_memory), 0, 1,
	  ONCE },
	{ "quiet", 'q', NULL, OUTPUT, "print errors only", LS_SETTING_FLAG, AT(quiet), 0, 1, COMMON | ONCE },
};

#define SETTING_COUNT (sizeof(settings) / sizeof(settings[0]))
_Static_assert(SETTING_COUNT <= 8 * sizeof(((ls_train_options *)0)->given), "a bit for each setting");

const ls_setting *ls_train_setting_at(size_t i)
{
	return i < SETTING_COUNT ? &settings[i] : NULL;
}

static const char *name_at(size_t i)
{
	return i < SETTING_COUNT ? settings[i].name : NULL;
}

const ls_setting *ls_train_setting_of(const char *name)
{
	return ls_train_setting_at(ls_name_row(name, name_at));
}

static ls_status unknown_setting(const char *name)
{
	const char *names[SETTING_COUNT];
	for (size_t i = 0; i < SETTING_COUNT; i++)
		names[i] = settings[i].name;
	char advice[256];
	ls_option_explain(advice, sizeof(advice), name, names, SETTING_COUNT);
	return ls_fail(LS_EINVALID, "unknown setting '%s'%s", name, advice);
}

ls_status ls_train_options_set(ls_train_options *options, const char *name, const char *value)
{
	LS_TRY(ls_argument_check(options, "options"));
	LS_TRY(ls_argument_check(name, "name"));
	const ls_setting *row = ls_train_setting_of(name);
	if (!row)
		return unknown_setting(name);
	LS_TRY(ls_setting_set(row, options, value));
	ls_settings_give(options, row);
	return LS_OK;
}

void ls_settings_give(ls_train_options *options, const ls_setting *row)
{
	size_t i = (size_t)(row - settings);
	options->given[i / 64] |= (uint64_t)1 << i % 64;
}

int ls_train_setting_is_given(const ls_train_options *options, const ls_setting *row)
{
	size_t i = (size_t)(row - settings);
	return options->given[i / 64] >> i % 64 & 1;
}

const char *ls_setting_field(const ls_setting *row, char out[LS_SETTING_FIELD])
{
	snprintf(out, LS_SETTING_FIELD, "options.%s", row->name);
	for (char *c = out; *c; c++)
		*c = *c == '-' ? '_' : *c;
	return out;
}

/* Whole numbers as people write them ("30", not "3e+01"), others as short as they read back. */
static void format_real(double value, int is_float, char *out, size_t size)
{
	if (fabs(value) < 1e7 && value == floor(value)) {
		snprintf(out, size, "%.0f", value);
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(out, size, "%.*g", digits, value);
		if (is_float ? strtof(out, NULL) == (float)value : strtod(out, NULL) == value)
			break;
	}
}

size_t ls_setting_bytes(const ls_setting *row)
{
	static const size_t bytes[] = { [LS_SETTING_STRING] = sizeof(char *), [LS_SETTING_INT] = sizeof(int64_t),
					[LS_SETTING_SEED] = sizeof(uint64_t), [LS_SETTING_REAL] = sizeof(double),
					[LS_SETTING_FLOAT] = sizeof(float),   [LS_SETTING_FLAG] = sizeof(int),
					[LS_SETTING_COUNT] = sizeof(uint64_t) };
	return bytes[row->kind];
}

/* A program that was compiled before a setting of training existed has options without its field. Rows of other tables
 * are of structs that end where their program says. */
static int has_field(const ls_setting *row, const void *options)
{
	size_t size;

	if (ls_train_setting_of(row->name) != row)
		return 1;
	memcpy(&size, options, sizeof(size));
	return row->offset + ls_setting_bytes(row) <= size;
}

void ls_setting_format(const ls_setting *row, const void *options, char *out, size_t size)
{
	static const ls_train_options defaults = LS_TRAIN_OPTIONS_INIT;
	const void *field = (const char *)(has_field(row, options) ? options : &defaults) + row->offset;
	switch (row->kind) {
	case LS_SETTING_STRING: {
		const char *text = *(const char *const *)field;
		snprintf(out, size, "%s", text ? text : "");
		break;
	}
	case LS_SETTING_INT:
		snprintf(out, size, "%" PRId64, *(const int64_t *)field);
		break;
	case LS_SETTING_SEED:
	case LS_SETTING_COUNT:
		snprintf(out, size, "%" PRIu64, *(const uint64_t *)field);
		break;
	case LS_SETTING_REAL:
		format_real(*(const double *)field, 0, out, size);
		break;
	case LS_SETTING_FLOAT:
		format_real((double)*(const float *)field, 1, out, size);
		break;
	case LS_SETTING_FLAG:
		snprintf(out, size, "%s", *(const int *)field ? "on" : "off");
		break;
	}
}

static void format_bound(double bound, char *out, size_t size)
{
	if (bound == rint(bound) && fabs(bound) < 1e16)
		snprintf(out, size, "%.0f", bound);
	else
		format_real(bound, 0, out, size);
}

static ls_status check_range(const ls_setting *row, double number, const char *typed)
{
	if (number >= row->min && number <= row->max)
		return LS_OK;
	char low[32], high[32], name[LS_SETTING_FIELD];
	format_bound(row->min, low, sizeof(low));
	format_bound(row->max, high, sizeof(high));
	if (row->max >= NO_LIMIT && number < row->min)
		return ls_fail(LS_EINVALID, "%s must be at least %s, not %s", ls_setting_field(row, name), low, typed);
	return ls_fail(LS_EINVALID, "%s must be between %s and %s, not %s", ls_setting_field(row, name), low, high,
		       typed);
}

/* In a field 0 may stand for "not given"; people who type it mean none at all, which these settings cannot be. */
static ls_status check_typed(const ls_setting *row, double number, const char *typed)
{
	char name[LS_SETTING_FIELD];
	if (number == 0 && (row->marks & LS_SETTING_NOT_0) && row->kind == LS_SETTING_REAL)
		return ls_fail(LS_EINVALID, "%s must be above 0; leave it out for the default",
			       ls_setting_field(row, name));
	if (number == 0 && (row->marks & LS_SETTING_NOT_0))
		return ls_fail(LS_EINVALID, "%s must be at least 1, not %s; leave it out for the default",
			       ls_setting_field(row, name), typed);
	return check_range(row, number, typed);
}

static ls_status set_integer(const ls_setting *row, void *field, const char *value, const char *what)
{
	int64_t number;
	LS_TRY(ls_parse_int(value, what, &number));
	LS_TRY(check_typed(row, (double)number, value));
	if (row->kind == LS_SETTING_INT)
		*(int64_t *)field = number;
	else
		*(uint64_t *)field = (uint64_t)number;
	return LS_OK;
}

static ls_status set_count(const ls_setting *row, void *field, const char *value, const char *what)
{
	uint64_t number;
	int64_t below_zero;
	/* "-5" is a number out of range, not a malformed one */
	if (value[0] == '-' && ls_parse_int(value, what, &below_zero) == LS_OK && below_zero < 0)
		return check_range(row, (double)below_zero, value);
	LS_TRY(ls_parse_count(value, what, &number));
	LS_TRY(check_typed(row, (double)number, value));
	*(uint64_t *)field = number;
	return LS_OK;
}

static ls_status set_real(const ls_setting *row, void *field, const char *value, const char *what)
{
	double number;
	LS_TRY(ls_parse_real(value, what, &number));
	LS_TRY(check_typed(row, number, value));
	if (row->kind == LS_SETTING_REAL)
		*(double *)field = number;
	else
		*(float *)field = (float)number;
	return LS_OK;
}

ls_status ls_setting_set(const ls_setting *row, void *options, const char *value)
{
	void *field = (char *)options + row->offset;
	char what[LS_SETTING_FIELD];
	ls_setting_field(row, what);
	if (!has_field(row, options))
		return ls_fail(LS_EUNSUPPORTED,
			       "%s is newer than this program's ls_train_options: start from LS_TRAIN_OPTIONS_INIT and "
			       "compile it against the headers of Lockstep %s",
			       what, ls_version());
	if (row->kind == LS_SETTING_FLAG) {
		if (value)
			return ls_fail(LS_EINVALID, "%s takes no value", what);
		*(int *)field = 1;
		return LS_OK;
	}
	if (!value || !*value)
		return ls_fail(LS_EINVALID, "%s needs a value, %s", what, row->arg);
	switch (row->kind) {
	case LS_SETTING_STRING:
		*(const char **)field = value;
		return LS_OK;
	case LS_SETTING_COUNT:
		return set_count(row, field, value, what);
	case LS_SETTING_REAL:
	case LS_SETTING_FLOAT:
		return set_real(row, field, value, what);
	default:
		return set_integer(row, field, value, what);
	}
}

static ls_status check_text(const ls_setting *row, const ls_train_options *options)
{
	static const ls_train_options defaults = LS_TRAIN_OPTIONS_INIT;
	const char *text = *(const char *const *)((const char *)options + row->offset);
	int optional = !*(const char *const *)((const char *)&defaults + row->offset);

	if (text || optional || (row->offset == AT(model) && options->graph) ||
	    (row->offset == AT(data) && options->train_set))
		return LS_OK;
	char name[LS_SETTING_FIELD];
	return ls_fail(LS_EINVALID, "%s is NULL; start from LS_TRAIN_OPTIONS_INIT", ls_setting_field(row, name));
}

static ls_status check_field(const ls_setting *row, const ls_train_options *options)
{
	const void *field = (const char *)options + row->offset;
	char text[64];

	ls_setting_format(row, options, text, sizeof(text));
	switch (row->kind) {
	case LS_SETTING_STRING:
		return check_text(row, options);
	case LS_SETTING_INT:
		return check_range(row, (double)*(const int64_t *)field, text);
	case LS_SETTING_COUNT:
		return check_range(row, (double)*(const uint64_t *)field, text);
	case LS_SETTING_REAL:
		return check_range(row, *(const double *)field, text);
	case LS_SETTING_FLOAT:
		return check_range(row, strtod(text, NULL), text);
	case LS_SETTING_SEED: /* any 64 bits; only typed ones have a limit */
	case LS_SETTING_FLAG:
		break;
	}
	return LS_OK;
}

ls_status ls_settings_check(const ls_train_options *options)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		LS_TRY(check_field(&settings[i], options));
	return LS_OK;
}

/* A batch that is set as well as batch_per_device, or differs from the default, was meant. */
static int is_batch_meant(const ls_train_options *options)
{
	static const ls_train_options defaults = LS_TRAIN_OPTIONS_INIT;
	return options->batch != defaults.batch || ls_train_setting_is_given(options, ls_train_setting_of("batch"));
}

static ls_status batches_of_devices(const ls_train_options *options, ls_settings_batches *out)
{
	int64_t devices = options->devices > 0 ? options->devices : 1;
	if (is_batch_meant(options) || options->micro_batch > 0)
		return ls_fail(LS_EINVALID,
			       "options.batch_per_device already determines the batch and the micro-batch; leave out "
			       "options.%s",
			       options->micro_batch > 0 ? "micro_batch" : "batch");
	if (__builtin_mul_overflow(options->batch_per_device, devices, &out->global))
		return ls_fail(LS_EINVALID,
			       "options.batch_per_device %" PRId64 " times %" PRId64 " devices is too large",
			       options->batch_per_device, devices);
	out->microbatch = options->batch_per_device;
	return LS_OK;
}

static ls_status check_multiple(int64_t batch, int64_t micro_batch)
{
	if (micro_batch > batch)
		return ls_fail(LS_EINVALID, "options.micro_batch %" PRId64 " is larger than options.batch %" PRId64,
			       micro_batch, batch);
	if (batch % micro_batch == 0)
		return LS_OK;
	return ls_fail(LS_EINVALID,
		       "options.batch %" PRId64 " is not a multiple of options.micro_batch %" PRId64
		       "; use batch %" PRId64 " or %" PRId64 ", or leave out options.micro_batch",
		       batch, micro_batch, batch / micro_batch * micro_batch, (batch / micro_batch + 1) * micro_batch);
}

/* Equal parts of at most LS_MICRO_BATCH samples; where they do not come out even the last one is smaller. */
static int64_t default_micro_batch(int64_t batch)
{
	int64_t parts = (batch + LS_MICRO_BATCH - 1) / LS_MICRO_BATCH;
	return (batch + parts - 1) / parts;
}

ls_status ls_settings_get_batches(const ls_train_options *options, ls_settings_batches *out)
{
	ls_settings_batches batches = { .microbatch = options->micro_batch, .global = options->batch };
	if (options->batch < 1 || options->devices < 0 || options->micro_batch < 0 || options->batch_per_device < 0)
		return ls_fail(LS_EINVALID, "options.batch, options.micro_batch, options.batch_per_device and "
					    "options.devices must be positive");
	if (options->batch_per_device > 0)
		LS_TRY(batches_of_devices(options, &batches));
	else if (batches.microbatch == 0)
		batches.microbatch = default_micro_batch(batches.global);
	*out = batches;
	return LS_OK;
}

ls_status ls_settings_resolve(const ls_train_options *options, int64_t devices, ls_train_options *out)
{
	ls_train_options resolved = *options;
	ls_settings_batches batches = { 0 };

	resolved.devices = devices;
	LS_TRY(ls_settings_get_batches(&resolved, &batches));
	if (options->micro_batch > 0 && !options->resume) /* a resumed run keeps what it has */
		LS_TRY(check_multiple(batches.global, batches.microbatch));
	resolved.schedule = ls_schedule_name(options->schedule);
	resolved.micro_batch = batches.microbatch;
	resolved.batch = batches.global;
	resolved.batch_per_device = 0;
	const double *beta2 = ls_optimizer_default(options->optimizer, "beta2");
	if (beta2 && options->beta2 == 0)
		resolved.beta2 = *beta2;
	*out = resolved;
	return LS_OK;
}

int64_t ls_settings_micro_batches(const ls_train_options *options, uint64_t samples)
{
	ls_settings_batches batches = { 0 };
	if (options->batch_per_device > 0 || ls_settings_get_batches(options, &batches) != LS_OK)
		return 0;
	int64_t step = samples < (uint64_t)batches.global ? (int64_t)samples : batches.global;
	return (step + batches.microbatch - 1) / batches.microbatch;
}
