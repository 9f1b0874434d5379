/*
 * hosts.c - "lm1:3,lm6:2": the hosts of a job as people write them.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/launch.h>

#include "base/names.h"
#include "base/status.h"
#include "cluster/host_list.h"

enum { DEVICES_MAX = 4096 };

#define HOW "write hosts and their devices like lm1:3,lm6:2"

/* What mpirun and ssh could take for something else has no place in a name. */
static int is_name(const char *text, size_t length)
{
	static const char messages[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	return length && text[0] != '-' && strspn(text, messages) >= length;
}

/* Labels with a dot between them, and perhaps one at the end. */
static int has_empty_label(const char *name)
{
	size_t length = strlen(name);
	return name[0] == '.' || strstr(name, "..") || !length;
}

/* Whether the system's resolver would read the name as a number: its last label is one, decimal or 0x... */
static int ends_in_number(const char *name)
{
	size_t end = strlen(name);
	end -= end && name[end - 1] == '.';
	size_t begin = end;
	while (begin && name[begin - 1] != '.')
		begin--;
	const char *label = name + begin;
	size_t length = end - begin;
	if (length >= 2 && label[0] == '0' && tolower((unsigned char)label[1]) == 'x')
		return strspn(label + 2, "0123456789abcdefABCDEF") >= length - 2;
	return length && strspn(label, "0123456789") >= length;
}

/* Four decimal numbers without leading zeros (which would be octal to some), of one host: no 0.x.x.x, no group. */
static int is_address(const char *name)
{
	unsigned part[4];
	char again[20];
	if (sscanf(name, "%3u.%3u.%3u.%3u", &part[0], &part[1], &part[2], &part[3]) != 4)
		return 0;
	snprintf(again, sizeof(again), "%u.%u.%u.%u", part[0], part[1], part[2], part[3]);
	return !strcmp(name, again) && part[0] > 0 && part[0] < 224 && part[1] < 256 && part[2] < 256 && part[3] < 256;
}

/* The resolver takes 5 for 0.0.0.5, 1.5 for 1.0.0.5 and 0x10 for 0.0.0.16: mistyped numbers of devices would be
 * contacted. */
static ls_status check_name(const char *name)
{
	if (has_empty_label(name))
		return ls_fail(LS_EINVALID, "hosts: '%s' is not a host name; " HOW, name);
	if (ends_in_number(name) && !is_address(name))
		return ls_fail(LS_EINVALID,
			       "hosts: '%s' is neither a name nor a complete address of a host such as 10.0.0.7; " HOW,
			       name);
	return LS_OK;
}

static ls_status parse_devices(const char *text, size_t length, ls_host *host)
{
	char digits[32] = "";
	int64_t devices = 0;
	if (length < sizeof(digits))
		memcpy(digits, text, length);
	if (ls_parse_int(digits, "devices", &devices) != LS_OK || devices < 1 || devices > DEVICES_MAX)
		return ls_fail(LS_EINVALID, "host '%s': '%.*s' is not a number of devices (1 to %d); " HOW, host->name,
			       (int)length, text, DEVICES_MAX);
	host->devices = (int)devices;
	return LS_OK;
}

static ls_status parse_entry(const char *text, size_t length, size_t number, ls_host *host)
{
	const char *colon = memchr(text, ':', length);
	size_t name = colon ? (size_t)(colon - text) : length;
	if (!name)
		return ls_fail(LS_EINVALID, "hosts: entry %zu names no host; " HOW, number);
	if (!is_name(text, name) || name >= sizeof(host->name))
		return ls_fail(LS_EINVALID, "hosts: '%.*s' is not a host name; " HOW, (int)(name > 64 ? 64 : name),
			       text);
	*host = (ls_host){ 0 };
	memcpy(host->name, text, name);
	LS_TRY(check_name(host->name));
	return colon ? parse_devices(colon + 1, length - name - 1, host) : LS_OK;
}

static ls_status parse_entries(const char *text, ls_host *hosts, size_t entries)
{
	for (size_t i = 0; i < entries; i++) {
		size_t length = strcspn(text, ",");
		LS_TRY(parse_entry(text, length, i + 1, &hosts[i]));
		if (!hosts[i].devices != !hosts[0].devices)
			return ls_fail(LS_EINVALID, "hosts: '%s' says how many devices it has, '%s' does not; " HOW,
				       hosts[hosts[0].devices ? 0 : i].name, hosts[hosts[0].devices ? i : 0].name);
		text += length + 1;
	}
	return LS_OK;
}

ls_status ls_hosts_parse(ls_host **out, size_t *count, const char *text)
{
	if (text && !strcmp(text, "@"))
		return ls_fail(LS_EINVALID, "hosts: a file's name is missing after @");
	return text && text[0] == '@' ? ls_host_list_file(out, count, text + 1) : ls_hosts_parse_list(out, count, text);
}

ls_status ls_hosts_parse_list(ls_host **out, size_t *count, const char *text)
{
	if (!text || !*text)
		return ls_fail(LS_EINVALID, "hosts: the list is empty; " HOW);
	size_t entries = 1;
	for (const char *at = text; *at; at++)
		entries += *at == ',';
	ls_host *hosts = calloc(entries, sizeof(*hosts));
	if (!hosts)
		return ls_fail(LS_EMEMORY, "hosts: no memory for %zu entries", entries);
	ls_status status = parse_entries(text, hosts, entries);
	if (status != LS_OK) {
		free(hosts);
		return status;
	}
	*out = hosts;
	*count = entries;
	return LS_OK;
}

void ls_hosts_free(ls_host *hosts)
{
	free(hosts);
}

int ls_host_is_here(const char *name)
{
	char here[256] = "";
	if (!strcmp(name, "localhost") || !strncmp(name, "127.", 4))
		return 1;
	if (gethostname(here, sizeof(here) - 1))
		return 0;
	if (!strcmp(name, here))
		return 1;
	/* lm1 and lm1.example.org are the same machine, lm1.a.org and lm1.b.org are not */
	int has_domain = strchr(name, '.') != NULL, here_has = strchr(here, '.') != NULL;
	size_t length = strcspn(name, ".");
	return has_domain != here_has && length == strcspn(here, ".") && !strncmp(name, here, length);
}
