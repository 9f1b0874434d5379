#include "tools/sweep/original.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/models.h>
#include <lockstep/train.h>

#include "base/names.h"
#include "optim/optimizer.h"
#include "tools/sweep/arguments.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Settings of a measurement, which lockstep train does not have, or which mean something else there. */
typedef struct own_name {
	const char *name;
	int is_text;
	int64_t min;
} own_name;

static const own_name own_names[] = {
	{ "kind", 1, 0 },   { "launches", 0, 1 }, { "repeat", 0, 1 },        { "steps", 0, 1 },
	{ "warmup", 0, 0 }, { "epoch", 1, 0 },    { "servers-count", 1, 0 }, { "rate", 1, 0 },
};

static const own_name *own_of(const char *name)
{
	for (size_t i = 0; i < LS_COUNT(own_names); i++)
		if (!strcmp(own_names[i].name, name))
			return &own_names[i];
	return NULL;
}

static const char *name_at(size_t i)
{
	if (i < LS_COUNT(own_names))
		return own_names[i].name;
	const ls_setting *row = ls_train_setting_at(i - LS_COUNT(own_names));
	return row ? row->name : NULL;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static ls_status fail(const ls_json_place *at, const char *name, const char *why)
{
	char shown[64];
	return ls_fail(LS_EFORMAT, "%s: %soriginal.%s %s", at->label, at->prefix,
		       ls_text_printable(shown, sizeof(shown), name), why);
}

/* A value as an option would have it; flags are "on" and "off". */
static ls_status text_of(const ls_json_place *at, const char *name, const json_t *value, char *out, size_t size)
{
	int used;

	if (json_is_string(value))
		used = snprintf(out, size, "%s", json_string_value(value));
	else if (json_is_integer(value))
		used = snprintf(out, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		used = snprintf(out, size, "%.12g", json_real_value(value));
	else if (json_is_boolean(value))
		used = snprintf(out, size, "%s", json_is_true(value) ? "on" : "off");
	else
		return fail(at, name, "is neither text, a number, true nor false");
	if (used == 0)
		return fail(at, name, "is empty");
	return (size_t)used < size ? LS_OK : fail(at, name, "is too long");
}

static ls_status check_own(const ls_json_place *at, const own_name *own, const json_t *value)
{
	if (own->is_text && !json_is_string(value))
		return fail(at, own->name, "is not text");
	if (!own->is_text && (!json_is_integer(value) || json_integer_value(value) < own->min))
		return fail(at, own->name, own->min > 0 ? "is not a whole number above 0" : "is not a whole number");
	return LS_OK;
}

/* As the option would be: a number in its range. Names of models and data may be of those that are not here. */
static ls_status check_value(const ls_json_place *at, const char *name, const json_t *value, const char *text)
{
	const own_name *own = own_of(name);
	const ls_setting *row = ls_train_setting_of(name);
	ls_train_options scratch = LS_TRAIN_OPTIONS_INIT;
	char why[512];

	if (own)
		return check_own(at, own, value);
	if (!strcmp(name, "samples") && !strcmp(text, "all"))
		return LS_OK;
	if (row->kind == LS_SETTING_STRING)
		return json_is_string(value) ? LS_OK : fail(at, name, "is not text");
	if (row->kind == LS_SETTING_FLAG)
		return json_is_boolean(value) ? LS_OK : fail(at, name, "is neither true nor false");
	if (!json_is_number(value))
		return fail(at, name, "is not a number");
	if (atof(text) == 0 ||
	    ls_setting_set(row, &scratch, text) == LS_OK) /* 0 is "none", also where options refuse it */
		return LS_OK;
	snprintf(why, sizeof(why), "is wrong: %s", ls_last_error());
	return fail(at, name, why);
}

static ls_status refuse_name(const ls_json_place *at, const char *name)
{
	const char *names[256], *nearest;
	char why[128];
	size_t count = 0;

	for (; count < LS_COUNT(names) && name_at(count); count++)
		names[count] = name_at(count);
	nearest = ls_name_nearest(name, names, count);
	snprintf(why, sizeof(why), "is not the name of an option%s%s%s", nearest ? "; did you mean '" : "",
		 nearest ? nearest : "", nearest ? "'?" : "");
	return fail(at, name, why);
}

static ls_status keep(const ls_json_place *at, ls_original *out, const char *name, const char *text)
{
	size_t i = 0;

	while (i < out->count && strcmp(out->name[i], name) != 0)
		i++;
	if (i == LS_RESULTS_SETTINGS)
		return ls_fail(LS_EFORMAT, "%s: %soriginal has more than %d settings", at->label, at->prefix,
			       LS_RESULTS_SETTINGS);
	snprintf(out->name[i], sizeof(out->name[i]), "%s", name);
	snprintf(out->value[i], sizeof(out->value[i]), "%s", text);
	out->count += i == out->count;
	return LS_OK;
}

ls_status ls_original_read(const ls_json_place *at, const json_t *object, ls_original *out)
{
	json_t *original = json_object_get(object, "original"), *value;
	char text[LS_RESULTS_NAME];
	const char *name;

	if (!original)
		return LS_OK;
	if (!json_is_object(original))
		return ls_fail(LS_EFORMAT, "%s: %soriginal is not an object", at->label, at->prefix);
	json_object_foreach(original, name, value)
	{
		if (!own_of(name) && !ls_train_setting_of(name))
			return refuse_name(at, name);
		LS_TRY(text_of(at, name, value, text, sizeof(text)));
		LS_TRY(check_value(at, name, value, text));
		LS_TRY(keep(at, out, name, text));
	}
	return LS_OK;
}

/* ---- settings of a point ----------------------------------------------------------------------------------------- */

static int trains(const ls_sweep_point *p)
{
	return !strcmp(p->job.kind, "train");
}

/* A setting that is a number of the point; below 0: it is not. */
static int64_t number_of(const ls_sweep_list *list, const ls_sweep_point *p, const char *name)
{
	const ls_point_job *j = &p->job;
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = { { "launches", ls_sweep_list_launches(list, p) },
			{ "repeat", trains(p) ? 1 : ls_sweep_list_repeat(list, p) },
			{ "steps", j->steps },
			{ "warmup", trains(p) ? -1 : j->warmup }, /* of training it is a setting, and an argument */
			{ "batch-per-device", j->batch },
			{ "devices", j->devices },
			{ "threads", j->threads },
			{ "servers", j->servers },
			{ "epochs", j->epochs > 0 ? j->epochs : -1 } };

	for (size_t i = 0; i < LS_COUNT(numbers); i++)
		if (!strcmp(numbers[i].name, name))
			return numbers[i].value;
	return -1;
}

/* A setting that is a name in the point; NULL: it is not. */
static const char *name_of(const ls_sweep_point *p, const char *name)
{
	const ls_point_job *j = &p->job;
	const struct {
		const char *name, *value;
	} names[] = { { "kind", j->kind },
		      { "model", j->model },
		      { "data", j->data[0] != '\0' ? j->data : "synthetic" },
		      { "optimizer", j->optimizer },
		      { "strategy", j->strategy },
		      { "wire", j->wire },
		      { "precision", j->precision },
		      { "rate", j->rate[0] != '\0' ? j->rate : "unlimited" },
		      { "epoch", j->epoch[0] != '\0' ? j->epoch : "data" },
		      { "servers-count", j->servers_count[0] != '\0' ? j->servers_count : "beside" } };

	for (size_t i = 0; i < LS_COUNT(names); i++)
		if (!strcmp(names[i].name, name))
			return names[i].value;
	return NULL;
}

/* Hyper-parameters that the optimizer does not have are "none", whatever the option's default is. */
static void resolve_hyper(const ls_sweep_point *p, const char *name, char *value, size_t size)
{
	static const char *const hypers[] = { "momentum", "beta1", "beta2", "epsilon" };

	for (size_t i = 0; i < LS_COUNT(hypers); i++) {
		const double *usual = ls_optimizer_default(p->job.optimizer, name);
		if (strcmp(name, hypers[i]) != 0)
			continue;
		if (!usual)
			snprintf(value, size, "none");
		else if (!(atof(value) > 0))
			snprintf(value, size, "%g", *usual);
	}
}

/* What the sizes of a model are by default; 0: not known here, the model's own. */
static int64_t size_of(const ls_sweep_point *p, const char *name)
{
	static const struct {
		const char *name;
		int64_t value;
	} sizes[] = { { "layers", 6 }, { "width", 256 }, { "heads", 4 }, { "max-len", 256 } };
	const ls_model_row *row = ls_model_row_of(p->job.model);

	for (size_t i = 0; row && row->has_sizes && i < LS_COUNT(sizes); i++)
		if (!strcmp(sizes[i].name, name))
			return sizes[i].value;
	return !strcmp(name, "seq-len") && row && row->is_text && !trains(p) ? 128 : 0;
}

/* What the command does without the option. A bench neither evaluates nor follows a schedule. */
static void default_of(const ls_sweep_point *p, const char *name, char *out, size_t size)
{
	const ls_setting *row = ls_train_setting_of(name);
	ls_train_options usual = LS_TRAIN_OPTIONS_INIT;

	out[0] = '\0';
	if (!trains(p) && !strcmp(name, "schedule"))
		snprintf(out, size, "constant");
	else if (!trains(p) && !strcmp(name, "eval-every"))
		snprintf(out, size, "0");
	else if (!strcmp(name, "samples"))
		snprintf(out, size, "all");
	else if (size_of(p, name) > 0)
		snprintf(out, size, "%" PRId64, size_of(p, name));
	else if (row && row->kind == LS_SETTING_FLAG)
		snprintf(out, size, "off");
	else if (row) {
		ls_setting_format(row, &usual, out, size);
		resolve_hyper(p, name, out, size);
	}
}

static ls_status ours_of(const ls_sweep_list *list, const ls_sweep_point *p, const char *name, char *out, size_t size)
{
	int64_t number = number_of(list, p, name);
	const char *text = name_of(p, name);
	int found = 0;

	if (number >= 0 || text) {
		snprintf(out, size, "%s", text ? text : "");
		if (!text)
			snprintf(out, size, "%" PRId64, number);
		return LS_OK;
	}
	if (!strcmp(name, "samples") && p->job.samples > 0) {
		snprintf(out, size, "%" PRId64, p->job.samples);
		return LS_OK;
	}
	LS_TRY(ls_recipe_argument_of(p->job.arguments, name, out, size, &found));
	if (!found)
		default_of(p, name, out, size);
	return LS_OK;
}

/* Settings that make no difference to a point are taken to be the original's. */
static int applies(const ls_sweep_point *p, const char *name)
{
	int alone = p->job.devices == 1;

	if (!strcmp(name, "epoch") || !strcmp(name, "lr-scale-workers"))
		return !alone;
	if (!strcmp(name, "servers") || !strcmp(name, "servers-count"))
		return p->job.servers > 0;
	if (!strcmp(name, "strategy") || !strcmp(name, "rate") || !strcmp(name, "wire"))
		return ls_sweep_point_processes(p) > 1;
	return 1;
}

ls_status ls_original_settings(const ls_sweep_list *list, const ls_sweep_point *point, ls_point *result)
{
	const ls_original *original = &point->original;
	ls_point_setting *rows = calloc(original->count + 1, sizeof(*rows));
	ls_status status = rows ? LS_OK : ls_fail(LS_EMEMORY, "no memory for %zu settings", original->count);

	for (size_t i = 0; i < original->count && status == LS_OK; i++) {
		memcpy(rows[i].name, original->name[i], sizeof(rows[i].name));
		memcpy(rows[i].original, original->value[i], sizeof(rows[i].original));
		if (applies(point, rows[i].name))
			status = ours_of(list, point, rows[i].name, rows[i].ours, sizeof(rows[i].ours));
		else
			memcpy(rows[i].ours, rows[i].original, sizeof(rows[i].ours));
	}
	if (status != LS_OK) {
		free(rows);
		return status;
	}
	free(result->settings);
	result->settings = rows;
	result->setting_count = original->count;
	return LS_OK;
}
