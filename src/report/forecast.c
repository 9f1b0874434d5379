#include "report/forecast.h"

#include <stdlib.h>

#include "json/fields.h"

#define FORMAT "lockstep forecast"
enum { VERSION = 1, BYTES_MAX = 64 << 20, ROWS_MAX = 100000 };

#define OF ls_predicted
static const ls_field forecast_fields[] = {
	LS_FIELD_TEXT_OF(OF, model),
	LS_FIELD_WHOLE_OF(OF, batch, 1, 1e9),
};
#undef OF
#define OF ls_predicted_row
#define MS(member) LS_FIELD_REAL_OF(OF, member, 0, 1e9)
static const ls_field row_fields[] = {
	LS_FIELD_WHOLE_OF(OF, nodes, 1, 1e9),
	LS_FIELD_WHOLE_OF(OF, devices, 1, 1e12),
	LS_FIELD_WHOLE_OF(OF, servers, 0, 1e9),
	LS_FIELD_TEXT_OF(OF, placement),
	LS_FIELD_MAYBE_OF(OF, wire),
	LS_FIELD_MAYBE_OF(OF, rate),
	LS_FIELD_WHOLE_OF(OF, bucket_bytes, 0, 1e15),
	MS(step_ms),
	MS(compute_ms),
	MS(exposed_ms),
	LS_FIELD_GAP_OF(OF, wait_ms, 0, 1e9),
	LS_FIELD_REAL_OF(OF, samples_per_s, 0, 1e18),
	LS_FIELD_REAL_OF(OF, efficiency, 0, 1e6),
	LS_FIELD_MAYBE_OF(OF, bottleneck),
};
#undef OF

static ls_status read_root(ls_predicted *forecast, const json_t *root, const char *label)
{
	const ls_json_place top = { .label = label };
	const json_t *list = json_object_get(root, "rows");
	size_t count = json_array_size(list);

	LS_TRY(ls_json_check(root, FORMAT, VERSION, label));
	LS_TRY(ls_fields_read(&top, forecast_fields, LS_COUNT(forecast_fields), root, forecast));
	if (!json_is_array(list) || count == 0 || count > ROWS_MAX)
		return ls_fail(LS_EFORMAT, "%s: rows is missing or not a list of 1 to %d rows", label, ROWS_MAX);
	forecast->rows = calloc(count, sizeof *forecast->rows);
	if (forecast->rows == NULL)
		return ls_fail(LS_EMEMORY, "%s: no memory for %zu rows", label, count);
	forecast->row_count = count;
	for (size_t i = 0; i < count; i++) {
		ls_json_place at = ls_json_element(&top, "rows", i);
		LS_TRY(ls_fields_read(&at, row_fields, LS_COUNT(row_fields), json_array_get(list, i),
				      &forecast->rows[i]));
	}
	return LS_OK;
}

ls_status ls_predicted_parse(ls_predicted *out, const void *text, size_t bytes, const char *label)
{
	ls_predicted forecast = { 0 };
	json_t *root;

	LS_TRY(ls_json_parse(&root, text, bytes, BYTES_MAX, label));
	ls_status status = read_root(&forecast, root, label);
	json_decref(root);
	if (status == LS_OK)
		*out = forecast;
	else
		ls_predicted_release(&forecast);
	return status;
}

void ls_predicted_release(ls_predicted *forecast)
{
	free(forecast->rows);
	*forecast = (ls_predicted){ 0 };
}
