/*
 * child.h - a process that was just forked, on its way to another program.
 */
#ifndef LS_BASE_CHILD_H
#define LS_BASE_CHILD_H

#include <sys/types.h>

/* In the child, before exec: default signals, a process group of its own, and an end with its parent. Returns 0 when
 * the parent has already ended. */
int ls_child_prepare(pid_t parent);

#endif
