/*
 * recipe.c - read recipes: a head, and blocks of lists in up to three forms.
 */
#include "tools/sweep/recipe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/names.h"
#include "tools/sweep/arguments.h"
#include "tools/sweep/block.h"
#include "tools/sweep/original.h"
#include "json/fields.h"

#define FORMAT "lockstep recipe"
enum { VERSION = 2, BYTES_MAX = 1 << 20, BLOCKS_MAX = 256, QUICK_LIMIT_S = 300 };

/* File and field of an error. */
#define AT "%s: %s%s"

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* A field of an object that may be missing: then *out stays. */
static ls_status maybe_whole(const ls_json_place *at, const json_t *object, const char *name, double min, int64_t *out)
{
	ls_field field = { name, LS_FIELD_WHOLE, 0, sizeof(*out), min, 1e12 };
	return json_object_get(object, name) ? ls_fields_read(at, &field, 1, object, out) : LS_OK;
}

static ls_status maybe_text(const ls_json_place *at, const json_t *object, const char *name, char *out, size_t bytes)
{
	ls_field field = { name, LS_FIELD_MAYBE, 0, bytes, 0, 0 };
	return json_object_get(object, name) ? ls_fields_read(at, &field, 1, object, out) : LS_OK;
}

/* Unknown fields are errors: a misspelt one would silently measure something else. */
static ls_status check_known(const ls_json_place *at, const json_t *object, const char *const *known, size_t count)
{
	const char *name;
	json_t *value;

	if (!json_is_object(object))
		return ls_fail(LS_EFORMAT, "%s: %.*s is not an object", at->label, (int)strcspn(at->prefix, "."),
			       at->prefix[0] ? at->prefix : "the recipe");
	json_object_foreach((json_t *)object, name, value)
	{
		size_t i = 0;
		char shown[64];
		while (i < count && strcmp(known[i], name) != 0)
			i++;
		if (i < count)
			continue;
		const char *nearest = ls_name_nearest(name, known, count);
		return ls_fail(LS_EFORMAT, AT " is not a field of a recipe%s%s%s", at->label, at->prefix,
			       ls_text_printable(shown, sizeof(shown), name), nearest ? "; did you mean '" : "",
			       nearest ? nearest : "", nearest ? "'?" : "");
	}
	return LS_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* [1, 6] is "1,6": nodes of one point. */
static ls_status join_nodes(const ls_json_place *at, const json_t *list, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < json_array_size(list) && used < size; i++) {
		const json_t *node = json_array_get(list, i);
		if (!json_is_integer(node))
			return ls_fail(LS_EFORMAT, AT " has a set with something else than whole numbers", at->label,
				       at->prefix, "on");
		used += (size_t)snprintf(out + used, size - used, "%s%" JSON_INTEGER_FORMAT, i > 0 ? "," : "",
					 json_integer_value(node));
	}
	if (used == 0 || used >= size)
		return ls_fail(LS_EFORMAT, AT " has a set that is empty or too long", at->label, at->prefix, "on");
	return LS_OK;
}

static ls_status add_value(const ls_json_place *at, ls_axis *axis, ls_axis_kind kind, const json_t *value)
{
	char number[LS_RESULTS_NAME];
	const char *text = json_string_value(value);

	if (kind == LS_AXIS_ON && json_is_array(value)) {
		LS_TRY(join_nodes(at, value, number, sizeof(number)));
		text = number;
	}

	if (json_is_integer(value)) {
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		text = number;
	}
	if (!text)
		return ls_fail(LS_EFORMAT, AT " is neither text nor a whole number, nor a list of them", at->label,
			       at->prefix, ls_axis_name(kind));
	if (ls_axis_add(axis, kind, text) == LS_OK)
		return LS_OK;
	char why[512];
	snprintf(why, sizeof(why), "%s", ls_last_error());
	return ls_fail(LS_EFORMAT, "%s: %.*s: %s", at->label, (int)strlen(at->prefix) - 1, at->prefix, why);
}

static ls_status read_axis(const ls_json_place *at, const json_t *object, ls_axis_kind kind, ls_axis *axis)
{
	const json_t *value = json_object_get(object, ls_axis_name(kind));

	if (!value)
		return LS_OK;
	if (!json_is_array(value))
		return add_value(at, axis, kind, value);
	if (json_array_size(value) == 0)
		return ls_fail(LS_EFORMAT, AT " is an empty list", at->label, at->prefix, ls_axis_name(kind));
	for (size_t i = 0; i < json_array_size(value); i++)
		LS_TRY(add_value(at, axis, kind, json_array_get(value, i)));
	return LS_OK;
}

