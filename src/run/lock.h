/*
 * lock.h - a run directory belongs to one trainer at a time.
 */
#ifndef LS_RUN_LOCK_H
#define LS_RUN_LOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/*
 * Held by flock(2) on the directory itself and on RUN/.lock, so that the end of the process frees it, however it ends.
 * A directory that is moved stays locked under its new name; one whose .lock somebody removes stays locked, too. The
 * file shows people which process it is, and older versions that the run is locked.
 */
typedef struct ls_run_lock {
	int fd;        /* of the file; -1: not held */
	int directory; /* of the directory */
	/* of this start (checkpoint/generation.h), on all nodes; 0: not begun yet, or no run directory */
	uint64_t generation;
} ls_run_lock;
#define LS_RUN_LOCK_INIT                                                                                               \
	{                                                                                                              \
		-1, -1, 0                                                                                              \
	}

/* LS_EIO, naming the process, when another one holds it. A file system without locks counts as free. */
ls_status ls_run_lock_take(ls_run_lock *lock, const char *run);
void ls_run_lock_drop(ls_run_lock *lock); /* harmless when not held */
/* Drop it, and remove its file: there is no run after all. */
void ls_run_lock_withdraw(ls_run_lock *lock, const char *run);

/* Where the locked directory is: still at `run`; under another name, which `out` gets; removed; or there, but with a
 * newer start of the run in it. Cheap. */
typedef enum ls_run_where { LS_RUN_THERE, LS_RUN_MOVED, LS_RUN_REMOVED, LS_RUN_TAKEN } ls_run_where;
ls_run_where ls_run_lock_where(const ls_run_lock *lock, const char *run, char *out, size_t size);

#endif
