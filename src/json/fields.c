#include "json/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/names.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *type_of(const json_t *value)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "an object",
		[JSON_ARRAY] = "a list",
		[JSON_STRING] = "text",
		[JSON_INTEGER] = "a number",
		[JSON_REAL] = "a number with a fraction",
		[JSON_TRUE] = "true",
		[JSON_FALSE] = "false",
		[JSON_NULL] = "null",
	};
	return names[json_typeof(value)];
}

static ls_status read_text(const ls_json_place *p, const ls_field *f, const json_t *value, char *out)
{
	const char *text = json_string_value(value);
	if (!text && !value && f->kind == LS_FIELD_MAYBE)
		text = "";
	if (!value && !text)
		return ls_fail(LS_EFORMAT, "%s: %s%s is missing", p->label, p->prefix, f->name);
	if (!text)
		return ls_fail(LS_EFORMAT, "%s: %s%s is %s, not text", p->label, p->prefix, f->name, type_of(value));
	if (text[0] == '\0' && f->kind == LS_FIELD_TEXT)
		return ls_fail(LS_EFORMAT, "%s: %s%s is empty", p->label, p->prefix, f->name);
	if (strlen(text) >= f->bytes)
		return ls_fail(LS_EFORMAT, "%s: %s%s is longer than %zu bytes", p->label, p->prefix, f->name,
			       f->bytes - 1);
	memcpy(out, text, strlen(text) + 1);
	return LS_OK;
}

static int is_whole(const ls_field *f)
{
	return f->kind == LS_FIELD_WHOLE || f->kind == LS_FIELD_WHOLE_IF;
}

static ls_status read_number(const ls_json_place *p, const ls_field *f, const json_t *value, void *out)
{
	int whole = is_whole(f);

	if (!value && (f->kind == LS_FIELD_WHOLE_IF || f->kind == LS_FIELD_REAL_IF))
		return LS_OK;
	if (f->kind == LS_FIELD_GAP && (!value || json_is_null(value))) {
		*(double *)out = NAN;
		return LS_OK;
	}
	if (!value)
		return ls_fail(LS_EFORMAT, "%s: %s%s is missing", p->label, p->prefix, f->name);
	if (whole ? !json_is_integer(value) : !json_is_number(value))
		return ls_fail(LS_EFORMAT, "%s: %s%s is %s, not a %s", p->label, p->prefix, f->name, type_of(value),
			       whole ? "whole number" : "number");
	double number = json_number_value(value);
	if (!(number >= f->min && number <= f->max))
		return ls_fail(LS_EFORMAT, "%s: %s%s is %.9g, which is not between %.9g and %.9g", p->label, p->prefix,
			       f->name, number, f->min, f->max);
	if (whole)
		*(int64_t *)out = json_integer_value(value);
	else
		*(double *)out = number;
	return LS_OK;
}

static int is_text(const ls_field *f)
{
	return f->kind == LS_FIELD_TEXT || f->kind == LS_FIELD_MAYBE;
}

ls_status ls_fields_read(const ls_json_place *place, const ls_field *fields, size_t count, const json_t *object,
			 void *out)
{
	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_object_get(object, fields[i].name);
		char *at = (char *)out + fields[i].offset;
		if (is_text(&fields[i]))
			LS_TRY(read_text(place, &fields[i], value, at));
		else
			LS_TRY(read_number(place, &fields[i], value, at));
	}
	return LS_OK;
}

static int is_known(const char *key, const ls_field *fields, size_t count, const char *const *others)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(fields[i].name, key))
			return 1;
	for (; others && *others; others++)
		if (!strcmp(*others, key))
			return 1;
	return 0;
}