static ls_status read_common(const ls_json_place *at, const json_t *object, const ls_sweep_list *list,
			     ls_sweep_point *point)
{
	ls_point_job *job = &point->job;

	snprintf(job->kind, sizeof(job->kind), "bench");
	snprintf(job->optimizer, sizeof(job->optimizer), "adam");
	LS_TRY(maybe_text(at, object, "kind", job->kind, sizeof(job->kind)));
	LS_TRY(maybe_text(at, object, "optimizer", job->optimizer, sizeof(job->optimizer)));
	LS_TRY(maybe_text(at, object, "arguments", job->arguments, sizeof(job->arguments)));
	LS_TRY(ls_recipe_arguments_check(at, job->kind, job->arguments));
	LS_TRY(maybe_text(at, object, "speeds", point->speeds, sizeof(point->speeds)));
	LS_TRY(maybe_text(at, object, "epoch", job->epoch, sizeof(job->epoch)));
	LS_TRY(maybe_text(at, object, "servers_count", job->servers_count, sizeof(job->servers_count)));
	point->original = list->original;
	LS_TRY(ls_original_read(at, object, &point->original));
	int trains = !strcmp(job->kind, "train");
	job->warmup = trains ? 0 : list->warmup;
	job->steps = trains ? 0 : list->steps;
	LS_TRY(maybe_whole(at, object, "warmup", 0, &job->warmup));
	LS_TRY(maybe_whole(at, object, "steps", trains ? 0 : 1, &job->steps));
	LS_TRY(maybe_whole(at, object, "repeat", 1, &point->repeat));
	LS_TRY(maybe_whole(at, object, "launches", 1, &point->launches));
	LS_TRY(maybe_whole(at, object, "epochs", 1, &job->epochs));
	return maybe_whole(at, object, "samples", 1, &job->samples);
}

static ls_status read_block(const ls_json_place *at, const json_t *object, ls_sweep_list *list, ls_sweep_block *block)
{
	static const char *const known[] = { "kind",     "optimizer", "arguments", "speeds",
					     "warmup",   "steps",     "epochs",    "samples",
					     "model",    "data",      "threads",   "batch_per_device",
					     "wire",     "rate",      "strategy",  "servers",
					     "nodes",    "devices",   "on",        "repeat",
					     "launches", "note",      "epoch",     "servers_count",
					     "original", "precision" };

	LS_TRY(check_known(at, object, known, LS_COUNT(known)));
	LS_TRY(read_common(at, object, list, &block->common));
	for (int k = 0; k < LS_AXES; k++)
		LS_TRY(read_axis(at, object, (ls_axis_kind)k, &block->axes[k]));
	for (size_t i = 0; i < block->axes[LS_AXIS_MODEL].count; i++)
		LS_TRY(ls_recipe_arguments_fit(at, block->common.job.arguments, block->axes[LS_AXIS_MODEL].value[i]));
	if (ls_sweep_block_expand(block, list) == LS_OK)
		return LS_OK;
	char why[512];
	snprintf(why, sizeof(why), "%s", ls_last_error());
	return ls_fail(LS_EFORMAT, "%s: %.*s: %s", at->label, (int)strlen(at->prefix) - 1, at->prefix, why);
}

static ls_status read_blocks(const ls_json_place *at, const json_t *object, ls_sweep_list *list)
{
	const json_t *blocks = json_object_get(object, "points");
	size_t count = json_array_size(blocks);
	ls_status status = LS_OK;

	if (!json_is_array(blocks) || count == 0 || count > BLOCKS_MAX)
		return ls_fail(LS_EFORMAT, AT " is missing or not a list of 1 to %d blocks", at->label, at->prefix,
			       "points", BLOCKS_MAX);
	ls_sweep_block *block = malloc(sizeof(*block));
	if (!block)
		return ls_fail(LS_EMEMORY, "%s: no memory for a block of points", at->label);
	for (size_t i = 0; i < count && status == LS_OK; i++) {
		ls_json_place place = ls_json_element(at, "points", i);
		*block = (ls_sweep_block){ 0 };
		status = read_block(&place, json_array_get(blocks, i), list, block);
	}
	free(block);
	return status;
}

