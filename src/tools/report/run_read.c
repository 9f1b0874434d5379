#include "tools/report/run_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/median.h"
#include "tools/results/metrics_log.h"
#include "json/fields.h"

enum { RUN_BYTES_MAX = 16 << 20, METRICS_BYTES_MAX = 1 << 30 };

/* ---- run.json ---------------------------------------------------------------------------------------------------- */

/* Settings as run.json has them: names with '-'. */
typedef struct settings {
	char model[LS_RESULTS_NAME], data[LS_RESULTS_NAME], optimizer[LS_RESULTS_NAME], strategy[16], wire[16];
	char exchange[16]; /* version 1 */
	int64_t staleness; /* of ps-async; in version 1 what makes it of ps */
	int64_t version, samples, epochs, steps, batch, global_batch, microbatch, devices, threads, servers;
} settings;

#define OF settings
static const ls_field setting_fields[] = {
	LS_FIELD_TEXT_OF(OF, model),
	LS_FIELD_MAYBE_OF(OF, strategy),
	LS_FIELD_MAYBE_OF(OF, wire),
	LS_FIELD_MAYBE_OF(OF, exchange),
	{ "staleness", LS_FIELD_WHOLE_IF, LS_FIELD_AT(OF, staleness), 0, 1e6 },
	{ "version", LS_FIELD_WHOLE_IF, LS_FIELD_AT(OF, version), 0, 1e6 },
	LS_FIELD_WHOLE_OF(OF, samples, 0, 1e15),
	LS_FIELD_WHOLE_OF(OF, epochs, 0, 1e9),
	{ "steps", LS_FIELD_WHOLE_IF, LS_FIELD_AT(OF, steps), 0, 1e15 },
	LS_FIELD_WHOLE_OF(OF, batch, 1, 1e12),
	{ "global-batch", LS_FIELD_WHOLE_IF, LS_FIELD_AT(OF, global_batch), 0, 1e12 }, /* version 1 */
	{ "micro-batch", LS_FIELD_WHOLE_IF, LS_FIELD_AT(OF, microbatch), 0, 1e12 },
	LS_FIELD_WHOLE_OF(OF, devices, 1, 1e6),
	LS_FIELD_WHOLE_OF(OF, threads, 0, 1e6),
	LS_FIELD_WHOLE_OF(OF, servers, 0, 1e6),
};
#undef OF
/* Settings that older runs have under other names. */
static const ls_field_rename renames[] = { { "placement", "strategy" }, { "leaf", "micro-batch" } };
#define OF ls_results_machine
static const ls_field version_fields[] = {
	LS_FIELD_MAYBE_OF(OF, lockstep),
	LS_FIELD_MAYBE_OF(OF, kernels),
	LS_FIELD_MAYBE_OF(OF, isa),
};
#undef OF

/* Unknown values are null in run.json and empty here. */
static void take_text(char *out, size_t size, const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	size_t used = (size_t)snprintf(out, size, "%s", text ? text : "");
	while (used >= size && size > 1 && ((unsigned char)text[--size] & 0xc0) == 0x80)
		out[size - 1] = '\0'; /* do not cut a UTF-8 character */
}

/* Data may be a long path: keep its last part. */
static void take_folder(char *out, size_t size, const char *path)
{
	const char *end = path ? path + strlen(path) : NULL, *from;
	while (end && end > path + 1 && end[-1] == '/')
		end--;
	for (from = end; from && from > path && from[-1] != '/';)
		from--;
	if (from && from > path && (size_t)(end - from) < size)
		snprintf(out, size, "%.*s", (int)(end - from), from);
}

static void take_machine(ls_results_machine *machine, const json_t *object)
{
	take_text(machine->host, sizeof(machine->host), object, "hostname");
	take_text(machine->cpu, sizeof(machine->cpu), object, "cpu");
	take_text(machine->system, sizeof(machine->system), object, "kernel");
	machine->cores = json_integer_value(json_object_get(object, "cores"));
	machine->memory_bytes = json_integer_value(json_object_get(object, "memory_bytes"));
}

