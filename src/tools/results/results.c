/*
 * results.c - results.json: tables of fields; a point has one list per kind of row.
 */
#include "tools/results/results.h"

#include <lockstep/train.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "json/document.h"
#include "json/fields.h"

#define FORMAT "lockstep results"
enum { BYTES_MAX = 256 << 20, POINTS_MAX = 100000, ROWS_MAX = 10000000 };
#define MS_MAX 1e9
#define RATE_MAX 1e15

#define TEXT(member) LS_FIELD_TEXT_OF(OF, member)
#define MAYBE(member) LS_FIELD_MAYBE_OF(OF, member)
#define WHOLE(member, max) LS_FIELD_WHOLE_OF(OF, member, 0, max)
#define REAL(member, max) LS_FIELD_REAL_OF(OF, member, 0, max)
#define GAP(member, min, max) LS_FIELD_GAP_OF(OF, member, min, max)

#define OF ls_results
static const ls_field results_fields[] = {
	TEXT(sweep), MAYBE(title), MAYBE(note), MAYBE(table), TEXT(started), MAYBE(form), WHOLE(quick, 1),
};
#undef OF
#define OF ls_results_machine
static const ls_field machine_fields[] = {
	MAYBE(host), MAYBE(cpu), MAYBE(system),     MAYBE(lockstep),           MAYBE(kernels),
	MAYBE(isa),  MAYBE(mpi), WHOLE(cores, 1e6), WHOLE(memory_bytes, 1e18), REAL(gflop_per_s_core, 1e9),
};
#undef OF
#define OF ls_point_job
static const ls_field job_fields[] = {
	TEXT(kind),
	TEXT(model),
	MAYBE(data),
	MAYBE(optimizer),
	TEXT(shape),
	LS_FIELD_WHOLE_OF(OF, nodes, 1, 1e6),
	LS_FIELD_WHOLE_OF(OF, devices, 1, 1e9),
	WHOLE(threads, 1e6),
	WHOLE(servers, 1e6),
	{ "batch_per_device", LS_FIELD_WHOLE, LS_FIELD_AT(OF, batch), 0, 1e9 },
	MAYBE(strategy),
	MAYBE(precision),
	MAYBE(wire),
	MAYBE(rate),
	WHOLE(replay, 1),
	LS_FIELD_REAL_IF_OF(OF, speed, 0, 1),
	WHOLE(warmup, 1e9),
	WHOLE(steps, 1e12),
	WHOLE(epochs, 1e9),
	WHOLE(samples, 1e15),
	LS_FIELD_REAL_IF_OF(OF, target, 0, 1),
	MAYBE(epoch),
	MAYBE(servers_count),
	MAYBE(arguments),
};
#undef OF
#define OF ls_point_node
static const ls_field node_fields[] = {
	MAYBE(host),           WHOLE(devices, 1e6),    REAL(compute_ms, MS_MAX),   REAL(exposed_ms, MS_MAX),
	REAL(wait_ms, MS_MAX), REAL(sent_bytes, 1e18), REAL(received_bytes, 1e18),
};
#undef OF
#define OF ls_point_repeat
static const ls_field repeat_fields[] = {
	REAL(samples_per_s, RATE_MAX),
	REAL(step_ms, MS_MAX),
	REAL(wall_s, 1e9),
	LS_FIELD_WHOLE_IF_OF(OF, launch, 0, ROWS_MAX),
};
#undef OF
#define OF ls_point_launch
static const ls_field launch_fields[] = {
	REAL(wall_s, 1e9),
	REAL(load, 1e6),
	REAL(steal, 1),
	REAL(mhz, 1e6),
	WHOLE(busy, 1),
	WHOLE(again, 1),
	MAYBE(reason),
	LS_FIELD_WHOLE_IF_OF(OF, seed, 0, 0x1p53),
	LS_FIELD_REAL_IF_OF(OF, target_s, 0, 1e9),
	LS_FIELD_REAL_IF_OF(OF, target_epochs, 0, 1e9),
};
#undef OF
#define OF ls_point_test
static const ls_field test_fields[] = {
	WHOLE(launch, ROWS_MAX),
	REAL(epochs, 1e9),
	REAL(elapsed_s, 1e9),
	REAL(accuracy, 1),
};
#undef OF
#define OF ls_point_rate
static const ls_field rate_fields[] = {
	WHOLE(step, 1e15),
	REAL(samples_per_s, RATE_MAX),
	GAP(loss, -1e30, 1e30),
};
#undef OF
#define OF ls_point_epoch
static const ls_field epoch_fields[] = {
	WHOLE(epoch, 1e9),   REAL(seconds, 1e9),          REAL(test_seconds, 1e9),
	GAP(accuracy, 0, 1), GAP(test_loss, -1e30, 1e30),
};
#undef OF
#define OF ls_point_setting
static const ls_field setting_fields[] = {
	TEXT(name),
	TEXT(original),
	MAYBE(ours),
};
#undef OF
/* Other numbers of a point; medians over repeats are computed again. */
#define OF ls_point
static const ls_field point_fields[] = {
	TEXT(key),
	MAYBE(reason),
	REAL(tokens_per_s, RATE_MAX),
	REAL(compute_ms, MS_MAX),
	REAL(exposed_ms, MS_MAX),
	REAL(wait_ms, MS_MAX),
	REAL(update_ms, MS_MAX),
	REAL(gradient_bytes, 1e18),
	REAL(gflop_per_s, 1e12),
	REAL(peak_rss_bytes, 1e18),
	REAL(accuracy, 1),
	LS_FIELD_WHOLE_IF_OF(OF, end_step, 0, 1e15),
	MAYBE(fingerprint),
};
#undef OF

