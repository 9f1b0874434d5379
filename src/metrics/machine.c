/*
 * machine.c - the machine, from uname, /proc and hwloc.
 */
#include "metrics/machine.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* "model name" of /proc/cpuinfo; processors other than x86 may have none. */
static json_t *describe_cpu(void)
{
	char line[512];
	json_t *model = NULL;
	FILE *info = fopen("/proc/cpuinfo", "re");
	while (info && !model && fgets(line, sizeof(line), info)) {
		char *colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		char *text = colon + 1 + strspn(colon + 1, " \t");
		text[strcspn(text, "\n")] = '\0';
		model = json_string(text);
	}
	if (info)
		fclose(info);
	return model ? model : json_null();
}

static json_t *count_objects(hwloc_topology_t topology, hwloc_obj_type_t type)
{
	int count = hwloc_get_nbobjs_by_type(topology, type);
	return count > 0 ? json_integer(count) : json_null();
}

static json_t *describe_caches(hwloc_topology_t topology)
{
	static const struct {
		const char *name;
		hwloc_obj_type_t type;
	} levels[] = { { "L1", HWLOC_OBJ_L1CACHE }, { "L2", HWLOC_OBJ_L2CACHE }, { "L3", HWLOC_OBJ_L3CACHE } };
	json_t *caches = json_object();
	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		hwloc_obj_t cache = hwloc_get_obj_by_type(topology, levels[i].type, 0);
		json_object_set_new(caches, levels[i].name,
				    cache ? json_integer((json_int_t)cache->attr->cache.size) : json_null());
	}
	return caches;
}

/* Only cores, hardware threads and data caches are asked for: the rest of a topology takes time to discover. */
static void add_topology(json_t *machine)
{
	hwloc_topology_t topology;
	if (hwloc_topology_init(&topology) != 0)
		return;
	hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
	if (hwloc_topology_load(topology) == 0) {
		json_object_set_new(machine, "cores", count_objects(topology, HWLOC_OBJ_CORE));
		json_object_set_new(machine, "threads", count_objects(topology, HWLOC_OBJ_PU));
		json_object_set_new(machine, "cache_bytes", describe_caches(topology));
	}
	hwloc_topology_destroy(topology);
}

json_t *ls_machine_describe(void)
{
	struct utsname system = { 0 };
	char kernel[2 * sizeof(system.release)];
	json_t *machine = json_object();
	uname(&system);
	snprintf(kernel, sizeof(kernel), "%s %s", system.sysname, system.release);
	json_object_set_new(machine, "hostname", json_string(system.nodename));
	json_object_set_new(machine, "kernel", json_string(kernel));
	json_object_set_new(machine, "architecture", json_string(system.machine));
	json_object_set_new(machine, "cpu", describe_cpu());
	add_topology(machine);
	json_object_set_new(machine, "memory_bytes",
			    json_integer((json_int_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)));
	return machine;
}
