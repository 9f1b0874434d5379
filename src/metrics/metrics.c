/*
 * metrics.c - metrics.jsonl, and the same values as TensorBoard events.
 *
 * Invariants
 *  1. A line is handed to the operating system whole and at once: a killed run loses no line but perhaps the one being
 *     written, a full disk leaves no half line, and a line torn by a crash is dropped by the next resume.
 *  2. After a resume no step appears twice: lines of steps that will be done again are taken out, and the shorter file
 *     replaces the longer one in one rename. Lines about nodes stay: what happened to them did, whichever steps count.
 *  3. Recording allocates nothing (contract 3).
 */
#include "metrics/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_target.h"
#include "base/files.h"
#include "base/log.h"
#include "metrics/append.h"
#include "metrics/events.h"

#define METRICS_FILE "metrics.jsonl"

struct ls_metrics {
	ls_append lines;
	ls_events *events;
};

/* What a resume drops, and what it finds out by that. */
typedef struct resume {
	uint64_t step;    /* goes on behind it */
	uint64_t reached; /* the last step of a line that is dropped */
	int damaged;      /* lines */
} resume;

static int is_about_nodes(const json_t *object)
{
	static const char *const kinds[] = { LS_METRICS_START, LS_METRICS_STOP, LS_METRICS_HOST };
	const char *kind = json_string_value(json_object_get(object, "kind"));

	for (size_t i = 0; kind && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i]))
			return 1;
	return 0;
}

/* 1: keep, 0: a later step, -1: not a whole line. One without a step is another program's or a later version's: not
 * ours to drop. */
static int judge_line(const char *line, size_t bytes, resume *r)
{
	json_t *object = json_loadb(line, bytes, 0, NULL);
	json_t *at = json_object_get(object, "step");
	int verdict = json_is_object(object) ? 1 : -1;

	if (json_is_integer(at) && !is_about_nodes(object)) {
		uint64_t step = json_integer_value(at) < 0 ? 0 : (uint64_t)json_integer_value(at);
		verdict = step <= r->step;
		if (!verdict && step > r->reached)
			r->reached = step;
	}
	json_decref(object);
	return verdict;
}

static ls_status copy_kept(const ls_file_map *old, ls_file_draft *draft, resume *r)
{
	const char *at = (const char *)old->data, *end = old->bytes ? at + old->bytes : at; /* empty: no map, NULL */
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t bytes = newline ? (size_t)(newline - at) : (size_t)(end - at);
		int verdict = newline ? judge_line(at, bytes, r) : -1;
		if (verdict == 1)
			LS_TRY(ls_file_write(draft, at, bytes + 1));
		r->damaged += verdict < 0;
		at += bytes + (newline != NULL);
	}
	return LS_OK;
}

static ls_status drop_later_lines(const char *path, resume *r)
{
	ls_file_map old;
	ls_file_draft draft;
	if (!ls_path_exists(path))
		return LS_OK;
	LS_TRY(ls_file_map_open(&old, path));
	ls_status status = ls_file_begin(&draft, path);
	if (status != LS_OK)
		goto close_map;
	status = ls_file_finish(&draft, copy_kept(&old, &draft, r));
	if (status == LS_OK && r->damaged)
		ls_log_warning("%s: dropped %d incomplete line(s)", path, r->damaged);
close_map:
	return ls_file_map_end(&old, status);
}

static int read_line(const char *line, size_t bytes, const char *kind, ls_metric *values, size_t count)
{
	json_t *object = json_loadb(line, bytes, 0, NULL);
	const char *has = json_string_value(json_object_get(object, "kind"));
	json_t *key = json_object_get(object, values[0].name);
	int is = has && strcmp(has, kind) == 0 && json_is_number(key) && json_number_value(key) == values[0].value;

	for (size_t i = 1; is && i < count; i++) {
		json_t *value = json_object_get(object, values[i].name);
		values[i].value = json_is_number(value) ? json_number_value(value) : NAN;
	}
	json_decref(object);
	return is;
}

ls_status ls_metrics_find(const char *run, const char *kind, ls_metric *values, size_t count, int *found)
{
	char path[4096];
	ls_file_map map;
	*found = 0;
	LS_TRY(ls_path_join(path, sizeof(path), run, METRICS_FILE));
	if (!ls_path_exists(path))
		return LS_OK;
	LS_TRY(ls_file_map_open(&map, path));
	const char *at = (const char *)map.data, *newline;
	for (size_t left = map.bytes; left && !*found && (newline = memchr(at, '\n', left)); at = newline + 1) {
		*found = read_line(at, (size_t)(newline - at), kind, values, count);
		left -= (size_t)(newline + 1 - at);
	}
	ls_file_map_close(&map);
	return LS_OK;
}

