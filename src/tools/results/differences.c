#include "tools/results/differences.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"

/* Numbers are equal however they are written: 0.10 and 0.1, 1e-4 and 0.0001. */
static int is_same(const char *a, const char *b)
{
	double left, right;

	if (!strcmp(a, b))
		return 1;
	size_t length = strlen(a), other = strlen(b);
	if (length == 0 || other == 0 || ls_decimal_span(a) != length || ls_decimal_span(b) != other)
		return 0;
	if (ls_parse_real(a, "", &left) != LS_OK || ls_parse_real(b, "", &right) != LS_OK)
		return 0;
	return left >= right && left <= right;
}

/* Launches are counted as they were made: one that failed or was repeated on a quiet machine does not count. */
static const char *ours_of(const ls_point *point, const ls_point_setting *setting, char *room, size_t size)
{
	if (strcmp(setting->name, "launches") != 0 || point->launch_count == 0)
		return setting->ours;
	snprintf(room, size, "%zu", ls_point_launches_done(point));
	return room;
}

static ls_difference difference(const char *name, const char *original, const char *ours)
{
	ls_difference d = { .points = 1 };

	snprintf(d.name, sizeof(d.name), "%s", name);
	snprintf(d.original, sizeof(d.original), "%s", original);
	snprintf(d.ours, sizeof(d.ours), "%s", ours);
	return d;
}

size_t ls_point_differences(const ls_point *point, ls_difference *out, size_t max)
{
	char room[32];
	size_t count = 0;

	for (size_t i = 0; i < point->setting_count && count < max; i++) {
		const ls_point_setting *s = &point->settings[i];
		const char *ours = ours_of(point, s, room, sizeof(room));
		if (!is_same(s->original, ours))
			out[count++] = difference(s->name, s->original, ours);
	}
	if (point->setting_count > 0 && point->job.replay && count < max)
		out[count++] = difference("compute", "real", "simulated");
	return count;
}

int ls_results_has_original(const ls_results *results)
{
	for (size_t i = 0; i < results->point_count; i++)
		if (results->points[i].state == LS_POINT_DONE && results->points[i].setting_count > 0)
			return 1;
	return 0;
}

/* Count `d` with its like, or insert it after the last of the same name. Returns the new number. */
static size_t merge(ls_difference *out, size_t count, size_t max, const ls_difference *d)
{
	size_t at = count;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(out[i].name, d->name) != 0)
			continue;
		if (!strcmp(out[i].original, d->original) && !strcmp(out[i].ours, d->ours)) {
			out[i].points++;
			return count;
		}
		at = i + 1;
	}
	if (count == max)
		return count;
	memmove(out + at + 1, out + at, (count - at) * sizeof(*out));
	out[at] = *d;
	return count + 1;
}

size_t ls_results_differences(const ls_results *results, ls_difference *out, size_t max)
{
	ls_difference of_point[LS_RESULTS_SETTINGS + 1];
	size_t count = 0;

	for (size_t i = 0; i < results->point_count; i++) {
		if (results->points[i].state != LS_POINT_DONE)
			continue;
		size_t n = ls_point_differences(&results->points[i], of_point, LS_COUNT(of_point));
		for (size_t k = 0; k < n; k++)
			count = merge(out, count, max, &of_point[k]);
	}
	return count;
}
