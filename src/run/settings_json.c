/*
 * settings_json.c - a run's settings as JSON, and the check that a resumed run keeps to them.
 *
 * What must agree is what changes the trained bits. Most rows of the table say so themselves (`LS_SETTING_BINDS`); four
 * things are compared by what they resolve to instead of by what was typed:
 *   1. batch, micro-batch, batch-per-device and devices: by the micro-batch and the batch they give;
 *   2. lr, lr-scale-workers and devices: by the learning rate they give;
 *   3. epochs and steps: only where the schedule looks at the length of the run; otherwise a run may be extended;
 *   4. model and data: the names do not count when the program brought its own graph or dataset; data may lie in
 *      another place as long as its samples are the same (by hash), and must have the same samples in the same place.
 *
 * What is kept is resolved (ls_settings_resolve), so that the first two do not depend on the workers of either run. The
 * vocabulary binds by its hash, wherever its file is. init does not bind: a resumed run takes none but has the
 * checkpoint's weights, or those that run.json names.
 *
 * The object carries a version. Those without one are of the first edition: there `batch` was per device,
 * `global-batch` and `leaf` (the micro-batch) stood beside it, and `placement`, `exchange` and `staleness` together
 * were the strategy.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/status.h"
#include "data/normalise.h"
#include "optim/schedule.h"
#include "run/settings.h"

static json_t *field_to_json(const ls_setting *row, const ls_train_options *options)
{
	const void *field = (const char *)options + row->offset;
	char text[64];
	switch (row->kind) {
	case LS_SETTING_STRING: {
		const char *string = *(const char *const *)field;
		return string ? json_string(string) : json_null();
	}
	case LS_SETTING_INT:
		return json_integer(*(const int64_t *)field);
	case LS_SETTING_SEED:
	case LS_SETTING_COUNT: { /* above 2^63 it wraps to a negative number, and wraps back when read */
		uint64_t count = *(const uint64_t *)field;
		return json_integer((json_int_t)count);
	}
	case LS_SETTING_REAL:
		return json_real(*(const double *)field);
	case LS_SETTING_FLOAT: /* the double nearest to what was typed, 0.1, rather than 0.10000000149 */
		ls_setting_format(row, options, text, sizeof(text));
		return json_real(strtod(text, NULL));
	case LS_SETTING_FLAG:
		return json_boolean(*(const int *)field);
	}
	return NULL;
}

/* A program's own graph and datasets win over names: what the names say then means nothing. */
static ls_train_options without_unused_names(const ls_train_options *options)
{
	ls_train_options copy = *options;
	if (copy.graph)
		copy.model = NULL;
	if (copy.train_set)
		copy.data = NULL;
	return copy;
}

#define VOCABULARY "vocabulary"
#define TEXT_HASH "text"
#define MEAN "mean"
#define DEVIATION "deviation"
#define TRAIN_HASH "train-hash"
#define TEST_HASH "test-hash"
#define NODES "nodes"
#define NODE_DEVICES "node-devices"
#define NODE_THREADS "node-threads"
#define FORMAT "version"

enum { FORMAT_NOW = 2 };

static json_t *hash_json(uint64_t hash)
{
	return json_sprintf("%016" PRIx64, hash);
}

static json_t *numbers_json(const double *values, int count)
{
	json_t *list = json_array();
	for (int i = 0; i < count; i++)
		json_array_append_new(list, json_real(values[i]));
	return list;
}

/* 0: it is not a list of `count` numbers. */
static int numbers_from_json(const json_t *list, double *values, int count)
{
	int good = (int)json_array_size(list) == count;
	for (int i = 0; good && i < count; i++) {
		const json_t *value = json_array_get(list, (size_t)i);
		good = json_is_number(value);
		values[i] = json_number_value(value);
	}
	return good;
}