/* ---- head -------------------------------------------------------------------------------------------------------- */

static ls_status read_numbers(const ls_json_place *at, const json_t *object, ls_sweep_list *list)
{
	LS_TRY(maybe_whole(at, object, "warmup", 0, &list->warmup));
	LS_TRY(maybe_whole(at, object, "steps", 1, &list->steps));
	LS_TRY(maybe_whole(at, object, "repeat", 1, &list->repeat));
	LS_TRY(maybe_whole(at, object, "launches", 1, &list->launches));
	return maybe_whole(at, object, "limit_s", 1, &list->limit_s);
}

/* Blocks of version 1 have other names. */
static void upgrade_blocks(const json_t *object)
{
	static const ls_field_rename renames[] = { { "batch", "batch_per_device" }, { "placement", "strategy" } };
	const json_t *list = json_object_get(object, "points");

	for (size_t i = 0; i < json_array_size(list); i++)
		ls_fields_rename(json_array_get(list, i), renames, LS_COUNT(renames));
}

static ls_status read_head(const ls_json_place *top, const json_t *root, ls_sweep_list *list)
{
	int version;
	static const char *const known[] = { "format", "version", "title",  "source",   "table",
					     "warmup", "steps",   "repeat", "launches", "limit_s",
					     "points", "quick",   "full",   "note",     "original" };
	static const char *const tables[] = { "throughput", "epochs", "walltime", "strategies" };
	static const ls_field fields[] = {
		LS_FIELD_TEXT_OF(ls_sweep_list, title),
		LS_FIELD_MAYBE_OF(ls_sweep_list, source),
		LS_FIELD_MAYBE_OF(ls_sweep_list, note),
		LS_FIELD_TEXT_OF(ls_sweep_list, table),
	};

	LS_TRY(ls_json_check(root, FORMAT, VERSION, top->label, &version));
	if (version < 2) {
		upgrade_blocks(root);
		upgrade_blocks(json_object_get(root, "quick"));
	}
	LS_TRY(check_known(top, root, known, LS_COUNT(known)));
	LS_TRY(ls_fields_read(top, fields, LS_COUNT(fields), root, list));
	LS_TRY(ls_original_read(top, root, &list->original));
	for (size_t i = 0; i < LS_COUNT(tables); i++)
		if (!strcmp(list->table, tables[i]))
			return read_numbers(top, root, list);
	return ls_fail(LS_EFORMAT, "%s: table is '%s', not throughput, epochs, walltime or strategies", top->label,
		       list->table);
}

const char *ls_recipe_form_name(ls_recipe_form form)
{
	static const char *const names[LS_RECIPE_FORMS] = { "default", "quick", "full" };
	return names[form];
}

/* The short or the full form; a form that the recipe does not have leaves the list without points. */
static ls_status read_form(const ls_json_place *top, const json_t *root, ls_sweep_list *list)
{
	static const char *const known[] = { "warmup", "steps", "repeat", "launches", "limit_s", "points", "note" };
	const char *name = ls_recipe_form_name(list->form);
	const json_t *object = json_object_get(root, name);
	ls_json_place at = { .label = top->label };

	if (!object)
		return LS_OK;
	snprintf(at.prefix, sizeof(at.prefix), "%s.", name);
	LS_TRY(check_known(&at, object, known, LS_COUNT(known)));
	list->note[0] = '\0';
	LS_TRY(maybe_text(&at, object, "note", list->note, sizeof(list->note)));
	LS_TRY(read_numbers(&at, object, list));
	return read_blocks(&at, object, list);
}

/* All forms are always read, so that errors in any are found. */
static ls_status read_root(const json_t *root, const char *label, ls_sweep_list lists[LS_RECIPE_FORMS])
{
	ls_json_place top = { .label = label };
	ls_sweep_list head = lists[0];

	LS_TRY(read_head(&top, root, &head));
	for (int form = 0; form < LS_RECIPE_FORMS; form++) {
		lists[form] = head;
		lists[form].form = (ls_recipe_form)form;
	}
	if (head.limit_s > QUICK_LIMIT_S)
		lists[LS_RECIPE_QUICK].limit_s = QUICK_LIMIT_S;
	LS_TRY(read_blocks(&top, root, &lists[LS_RECIPE_DEFAULT]));
	LS_TRY(read_form(&top, root, &lists[LS_RECIPE_QUICK]));
	return read_form(&top, root, &lists[LS_RECIPE_FULL]);
}

