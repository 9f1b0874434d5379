#include "predict/row_inputs.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/names.h"

ls_status ls_row_inputs_open(ls_row_inputs *out, const ls_table_schema *schema, const char *path)
{
	ls_row_inputs in = { .schema = schema, .path = path, .compact = calloc(schema->inputs + 1, sizeof(float)) };
	ls_status status = in.compact ? ls_table_rows_open(&in.rows, path)
				      : ls_fail(LS_EMEMORY, "no memory for a row of %zu columns", schema->inputs);

	if (status == LS_OK)
		status = ls_table_find_places(&in.places, schema, in.rows, path, 0);
	if (status != LS_OK)
		ls_row_inputs_close(&in, 1);
	else
		*out = in;
	return status;
}

void ls_row_inputs_close(ls_row_inputs *in, int is_quiet)
{
	if (!is_quiet && in->met.unknown > 0)
		ls_log_note("%s: %" PRIu64 " value%s %s not in the training part, such as '%s' of column '%s'",
			    in->path, in->met.unknown, ls_plural(in->met.unknown, "s"),
			    in->met.unknown == 1 ? "was" : "were", in->met.example, in->met.column);
	if (!is_quiet && in->met.missing > 0)
		ls_log_note("%s: %" PRIu64
			    " value%s %s missing: the mean of the training part, or no category, was taken",
			    in->path, in->met.missing, ls_plural(in->met.missing, "s"),
			    in->met.missing == 1 ? "was" : "were");
	ls_table_rows_close(in->rows);
	ls_table_places_release(&in->places);
	free(in->compact);
	*in = (ls_row_inputs){ 0 };
}

ls_status ls_row_inputs_next(ls_row_inputs *in, float *features, const char **text, size_t *bytes, uint64_t *line,
			     int *found)
{
	ls_table_row row;
	ls_status status = ls_table_rows_next(in->rows, &row, found);

	*line = row.line;
	if (status == LS_EFORMAT && row.line == in->last_bad)
		return ls_fail_context(LS_EIO, "nothing more can be read");
	if (status == LS_EFORMAT)
		in->last_bad = row.line;
	if (status != LS_OK || !*found)
		return status;
	if (in->schema->text) {
		*text = row.field[in->places.text];
		*bytes = row.bytes[in->places.text];
		return LS_OK;
	}
	LS_TRY(ls_table_read_inputs(in->schema, in->places.input, &row, in->path, in->compact, &in->met));
	ls_table_expand(in->schema, in->compact, features);
	return LS_OK;
}
