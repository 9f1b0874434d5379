#include "tools/report/sources.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/names.h"
#include "tools/report/run_read.h"
#include "json/fields.h"

enum { BYTES_MAX = 256 << 20 };

void ls_sources_release(ls_sources *sources)
{
	for (size_t i = 0; i < sources->sweep_count; i++)
		ls_results_release(&sources->sweeps[i]);
	for (size_t i = 0; i < sources->forecast_count; i++)
		ls_forecast_release(&sources->forecasts[i]);
	for (size_t i = 0; i < sources->runs.point_count; i++)
		ls_run_log_release(&sources->logs[i]);
	ls_results_release(&sources->runs);
}

static ls_status add_run(ls_sources *sources, const char *run)
{
	ls_results *runs = &sources->runs;
	ls_point *points = realloc(runs->points, (runs->point_count + 1) * sizeof(*points));
	if (!points)
		return ls_fail(LS_EMEMORY, "%s: no memory for the run", run);
	runs->points = points;
	LS_TRY(ls_run_read(&points[runs->point_count], &sources->machines[runs->point_count], run));
	ls_status status = ls_run_log_read(&sources->logs[runs->point_count], run);
	if (status != LS_OK) {
		ls_point_release(&points[runs->point_count]);
		return status;
	}
	runs->point_count++;
	return LS_OK;
}

static ls_status unknown_format(const char *path, const json_t *root)
{
	const char *found = json_string_value(json_object_get(root, "format"));
	char shown[64];
	if (!found)
		return ls_fail(LS_EFORMAT, "%s: neither results nor a forecast: it has no \"format\"", path);
	return ls_fail(LS_EFORMAT, "%s: neither results nor a forecast: format is '%s'", path,
		       ls_text_printable(shown, sizeof(shown), found));
}

static ls_status add_text(ls_sources *sources, const ls_file_map *map, const char *path)
{
	json_t *root;
	LS_TRY(ls_json_parse(&root, map->data, map->bytes, BYTES_MAX, path));
	const char *found = json_string_value(json_object_get(root, "format"));
	int results = found && !strcmp(found, "lockstep results"),
	    forecast = found && !strcmp(found, "lockstep forecast");
	ls_status status = results || forecast ? LS_OK : unknown_format(path, root);

	json_decref(root);
	LS_TRY(status);
	if (results) {
		LS_TRY(ls_results_parse(&sources->sweeps[sources->sweep_count], map->data, map->bytes, path));
		sources->sweep_count++;
	} else {
		LS_TRY(ls_forecast_parse(&sources->forecasts[sources->forecast_count], map->data, map->bytes, path));
		sources->forecast_count++;
	}
	return LS_OK;
}

static ls_status add_file(ls_sources *sources, const char *path)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = add_text(sources, &map, path);
	ls_file_map_close(&map);
	return status;
}

/* A run is read from its directory, not from one of its files. */
static ls_status check_file(const char *path)
{
	char run[4096];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	if ((strcmp(name, "run.json") != 0 && strcmp(name, "metrics.jsonl") != 0 && strcmp(name, "eval.json") != 0) ||
	    !ls_path_find_above(run, sizeof(run), path, "run.json"))
		return LS_OK;
	return ls_fail(LS_EFORMAT, "%s is a file of a run: give the directory of the run, %s", path, run);
}

static ls_status add_path(ls_sources *sources, const char *path)
{
	char inside[4096];
	if (!ls_path_is_directory(path)) {
		LS_TRY(check_file(path));
		return add_file(sources, path);
	}
	LS_TRY(ls_path_join(inside, sizeof(inside), path, "results.json"));
	int has_results = ls_path_exists(inside);
	if (has_results)
		LS_TRY(add_file(sources, inside));
	LS_TRY(ls_path_join(inside, sizeof(inside), path, "run.json"));
	if (ls_path_exists(inside)) /* a run in the directory of a sweep: both are shown */
		return add_run(sources, path);
	return has_results ? LS_OK
			   : ls_fail(LS_EIO, "%s: holds neither results.json of a sweep nor run.json of a run", path);
}

ls_status ls_sources_read(ls_sources *out, const char *const *paths, size_t count)
{
	memset(out, 0, sizeof(*out));
	snprintf(out->runs.sweep, sizeof(out->runs.sweep), "runs");
	snprintf(out->runs.table, sizeof(out->runs.table), "epochs");
	if (count == 0 || count > LS_SOURCES_MAX)
		return ls_fail(LS_EINVALID, "a report is made of 1 to %d paths, not %zu", LS_SOURCES_MAX, count);
	for (size_t i = 0; i < count; i++) {
		ls_status status = add_path(out, paths[i]);
		if (status != LS_OK) {
			ls_sources_release(out);
			return status;
		}
	}
	return LS_OK;
}