/* Zero when the settings do not say. */
static ls_status normalisation_from_json(const json_t *settings, const char *where, ls_normalisation *out)
{
	const json_t *mean = json_object_get(settings, MEAN), *deviation = json_object_get(settings, DEVIATION);
	int channels = (int)json_array_size(mean);
	*out = (ls_normalisation){ 0 };
	if (!mean && !deviation)
		return LS_OK;
	ls_normalisation n = { 0 };
	if (channels > 0)
		LS_TRY(ls_normalisation_new(&n, channels));
	ls_status status =
		channels > 0 && numbers_from_json(mean, n.mean, channels) &&
				numbers_from_json(deviation, n.deviation, channels)
			? ls_normalisation_check(&n, where)
			: ls_fail(LS_EFORMAT,
				  "%s: the stored '" MEAN "' and '" DEVIATION "' are not lists of a number per channel",
				  where);
	if (status)
		ls_normalisation_release(&n);
	*out = n;
	return status;
}

ls_status ls_settings_get_normalisation(const char *stored_json, const char *where, ls_normalisation *out)
{
	json_t *object = json_loads(stored_json, 0, NULL);
	ls_status status = normalisation_from_json(object, where, out);
	json_decref(object);
	return status || out->channels ? status : ls_normalisation_copy(out, &ls_mnist_normalisation);
}

ls_status ls_settings_to_json(const ls_train_options *options, ls_settings_context context, char **out)
{
	ls_train_options shown = without_unused_names(options);
	json_t *object = json_pack("{s:i}", FORMAT, FORMAT_NOW);
	const ls_setting *row;
	char name[LS_SETTING_FIELD];
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		json_t *value = field_to_json(row, &shown);
		if (!value) { /* jansson takes neither infinities nor text that is not UTF-8 */
			json_decref(object);
			return ls_fail(LS_EINVALID, "%s has a value that cannot be stored: %s",
				       ls_setting_field(row, name),
				       row->kind == LS_SETTING_STRING ? "it is not UTF-8" : "it is not finite");
		}
		json_object_set_new(object, row->name, value);
	}
	if (context.vocabulary)
		json_object_set_new(object, VOCABULARY, hash_json(context.vocabulary));
	if (context.text)
		json_object_set_new(object, TEXT_HASH, hash_json(context.text));
	const ls_normalisation *n = context.normalisation;
	if (n) {
		json_object_set_new(object, MEAN, numbers_json(n->mean, n->channels));
		json_object_set_new(object, DEVIATION, numbers_json(n->deviation, n->channels));
	}
	if (context.nodes) {
		json_object_set_new(object, NODES, json_integer(context.nodes));
		json_object_set_new(object, NODE_DEVICES, json_integer(context.node_devices));
		json_object_set_new(object, NODE_THREADS, json_integer(context.node_threads));
	}
	if (context.train)
		json_object_set_new(object, TRAIN_HASH, hash_json(context.train));
	if (context.test)
		json_object_set_new(object, TEST_HASH, hash_json(context.test));
	char *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
	json_decref(object);
	if (!text)
		return ls_fail(LS_EMEMORY, "no memory for the text of the settings");
	*out = text;
	return LS_OK;
}

/* Strings stay owned by `value`. */
static int field_from_json(const ls_setting *row, const json_t *value, ls_train_options *options)
{
	void *field = (char *)options + row->offset;
	switch (row->kind) {
	case LS_SETTING_STRING:
		*(const char **)field = json_string_value(value);
		return json_is_string(value) || json_is_null(value);
	case LS_SETTING_INT:
		*(int64_t *)field = json_integer_value(value);
		return json_is_integer(value);
	case LS_SETTING_SEED:
	case LS_SETTING_COUNT:
		*(uint64_t *)field = (uint64_t)json_integer_value(value);
		return json_is_integer(value);
	case LS_SETTING_REAL:
		*(double *)field = json_number_value(value);
		return json_is_number(value);
	case LS_SETTING_FLOAT:
		*(float *)field = (float)json_number_value(value);
		return json_is_number(value);
	case LS_SETTING_FLAG:
		*(int *)field = json_is_true(value);
		return json_is_boolean(value);
	}
	return 0;
}

