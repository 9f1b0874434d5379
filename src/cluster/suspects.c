#include "cluster/suspects.h"

#include <ctype.h>
#include <string.h>

static int is_in_name(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* A dot ends a sentence, too: it belongs to the name where another label follows. */
static int ends_name(const char *after)
{
	return !is_in_name(after[0]) && !(after[0] == '.' && is_in_name(after[1]));
}

int ls_suspects_names(const char *report, const char *host)
{
	size_t length = strlen(host);

	for (const char *at = report; (at = strstr(at, host)); at++) {
		int in_brackets = at > report && at[-1] == '(' && at[length] == ')';
		int follows = at - report >= 5 && !strncmp(at - 5, "host ", 5) && ends_name(at + length);
		if (in_brackets || follows)
			return 1;
	}
	return 0;
}

static size_t find_named(const ls_host *hosts, const int *joined, size_t count, const char *report, int *out)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		out[i] = (!joined || joined[i]) && ls_suspects_names(report, hosts[i].name);
		found += (size_t)out[i];
	}
	return found;
}

size_t ls_suspects_find(const ls_host *hosts, const int *joined, size_t count, const char *report, int *out)
{
	size_t all = 0, seen = 0;

	for (size_t i = 0; i < count; i++)
		all += (size_t)(joined[i] != 0);
	size_t found = find_named(hosts, all ? joined : NULL, count, report, out);
	if (found || !all)
		return found;
	for (size_t i = 0; i < count; i++) {
		out[i] = joined[i] && (all == 1 || seen > 0);
		seen += (size_t)(joined[i] != 0);
		found += (size_t)out[i];
	}
	return found;
}