/* r: NULL, the run begins. */
static ls_status open_lines(ls_metrics *metrics, const char *run, resume *r)
{
	char path[4096];
	LS_TRY(ls_path_make(run));
	LS_TRY(ls_path_join(path, sizeof(path), run, METRICS_FILE));
	if (r)
		LS_TRY(drop_later_lines(path, r));
	return ls_append_open(&metrics->lines, path, r ? 0 : O_TRUNC);
}

static ls_status open_files(ls_metrics **out, const char *run, resume *r)
{
	*out = NULL;
	if (!run)
		return LS_OK;
	ls_metrics *metrics = calloc(1, sizeof(*metrics));
	if (!metrics)
		return ls_fail(LS_EMEMORY, "no memory for metrics");
	ls_status status = open_lines(metrics, run, r);
	if (status == LS_OK)
		status = ls_events_open(&metrics->events, run, r ? r->step : 0);
	if (status != LS_OK) {
		ls_metrics_close(metrics);
		return status;
	}
	*out = metrics;
	return LS_OK;
}

ls_status ls_metrics_open(ls_metrics **out, const char *run, uint64_t resume_step)
{
	resume r = { .step = resume_step };
	return open_files(out, run, resume_step > 0 ? &r : NULL);
}

ls_status ls_metrics_continue(ls_metrics **out, const char *run, uint64_t resume_step, uint64_t *reached)
{
	resume r = { .step = resume_step };
	ls_status status = open_files(out, run, &r);
	*reached = r.reached;
	return status;
}

void ls_metrics_close(ls_metrics *metrics)
{
	if (!metrics)
		return;
	ls_events_close(metrics->events);
	ls_append_close(&metrics->lines);
	free(metrics);
}

static void put_escaped(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(to, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(to, "\\u%04x", *text);
		else
			fputc(*text, to);
	}
}

static void put_text(FILE *to, const char *text)
{
	fputc('"', to);
	put_escaped(to, text);
	fputc('"', to);
}

/* The shortest decimal that reads back as the same double. JSON has no NaN and no infinity. */
static void put_number(FILE *to, double value)
{
	char text[32];
	if (!isfinite(value)) {
		fputs("null", to);
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	fputs(text, to);
}

static void begin_line(FILE *to, double wall, const char *kind, uint64_t step)
{
	fputs("{\"kind\": ", to);
	put_text(to, kind);
	fprintf(to, ", \"step\": %llu, \"time\": %.3f", (unsigned long long)step, wall);
}

/* What is not ASCII may not be UTF-8 either, and then no reader would accept the line. */
static void put_plain_text(FILE *to, const char *text)
{
	char one[2] = "";
	fputc('"', to);
	for (; *text; text++) {
		one[0] = (unsigned char)*text < 0x7f ? *text : '?';
		put_escaped(to, one);
	}
	fputc('"', to);
}

static void put_texts(FILE *to, const ls_metric_text *texts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		fputs(", ", to);
		put_text(to, texts[i].name);
		fputs(": ", to);
		put_plain_text(to, texts[i].text);
	}
}

static ls_status write_line(ls_metrics *metrics, double wall, const char *kind, uint64_t step,
			    const ls_metric_text *texts, size_t text_count, const ls_metric *values, size_t count)
{
	FILE *to = metrics->lines.stream;
	begin_line(to, wall, kind, step);
	put_texts(to, texts, text_count);
	for (size_t i = 0; i < count; i++) {
		fputs(", ", to);
		put_text(to, values[i].name);
		fputs(": ", to);
		put_number(to, values[i].value);
	}
	fputs("}\n", to);
	return ls_append_commit(&metrics->lines);
}

ls_status ls_metrics_record(ls_metrics *metrics, const char *kind, uint64_t step, const ls_metric *values, size_t count)
{
	return ls_metrics_record_texts(metrics, kind, step, NULL, 0, values, count);
}

ls_status ls_metrics_record_texts(ls_metrics *metrics, const char *kind, uint64_t step, const ls_metric_text *texts,
				  size_t text_count, const ls_metric *values, size_t count)
{
	if (!metrics)
		return LS_OK;
	double wall = ls_clock_wall();
	LS_TRY(write_line(metrics, wall, kind, step, texts, text_count, values, count));
	for (size_t i = 0; i < count; i++)
		LS_TRY(ls_events_scalar(metrics->events, wall, step, kind, values[i].name, values[i].value));
	return ls_events_flush(metrics->events);
}

ls_status ls_metrics_record_fingerprint(ls_metrics *metrics, const char *kind, uint64_t step, uint64_t fingerprint,
					const ls_metric *values, size_t count)
{
	if (!metrics)
		return LS_OK;
	begin_line(metrics->lines.stream, ls_clock_wall(), kind, step);
	fprintf(metrics->lines.stream, ", \"fingerprint\": \"%016llx\"", (unsigned long long)fingerprint);
	for (size_t i = 0; i < count; i++)
		if (isfinite(values[i].value))
			fprintf(metrics->lines.stream, ", \"%s\": %.3f", values[i].name, values[i].value);
	fputs("}\n", metrics->lines.stream);
	return ls_append_commit(&metrics->lines);
}