static int64_t stored_number(const json_t *stored, const char *key, int64_t otherwise)
{
	const json_t *value = json_object_get(stored, key);
	return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static int is_stored(const json_t *stored, const char *key, const char *value)
{
	const char *text = json_string_value(json_object_get(stored, key));
	return text && !strcmp(text, value);
}

/* Settings of the first edition: batch per device, of all devices together unless global-batch said otherwise, in
 * micro-batches of one device's batch unless leaf did. */
static void take_first_edition(const json_t *stored, ls_train_options *o)
{
	int64_t devices = o->devices > 0 ? o->devices : 1, of_device = stored_number(stored, "batch", 128);
	int64_t batch = stored_number(stored, "global-batch", 0), leaf = stored_number(stored, "leaf", 0);

	if (batch <= 0 && __builtin_mul_overflow(of_device, devices, &batch))
		batch = 0; /* is refused */
	o->batch = batch;
	o->micro_batch = leaf > 0 ? leaf : of_device < o->batch ? of_device : o->batch;
	if (is_stored(stored, "exchange", "mpi"))
		o->strategy = "mpi";
	else if (is_stored(stored, "placement", "ps"))
		o->strategy = o->staleness > 0 ? "ps-async" : "ps";
}

static ls_status check_format(const json_t *stored, const char *where)
{
	int64_t format = stored_number(stored, FORMAT, 1);
	if (format <= FORMAT_NOW)
		return LS_OK;
	return ls_fail(LS_EFORMAT,
		       "%s: the settings have version %" PRId64 ", and this Lockstep reads up to %d; use a newer one",
		       where, format, FORMAT_NOW);
}

static ls_status read_stored(const char *text, const char *where, ls_train_options *options, json_t **owner)
{
	json_error_t error;
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!json_is_object(object)) {
		json_decref(object);
		return ls_fail(LS_EFORMAT, "%s: the stored settings are not a JSON object: %s", where, error.text);
	}
	ls_status status = check_format(object, where);
	const ls_setting *row;
	for (size_t i = 0; status == LS_OK && (row = ls_train_setting_at(i)); i++) {
		const json_t *value = json_object_get(object, row->name);
		if (value && !field_from_json(row, value, options))
			status =
				ls_fail(LS_EFORMAT, "%s: the stored setting '%s' has the wrong type", where, row->name);
	}
	if (status != LS_OK) {
		json_decref(object);
		return status;
	}
	if (!json_object_get(object, FORMAT) && json_object_get(object, "batch"))
		take_first_edition(object, options);
	options->schedule = ls_schedule_name(options->schedule);
	*owner = object;
	return LS_OK;
}

ls_status ls_settings_from_json(ls_settings_stored *out, const char *stored_json, const char *where)
{
	ls_settings_stored stored = { .options = LS_TRAIN_OPTIONS_INIT };
	json_t *owner = NULL;
	LS_TRY(read_stored(stored_json, where, &stored.options, &owner));
	/* an earlier version has devices of all nodes alone */
	stored.options.devices = stored_number(owner, NODE_DEVICES, stored.options.hosts ? 0 : stored.options.devices);
	stored.options.threads = stored_number(owner, NODE_THREADS, stored.options.threads);
	stored.owner = owner;
	*out = stored;
	return LS_OK;
}

void ls_settings_stored_release(ls_settings_stored *stored)
{
	json_decref(stored->owner);
	*stored = (ls_settings_stored){ .owner = NULL };
}

static ls_status absolute(const char **field, char *room, size_t size)
{
	if (!*field)
		return LS_OK;
	LS_TRY(ls_path_absolute(room, size, *field));
	*field = room;
	return LS_OK;
}

ls_status ls_settings_absolute(ls_train_options *options, ls_settings_paths *room)
{
	if (options->data && !ls_dataset_row_of(options->data))
		LS_TRY(absolute(&options->data, room->data, sizeof(room->data)));
	LS_TRY(absolute(&options->data_dir, room->data_dir, sizeof(room->data_dir)));
	LS_TRY(absolute(&options->vocab, room->vocab, sizeof(room->vocab)));
	return absolute(&options->init, room->init, sizeof(room->init));
}

