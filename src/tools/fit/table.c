#include "tools/fit/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

/* Twice the room of an array in the arena; what it had is copied. NULL: no memory. */
static void *grow(ls_arena *arena, const void *from, size_t count, size_t *room, size_t bytes)
{
	size_t more = *room > 0 ? 2 * *room : 64;
	void *grown = ls_arena_alloc(arena, more * bytes);

	if (grown && count > 0)
		memcpy(grown, from, count * bytes);
	if (grown)
		*room = more;
	return grown;
}

ls_status ls_fit_table_add(ls_fit_table *t, const ls_fit_point *point)
{
	if (t->count == t->room) {
		ls_fit_point *grown = grow(t->arena, t->point, t->count, &t->room, sizeof(*grown));
		if (!grown)
			return LS_EMEMORY;
		t->point = grown;
	}
	t->point[t->count++] = *point;
	return LS_OK;
}

ls_status ls_fit_table_omit(ls_fit_table *t, int line, const char *format, ...)
{
	char text[400];
	va_list arguments;

	if (t->omitted == t->omitted_room) {
		ls_fit_omission *grown = grow(t->arena, t->omission, t->omitted, &t->omitted_room, sizeof(*grown));
		if (!grown)
			return LS_EMEMORY;
		t->omission = grown;
	}
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	ls_fit_omission *o = &t->omission[t->omitted++];
	o->line = line;
	o->reason = ls_arena_copy(t->arena, text);
	return o->reason ? LS_OK : LS_EMEMORY;
}

int64_t ls_fit_devices(const ls_fit_point *p, int64_t i)
{
	const char *at = p->shape;

	for (; i > 0 && strchr(at, '+'); i--)
		at = strchr(at, '+') + 1;
	return strtoll(at, NULL, 10);
}

int ls_fit_same_job(const ls_fit_point *a, const ls_fit_point *b)
{
	return a->batch == b->batch && !strcmp(a->model, b->model) && !strcmp(a->data, b->data) &&
	       !strcmp(a->job, b->job);
}

int ls_fit_same_host(const ls_fit_point *a, const ls_fit_point *b)
{
	return ls_fit_same_job(a, b) && !strcmp(a->hosts, b->hosts) && a->unequal == b->unequal;
}

const char *ls_fit_job_name(const ls_fit_table *t, const ls_fit_point *p)
{
	const char *name = ls_arena_format(t->arena, "%s%s%s, batch %" PRId64 "%s%s", p->model, p->data[0] ? ", " : "",
					   p->data, p->batch, p->job[0] ? ", " : "", p->job);
	return name ? name : p->model;
}

const char *ls_fit_rate_text(const ls_fit_table *t, double rate)
{
	const char *text =
		rate >= 1000 ? ls_arena_format(t->arena, "%.0f", rate) : ls_arena_format(t->arena, "%.4g", rate);
	return text ? text : "?";
}

/* A JSON file begins with a brace; a table with its first key. */
static ls_status is_json(const char *path, int *out)
{
	ls_file_map map;

	LS_TRY(ls_file_map_open(&map, path));
	size_t i = 0;
	while (i < map.bytes && strchr(" \t\r\n", map.data[i]) && map.data[i] != '\0')
		i++;
	*out = i < map.bytes && map.data[i] == '{';
	ls_file_map_close(&map);
	return LS_OK;
}

static ls_status read_rows(ls_fit_table *t, const char *which)
{
	char path[4096];
	int json = 0;

	if (ls_path_is_directory(which)) {
		LS_TRY(ls_path_join(path, sizeof(path), which, "results.json"));
		if (!ls_path_exists(path))
			return ls_fail(LS_EIO, "%s: a directory without results.json of a sweep", which);
		return ls_fit_table_from_results(t, path);
	}
	if (ls_path_exists(which))
		LS_TRY(is_json(which, &json));
	return json ? ls_fit_table_from_results(t, which) : ls_fit_table_from_published(t, which);
}

ls_status ls_fit_table_read(ls_fit_table *out, ls_arena *arena, const char *which, const char *link)
{
	ls_fit_table t = { .arena = arena, .name = "", .title = "", .label = which, .model = LS_MODEL_OPTIONS_INIT };

	LS_TRY(read_rows(&t, which));
	for (size_t i = 0; link && i < t.count; i++)
		if (t.point[i].link[0] == '\0')
			t.point[i].link = link;
	LS_TRY(ls_fit_table_check(&t));
	*out = t;
	return LS_OK;
}