/* Lists of rows inside a point. */
typedef struct rows {
	const char *name;
	size_t list, count, bytes; /* offsets of the pointer and of the number in a point; bytes per row */
	const ls_field *fields;
	size_t field_count;
} rows;

#define ROWS(member, type, fields)                                                                                     \
	{                                                                                                              \
#member, offsetof(ls_point, member), offsetof(ls_point, COUNT_OF_##member), sizeof(type), fields,      \
			LS_COUNT(fields)                                                                               \
	}
#define COUNT_OF_launches launch_count
#define COUNT_OF_repeats repeat_count
#define COUNT_OF_nodes node_count
#define COUNT_OF_rates rate_count
#define COUNT_OF_epochs epoch_count
#define COUNT_OF_tests test_count
#define COUNT_OF_settings setting_count
static const rows lists[] = {
	ROWS(launches, ls_point_launch, launch_fields),   ROWS(repeats, ls_point_repeat, repeat_fields),
	ROWS(nodes, ls_point_node, node_fields),          ROWS(rates, ls_point_rate, rate_fields),
	ROWS(epochs, ls_point_epoch, epoch_fields),       ROWS(tests, ls_point_test, test_fields),
	ROWS(settings, ls_point_setting, setting_fields),
};

static const char *const states[] = { "pending", "done", "skipped", "failed" };

static char **list_of(const rows *r, const ls_point *point)
{
	return (char **)((char *)point + r->list);
}

static size_t *count_of(const rows *r, const ls_point *point)
{
	return (size_t *)((char *)point + r->count);
}

void ls_results_release(ls_results *results)
{
	for (size_t i = 0; i < results->point_count; i++)
		ls_point_release(&results->points[i]);
	free(results->points);
	*results = (ls_results){ 0 };
}

