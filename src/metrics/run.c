/*
 * run.c - run.json: settings, versions and machine of a run. Enough to find out, a year later, why two runs differ.
 *
 *     { "format": 1, "lockstep": "0.1.0", "compiler": "gcc 12.2.0", "started": "2026-01-31T12:00:00Z",
 *       "kernels": "xsmm", "isa": "avx2", "settings": {...}, "machine": {...},
 *       "resumes": [ the same fields, once for each resume ],
 *       "end": { "step": 200, "fingerprint": "0123456789abcdef", "time": "2026-01-31T12:30:00Z" } }
 *
 * "end" is of the last time that the run ended in order, complete or stopped: a run that goes on, or was killed since,
 * is further than it says.
 *
 * Files without "format" are of versions before it was written and have the same fields. Fields that are not known here
 * stay as they are; a file of a later format is neither read nor replaced.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "metrics/machine.h"
#include "metrics/metrics.h"

#ifdef __clang__
#define LS_COMPILER "clang " __clang_version__
#else
#define LS_COMPILER "gcc " __VERSION__
#endif

enum { RUN_FORMAT = 1 };

static json_t *now_text(void)
{
	char text[32];
	time_t seconds = (time_t)ls_clock_wall();
	struct tm utc;
	gmtime_r(&seconds, &utc);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	return json_string(text);
}

/* This process. Out of memory anywhere shows as a member that is missing, which jansson refuses to encode. */
static ls_status describe_start(const char *settings, const char *kernels, const char *isa, json_t **out)
{
	json_error_t error;
	json_t *parsed = json_loads(settings, JSON_REJECT_DUPLICATES, &error);
	if (!json_is_object(parsed)) {
		json_decref(parsed);
		return ls_fail(LS_EINVALID, "settings of the run are not a JSON object: %s", error.text);
	}
	json_t *start = json_pack("{s:i, s:s, s:s, s:o, s:s, s:s, s:o, s:o}", "format", RUN_FORMAT, "lockstep",
				  ls_version(), "compiler", LS_COMPILER, "started", now_text(), "kernels", kernels,
				  "isa", isa, "settings", parsed, "machine", ls_machine_describe());
	if (!start)
		return ls_fail(LS_EMEMORY, "no memory to describe the run");
	*out = start;
	return LS_OK;
}

static ls_status load(const char *path, json_t **out)
{
	json_error_t error = { .text = "not an object" };
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	json_t *run = json_loadb(map.bytes ? (const char *)map.data : "", map.bytes, JSON_REJECT_DUPLICATES, &error);
	ls_file_map_close(&map);
	if (!json_is_object(run)) {
		json_decref(run);
		return ls_fail(LS_EFORMAT, "%s is damaged (line %d: %s)", path, error.line, error.text);
	}
	json_int_t format = json_integer_value(json_object_get(run, "format"));
	if (format > RUN_FORMAT) {
		json_decref(run);
		return ls_fail(
			LS_EUNSUPPORTED,
			"%s: format %lld is of a later version of Lockstep, this version reads format %d; use the "
			"version that wrote it",
			path, (long long)format, RUN_FORMAT);
	}
	*out = run;
	return LS_OK;
}

/* The description a resumed run already has, or NULL when there is none to be read. It is for people: damage in it must
 * not keep a run from going on, so it is put aside. */
static ls_status load_existing(const char *path, json_t **out)
{
	char aside[4096], why[1024];
	*out = NULL;
	if (!ls_path_exists(path))
		return LS_OK;
	ls_status status = load(path, out);
	if (status != LS_EFORMAT)
		return status;
	snprintf(why, sizeof(why), "%s", ls_last_error());
	LS_TRY(ls_path_set_aside(path, aside, sizeof(aside)));
	ls_log_warning("%s; it is now %s, and a new one is written", why, aside);
	return LS_OK;
}

ls_status ls_run_settings(const char *run, int last, char **out)
{
	char path[4096];
	json_t *object = NULL;
	LS_TRY(ls_path_join(path, sizeof(path), run, "run.json"));
	LS_TRY(load(path, &object));
	const json_t *resumes = json_object_get(object, "resumes");
	size_t count = last ? json_array_size(resumes) : 0;
	const json_t *settings = json_object_get(count > 0 ? json_array_get(resumes, count - 1) : object, "settings");
	char *text = json_is_object(settings) ? json_dumps(settings, JSON_REAL_PRECISION(17)) : NULL;
	json_decref(object);
	if (!text)
		return ls_fail(LS_EFORMAT, "%s is damaged: it has no settings", path);
	*out = text;
	return LS_OK;
}

static ls_status add_resume(json_t *run, json_t *start)
{
	if (!json_is_array(json_object_get(run, "resumes")))
		json_object_set_new(run, "resumes", json_array());
	if (json_array_append(json_object_get(run, "resumes"), start) != 0)
		return ls_fail(LS_EMEMORY, "no memory to describe the run");
	return LS_OK;
}

/* 15 digits show 0.1 as people wrote it; all 17 where that would not read back as the same number. */
static char *encode(json_t *run)
{
	char *text = json_dumps(run, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	json_t *back = text ? json_loads(text, 0, NULL) : NULL;
	if (!json_equal(back, run)) {
		free(text);
		text = json_dumps(run, JSON_INDENT(2));
	}
	json_decref(back);
	return text;
}

static ls_status publish(const char *path, json_t *run)
{
	char *text = encode(run);
	if (!text)
		return ls_fail(LS_EMEMORY, "no memory for %s", path);
	ls_status status = ls_file_put_text(path, text);
	free(text);
	return status;
}

ls_status ls_run_describe(const char *run, const char *settings, const char *kernels, const char *isa, int resumed)
{
	char path[4096];
	json_t *start = NULL, *existing = NULL;
	if (!run)
		return LS_OK;
	LS_TRY(ls_path_make(run));
	LS_TRY(ls_path_join(path, sizeof(path), run, "run.json"));
	LS_TRY(describe_start(settings, kernels, isa, &start));
	ls_status status = resumed ? load_existing(path, &existing) : LS_OK;
	if (status != LS_OK)
		goto release;
	if (existing)
		status = add_resume(existing, start);
	else
		json_object_set_new(start, "resumes", json_array());
	if (status == LS_OK)
		status = publish(path, existing ? existing : start);
release:
	json_decref(existing);
	json_decref(start);
	return status;
}

ls_status ls_run_conclude(const char *run, uint64_t step, uint64_t fingerprint)
{
	char path[4096];
	json_t *object = NULL;
	LS_TRY(ls_path_join(path, sizeof(path), run, "run.json"));
	LS_TRY(load(path, &object));
	json_t *end = json_pack("{s:I, s:o, s:o}", "step", (json_int_t)step, "fingerprint",
				json_sprintf("%016llx", (unsigned long long)fingerprint), "time", now_text());
	ls_status status = json_object_set_new(object, "end", end) == 0
				   ? publish(path, object)
				   : ls_fail(LS_EMEMORY, "no memory to describe the end of the run");
	json_decref(object);
	return status;
}