/* Version 1 had two of today's strategies as other settings: the library's sum, and servers with staleness. */
static void take_strategy(settings *s)
{
	int library = s->version < 2 && strcmp(s->exchange, "mpi") == 0;
	int async = s->version < 2 && s->staleness > 0 && strcmp(s->strategy, "ps") == 0;

	if (s->strategy[0] == '\0' || library || async)
		snprintf(s->strategy, sizeof(s->strategy), "%s", library ? "mpi" : async ? "ps-async" : "allreduce");
}

/* Global batch / batch per device is the number of devices, unless micro-batches are set separately; divided by the
 * devices per node it is the number of nodes. */
static void take_job(ls_point_job *job, const settings *s)
{
	size_t used = 0;
	int fixed = s->microbatch > 0 && s->microbatch != s->batch;
	job->devices = s->global_batch >= s->batch && !fixed ? s->global_batch / s->batch : s->devices;
	job->batch = fixed && s->global_batch >= job->devices ? s->global_batch / job->devices : s->batch;
	int64_t workers = job->devices % s->devices == 0 ? job->devices / s->devices : 1;
	job->nodes = workers;
	job->threads = s->threads;
	if (ls_strategy_has_servers(s->strategy))
		job->servers = s->servers > 0 ? s->servers : 1;
	job->samples = s->samples;
	job->steps = s->steps;
	job->epochs = s->steps > 0 ? 0 : s->epochs; /* --epochs has no effect with --steps */
	snprintf(job->kind, sizeof(job->kind), "train");
	memcpy(job->model, s->model, sizeof(job->model));
	memcpy(job->data, s->data, sizeof(job->data));
	memcpy(job->optimizer, s->optimizer, sizeof(job->optimizer));
	memcpy(job->wire, s->wire, sizeof(job->wire));
	snprintf(job->strategy, sizeof(job->strategy), "%s",
		 job->nodes == 1 && job->servers == 0 ? "local" : s->strategy);
	for (int64_t i = 0; i < workers && used + 16 < sizeof(job->shape); i++)
		used += (size_t)snprintf(job->shape + used, sizeof(job->shape) - used, "%s%lld", i ? "+" : "",
					 (long long)(job->devices / workers));
}

static ls_status take_run(ls_point *point, ls_results_machine *machine, const json_t *root, const char *label)
{
	const ls_json_place top = { .label = label }, at = { .label = label, .prefix = "settings." };
	settings s = { 0 };

	if (!json_is_object(root))
		return ls_fail(LS_EFORMAT, "%s: not the object that describes a run", label);
	json_t *given = json_object_get(root, "settings");
	ls_fields_rename(given, renames, LS_COUNT(renames));
	LS_TRY(ls_fields_read(&at, setting_fields, LS_COUNT(setting_fields), given, &s));
	take_text(s.data, sizeof(s.data), given, "data");
	take_folder(s.data, sizeof(s.data), json_string_value(json_object_get(given, "data")));
	take_text(s.optimizer, sizeof(s.optimizer), given, "optimizer");
	if (s.version >= 2) { /* batch is of all devices; version 1 had it per device, and global-batch beside it */
		s.global_batch = s.batch;
		s.batch = s.batch > s.devices ? s.batch / s.devices : 1;
	}
	LS_TRY(ls_fields_read(&top, version_fields, LS_COUNT(version_fields), root, machine));
	take_machine(machine, json_object_get(root, "machine"));
	take_strategy(&s);
	take_job(&point->job, &s);
	return LS_OK;
}

ls_status ls_run_parse(ls_point *point, ls_results_machine *machine, const void *text, size_t bytes, const char *label)
{
	json_t *root;
	LS_TRY(ls_json_parse(&root, text, bytes, RUN_BYTES_MAX, label));
	ls_status status = take_run(point, machine, root, label);
	json_decref(root);
	return status;
}

/* ---- metrics.jsonl ----------------------------------------------------------------------------------------------- */

static ls_status take_line(void *context, const ls_metrics_line *line, const json_t *object)
{
	ls_point *point = context;

	(void)object;
	if (!strcmp(line->kind, "step") && !isnan(line->samples_per_s))
		return ls_point_add_rate(point, (ls_point_rate){ line->step, line->samples_per_s, line->loss });
	if (!strcmp(line->kind, "epoch") || !strcmp(line->kind, "test"))
		return ls_point_add_epoch(point, line);
	if (!strcmp(line->kind, "end"))
		ls_point_end(point, line);
	return LS_OK;
}

