/*
 * fit_json.c - a fit as JSON.
 */
#include <lockstep/plan.h>

#include <stdlib.h>

#include "json/fields.h"

#define FORMAT "lockstep fit"
enum { VERSION = 1 };

#define OF ls_fit
static const ls_field fields[] = {
	LS_FIELD_MAYBE_OF(OF, title),
	LS_FIELD_MAYBE_OF(OF, path),
	LS_FIELD_REAL_OF(OF, spread, 0, 1),
	LS_FIELD_REAL_OF(OF, mean_error, 0, 1e9),
	LS_FIELD_REAL_OF(OF, worst_error, 0, 1e9),
};
#undef OF
#define OF ls_fit_row
static const ls_field row_fields[] = {
	LS_FIELD_WHOLE_OF(OF, line, 0, 1e9),
	LS_FIELD_TEXT_OF(OF, model),
	LS_FIELD_MAYBE_OF(OF, data),
	LS_FIELD_MAYBE_OF(OF, hosts),
	LS_FIELD_TEXT_OF(OF, shape),
	{ "batch_per_device", LS_FIELD_WHOLE, LS_FIELD_AT(OF, batch), 1, 1e15 },
	LS_FIELD_WHOLE_OF(OF, nodes, 1, 1e9),
	LS_FIELD_WHOLE_OF(OF, devices, 1, 1e12),
	LS_FIELD_WHOLE_OF(OF, servers, 0, 1e9),
	LS_FIELD_TEXT_OF(OF, strategy),
	LS_FIELD_TEXT_OF(OF, wire),
	LS_FIELD_MAYBE_OF(OF, rate),
	LS_FIELD_WHOLE_OF(OF, fitted, 0, 1),
	{ "measured_samples_per_s", LS_FIELD_REAL, LS_FIELD_AT(OF, measured), 0, 1e18 },
	{ "samples_per_s", LS_FIELD_REAL, LS_FIELD_AT(OF, predicted), 0, 1e18 },
	{ "samples_per_s_low", LS_FIELD_REAL, LS_FIELD_AT(OF, low), 0, 1e18 },
	{ "samples_per_s_high", LS_FIELD_REAL, LS_FIELD_AT(OF, high), 0, 1e18 },
	LS_FIELD_REAL_OF(OF, error, -1, 1e9),
	LS_FIELD_MAYBE_OF(OF, bottleneck),
};
#undef OF
#define OF ls_fit_left_out
static const ls_field left_out_fields[] = {
	LS_FIELD_WHOLE_OF(OF, line, 0, 1e9),
	LS_FIELD_TEXT_OF(OF, reason),
};
#undef OF

static json_t *to_list(const ls_field *table, size_t field_count, const void *rows, size_t count, size_t bytes,
		       int *bad)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *object = json_object();
		*bad |= ls_fields_write(table, field_count, (const char *)rows + i * bytes, object);
		*bad |= json_array_append_new(list, object);
	}
	return list;
}

char *ls_fit_to_json(const ls_fit *fit)
{
	json_t *root = ls_json_begin(FORMAT, VERSION);
	int bad = ls_fields_write(fields, LS_COUNT(fields), fit, root);

	bad |= json_object_set_new(root, "compared", json_integer((json_int_t)fit->compared));
	bad |= json_object_set_new(root, "inside", json_integer((json_int_t)fit->inside));
	json_t *rows = to_list(row_fields, LS_COUNT(row_fields), fit->row, fit->count, sizeof(*fit->row), &bad);
	json_t *left_out = to_list(left_out_fields, LS_COUNT(left_out_fields), fit->left_out, fit->left_out_count,
				   sizeof(*fit->left_out), &bad);
	bad |= json_object_set_new(root, "rows", rows);
	bad |= json_object_set_new(root, "left_out", left_out);
	char *text = bad ? NULL : json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	json_decref(root);
	return text;
}