/* What a node was writing when it was killed has no line break, and the next line must not join it. */
static ls_status cut_torn_line(const char *path)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	const char *text = (const char *)map.data, *last = map.bytes ? memrchr(text, '\n', map.bytes) : NULL;
	off_t whole = last ? last + 1 - text : 0;
	int is_torn = (size_t)whole < map.bytes;
	ls_file_map_close(&map);
	if (is_torn && truncate(path, whole) != 0)
		return ls_fail_errno(LS_EIO, "cannot cut %s back to its last whole line", path);
	return LS_OK;
}

ls_status ls_metrics_append(const char *run, const char *kind, double wall, const ls_metric_text *texts, size_t count)
{
	char path[4096];
	ls_append lines = { .stream = NULL };

	LS_TRY(ls_path_join(path, sizeof(path), run, METRICS_FILE));
	if (!ls_path_exists(path))
		return LS_OK;
	LS_TRY(cut_torn_line(path));
	LS_TRY(ls_append_open(&lines, path, 0));
	begin_line(lines.stream, wall, kind, 0);
	put_texts(lines.stream, texts, count);
	fputs("}\n", lines.stream);
	ls_status status = ls_append_commit(&lines);
	ls_append_close(&lines);
	return status;
}

/* What is written to a file that has lost its name can still be read through the descriptor. */
static ls_status restore_lines(ls_append *lines, const char *path)
{
	char open_file[64];
	ls_file_map map;
	snprintf(open_file, sizeof(open_file), "/proc/self/fd/%d", fileno(lines->stream));
	LS_TRY(ls_file_map_open(&map, open_file));
	ls_status status = ls_file_put(path, map.data, map.bytes);
	ls_file_map_close(&map);
	LS_TRY(status);
	ls_append_close(lines);
	return ls_append_open(lines, path, 0);
}

ls_status ls_metrics_restore(ls_metrics *metrics, const char *run, uint64_t step)
{
	char path[4096];
	if (!metrics)
		return LS_OK;
	LS_TRY(ls_path_join(path, sizeof(path), run, METRICS_FILE));
	LS_TRY(restore_lines(&metrics->lines, path));
	ls_events_close(metrics->events);
	metrics->events = NULL;
	return ls_events_open(&metrics->events, run, step);
}

/* Where its directory is gone as well, the whole run directory is: whoever saves makes that again, with this file. */
static ls_status keep_lines(ls_metrics *metrics)
{
	struct stat facts;
	char path[4096], directory[4096];

	if (fstat(fileno(metrics->lines.stream), &facts) != 0 || facts.st_nlink > 0)
		return LS_OK;
	snprintf(path, sizeof(path), "%s", metrics->lines.path);
	LS_TRY(ls_path_parent(directory, path));
	ls_status status = restore_lines(&metrics->lines, path);
	if (status == LS_OK)
		ls_log_warning("%s was removed during the run: it was written again", path);
	return ls_path_is_directory(directory) ? status : LS_OK;
}

ls_status ls_metrics_share(ls_metrics *metrics, ls_metrics_files *out)
{
	*out = (ls_metrics_files){ .lines = -1, .events = -1 };
	if (!metrics)
		return LS_OK;
	LS_TRY(keep_lines(metrics));
	snprintf(out->path, sizeof(out->path), "%s", metrics->lines.path);
	out->lines = ls_append_share(&metrics->lines);
	out->events = ls_events_share(metrics->events);
	if (out->lines >= 0 && out->events >= 0)
		return LS_OK;
	ls_status status = ls_fail_errno(LS_EIO, "cannot write %s", out->path);
	ls_metrics_sync(out);
	return status;
}

/* 0: on disk, or there is none; closes it. */
static int sync_file(int *fd)
{
	int failed = *fd >= 0 && fsync(*fd) != 0, cause = errno;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = cause;
	return failed;
}

ls_status ls_metrics_sync(ls_metrics_files *files)
{
	int failed = sync_file(&files->lines), cause = errno;
	if (sync_file(&files->events) || failed) {
		errno = failed ? cause : errno;
		return ls_fail_errno(LS_EIO, "cannot write %s or the events beside it", files->path);
	}
	return LS_OK;
}

/* Records are with the operating system already; this makes them outlast a power cut, like the checkpoint beside them.
 */
ls_status ls_metrics_flush(ls_metrics *metrics)
{
	ls_metrics_files files;
	LS_TRY(ls_metrics_share(metrics, &files));
	return ls_metrics_sync(&files);
}
