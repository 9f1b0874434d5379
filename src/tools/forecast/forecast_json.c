/*
 * forecast_json.c - forecasts as JSON, which the report reads.
 */
#include "tools/forecast/forecast.h"

#include <stdlib.h>

#include "json/document.h"
#include "json/fields.h"

#define FORMAT "lockstep forecast"
enum { VERSION = 2, BYTES_MAX = 64 << 20, ROWS_MAX = 1000000 };

#define OF ls_forecast
static const ls_field fields[] = {
	LS_FIELD_TEXT_OF(OF, model),
	LS_FIELD_MAYBE_OF(OF, optimizer),
	LS_FIELD_MAYBE_OF(OF, precision),
	LS_FIELD_MAYBE_OF(OF, cluster),
	{ "batch_per_device", LS_FIELD_WHOLE, LS_FIELD_AT(OF, batch), 1, 1e15 },
	{ "device_samples_per_s", LS_FIELD_REAL_IF, LS_FIELD_AT(OF, device_per_s), 0, 1e15 },
	LS_FIELD_REAL_IF_OF(OF, gradient_bytes, 0, 1e18),
};
#undef OF
#define OF ls_forecast_row
static const ls_field row_fields[] = {
	LS_FIELD_WHOLE_OF(OF, nodes, 1, 1e9),
	LS_FIELD_WHOLE_OF(OF, devices, 1, 1e12),
	LS_FIELD_WHOLE_OF(OF, servers, 0, 1e9),
	LS_FIELD_TEXT_OF(OF, strategy),
	LS_FIELD_MAYBE_OF(OF, wire),
	LS_FIELD_MAYBE_OF(OF, rate),
	LS_FIELD_WHOLE_OF(OF, bucket_bytes, 0, 1e15),
	LS_FIELD_REAL_OF(OF, step_ms, 0, 1e12),
	LS_FIELD_REAL_OF(OF, compute_ms, 0, 1e12),
	LS_FIELD_REAL_OF(OF, exposed_ms, 0, 1e12),
	LS_FIELD_REAL_OF(OF, samples_per_s, 0, 1e18),
	LS_FIELD_REAL_IF_OF(OF, samples_per_s_low, 0, 1e18),
	LS_FIELD_REAL_IF_OF(OF, samples_per_s_high, 0, 1e18),
	LS_FIELD_REAL_OF(OF, efficiency, 0, 1e6),
	LS_FIELD_REAL_IF_OF(OF, sent_bytes, 0, 1e18),
	LS_FIELD_REAL_IF_OF(OF, link_busy, 0, 2),
	LS_FIELD_REAL_IF_OF(OF, goodput, 0, 1),
	LS_FIELD_REAL_IF_OF(OF, interval_s, 0, 1e12),
	LS_FIELD_WHOLE_IF_OF(OF, snapshot_every, 0, 1e15),
	LS_FIELD_REAL_IF_OF(OF, fallback, 0, 1),
	LS_FIELD_MAYBE_OF(OF, bottleneck),
};
#undef OF
/* Names in version 1. */
static const ls_field_rename renames[] = { { "batch", "batch_per_device" },
					   { "device_per_s", "device_samples_per_s" } };
static const ls_field_rename row_renames[] = { { "placement", "strategy" } };

/* NULL: no memory, or a name is not UTF-8. */
static json_t *to_json(const ls_forecast *f)
{
	json_t *root = ls_json_begin(FORMAT, VERSION), *rows = json_array();
	int bad = ls_fields_write(fields, LS_COUNT(fields), f, root);

	for (size_t i = 0; i < f->count; i++) {
		json_t *row = json_object();
		bad |= ls_fields_write(row_fields, LS_COUNT(row_fields), &f->row[i], row);
		bad |= json_array_append_new(rows, row);
	}
	bad |= json_object_set_new(root, "rows", rows);
	if (!bad)
		return root;
	json_decref(root);
	return NULL;
}

char *ls_forecast_to_json(const ls_forecast *forecast)
{
	json_t *root = to_json(forecast);
	char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(root);
	return text;
}

static ls_status read_root(void *out, json_t *root, const char *label)
{
	ls_forecast *f = out;
	const json_t *rows = json_object_get(root, "rows");
	const ls_json_place top = { .label = label };
	size_t count = json_array_size(rows);
	int version;

	LS_TRY(ls_json_check(root, FORMAT, VERSION, label, &version));
	if (version < 2)
		ls_fields_rename(root, renames, LS_COUNT(renames));
	LS_TRY(ls_fields_read(&top, fields, LS_COUNT(fields), root, f));
	if (!json_is_array(rows) || count == 0 || count > ROWS_MAX)
		return ls_fail(LS_EFORMAT, "%s: rows is missing or not a list of 1 to %d rows", label, ROWS_MAX);
	f->row = calloc(count, sizeof(*f->row));
	if (!f->row)
		return ls_fail(LS_EMEMORY, "%s: no memory for %zu rows", label, count);
	f->count = count;
	for (size_t i = 0; i < count; i++) {
		ls_json_place at = ls_json_element(&top, "rows", i);
		json_t *row = json_array_get(rows, i);
		if (version < 2)
			ls_fields_rename(row, row_renames, LS_COUNT(row_renames));
		f->row[i].goodput = 1;
		LS_TRY(ls_fields_read(&at, row_fields, LS_COUNT(row_fields), row, &f->row[i]));
	}
	return LS_OK;
}

LS_JSON_DOCUMENT_PARSE(ls_forecast, BYTES_MAX, read_root)
