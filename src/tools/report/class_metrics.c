#include "tools/report/class_metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/document.h"

enum { VERSION = 1, BYTES_MAX = 256 << 20 };

#define TARGETS "lockstep target metrics"

#define OF ls_class_metrics
static const ls_field fields[] = {
	LS_FIELD_MAYBE_OF(OF, data),
	LS_FIELD_MAYBE_OF(OF, fingerprint),
	LS_FIELD_WHOLE_OF(OF, samples, 1, 1e15),
	LS_FIELD_GAP_OF(OF, loss, -1e30, 1e30),
	LS_FIELD_GAP_OF(OF, accuracy, 0, 1),
	LS_FIELD_WHOLE_IF_OF(OF, top, 1, LS_CLASSES_MAX),
	LS_FIELD_GAP_OF(OF, top_accuracy, 0, 1),
	LS_FIELD_GAP_OF(OF, perplexity, 0, 1e300),
	LS_FIELD_GAP_OF(OF, mae, 0, 1e300),
	LS_FIELD_GAP_OF(OF, rmse, 0, 1e300),
	LS_FIELD_GAP_OF(OF, r2, -1e300, 1),
	LS_FIELD_GAP_OF(OF, micro_f1, 0, 1),
	LS_FIELD_GAP_OF(OF, macro_f1, 0, 1),
};
#undef OF
#define OF ls_class_row
static const ls_field class_fields[] = {
	LS_FIELD_WHOLE_OF(OF, support, 0, 1e15),
	LS_FIELD_REAL_OF(OF, precision, 0, 1),
	LS_FIELD_REAL_OF(OF, recall, 0, 1),
	LS_FIELD_REAL_OF(OF, f1, 0, 1),
};
#undef OF

/* A long name is cut, not inside of a UTF-8 character. */
static void take_name(char out[LS_CLASS_NAME], const json_t *row, size_t number)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	size_t bytes = name ? strlen(name) : 0;

	if (bytes == 0) {
		snprintf(out, LS_CLASS_NAME, "%zu", number);
		return;
	}
	if (bytes >= LS_CLASS_NAME)
		for (bytes = LS_CLASS_NAME - 1; bytes > 0 && ((unsigned char)name[bytes] & 0xc0) == 0x80;)
			bytes--;
	snprintf(out, LS_CLASS_NAME, "%.*s", (int)bytes, name);
}

static ls_status take_classes(ls_class_metrics *m, const json_t *list, const ls_json_place *place)
{
	m->classes = calloc(m->count, sizeof(*m->classes));
	m->confusion = calloc(m->count * m->count, sizeof(*m->confusion));
	if (!m->classes || !m->confusion)
		return ls_fail(LS_EMEMORY, "%s: no memory for %zu classes", place->label, m->count);
	for (size_t i = 0; i < m->count; i++) {
		const json_t *row = json_array_get(list, i);
		const ls_json_place at = ls_json_element(place, "classes", i);
		LS_TRY(ls_fields_read(&at, class_fields, LS_COUNT(class_fields), row, &m->classes[i]));
		take_name(m->classes[i].name, row, i);
	}
	return LS_OK;
}

static ls_status take_confusion(ls_class_metrics *m, const json_t *rows, const ls_json_place *place)
{
	if (json_array_size(rows) != m->count)
		return ls_fail(LS_EFORMAT, "%s: confusion has %zu rows, and there are %zu classes", place->label,
			       json_array_size(rows), m->count);
	for (size_t i = 0; i < m->count; i++) {
		const json_t *row = json_array_get(rows, i);
		if (json_array_size(row) != m->count)
			return ls_fail(LS_EFORMAT, "%s: confusion[%zu] has %zu numbers, and there are %zu classes",
				       place->label, i, json_array_size(row), m->count);
		for (size_t k = 0; k < m->count; k++) {
			const json_t *value = json_array_get(row, k);
			if (!json_is_integer(value) || json_integer_value(value) < 0 ||
			    json_integer_value(value) > m->samples)
				return ls_fail(LS_EFORMAT,
					       "%s: confusion[%zu][%zu] is not a number of the %lld samples",
					       place->label, i, k, (long long)m->samples);
			m->confusion[i * m->count + k] = json_integer_value(value);
		}
	}
	return LS_OK;
}

static ls_status take(void *out, json_t *root, const char *label)
{
	const ls_json_place place = { .label = label };
	const json_t *classes = json_object_get(root, "classes");
	ls_class_metrics *m = out;
	const char *format = json_string_value(json_object_get(root, "format"));
	int version, has_targets = format && !strcmp(format, TARGETS);

	LS_TRY(ls_json_check(root, has_targets ? TARGETS : "lockstep class metrics", VERSION, label, &version));
	LS_TRY(ls_fields_read(&place, fields, LS_COUNT(fields), root, m));
	m->count = json_array_size(classes);
	if (m->count > LS_CLASSES_MAX)
		return ls_fail(LS_EFORMAT, "%s: %zu classes are too many, at most %d are read", label, m->count,
			       LS_CLASSES_MAX);
	if (m->count == 0)
		return LS_OK;
	LS_TRY(take_classes(m, classes, &place));
	return take_confusion(m, json_object_get(root, "confusion"), &place);
}

LS_JSON_DOCUMENT(ls_class_metrics, BYTES_MAX, take)

void ls_class_metrics_release(ls_class_metrics *m)
{
	free(m->classes);
	free(m->confusion);
	*m = (ls_class_metrics){ .count = 0 };
}
