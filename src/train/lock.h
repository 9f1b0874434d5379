/*
 * lock.h - a run directory belongs to one trainer at a time.
 */
#ifndef LS_TRAIN_LOCK_H
#define LS_TRAIN_LOCK_H

#include "base/status.h"

/* Held by flock(2) on RUN/.lock, so that the end of the process frees it, however it ends. */
typedef struct ls_run_lock {
	int fd; /* -1: not held */
} ls_run_lock;
#define LS_RUN_LOCK_INIT                                                                                               \
	{                                                                                                              \
		-1                                                                                                     \
	}

/* LS_EIO, naming the process, when another one holds it. A file system without locks counts as free. */
ls_status ls_run_lock_take(ls_run_lock *lock, const char *run);
void ls_run_lock_drop(ls_run_lock *lock); /* harmless when not held */
/* Drop it, and remove its file: there is no run after all. */
void ls_run_lock_withdraw(ls_run_lock *lock, const char *run);

#endif
