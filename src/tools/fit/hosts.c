/*
 * hosts.c - names in a list of hosts: "lm1+lm6", "lm1", or as Slurm writes them, "gn[01-03,07]".
 */
#include <stdlib.h>
#include <string.h>

#include "tools/fit/table.h"

enum { HOSTS_MAX = 4096, DIGITS_MAX = 9 };

typedef struct names {
	ls_arena *arena;
	const char **name;
	int64_t count;
} names;

static int add(names *n, const char *name)
{
	if (!name || n->count == HOSTS_MAX)
		return 0;
	n->name[n->count++] = name;
	return 1;
}

/* A number with its zeros, at *at; 0: there is none. */
static size_t digits(const char *at, long *number)
{
	size_t length = strspn(at, "0123456789");
	*number = length > 0 && length <= DIGITS_MAX ? strtol(at, NULL, 10) : -1;
	return *number >= 0 ? length : 0;
}

/* "01-03,07]" behind a stem of `length` characters */
static int add_ranges(names *n, const char *stem, int length, const char *at)
{
	for (;;) {
		long first, last;
		size_t width = digits(at, &first), more = 0;
		at += width;
		last = first;
		if (width > 0 && *at == '-') {
			more = digits(++at, &last);
			at += more;
			if (more == 0)
				return 0;
		}
		if (width == 0 || last < first || last - first >= HOSTS_MAX)
			return 0;
		for (long i = first; i <= last; i++)
			if (!add(n, ls_arena_format(n->arena, "%.*s%0*ld", length, stem, (int)width, i)))
				return 0;
		if (*at == ']')
			return at[1] == '\0';
		if (*at++ != ',')
			return 0;
	}
}

/* How many names there may be: numbers of ranges can be many more than characters. */
static size_t room_for(const char *hosts)
{
	return strpbrk(hosts, "[") ? HOSTS_MAX : strlen(hosts) + 1;
}

int64_t ls_fit_hosts(ls_arena *arena, const char *hosts, const char ***out)
{
	names n = { .arena = arena, .name = ls_arena_alloc(arena, room_for(hosts) * sizeof(*n.name)) };
	const char *bracket = strchr(hosts, '[');
	int whole = n.name != NULL && hosts[0] != '\0';

	if (whole && bracket)
		whole = add_ranges(&n, hosts, (int)(bracket - hosts), bracket + 1);
	for (const char *at = hosts; whole && !bracket;) {
		size_t length = strcspn(at, "+");
		whole = length > 0 && add(&n, ls_arena_format(arena, "%.*s", (int)length, at));
		if (at[length] == '\0')
			break;
		at += length + 1;
	}
	*out = n.name;
	return whole ? n.count : 0;
}
