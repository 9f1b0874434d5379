/*
 * child.h - run a command with a time limit and keep its output.
 *
 * Invariants
 *  1. The command is in a process group of its own: Ctrl-C reaches this process only, which decides what it means.
 *  2. When the call returns, the command is gone: it has ended by itself, or its group was ended by SIGTERM and, where
 *     that did not help within LS_CHILD_GRACE_S, by SIGKILL. It also ends with this process, however that ends.
 */
#ifndef LS_TOOLS_SWEEP_CHILD_H
#define LS_TOOLS_SWEEP_CHILD_H

#include <stddef.h>

#include "base/status.h"

/* Longer than a launcher takes to end its nodes. */
#define LS_CHILD_GRACE_S 12.0

typedef struct ls_child_options {
	char *const *argv; /* ends with NULL; argv[0] is a path, or found by PATH */
	double limit_s;
	int goes_on;                 /* ls_sweep_stop() does not end it: it cleans up */
	void (*tick)(void *context); /* several times a second; may be NULL */
	void *context;
} ls_child_options;

typedef struct ls_child {
	int code; /* exit status, or 128 + signal */
	int late; /* ended at the time limit */
	double seconds;
	char *out; /* standard output, NUL-terminated; freed by ls_child_release() */
	size_t bytes;
	char error[2048]; /* the end of stderr */
} ls_child;

/* LS_OK: it ran and ended, with any status. LS_EINTERRUPTED: after ls_sweep_stop(). */
ls_status ls_child_run(ls_child *out, const ls_child_options *options);
void ls_child_release(ls_child *child);

/* Why it failed, in one line: its last error message on stderr, else its exit status. */
const char *ls_child_reason(const ls_child *child, char *out, size_t size);

/* Whether ls_sweep_stop() was called. */
int ls_sweep_stopped(void);

#endif
