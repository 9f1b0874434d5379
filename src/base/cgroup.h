/*
 * cgroup.h - the control groups this process lives under.
 */
#ifndef LS_BASE_CGROUP_H
#define LS_BASE_CGROUP_H

/* `directory` holds the files of one group; `version` is that of the control group file system, 1 or 2. */
typedef void (*ls_cgroup_visit)(void *context, const char *directory, int version);

/* Visit every group of `controller` ("memory", "cpu") above the process, from its own up to the mount: a limit on any
 * of them holds. `root` is "" but in tests. Groups that a container cannot see are visited as directories without
 * files. */
void ls_cgroup_walk(const char *root, const char *controller, ls_cgroup_visit visit, void *context);

#endif
