#include "data/readers/bad_images.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/pin.h"
#include "base/team.h"

#define MAGIC "lockstep bad images 1"
#define PATIENCE 2.0 /* seconds without a word */
enum { THREADS_MAX = 64 };

void ls_bad_images_release(ls_bad_images *bad)
{
	free(bad->image);
	ls_arena_release(&bad->arena);
	*bad = (ls_bad_images){ .count = 0 };
}

static ls_status add(ls_bad_images *bad, uint64_t place, const char *why, size_t bytes)
{
	char *kept = ls_arena_alloc(&bad->arena, bytes + 1);

	if (!kept)
		return ls_fail(LS_EMEMORY, "no memory for the names of %" PRIu64 " bad images", bad->count);
	memcpy(kept, why, bytes);
	for (size_t i = 0; i < bytes; i++)
		kept[i] = kept[i] == '\n' || kept[i] == '\0' ? ' ' : kept[i];
	LS_TRY(ls_array_grow(&bad->image, &bad->room, bad->count + 1, sizeof(*bad->image)));
	bad->image[bad->count++] = (ls_bad_image){ place, kept };
	return LS_OK;
}

/* ---- finding them ------------------------------------------------------------------------------------------------ */

typedef struct search {
	ls_bad_images *bad;
	uint64_t images, most;
	ls_image_try try;
	void *context;
	double begun;
	pthread_mutex_t lock; /* of what follows, and of bad */
	ls_status status;
	char error[512];
	int is_over, is_noted;
} search;

static int is_of_image(ls_status status)
{
	return status == LS_EFORMAT || status == LS_EIO || status == LS_ENOTFOUND;
}

static void take_failure(search *s, uint64_t place, ls_status status)
{
	const char *why = ls_last_error();

	pthread_mutex_lock(&s->lock);
	s->bad->is_passing |= status != LS_EFORMAT;
	if (is_of_image(status))
		status = add(s->bad, place, why, strlen(why));
	if (status != LS_OK && s->status == LS_OK) {
		s->status = status;
		snprintf(s->error, sizeof(s->error), "%s", ls_last_error());
	}
	s->is_over |= s->status != LS_OK || s->bad->count > s->most;
	pthread_mutex_unlock(&s->lock);
}

static int goes_on(search *s, int rank)
{
	pthread_mutex_lock(&s->lock);
	int is_over = s->is_over;
	if (rank == 0 && !s->is_noted && ls_clock_seconds() - s->begun > PATIENCE) {
		ls_log_note("reading %" PRIu64 " images to find those that cannot be read", s->images);
		s->is_noted = 1;
	}
	pthread_mutex_unlock(&s->lock);
	return !is_over;
}

static void try_images(void *context, ls_member member)
{
	search *s = context;
	int64_t place;

	while (goes_on(s, member.rank) && (place = ls_team_next(member, (int64_t)s->images)) >= 0) {
		ls_status status = s->try(s->context, (uint64_t)place);
		if (status != LS_OK)
			take_failure(s, (uint64_t)place, status);
	}
}

static int compare(const void *a, const void *b)
{
	const ls_bad_image *x = a, *y = b;
	return x->place < y->place ? -1 : x->place > y->place;
}

ls_status ls_bad_images_find(ls_bad_images *out, uint64_t images, uint64_t most, ls_image_try try, void *context)
{
	int cores = ls_pin_cores(), threads = cores < THREADS_MAX ? cores : THREADS_MAX;
	search s = { .bad = out,
		     .images = images,
		     .most = most,
		     .try = try,
		     .context = context,
		     .begun = ls_clock_seconds(),
		     .lock = PTHREAD_MUTEX_INITIALIZER };
	ls_team *team = NULL;

	LS_TRY(ls_team_new(&team, images < (uint64_t)threads ? (int)images : threads));
	ls_team_run(team, try_images, &s);
	ls_team_free(team);
	if (s.status != LS_OK)
		return ls_fail(s.status, "%s", s.error);
	if (out->count > 0)
		qsort(out->image, out->count, sizeof(*out->image), compare);
	return LS_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* The line at *at without its end; *at moves behind it. NULL: there is none that ends. */
static const char *next_line(const char **at, const char *end, size_t *length)
{
	const char *line = *at, *stop = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;

	if (!stop)
		return NULL;
	*length = (size_t)(stop - line);
	*at = stop + 1;
	return line;
}

/* "MAGIC KEY COUNT", then a line with place and reason of each. */
ls_status ls_bad_images_parse(ls_bad_images *out, const char *text, size_t bytes, uint64_t key, uint64_t images,
			      int *found)
{
	const char *at = text, *end = text + bytes, *line;
	char head[128], wanted[128], number[24];
	size_t length = 0;
	uint64_t count = 0, next = 0;

	*found = 0;
	line = next_line(&at, end, &length);
	if (!line)
		return LS_OK;
	snprintf(head, sizeof(head), "%.*s", (int)(length < sizeof(head) ? length : sizeof(head) - 1), line);
	int fixed = snprintf(wanted, sizeof(wanted), MAGIC " %016" PRIx64 " ", key);
	if (strncmp(head, wanted, (size_t)fixed) != 0)
		return LS_OK;
	count = strtoull(head + fixed, NULL, 10);
	while (out->count < count && (line = next_line(&at, end, &length))) {
		snprintf(number, sizeof(number), "%.*s", (int)(length < sizeof(number) ? length : sizeof(number) - 1),
			 line);
		char *stop = number;
		uint64_t place = strtoull(number, &stop, 10);
		size_t digits = (size_t)(stop - number);
		if (digits == 0 || digits >= length || line[digits] != ' ' || place < next || place >= images)
			return LS_OK;
		LS_TRY(add(out, place, line + digits + 1, length - digits - 1));
		next = place + 1;
	}
	*found = out->count == count && at == end;
	return LS_OK;
}

ls_status ls_bad_images_load(ls_bad_images *out, const char *path, uint64_t key, uint64_t images, int *found)
{
	ls_bad_images bad = { .count = 0 };
	ls_file_map map;

	*found = 0;
	if (!ls_path_exists(path) || ls_file_map_open(&map, path) != LS_OK)
		return LS_OK;
	ls_status status =
		ls_file_map_end(&map, ls_bad_images_parse(&bad, (const char *)map.data, map.bytes, key, images, found));
	*found = *found && status == LS_OK;
	if (*found)
		*out = bad;
	else
		ls_bad_images_release(&bad);
	return status == LS_EMEMORY ? status : LS_OK;
}

void ls_bad_images_save(const ls_bad_images *bad, const char *path, uint64_t key)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return;
	fprintf(to, MAGIC " %016" PRIx64 " %" PRIu64 "\n", key, bad->count);
	for (uint64_t i = 0; i < bad->count; i++)
		fprintf(to, "%" PRIu64 " %s\n", bad->image[i].place, bad->image[i].why);
	if (fclose(to) == 0 && ls_file_put(path, text, bytes) != LS_OK) {
		/* all are tried again next time */
	}
	free(text);
}
