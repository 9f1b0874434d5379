/*
 * cgroup.c - finding control groups, of version 2 or 1.
 */
#include "base/cgroup.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

typedef struct walk {
	const char *root, *controller;
	ls_cgroup_visit visit;
	void *context;
} walk;

static void walk_up(const walk *w, const char *group, int version)
{
	char path[PATH_SIZE];
	int base = version == 2 ? snprintf(path, sizeof(path), "%s/sys/fs/cgroup", w->root)
				: snprintf(path, sizeof(path), "%s/sys/fs/cgroup/%s", w->root, w->controller);
	if (base < 0 || (size_t)base + strlen(group) >= sizeof(path))
		return;
	snprintf(path + base, sizeof(path) - (size_t)base, "%s", group);
	for (;;) {
		w->visit(w->context, path, version);
		char *slash = strrchr(path + base, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* "cpu" is one of "cpu,cpuacct", but none of "cpuset". */
static int lists(const char *controllers, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = controllers; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
			return 1;
	}
	return 0;
}

/* Lines are "0::/group" (version 2) or "9:memory:/group" (version 1, where controllers are separated by commas). */
void ls_cgroup_walk(const char *root, const char *controller, ls_cgroup_visit visit, void *context)
{
	char path[PATH_SIZE], line[PATH_SIZE];
	walk w = { root, controller, visit, context };
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	FILE *file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		if (!controllers[1])
			walk_up(&w, group, 2);
		else if (lists(controllers + 1, controller))
			walk_up(&w, group, 1);
	}
	fclose(file);
}