ls_status ls_fields_only(const ls_json_place *place, const json_t *object, const ls_field *fields, size_t count,
			 const char *const *others)
{
	const char *names[64];
	char shown[64];
	size_t known = count < LS_COUNT(names) ? count : LS_COUNT(names);

	if (!json_is_object(object)) /* the prefix ends with the dot before a field */
		return ls_fail(LS_EFORMAT, "%s: %.*s is not an object with fields", place->label,
			       place->prefix[0] ? (int)strlen(place->prefix) - 1 : 0, place->prefix);
	for (size_t i = 0; i < known; i++)
		names[i] = fields[i].name;
	for (void *at = json_object_iter((json_t *)object); at; at = json_object_iter_next((json_t *)object, at)) {
		const char *key = json_object_iter_key(at), *meant;
		if (is_known(key, fields, count, others))
			continue;
		meant = ls_name_nearest(key, names, known);
		return ls_fail(LS_EFORMAT, "%s: %s%s is not a field of this file%s%s%s", place->label, place->prefix,
			       ls_text_printable(shown, sizeof(shown), key), meant ? "; did you mean " : "",
			       meant ? meant : "", meant ? "?" : "");
	}
	return LS_OK;
}

ls_json_place ls_json_element(const ls_json_place *place, const char *list, size_t i)
{
	ls_json_place element = { .label = place->label };
	snprintf(element.prefix, sizeof(element.prefix), "%.40s%s[%zu].", place->prefix, list, i);
	return element;
}

ls_status ls_json_parse(json_t **out, const void *text, size_t bytes, size_t most, const char *label)
{
	char shown[JSON_ERROR_TEXT_LENGTH];
	json_error_t error;

	if (bytes > most)
		return ls_fail(LS_EFORMAT, "%s: %zu bytes are too many, at most %zu are read", label, bytes, most);
	json_t *root = json_loadb(bytes > 0 ? text : "", bytes, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return ls_fail(LS_EFORMAT, "%s:%d: not acceptable JSON: %s", label, error.line,
			       ls_text_printable(shown, sizeof(shown), error.text));
	*out = root;
	return LS_OK;
}

ls_status ls_json_check(const json_t *root, const char *format, int newest, const char *label, int *version)
{
	const char *found = json_string_value(json_object_get(root, "format"));
	const json_t *number = json_object_get(root, "version");

	if (!found || strcmp(found, format) != 0 || !json_is_integer(number))
		return ls_fail(LS_EFORMAT, "%s: not a %s: \"format\" is not \"%s\" with a \"version\"", label, format,
			       format);
	if (json_integer_value(number) < 1 || json_integer_value(number) > newest)
		return ls_fail(LS_EFORMAT, "%s: version is %" PRId64 "; this program reads 1 to %d", label,
			       (int64_t)json_integer_value(number), newest);
	*version = (int)json_integer_value(number);
	return LS_OK;
}

void ls_fields_rename(json_t *object, const ls_field_rename *renames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		json_t *value = json_object_get(object, renames[i].from);
		if (!value || json_object_get(object, renames[i].to))
			continue;
		json_object_set(object, renames[i].to, value);
		json_object_del(object, renames[i].from);
	}
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static json_t *field_to_json(const ls_field *f, const void *from)
{
	const char *at = (const char *)from + f->offset;
	if (is_text(f))
		return json_string(at);
	if (is_whole(f))
		return json_integer(*(const int64_t *)at);
	double number = *(const double *)at;
	return f->kind == LS_FIELD_GAP && !isfinite(number) ? json_null() : json_real(number);
}

int ls_fields_write(const ls_field *fields, size_t count, const void *from, json_t *object)
{
	int bad = 0;
	for (size_t i = 0; i < count; i++)
		bad |= json_object_set_new(object, fields[i].name, field_to_json(&fields[i], from));
	return bad;
}

json_t *ls_json_begin(const char *format, int version)
{
	return json_pack("{s:s, s:i}", "format", format, "version", version);
}

ls_status ls_json_publish(const json_t *root, const char *path)
{
	char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));

	if (!text)
		return ls_fail(LS_EMEMORY, "%s: no memory for it as JSON", path);
	ls_status status = ls_file_put_text(path, text);
	free(text);
	return status;
}
