#include "tools/results/metrics_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/fields.h"

enum { LINE_BYTES_MAX = 1 << 20 };

#define OF ls_metrics_line
static const ls_field line_fields[] = {
	LS_FIELD_TEXT_OF(OF, kind),
	LS_FIELD_WHOLE_OF(OF, step, 0, 1e15),
	LS_FIELD_GAP_OF(OF, loss, -1e30, 1e30),
	LS_FIELD_GAP_OF(OF, accuracy, 0, 1),
	LS_FIELD_GAP_OF(OF, seconds, 0, 1e9),
	LS_FIELD_GAP_OF(OF, samples_per_s, 0, 1e15),
	LS_FIELD_GAP_OF(OF, tokens_per_s, 0, 1e15),
	LS_FIELD_GAP_OF(OF, wait_s, 0, 1e9),
	LS_FIELD_GAP_OF(OF, exposed_s, 0, 1e9),
	LS_FIELD_MAYBE_OF(OF, fingerprint),
};
static const ls_field epoch_field[] = { LS_FIELD_WHOLE_OF(OF, epoch, 0, 1e9) };
#undef OF

static ls_status take_line(const json_t *object, const ls_json_place *at, ls_metrics_line_fn *take, void *context)
{
	ls_metrics_line line = { 0 };

	LS_TRY(ls_fields_read(at, line_fields, LS_COUNT(line_fields), object, &line));
	if (!strcmp(line.kind, "epoch") || !strcmp(line.kind, "test"))
		LS_TRY(ls_fields_read(at, epoch_field, LS_COUNT(epoch_field), object, &line));
	return take(context, &line, object);
}

ls_status ls_metrics_log_read(const char *text, size_t bytes, const char *label, ls_metrics_line_fn *take,
			      void *context)
{
	const char *newline;

	for (size_t number = 1; bytes > 0 && (newline = memchr(text, '\n', bytes)); number++) {
		json_t *root;
		char name[4200];
		snprintf(name, sizeof(name), "%s:%zu", label, number);
		const ls_json_place at = { .label = name };
		LS_TRY(ls_json_parse(&root, text, (size_t)(newline - text), LINE_BYTES_MAX, name));
		ls_status status = take_line(root, &at, take, context);
		json_decref(root);
		LS_TRY(status);
		bytes -= (size_t)(newline + 1 - text);
		text = newline + 1;
	}
	return LS_OK;
}

/* Doubles the capacity when full; NULL: no memory. */
static void *grow(void *list, size_t count, size_t bytes)
{
	if (count > 0 && (count & (count - 1)) != 0)
		return list;
	return realloc(list, (count > 0 ? 2 * count : 1) * bytes);
}

ls_status ls_point_add_rate(ls_point *point, ls_point_rate rate)
{
	ls_point_rate *rates = grow(point->rates, point->rate_count, sizeof(*rates));

	if (!rates)
		return ls_fail(LS_EMEMORY, "no memory for the steps of a run");
	point->rates = rates;
	rates[point->rate_count++] = rate;
	return LS_OK;
}

static ls_point_epoch *epoch_of(ls_point *point, int64_t epoch)
{
	ls_point_epoch *last = point->epoch_count > 0 ? &point->epochs[point->epoch_count - 1] : NULL;

	if (last && last->epoch == epoch)
		return last;
	ls_point_epoch *epochs = grow(point->epochs, point->epoch_count, sizeof(*epochs));
	if (!epochs)
		return NULL;
	point->epochs = epochs;
	epochs[point->epoch_count] = (ls_point_epoch){ .epoch = epoch, .accuracy = NAN, .test_loss = NAN };
	return &epochs[point->epoch_count++];
}

ls_status ls_point_add_epoch(ls_point *point, const ls_metrics_line *line)
{
	ls_point_epoch *row = epoch_of(point, line->epoch);
	double seconds = isnan(line->seconds) ? 0 : line->seconds;

	if (!row)
		return ls_fail(LS_EMEMORY, "no memory for the epochs of a run");
	if (strcmp(line->kind, "test") != 0) {
		row->seconds = seconds;
		return LS_OK;
	}
	row->test_seconds += seconds;
	row->accuracy = line->accuracy;
	row->test_loss = line->loss;
	if (isfinite(line->accuracy))
		point->accuracy = line->accuracy;
	return LS_OK;
}

void ls_point_end(ls_point *point, const ls_metrics_line *line)
{
	point->end_step = line->step;
	memcpy(point->fingerprint, line->fingerprint, sizeof(point->fingerprint));
}
