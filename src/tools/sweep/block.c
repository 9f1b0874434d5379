/*
 * block.c - the table of axes, and multiplying them out.
 */
#include "tools/sweep/block.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"

/* Name, default value, and the range of numbers. */
typedef struct axis_row {
	const char *name, *fallback;
	int64_t min, max; /* max 0: text */
} axis_row;

static const axis_row rows[LS_AXES] = {
	[LS_AXIS_MODEL] = { "model", "", 0, 0 },
	[LS_AXIS_DATA] = { "data", "", 0, 0 },
	[LS_AXIS_THREADS] = { "threads", "1", 1, 1024 },
	[LS_AXIS_BATCH] = { "batch_per_device", "128", 1, 1000000000 },
	[LS_AXIS_PRECISION] = { "precision", "fp32", 0, 0 },
	[LS_AXIS_WIRE] = { "wire", "fp32", 0, 0 },
	[LS_AXIS_RATE] = { "rate", "", 0, 0 },
	[LS_AXIS_STRATEGY] = { "strategy", "allreduce", 0, 0 },
	[LS_AXIS_SERVERS] = { "servers", "0", 0, LS_SWEEP_NODES },
	[LS_AXIS_NODES] = { "nodes", "1", 1, LS_SWEEP_NODES },
	[LS_AXIS_DEVICES] = { "devices", "1", 0, 0 },
	[LS_AXIS_ON] = { "on", "0", 0, 0 },
};

const char *ls_axis_name(ls_axis_kind axis)
{
	return rows[axis].name;
}

static ls_status check_number(const axis_row *row, const char *value, int64_t *out)
{
	LS_TRY(ls_parse_int(value, row->name, out));
	if (*out < row->min || *out > row->max)
		return ls_fail(LS_EINVALID, "%s %s: expected %" PRId64 " to %" PRId64, row->name, value, row->min,
			       row->max);
	return LS_OK;
}

/* "3" or "1,6": different nodes, from 1. "0": any. */
static ls_status check_nodes(const char *value)
{
	const axis_row node = { "on", "", 1, LS_SWEEP_NODES };
	int64_t number, seen[LS_RESULTS_NAME];
	size_t count = 0;

	if (!strcmp(value, "0"))
		return LS_OK;
	for (const char *at = value;; at++) {
		char digits[8] = "";
		size_t length = strcspn(at, ",");
		snprintf(digits, sizeof(digits), "%.*s", (int)(length < sizeof(digits) ? length : sizeof(digits)), at);
		LS_TRY(check_number(&node, digits, &number));
		for (size_t i = 0; i < count; i++)
			if (seen[i] == number)
				return ls_fail(LS_EINVALID, "on %s: node %" PRId64 " is there twice", value, number);
		seen[count++] = number;
		at += length;
		if (*at == '\0')
			return LS_OK;
	}
}

ls_status ls_axis_add(ls_axis *axis, ls_axis_kind kind, const char *value)
{
	int64_t number;

	if (axis->count == LS_AXIS_VALUES)
		return ls_fail(LS_EINVALID, "%s has more than %d values", rows[kind].name, LS_AXIS_VALUES);
	if (value[0] == '\0' && rows[kind].fallback[0] != '\0')
		return ls_fail(LS_EINVALID, "%s has a value that is empty", rows[kind].name);
	if (strlen(value) >= sizeof(axis->value[0]))
		return ls_fail(LS_EINVALID, "%s '%.32s...' is longer than %zu bytes", rows[kind].name, value,
			       sizeof(axis->value[0]) - 1);
	if (rows[kind].max > 0)
		LS_TRY(check_number(&rows[kind], value, &number));
	if (kind == LS_AXIS_ON)
		LS_TRY(check_nodes(value));
	snprintf(axis->value[axis->count++], sizeof(axis->value[0]), "%s", value);
	return LS_OK;
}

ls_status ls_axis_split(ls_axis *axis, ls_axis_kind kind, const char *list)
{
	char value[LS_RESULTS_NAME + 1];

	for (;; list++) {
		size_t length = strcspn(list, ",");
		snprintf(value, sizeof(value), "%.*s", (int)(length < sizeof(value) ? length : sizeof(value)), list);
		if (length == 0)
			return ls_fail(LS_EINVALID, "%s has a value that is empty", rows[kind].name);
		LS_TRY(ls_axis_add(axis, kind, value));
		list += length;
		if (*list == '\0')
			return LS_OK;
	}
}