static uint64_t stored_hash(const json_t *stored, const char *key)
{
	const char *text = json_string_value(json_object_get(stored, key));
	return text ? strtoull(text, NULL, 16) : 0;
}

uint64_t ls_settings_get_test_hash(const void *owner)
{
	return stored_hash(owner, TEST_HASH);
}

int64_t ls_settings_get_nodes(const void *owner)
{
	return json_integer_value(json_object_get(owner, NODES));
}

/* What differs, as one sentence in the making; what does not fit is counted. */
typedef struct differences {
	const char *verb, *between, *after; /* "options.lr [ was ]0.1[, now ]0.2[]" */
	char text[1024];
	size_t used;
	int count, left_out;
	const ls_train_options *recalled; /* see ls_settings_compare() */
	int other_samples;                /* a setting that decides which samples there are differs */
} differences;

static void __attribute__((format(printf, 2, 3))) differ(differences *found, const char *format, ...)
{
	char item[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(item, sizeof(item), format, arguments);
	va_end(arguments);
	found->count++;
	int length = snprintf(NULL, 0, "%s%s", found->used ? "; " : "", item);
	if (found->used + (size_t)length >= sizeof(found->text)) {
		found->left_out++;
		return;
	}
	snprintf(found->text + found->used, sizeof(found->text) - found->used, "%s%s", found->used ? "; " : "", item);
	found->used += (size_t)length;
}

/* `names` ends with NULL. */
static int is_among(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static int has_rule(const char *name)
{
	static const char *const ruled[] = {
		"data", "batch", "micro-batch", "batch-per-device", "lr", "lr-scale-workers", NULL
	};
	return is_among(name, ruled);
}

static int same_value(const ls_setting *row, const ls_train_options *was, const ls_train_options *now)
{
	json_t *before = field_to_json(row, was), *after = field_to_json(row, now);
	int same = before && after && json_equal(before, after);
	json_decref(before);
	json_decref(after);
	return same;
}

/* A setting that was neither given nor set now is not reported. */
static int is_own(const ls_setting *row, const ls_train_options *now, const differences *found)
{
	return !found->recalled || ls_train_setting_is_given(now, row) || !same_value(row, found->recalled, now);
}

/* As text, for people: "" and, where that stands for the default, 0 are no values that anybody gave. */
static const char *show(const ls_setting *row, const ls_train_options *options, char *out, size_t size)
{
	ls_setting_format(row, options, out, size);
	int is_set = *out && !((row->marks & LS_SETTING_NOT_0) && !strcmp(out, "0"));
	return is_set ? out : "not set";
}

static void compare_row(const ls_setting *row, const ls_train_options *was, const ls_train_options *now,
			differences *found)
{
	if (same_value(row, was, now))
		return;
	char before[200], after[200], name[LS_SETTING_FIELD];
	differ(found, "%s%s%s%s%s%s", ls_setting_field(row, name), found->verb, show(row, was, before, sizeof(before)),
	       found->between, show(row, now, after, sizeof(after)), found->after);
}

static void compare_named(const char *name, const ls_train_options *was, const ls_train_options *now,
			  differences *found)
{
	compare_row(ls_train_setting_of(name), was, now, found);
}

static ls_status compare_batches(const ls_train_options *was, const ls_train_options *now, differences *found)
{
	ls_settings_batches before, after;
	LS_TRY(ls_settings_get_batches(was, &before));
	LS_TRY(ls_settings_get_batches(now, &after));
	if (before.microbatch != after.microbatch)
		differ(found, "options.micro_batch was %" PRId64 ", now %" PRId64, before.microbatch, after.microbatch);
	if (before.global != after.global)
		differ(found, "options.batch was %" PRId64 ", now %" PRId64, before.global, after.global);
	return LS_OK;
}

static double effective_rate(const ls_train_options *options)
{
	double devices = options->devices > 0 ? (double)options->devices : 1;
	return options->lr_scale_workers ? options->lr * devices : options->lr;
}

static void compare_rates(const ls_train_options *was, const ls_train_options *now, differences *found)
{
	if (effective_rate(was) == effective_rate(now))
		return;
	int before = found->count;
	if (is_own(ls_train_setting_of("lr"), now, found))
		compare_named("lr", was, now, found);
	compare_named("lr-scale-workers", was, now, found);
	if (found->count == before)
		differ(found, "options.lr times options.devices was %.9g, now %.9g", effective_rate(was),
		       effective_rate(now));
}

static int looks_at_length(const char *schedule)
{
	const ls_schedule_kind *kind = ls_schedule_find(schedule);
	return kind && kind->needs_length;
}

static void compare_lengths(const ls_train_options *was, const ls_train_options *now, differences *found)
{
	if (!looks_at_length(now->schedule) || !same_value(ls_train_setting_of("schedule"), was, now))
		return; /* another schedule is refused as such */
	int before = found->count;
	compare_named("steps", was, now, found);
	if (!was->steps && !now->steps)
		compare_named("epochs", was, now, found);
	if (found->count > before)
		differ(found,
		       "its length cannot change: schedule %s %s; use options.schedule constant for a run you may "
		       "extend",
		       now->schedule,
		       strcmp(now->schedule, "wsd") ? "decays over the whole run"
						    : "decays over the last 20 % of the run");
}

/* By hash: the same vocabulary may lie elsewhere, and another one in the same place. A run that does not say had none,
 * or is older than this. 1: they differ. */
static int compare_hashes(const json_t *was, const char *key, const char *what, uint64_t now, differences *found)
{
	const char *before = json_string_value(json_object_get(was, key));
	char after[32];
	snprintf(after, sizeof(after), "%016" PRIx64, now);
	if (!before || !strcmp(before, after))
		return 0;
	differ(found, "%s had xxh64 %.16s, now %s", what, before, now ? after : "there is none");
	return 1;
}

/* A dataset that the program opened itself may be normalised otherwise than the run was. */
static ls_status compare_normalisation(const json_t *was, const char *where, const ls_normalisation *now,
				       differences *found)
{
	ls_normalisation before;
	char shown[2][320];
	LS_TRY(normalisation_from_json(was, where, &before));
	if (before.channels && now && !ls_normalisation_equal(&before, now))
		differ(found, "images were normalised with %s, now with %s",
		       ls_normalisation_show(&before, shown[0], sizeof(shown[0])),
		       ls_normalisation_show(now, shown[1], sizeof(shown[1])));
	ls_normalisation_release(&before);
	return LS_OK;
}

/* Runs of earlier versions have no hash, and may have a path that was relative: to the directory of that start, which
 * may be this one. */
static ls_status compare_data(const json_t *stored, const ls_train_options *was, const ls_train_options *now,
			      uint64_t hash, differences *found)
{
	uint64_t before = stored_hash(stored, TRAIN_HASH);
	ls_settings_paths old_room, new_room;
	ls_train_options old = *was, new = *now;

	if (before && hash && before == hash)
		return LS_OK;
	LS_TRY(ls_settings_absolute(&old, &old_room));
	LS_TRY(ls_settings_absolute(&new, &new_room));
	const ls_setting *row = ls_train_setting_of("data");
	int names = found->count;
	if (!before || !hash || is_own(row, now, found))
		compare_row(row, &old, &new, found);
	found->other_samples |= found->count > names;
	if (found->other_samples || !before || !hash)
		return LS_OK;
	differ(found, "the training data has different samples than before (hash %016" PRIx64 ", now %016" PRIx64 ")",
	       before, hash);
	found->other_samples = 1;
	return LS_OK;
}

/* Where one of these differs the hash of the samples does, too, and says nothing more. */
static int decides_samples(const char *name)
{
	static const char *const names[] = {
		"samples", "seed", "cased", "seq-len", "phrases", "replace-invalid", NULL
	};
	return is_among(name, names);
}

static void compare_rows(const ls_train_options *was, const ls_train_options *now, differences *found)
{
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		int before = found->count;
		if ((row->marks & LS_SETTING_BINDS) && !has_rule(row->name))
			compare_row(row, was, now, found);
		found->other_samples |= found->count > before && decides_samples(row->name);
	}
}

static ls_status compare_all(const json_t *stored, const char *where, const ls_train_options *was,
			     const ls_train_options *now, ls_settings_context context, differences *found)
{
	compare_rows(was, now, found);
	found->other_samples |=
		compare_hashes(stored, VOCABULARY, "the vocabulary (options.vocab)", context.vocabulary, found);
	LS_TRY(compare_data(stored, was, now, context.train, found));
	if (!found->other_samples)
		compare_hashes(stored, TEXT_HASH, "the text (or labels) of the training set", context.text, found);
	LS_TRY(compare_batches(was, now, found));
	compare_rates(was, now, found);
	compare_lengths(was, now, found);
	LS_TRY(compare_normalisation(stored, where, context.normalisation, found));
	return LS_OK;
}

ls_status ls_settings_compare(const ls_train_options *options, const ls_train_options *recalled,
			      ls_settings_context context, const char *stored_json, const char *where)
{
	ls_train_options was = LS_TRAIN_OPTIONS_INIT;
	ls_train_options now = without_unused_names(options);
	json_t *owner = NULL; /* of the strings in `was` */
	LS_TRY(read_stored(stored_json, where, &was, &owner));

	differences found = { .verb = " was ", .between = ", now ", .after = "", .recalled = recalled };
	ls_status status = compare_all(owner, where, &was, &now, context, &found);
	json_decref(owner);
	if (status || !found.count)
		return status;
	char more[32] = "";
	if (found.left_out)
		snprintf(more, sizeof(more), "; and %d more", found.left_out);
	return ls_fail(LS_EMISMATCH, "%s was started with different settings: %s%s", where, found.text, more);
}

/* What every node may have its own of. */
static int is_private(const char *name)
{
	static const char *const own[] = { "data-dir", "vocab", "threads", "pin",       "hosts", "timeout",
					   "init",     "keep",  "quiet",   "log-every", "run",   NULL };
	return is_among(name, own);
}

static void compare_nodes(const ls_train_options *a, const ls_train_options *b, differences *found)
{
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++)
		if (!is_private(row->name))
			compare_row(row, a, b, found);
	if (!a->run != !b->run) /* the directory concerns the first node alone; whether there is one, all nodes */
		compare_named("run", a, b, found);
}

