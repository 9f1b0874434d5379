/*
 * memory_limits.c - how much memory a process may still take.
 *
 * The smallest of
 *   MemAvailable of /proc/meminfo,
 *   limit - usage of every memory control group above the process (version 2 or 1), where page cache that the kernel
 *     would drop under pressure (inactive_file) does not count as used, or reading a data set would look like a leak,
 *   RLIMIT_AS - the address space already taken.
 * What cannot be read does not limit.
 */
#include "base/memory_limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/memory.h"

enum { PATH_SIZE = 4096 };

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t less(uint64_t limit, uint64_t used)
{
	return limit > used ? limit - used : 0;
}

/* The number after `key` at the start of a line ("" means the first line), or `otherwise`: "max" is not a number. */
static uint64_t read_number(const char *path, const char *key, uint64_t otherwise)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return otherwise;
	char line[512];
	size_t length = strlen(key);
	uint64_t value = otherwise;
	while (fgets(line, sizeof line, file)) {
		if (strncmp(line, key, length) != 0)
			continue;
		if (sscanf(line + length, "%" SCNu64, &value) != 1)
			value = otherwise;
		break;
	}
	fclose(file);
	return value;
}

static uint64_t read_in(const char *directory, const char *name, const char *key, uint64_t otherwise)
{
	char path[PATH_SIZE];
	int length = snprintf(path, sizeof path, "%s/%s", directory, name);
	return length > 0 && (size_t)length < sizeof path ? read_number(path, key, otherwise) : otherwise;
}

typedef struct group_files {
	const char *limit, *usage, *cache;
} group_files;

static const group_files version1 = { "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file " };
static const group_files version2 = { "memory.max", "memory.current", "inactive_file " };

static void limit_by_group(void *context, const char *directory, int version)
{
	uint64_t *available = context;
	const group_files *files = version == 2 ? &version2 : &version1;
	uint64_t limit = read_in(directory, files->limit, "", UINT64_MAX);
	if (limit == UINT64_MAX)
		return;
	uint64_t usage = read_in(directory, files->usage, "", 0);
	uint64_t left = less(limit, less(usage, read_in(directory, "memory.stat", files->cache, 0)));
	*available = smaller(*available, left);
}

static uint64_t cgroup_available(const char *root)
{
	uint64_t available = UINT64_MAX;
	ls_cgroup_walk(root, "memory", limit_by_group, &available);
	return available;
}

uint64_t ls_memory_address_space(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	uint64_t pages = read_number("/proc/self/statm", "", 0);
	return less(limit.rlim_cur, pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

uint64_t ls_memory_available_under(const char *root)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "%s/proc/meminfo", root);
	uint64_t kib = read_number(path, "MemAvailable:", UINT64_MAX / 1024);
	return smaller(smaller(kib * 1024, cgroup_available(root)), ls_memory_address_space());
}

uint64_t ls_memory_available(void)
{
	return ls_memory_available_under("");
}

uint64_t ls_memory_resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	uint64_t pages = 0;
	if (file == NULL)
		return 0;
	if (fscanf(file, "%*s %" SCNu64, &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t ls_memory_peak(void)
{
	struct rusage usage;
	return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