int ls_axis_has(const ls_axis *axis, const char *value)
{
	for (size_t i = 0; i < axis->count; i++)
		if (!strcmp(axis->value[i], value))
			return 1;
	return 0;
}

/* ---- multiplying ------------------------------------------------------------------------------------------------- */

static const char *value_of(const ls_sweep_block *block, const size_t index[LS_AXES], ls_axis_kind kind)
{
	const ls_axis *axis = &block->axes[kind];
	return axis->count > 0 ? axis->value[index[kind]] : rows[kind].fallback;
}

static int64_t number_of(const ls_sweep_block *block, const size_t index[LS_AXES], ls_axis_kind kind)
{
	return strtoll(value_of(block, index, kind), NULL, 10); /* checked in ls_axis_add() */
}

static ls_status text_of(const ls_sweep_block *block, const size_t index[LS_AXES], ls_axis_kind kind, char *out,
			 size_t size)
{
	const char *value = value_of(block, index, kind);
	if (strlen(value) >= size)
		return ls_fail(LS_EINVALID, "%s '%s' is longer than %zu bytes", rows[kind].name, value, size - 1);
	memcpy(out, value, strlen(value) + 1);
	return LS_OK;
}

static ls_status make_point(const ls_sweep_block *block, const size_t index[LS_AXES], ls_sweep_point *out)
{
	ls_point_job *job = &out->job;

	*out = block->common;
	LS_TRY(text_of(block, index, LS_AXIS_MODEL, job->model, sizeof(job->model)));
	LS_TRY(text_of(block, index, LS_AXIS_DATA, job->data, sizeof(job->data)));
	LS_TRY(ls_sweep_point_precision(out, value_of(block, index, LS_AXIS_PRECISION)));
	LS_TRY(text_of(block, index, LS_AXIS_WIRE, job->wire, sizeof(job->wire)));
	LS_TRY(text_of(block, index, LS_AXIS_RATE, job->rate, sizeof(job->rate)));
	LS_TRY(text_of(block, index, LS_AXIS_STRATEGY, job->strategy, sizeof(job->strategy)));
	job->threads = number_of(block, index, LS_AXIS_THREADS);
	job->batch = number_of(block, index, LS_AXIS_BATCH);
	job->servers = number_of(block, index, LS_AXIS_SERVERS);
	if (strcmp(value_of(block, index, LS_AXIS_ON), "0") != 0)
		LS_TRY(text_of(block, index, LS_AXIS_ON, out->on, sizeof(out->on)));
	int64_t nodes = number_of(block, index, LS_AXIS_NODES);
	LS_TRY(ls_sweep_point_shape(out, value_of(block, index, LS_AXIS_DEVICES), nodes));
	if (block->axes[LS_AXIS_NODES].count > 0 && job->nodes != nodes)
		return ls_fail(LS_EINVALID, "nodes %" PRId64 " with devices '%s', which are of %" PRId64 " nodes",
			       nodes, job->shape, job->nodes);
	if (!strcmp(job->servers_count, "inside") && ls_strategy_has_servers(job->strategy))
		LS_TRY(ls_sweep_point_servers_inside(out));
	return ls_sweep_point_normalise(out);
}

/* The next combination; 0 after the last. */
static int advance(const ls_sweep_block *block, size_t index[LS_AXES])
{
	for (int k = LS_AXES - 1; k >= 0; k--) {
		if (++index[k] < block->axes[k].count)
			return 1;
		index[k] = 0;
	}
	return 0;
}

ls_status ls_sweep_block_expand(const ls_sweep_block *block, ls_sweep_list *list)
{
	size_t index[LS_AXES] = { 0 };
	double total = 1;
	ls_sweep_point point;

	for (int k = 0; k < LS_AXES; k++)
		total *= block->axes[k].count > 0 ? (double)block->axes[k].count : 1;
	if (total > LS_SWEEP_POINTS)
		return ls_fail(LS_EINVALID, "the lists multiply out to %.0f points; at most %d are measured", total,
			       LS_SWEEP_POINTS);
	do {
		LS_TRY(make_point(block, index, &point));
		LS_TRY(ls_sweep_list_add(list, &point));
	} while (advance(block, index));
	return LS_OK;
}