void ls_point_release(ls_point *point)
{
	for (size_t k = 0; k < LS_COUNT(lists); k++)
		free(*list_of(&lists[k], point));
	*point = (ls_point){ 0 };
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static ls_status read_rows(const ls_json_place *at, const rows *r, const json_t *object, ls_point *point)
{
	const json_t *list = json_object_get(object, r->name);
	size_t count = json_array_size(list);

	if (!list)
		return LS_OK;
	if (!json_is_array(list) || count > ROWS_MAX)
		return ls_fail(LS_EFORMAT, "%s: %s%s is not a list of at most %d rows", at->label, at->prefix, r->name,
			       ROWS_MAX);
	char *memory = calloc(count > 0 ? count : 1, r->bytes);
	if (!memory)
		return ls_fail(LS_EMEMORY, "%s: no memory for %zu rows of %s%s", at->label, count, at->prefix, r->name);
	*list_of(r, point) = memory;
	*count_of(r, point) = count;
	for (size_t i = 0; i < count; i++) {
		ls_json_place row = ls_json_element(at, r->name, i);
		LS_TRY(ls_fields_read(&row, r->fields, r->field_count, json_array_get(list, i), memory + i * r->bytes));
	}
	return LS_OK;
}

static ls_status read_state(const ls_json_place *at, const json_t *object, ls_point *point)
{
	const char *name = json_string_value(json_object_get(object, "state"));

	for (size_t i = 0; name && i < LS_COUNT(states); i++)
		if (!strcmp(name, states[i])) {
			point->state = (ls_point_state)i;
			return LS_OK;
		}
	return ls_fail(LS_EFORMAT, "%s: %sstate is missing or not pending, done, skipped or failed", at->label,
		       at->prefix);
}

static ls_status check_repeats(const ls_json_place *at, const ls_point *point)
{
	for (size_t i = 0; i < point->repeat_count; i++) {
		size_t launch = (size_t)point->repeats[i].launch;
		if (!(point->repeats[i].samples_per_s > 0))
			return ls_fail(LS_EFORMAT, "%s: %srepeats[%zu].samples_per_s is not above 0", at->label,
				       at->prefix, i);
		if (point->launch_count > 0 &&
		    (launch >= point->launch_count || point->launches[launch].reason[0] != '\0'))
			return ls_fail(LS_EFORMAT,
				       "%s: %srepeats[%zu].launch is %zu: there is no such launch, or it failed",
				       at->label, at->prefix, i, launch);
	}
	return LS_OK;
}

const char *ls_strategy_title(const char *name)
{
	const ls_strategy_info *row = ls_strategy_of(name);
	return row ? row->title : name;
}

int ls_strategy_has_servers(const char *name)
{
	const ls_strategy_info *row = ls_strategy_of(name);
	return row && row->has_servers;
}

static ls_status check_point(const ls_json_place *at, const ls_point *point)
{
	int done = point->state == LS_POINT_DONE, why = point->reason[0] != '\0';

	LS_TRY(check_repeats(at, point));
	if (point->setting_count > LS_RESULTS_SETTINGS)
		return ls_fail(LS_EFORMAT, "%s: %ssettings has more than %d rows", at->label, at->prefix,
			       LS_RESULTS_SETTINGS);
	if (done && point->repeat_count == 0)
		return ls_fail(LS_EFORMAT, "%s: %sstate is done, but repeats has no row", at->label, at->prefix);
	if ((point->state == LS_POINT_SKIPPED || point->state == LS_POINT_FAILED) && !why)
		return ls_fail(LS_EFORMAT, "%s: %sreason is missing: the point is %s", at->label, at->prefix,
			       states[point->state]);
	return LS_OK;
}

/* Names in version 1. */
static const ls_field_rename job_renames[] = { { "batch", "batch_per_device" }, { "placement", "strategy" } };

static ls_status read_point(const ls_json_place *at, const json_t *object, int version, ls_point *point)
{
	json_t *asked = json_object_get(object, "job");
	ls_json_place job = *at;
	size_t used = strlen(job.prefix);

	snprintf(job.prefix + used, sizeof(job.prefix) - used, "job.");
	if (version < 2)
		ls_fields_rename(asked, job_renames, LS_COUNT(job_renames));
	LS_TRY(ls_fields_read(at, point_fields, LS_COUNT(point_fields), object, point));
	LS_TRY(ls_fields_read(&job, job_fields, LS_COUNT(job_fields), asked, &point->job));
	if (point->job.strategy[0] == '\0')
		snprintf(point->job.strategy, sizeof(point->job.strategy), "%s",
			 point->job.nodes > 1 ? "allreduce" : "local");
	LS_TRY(read_state(at, object, point));
	for (size_t k = 0; k < LS_COUNT(lists); k++)
		LS_TRY(read_rows(at, &lists[k], object, point));
	LS_TRY(check_point(at, point));
	return ls_point_summarize(point);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static ls_status check_keys(const ls_results *results, const char *label)
{
	size_t n = results->point_count, same = 0;
	const char **keys = calloc(n > 0 ? n : 1, sizeof(*keys));

	if (!keys)
		return ls_fail(LS_EMEMORY, "%s: no memory for the keys of %zu points", label, n);
	for (size_t i = 0; i < n; i++)
		keys[i] = results->points[i].key;
	qsort(keys, n, sizeof(*keys), by_key);
	for (size_t i = 1; i < n && same == 0; i++)
		if (!strcmp(keys[i - 1], keys[i]))
			same = i;
	ls_status status =
		same > 0 ? ls_fail(LS_EFORMAT, "%s: two points have the key '%s'", label, keys[same]) : LS_OK;
	free(keys);
	return status;
}

static ls_status read_points(ls_results *results, const json_t *root, int version, const char *label)
{
	const json_t *list = json_object_get(root, "points");
	const ls_json_place top = { .label = label };

	if (!json_is_array(list) || json_array_size(list) > POINTS_MAX)
		return ls_fail(LS_EFORMAT, "%s: points is missing or not a list of at most %d points", label,
			       POINTS_MAX);
	results->points = calloc(json_array_size(list) + 1, sizeof(*results->points));
	if (!results->points)
		return ls_fail(LS_EMEMORY, "%s: no memory for %zu points", label, json_array_size(list));
	results->point_count = json_array_size(list);
	for (size_t i = 0; i < results->point_count; i++) {
		ls_json_place at = ls_json_element(&top, "points", i);
		LS_TRY(read_point(&at, json_array_get(list, i), version, &results->points[i]));
	}
	return check_keys(results, label);
}

/* Files of earlier versions say only whether the form is the quick one. */
static ls_status check_form(ls_results *results, const char *label)
{
	static const char *const forms[] = { "quick", "default", "full" };

	if (results->form[0] == '\0')
		snprintf(results->form, sizeof(results->form), "%s", results->quick ? "quick" : "default");
	results->quick = !strcmp(results->form, "quick");
	for (size_t i = 0; i < LS_COUNT(forms); i++)
		if (!strcmp(results->form, forms[i]))
			return LS_OK;
	return ls_fail(LS_EFORMAT, "%s: form is '%s', not quick, default or full", label, results->form);
}

static ls_status read_root(void *out, json_t *root, const char *label)
{
	ls_results *results = out;
	const ls_json_place top = { .label = label }, machine = { .label = label, .prefix = "machine." };
	int version;

	LS_TRY(ls_json_check(root, FORMAT, LS_RESULTS_VERSION, label, &version));
	LS_TRY(ls_fields_read(&top, results_fields, LS_COUNT(results_fields), root, results));
	LS_TRY(check_form(results, label));
	LS_TRY(ls_fields_read(&machine, machine_fields, LS_COUNT(machine_fields), json_object_get(root, "machine"),
			      &results->machine));
	return read_points(results, root, version, label);
}

LS_JSON_DOCUMENT(ls_results, BYTES_MAX, read_root)

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int write_rows(const rows *r, const ls_point *point, json_t *object)
{
	json_t *list = json_array();
	int bad = 0;

	for (size_t i = 0; i < *count_of(r, point); i++) {
		json_t *row = json_object();
		bad |= ls_fields_write(r->fields, r->field_count, *list_of(r, point) + i * r->bytes, row);
		bad |= json_array_append_new(list, row);
	}
	return bad | json_object_set_new(object, r->name, list);
}

static int write_point(const ls_point *point, json_t *into)
{
	json_t *object = json_object(), *job = json_object();
	int bad = ls_fields_write(point_fields, LS_COUNT(point_fields), point, object);

	bad |= ls_fields_write(job_fields, LS_COUNT(job_fields), &point->job, job);
	bad |= json_object_set_new(object, "job", job);
	bad |= json_object_set_new(object, "state", json_string(states[point->state]));
	/* for other programs that read the file */
	bad |= json_object_set_new(object, "samples_per_s", json_real(point->samples_per_s));
	bad |= json_object_set_new(object, "step_ms", json_real(point->step_ms));
	bad |= json_object_set_new(object, "wall_s", json_real(point->wall_s));
	bad |= json_object_set_new(object, "spread_within", json_real(point->spread_within));
	bad |= json_object_set_new(object, "spread_between", json_real(point->spread_between));
	bad |= json_object_set_new(object, "busy", json_integer(point->busy));
	for (size_t k = 0; k < LS_COUNT(lists); k++)
		bad |= write_rows(&lists[k], point, object);
	return bad | json_array_append_new(into, object);
}

int ls_point_comparable(const ls_point *base, const ls_point *point)
{
	const ls_point_job *b = &base->job, *p = &point->job;
	int whole = !(b->speed > 0 && b->speed < 1);

	return b->replay == p->replay && (whole || (p->nodes == 1 && p->speed >= b->speed && p->speed <= b->speed));
}

ls_status ls_results_write(const ls_results *results, const char *path)
{
	json_t *root = ls_json_begin(FORMAT, LS_RESULTS_VERSION), *machine = json_object(), *points = json_array();
	int bad = ls_fields_write(results_fields, LS_COUNT(results_fields), results, root);

	bad |= ls_fields_write(machine_fields, LS_COUNT(machine_fields), &results->machine, machine);
	bad |= json_object_set_new(root, "machine", machine);
	for (size_t i = 0; i < results->point_count; i++)
		bad |= write_point(&results->points[i], points);
	bad |= json_object_set_new(root, "points", points);
	ls_status status =
		bad ? ls_fail(LS_EFORMAT, "%s: cannot write the results: a text is not UTF-8, or out of memory", path)
		    : ls_json_publish(root, path);
	json_decref(root);
	return status;
}