ls_status ls_run_parse_metrics(ls_point *point, const char *text, size_t bytes, const char *label)
{
	return ls_metrics_log_read(text, bytes, label, take_line, point);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* The median rate over epochs, whose time does not include tests; where the number of samples is not known, or no epoch
 * is complete, the median of the logged rates. 0: there are none. */
static ls_status rate_of(const ls_point *point, double *rate)
{
	int by_epoch = point->epoch_count > 0 && point->epochs[0].seconds > 0 && point->job.samples > 0;
	size_t count = by_epoch ? point->epoch_count : point->rate_count, used = 0;
	double *values = calloc(count + 1, sizeof(*values));

	if (!values)
		return ls_fail(LS_EMEMORY, "no memory for the rates of a run");
	for (size_t i = 0; i < count; i++) {
		double seconds = by_epoch ? point->epochs[i].seconds : 0;
		if (!by_epoch)
			values[used++] = point->rates[i].samples_per_s;
		else if (seconds > 0)
			values[used++] = (double)point->job.samples / seconds;
	}
	*rate = ls_median(values, used);
	free(values);
	return LS_OK;
}

/* A run on one node ran on the host in run.json; for several nodes, run.json does not name the others. */
static ls_status name_host(ls_point *point, const ls_results_machine *machine)
{
	if (point->job.nodes != 1 || machine->host[0] == '\0')
		return LS_OK;
	point->nodes = calloc(1, sizeof(*point->nodes));
	if (!point->nodes)
		return ls_fail(LS_EMEMORY, "no memory for the host of a run");
	point->node_count = 1;
	point->nodes[0].devices = point->job.devices;
	memcpy(point->nodes[0].host, machine->host, sizeof(point->nodes[0].host));
	return LS_OK;
}

static ls_status conclude(ls_point *point, const char *run)
{
	double rate = 0, wall = 0;

	for (size_t i = 0; i < point->epoch_count; i++)
		wall += point->epochs[i].seconds + point->epochs[i].test_seconds;
	LS_TRY(rate_of(point, &rate));
	snprintf(point->key, sizeof(point->key), "%s", run);
	if (!(rate > 0)) {
		snprintf(point->reason, sizeof(point->reason), "%s",
			 point->end_step > 0 ? "no rate: no step was logged and no epoch completed"
					     : "the run has no rate and no epoch yet");
		return LS_OK;
	}
	point->repeats = calloc(1, sizeof(*point->repeats));
	if (!point->repeats)
		return ls_fail(LS_EMEMORY, "%s: no memory for its rate", run);
	point->repeat_count = 1;
	point->repeats[0].samples_per_s = rate;
	point->repeats[0].step_ms = 1e3 * (double)(point->job.batch * point->job.devices) / rate;
	point->repeats[0].wall_s = wall;
	point->state = LS_POINT_DONE;
	return ls_point_summarize(point);
}

static ls_status read_parts(ls_point *point, ls_results_machine *machine, const char *run)
{
	char path[4096];
	ls_file_map map;

	LS_TRY(ls_path_join(path, sizeof(path), run, "run.json"));
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_run_parse(point, machine, map.data, map.bytes, path);
	ls_file_map_close(&map);
	LS_TRY(status);
	LS_TRY(name_host(point, machine));
	LS_TRY(ls_path_join(path, sizeof(path), run, "metrics.jsonl"));
	if (!ls_path_exists(path))
		return conclude(point, run);
	LS_TRY(ls_file_map_open(&map, path));
	status = map.bytes > METRICS_BYTES_MAX
			 ? ls_fail(LS_EFORMAT, "%s: larger than %d bytes", path, METRICS_BYTES_MAX)
			 : ls_run_parse_metrics(point, (const char *)map.data, map.bytes, path);
	ls_file_map_close(&map);
	return status == LS_OK ? conclude(point, run) : status;
}

ls_status ls_run_read(ls_point *point, ls_results_machine *machine, const char *run)
{
	ls_point read = { 0 };
	ls_results_machine on = { 0 };
	ls_status status = read_parts(&read, &on, run);
	if (status != LS_OK) {
		ls_point_release(&read);
		return status;
	}
	*point = read;
	*machine = on;
	return LS_OK;
}
