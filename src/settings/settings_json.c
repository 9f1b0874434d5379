/*
 * settings_json.c - a run's settings as JSON, written and read.
 *
 * The object carries a version. Those without one are of the first edition: there `batch` was per device,
 * `global-batch` and `leaf` (the micro-batch) stood beside it, and `placement`, `exchange` and `staleness` together
 * were the strategy.
 */
#include "settings/settings_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/status.h"
#include "data/normalise.h"
#include "optim/schedule.h"

/* Keys of what goes along and is not compared. */
#define NODES "nodes"
#define NODE_DEVICES "node-devices"
#define NODE_THREADS "node-threads"
#define FORMAT "version"

/* 3: precision bf16 includes attention */
enum { FORMAT_NOW = 3, FORMAT_BF16_ATTENTION = 3 };

json_t *ls_settings_field_json(const ls_setting *row, const ls_train_options *options)
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

ls_train_options ls_settings_without_names(const ls_train_options *options)
{
	ls_train_options copy = *options;
	if (copy.graph && !copy.model_handle)
		copy.model = NULL;
	if (copy.train_set)
		copy.data = NULL;
	return copy;
}

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

ls_status ls_settings_read_normalisation(const json_t *settings, const char *where, ls_normalisation *out)
{
	const json_t *mean = json_object_get(settings, LS_KEY_MEAN),
		     *deviation = json_object_get(settings, LS_KEY_DEVIATION);
	int channels = (int)json_array_size(mean);
	*out = (ls_normalisation){ 0 };
	if (!mean && !deviation)
		return LS_OK;
	ls_normalisation n = { 0 };
	if (channels > 0)
		LS_TRY(ls_normalisation_new(&n, channels));
	ls_status status = channels > 0 && numbers_from_json(mean, n.mean, channels) &&
					   numbers_from_json(deviation, n.deviation, channels)
				   ? ls_normalisation_check(&n, where)
				   : ls_fail(LS_EFORMAT,
					     "%s: the stored '" LS_KEY_MEAN "' and '" LS_KEY_DEVIATION
					     "' are not lists of a number per channel",
					     where);
	if (status)
		ls_normalisation_release(&n);
	*out = n;
	return status;
}

ls_status ls_settings_get_normalisation(const char *stored_json, const char *where, ls_normalisation *out)
{
	json_t *object = json_loads(stored_json, 0, NULL);
	ls_status status = ls_settings_read_normalisation(object, where, out);
	json_decref(object);
	return status || out->channels ? status : ls_normalisation_copy(out, &ls_mnist_normalisation);
}

ls_status ls_settings_to_json(const ls_train_options *options, ls_settings_context context, char **out)
{
	ls_train_options shown = ls_settings_without_names(options);
	json_t *object = json_pack("{s:i}", FORMAT, FORMAT_NOW);
	const ls_setting *row;
	char name[LS_SETTING_FIELD];
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		json_t *value = ls_settings_field_json(row, &shown);
		if (!value) { /* jansson takes neither infinities nor text that is not UTF-8 */
			json_decref(object);
			return ls_fail(LS_EINVALID, "%s has a value that cannot be stored: %s",
				       ls_setting_field(row, name),
				       row->kind == LS_SETTING_STRING ? "it is not UTF-8" : "it is not finite");
		}
		json_object_set_new(object, row->name, value);
	}
	if (context.vocabulary)
		json_object_set_new(object, LS_KEY_VOCABULARY, hash_json(context.vocabulary));
	if (context.text)
		json_object_set_new(object, LS_KEY_TEXT, hash_json(context.text));
	const ls_normalisation *n = context.normalisation;
	if (n) {
		json_object_set_new(object, LS_KEY_MEAN, numbers_json(n->mean, n->channels));
		json_object_set_new(object, LS_KEY_DEVIATION, numbers_json(n->deviation, n->channels));
	}
	if (context.nodes) {
		json_object_set_new(object, NODES, json_integer(context.nodes));
		json_object_set_new(object, NODE_DEVICES, json_integer(context.node_devices));
		json_object_set_new(object, NODE_THREADS, json_integer(context.node_threads));
	}
	if (context.train)
		json_object_set_new(object, LS_KEY_TRAIN_HASH, hash_json(context.train));
	if (context.test)
		json_object_set_new(object, LS_KEY_TEST_HASH, hash_json(context.test));
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

const char *ls_settings_earlier_precision(const char *precision, const char *model)
{
	static const char *const without[] = { "mlp", "cnn", "resnet" }; /* and a number */

	for (size_t i = 0; model && i < sizeof(without) / sizeof(*without); i++)
		if (strncmp(model, without[i], strlen(without[i])) == 0)
			return precision;
	return precision && strcmp(precision, "bf16") == 0 ? "bf16-layers" : precision;
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

ls_status ls_settings_read_stored(const char *text, const char *where, ls_train_options *options, json_t **owner)
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
	if (!json_object_get(object, "conv") && json_object_get(object, "batch"))
		options->conv = "direct"; /* a run of a version that had nothing else */
	if (stored_number(object, FORMAT, 1) < FORMAT_BF16_ATTENTION)
		options->precision = ls_settings_earlier_precision(options->precision, options->model);
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
	LS_TRY(ls_settings_read_stored(stored_json, where, &stored.options, &owner));
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

uint64_t ls_settings_stored_hash(const json_t *stored, const char *key)
{
	const char *text = json_string_value(json_object_get(stored, key));
	return text ? strtoull(text, NULL, 16) : 0;
}

uint64_t ls_settings_get_test_hash(const void *owner)
{
	return ls_settings_stored_hash(owner, LS_KEY_TEST_HASH);
}

int64_t ls_settings_get_nodes(const void *owner)
{
	return json_integer_value(json_object_get(owner, NODES));
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