ls_status ls_settings_agree(const char *first_json, const char *first, const char *other_json, const char *other)
{
	ls_train_options a = LS_TRAIN_OPTIONS_INIT, b = LS_TRAIN_OPTIONS_INIT;
	json_t *owner_a = NULL, *owner_b = NULL;
	char between[256], after[256];
	snprintf(between, sizeof(between), " on %s and ", first);
	snprintf(after, sizeof(after), " on %s", other);
	differences found = { .verb = " is ", .between = between, .after = after };
	ls_status status = read_stored(first_json, first, &a, &owner_a);
	if (!status)
		status = read_stored(other_json, other, &b, &owner_b);
	if (!status)
		compare_nodes(&a, &b, &found);
	json_decref(owner_a);
	json_decref(owner_b);
	if (status || !found.count)
		return status;
	return ls_fail(LS_EMISMATCH, "nodes were started with different settings: %s", found.text);
}

ls_status ls_settings_get_init(const char *stored_json, char **out)
{
	json_t *object = json_loads(stored_json, 0, NULL);
	const char *init = json_string_value(json_object_get(object, "init"));
	char *copy = init ? strdup(init) : NULL;
	json_decref(object);
	if (init && !copy)
		return ls_fail(LS_EMEMORY, "no memory for the name of the initial weights");
	*out = copy;
	return LS_OK;
}
