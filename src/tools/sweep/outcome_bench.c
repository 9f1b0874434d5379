/*
 * outcome_bench.c - `lockstep bench --json`: one object, its lists of repeats and of nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/sweep/outcome.h"
#include "json/fields.h"

#define MS_MAX 1e9
enum { OUTPUT_MAX = 64 << 20, ROWS_MAX = 1000000 };

#define OF ls_point
static const ls_field point_fields[] = {
	LS_FIELD_REAL_OF(OF, tokens_per_s, 0, 1e15), LS_FIELD_REAL_OF(OF, compute_ms, 0, MS_MAX),
	LS_FIELD_REAL_OF(OF, exposed_ms, 0, MS_MAX), LS_FIELD_REAL_OF(OF, wait_ms, 0, MS_MAX),
	LS_FIELD_REAL_OF(OF, update_ms, 0, MS_MAX),  LS_FIELD_REAL_OF(OF, gradient_bytes, 0, 1e18),
	LS_FIELD_REAL_OF(OF, gflop_per_s, 0, 1e12),  LS_FIELD_REAL_OF(OF, peak_rss_bytes, 0, 1e18),
};
#undef OF
#define OF ls_point_repeat
static const ls_field repeat_fields[] = {
	LS_FIELD_REAL_OF(OF, samples_per_s, 0, 1e15),
	LS_FIELD_REAL_OF(OF, step_ms, 0, MS_MAX),
};
#undef OF
#define OF ls_point_node
static const ls_field node_fields[] = {
	LS_FIELD_MAYBE_OF(OF, host),
	LS_FIELD_WHOLE_OF(OF, devices, 0, 1e6),
	LS_FIELD_REAL_OF(OF, compute_ms, 0, MS_MAX),
	LS_FIELD_REAL_OF(OF, exposed_ms, 0, MS_MAX),
	LS_FIELD_REAL_OF(OF, wait_ms, 0, MS_MAX),
	LS_FIELD_REAL_OF(OF, sent_bytes, 0, 1e18),
	LS_FIELD_REAL_OF(OF, received_bytes, 0, 1e18),
};
#undef OF

static ls_status read_list(const ls_json_place *top, const json_t *root, const char *name, const ls_field *fields,
			   size_t field_count, size_t bytes, void **out, size_t *count)
{
	const json_t *list = json_object_get(root, name);
	size_t rows = json_array_size(list);

	if (rows == 0 || rows > ROWS_MAX)
		return ls_fail(LS_EFORMAT, "%s: %s is missing, empty or too long", top->label, name);
	char *memory = calloc(rows, bytes);
	if (!memory)
		return ls_fail(LS_EMEMORY, "%s: no memory for %zu %s", top->label, rows, name);
	*out = memory;
	*count = rows;
	for (size_t i = 0; i < rows; i++) {
		ls_json_place at = ls_json_element(top, name, i);
		LS_TRY(ls_fields_read(&at, fields, field_count, json_array_get(list, i), memory + i * bytes));
	}
	return LS_OK;
}

/* Append the repeats of a launch to those of earlier ones. */
static ls_status add_repeats(ls_point *p, const ls_json_place *top, const ls_point_repeat *rows, size_t count,
			     double wall_s)
{
	ls_point_repeat *grown = realloc(p->repeats, (p->repeat_count + count) * sizeof(*grown));

	if (!grown)
		return ls_fail(LS_EMEMORY, "%s: no memory for %zu repeats", top->label, count);
	p->repeats = grown;
	for (size_t i = 0; i < count; i++) {
		if (!(rows[i].samples_per_s > 0))
			return ls_fail(LS_EFORMAT, "%s: repeats[%zu].samples_per_s is not above 0", top->label, i);
		p->repeats[p->repeat_count] = rows[i];
		p->repeats[p->repeat_count].wall_s = wall_s;
		p->repeats[p->repeat_count++].launch = (int64_t)p->launch_count;
	}
	return LS_OK;
}

static ls_status read_bench(ls_point *p, const json_t *root, double wall_s)
{
	const ls_json_place top = { .label = "output of lockstep bench" };
	ls_point_repeat *repeats = NULL;
	size_t count = 0;

	LS_TRY(ls_fields_read(&top, point_fields, LS_COUNT(point_fields), root, p));
	free(p->nodes);
	p->nodes = NULL;
	p->node_count = 0;
	LS_TRY(read_list(&top, root, "nodes", node_fields, LS_COUNT(node_fields), sizeof(*p->nodes), (void **)&p->nodes,
			 &p->node_count));
	ls_status status = read_list(&top, root, "repeats", repeat_fields, LS_COUNT(repeat_fields), sizeof(*repeats),
				     (void **)&repeats, &count);
	if (status == LS_OK)
		status = add_repeats(p, &top, repeats, count, wall_s);
	free(repeats);
	return status;
}

ls_status ls_outcome_bench(ls_point *point, const ls_child *child)
{
	json_t *root;

	LS_TRY(ls_json_parse(&root, child->out, child->bytes, OUTPUT_MAX, "output of lockstep bench"));
	ls_status status = read_bench(point, root, child->seconds);
	json_decref(root);
	return status;
}