static ls_status parse(const void *text, size_t bytes, const char *name, const char *label,
		       ls_sweep_list lists[LS_RECIPE_FORMS])
{
	ls_sweep_list *first = &lists[0];
	json_t *root;

	*first = (ls_sweep_list){ .warmup = 20, .steps = 100, .repeat = 7, .launches = 1, .limit_s = 86400 };
	snprintf(first->name, sizeof(first->name), "%s", name);
	LS_TRY(ls_json_parse(&root, text, bytes, BYTES_MAX, label));
	ls_status status = read_root(root, label, lists);
	json_decref(root);
	return status;
}

static void release(ls_sweep_list lists[LS_RECIPE_FORMS])
{
	for (int i = 0; i < LS_RECIPE_FORMS; i++)
		ls_sweep_list_release(&lists[i]);
}

ls_status ls_recipe_parse(ls_sweep_list *out, const void *text, size_t bytes, ls_recipe_form form, const char *name,
			  const char *label)
{
	ls_sweep_list lists[LS_RECIPE_FORMS] = { 0 };
	const char *wanted = ls_recipe_form_name(form);
	ls_status status = parse(text, bytes, name, label, lists);

	if (status == LS_OK && lists[form].count == 0)
		status = ls_fail(LS_EINVALID, "%s: %s is missing: this recipe has no %s form", label, wanted, wanted);
	if (status == LS_OK) {
		*out = lists[form];
		lists[form] = (ls_sweep_list){ 0 };
	}
	release(lists);
	return status;
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

const ls_recipe *ls_recipe_at(size_t i)
{
	return i < ls_recipes_built_in_count ? &ls_recipes_built_in[i] : NULL;
}

ls_status ls_recipe_title(const ls_recipe *recipe, char *title, size_t title_size, char *source, size_t source_size)
{
	ls_sweep_list list;

	LS_TRY(ls_recipe_parse(&list, recipe->text, recipe->bytes, LS_RECIPE_DEFAULT, recipe->name, recipe->name));
	snprintf(title, title_size, "%s", list.title);
	snprintf(source, source_size, "%s", list.source);
	ls_sweep_list_release(&list);
	return LS_OK;
}

ls_status ls_recipe_forms(const ls_recipe *recipe, int *quick, int *full)
{
	ls_sweep_list lists[LS_RECIPE_FORMS] = { 0 };
	ls_status status = parse(recipe->text, recipe->bytes, recipe->name, recipe->name, lists);

	if (status == LS_OK) {
		*quick = lists[LS_RECIPE_QUICK].count > 0;
		*full = lists[LS_RECIPE_FULL].count > 0;
	}
	release(lists);
	return status;
}

static const char *name_at(size_t i)
{
	const ls_recipe *recipe = ls_recipe_at(i);
	return recipe ? recipe->name : NULL;
}

/* "some/where/mine.json" is named "mine". */
static void name_of_file(const char *path, char *out, size_t size)
{
	const char *base = strrchr(path, '/');
	base = base ? base + 1 : path;
	size_t length = strlen(base);
	if (length > 5 && !strcmp(base + length - 5, ".json"))
		length -= 5;
	snprintf(out, size, "%.*s", (int)length, base);
}

static ls_status open_file(ls_sweep_list *out, const char *path, ls_recipe_form form)
{
	char name[LS_RESULTS_NAME];
	ls_file_map map;

	LS_TRY(ls_file_map_open(&map, path));
	name_of_file(path, name, sizeof(name));
	ls_status status = ls_recipe_parse(out, map.data, map.bytes, form, name, path);
	ls_file_map_close(&map);
	return status;
}

ls_status ls_recipe_open(ls_sweep_list *out, const char *recipe, ls_recipe_form form)
{
	const ls_recipe *built_in = ls_recipe_at(ls_name_row(recipe, name_at));
	if (built_in)
		return ls_recipe_parse(out, built_in->text, built_in->bytes, form, built_in->name, built_in->name);
	if (strchr(recipe, '/') || strchr(recipe, '.') || ls_path_exists(recipe))
		return open_file(out, recipe, form);
	return ls_name_unknown("recipe", recipe, name_at);
}
