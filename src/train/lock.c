#include "train/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files.h"

static ls_status refuse(int fd, const char *run)
{
	char text[32] = "";
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
	long process = length > 0 ? strtol(text, NULL, 10) : 0;

	if (process > 0)
		return ls_fail(LS_EIO, "%s is in use by another lockstep (process %ld)", run, process);
	return ls_fail(LS_EIO, "%s is in use by another lockstep", run);
}

/* The number is only for people: what counts is the lock. */
static void sign(int fd)
{
	if (ftruncate(fd, 0) == 0)
		dprintf(fd, "%ld\n", (long)getpid());
}

ls_status ls_run_lock_take(ls_run_lock *lock, const char *run)
{
	char path[4096];

	LS_TRY(ls_path_join(path, sizeof(path), run, ".lock"));
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
	if (fd < 0)
		return ls_fail_errno(LS_EIO, "cannot write to the run directory %s", run);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		ls_status status = refuse(fd, run);
		close(fd);
		return status;
	}
	sign(fd);
	lock->fd = fd;
	return LS_OK;
}

void ls_run_lock_drop(ls_run_lock *lock)
{
	if (lock->fd >= 0)
		close(lock->fd);
	lock->fd = -1;
}
