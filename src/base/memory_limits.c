/*
 * memory_limits.c - how much memory a process may still take.
 *
 * The smallest of
 *   MemAvailable of /proc/meminfo,
 *   limit - usage of every memory control group above the process (version 2 or 1), where page cache that the kernel
 *     would drop under pressure (inactive_file) does not count as used, or reading a data set would look like a leak,
 *   RLIMIT_AS - the address space already taken, and RLIMIT_DATA - its private writable part.
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

static ls_memory_limit smaller(ls_memory_limit a, ls_memory_limit b)
{
	return b.left < a.left ? b : a;
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
	while (fgets(line, sizeof(line), file)) {
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
	int length = snprintf(path, sizeof(path), "%s/%s", directory, name);
	return length > 0 && (size_t)length < sizeof(path) ? read_number(path, key, otherwise) : otherwise;
}

typedef struct group_files {
	const char *limit, *usage, *cache;
} group_files;

static const group_files version1 = { "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file " };
static const group_files version2 = { "memory.max", "memory.current", "inactive_file " };

static void limit_by_group(void *context, const char *directory, int version)
{
	ls_memory_limit *least = context;
	const group_files *files = version == 2 ? &version2 : &version1;
	uint64_t limit = read_in(directory, files->limit, "", UINT64_MAX);
	if (limit == UINT64_MAX)
		return;
	uint64_t usage = read_in(directory, files->usage, "", 0);
	uint64_t left = less(limit, less(usage, read_in(directory, "memory.stat", files->cache, 0)));
	*least = smaller(*least, (ls_memory_limit){ LS_MEMORY_CGROUP, limit, left });
}

ls_memory_limit ls_memory_physical_under(const char *root)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	uint64_t available = read_number(path, "MemAvailable:", UINT64_MAX);
	ls_memory_limit least = { LS_MEMORY_MACHINE, read_number(path, "MemTotal:", 0) * 1024,
				  available == UINT64_MAX ? UINT64_MAX : available * 1024 };
	ls_cgroup_walk(root, "memory", limit_by_group, &least);
	return least;
}

ls_memory_limit ls_memory_physical(void)
{
	return ls_memory_physical_under("");
}

static ls_memory_limit limit_by_process(ls_memory_bound bound, int resource, uint64_t pages)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return (ls_memory_limit){ bound, UINT64_MAX, UINT64_MAX };
	return (ls_memory_limit){ bound, limit.rlim_cur,
				  less(limit.rlim_cur, pages * (uint64_t)sysconf(_SC_PAGESIZE)) };
}

/* Pages, of /proc/self/statm: all that are mapped, resident ones, and private writable ones. */
typedef struct page_counts {
	uint64_t mapped, resident, writable;
} page_counts;

static page_counts read_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	page_counts pages = { 0 };
	if (!file)
		return pages;
	if (fscanf(file, "%" SCNu64 " %" SCNu64 " %*s %*s %*s %" SCNu64, &pages.mapped, &pages.resident,
		   &pages.writable) != 3)
		pages = (page_counts){ 0 };
	fclose(file);
	return pages;
}

ls_memory_limit ls_memory_address_space(void)
{
	return limit_by_process(LS_MEMORY_ADDRESSES, RLIMIT_AS, read_pages().mapped);
}

ls_memory_limit ls_memory_data(void)
{
	return limit_by_process(LS_MEMORY_DATA, RLIMIT_DATA, read_pages().writable);
}

ls_memory_limit ls_memory_addresses(void)
{
	return smaller(ls_memory_address_space(), ls_memory_data());
}

ls_memory_limit ls_memory_tightest(void)
{
	return smaller(ls_memory_physical(), ls_memory_addresses());
}

uint64_t ls_memory_available(void)
{
	return ls_memory_tightest().left;
}

const char *ls_memory_limit_name(const ls_memory_limit *limit, char *text, size_t size)
{
	switch (limit->bound) {
	case LS_MEMORY_MACHINE:
		snprintf(text, size, "this machine has %.2f GB", (double)limit->bytes * 1e-9);
		break;
	case LS_MEMORY_CGROUP:
		snprintf(text, size, "the control group is limited to %.2f GB", (double)limit->bytes * 1e-9);
		break;
	case LS_MEMORY_ADDRESSES:
	case LS_MEMORY_DATA: /* in the unit of ulimit */
		snprintf(text, size, "ulimit -%c %" PRIu64, limit->bound == LS_MEMORY_DATA ? 'd' : 'v',
			 limit->bytes / 1024);
		break;
	}
	return text;
}

uint64_t ls_memory_resident(void)
{
	return read_pages().resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t ls_memory_peak(void)
{
	struct rusage usage;
	return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
