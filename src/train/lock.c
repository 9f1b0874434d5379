#include "train/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

#define LOCK_FILE ".lock"
#define TRIES 10

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

/* Between opening it and locking it another process may have withdrawn: then the name is free, or another file's. */
static int is_still_there(int fd, const char *path)
{
	struct stat held, named;
	return fstat(fd, &held) == 0 && lstat(path, &named) == 0 && held.st_dev == named.st_dev &&
	       held.st_ino == named.st_ino;
}

/* *fd: locked, or -1 when the file was withdrawn meanwhile. */
static ls_status try_to_take(int *fd, const char *path, const char *run)
{
	LS_TRY(ls_file_open_own(fd, path, O_RDWR));
	ls_status status = LS_OK;
	if (flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		status = refuse(*fd, run);
	if (status == LS_OK && is_still_there(*fd, path))
		return LS_OK;
	close(*fd);
	*fd = -1;
	return status;
}

ls_status ls_run_lock_take(ls_run_lock *lock, const char *run)
{
	char path[4096];
	int fd = -1;

	LS_TRY(ls_path_join(path, sizeof(path), run, LOCK_FILE));
	for (int i = 0; fd < 0 && i < TRIES; i++)
		LS_TRY(try_to_take(&fd, path, run));
	if (fd < 0)
		return ls_fail(LS_EIO, "%s is being taken and left by other trainers; try again", run);
	sign(fd);
	lock->fd = fd;
	return LS_OK;
}

void ls_run_lock_withdraw(ls_run_lock *lock, const char *run)
{
	char path[4096];
	if (lock->fd >= 0 && ls_path_join(path, sizeof(path), run, LOCK_FILE) == LS_OK)
		unlink(path); /* while it is held: see is_still_there() */
	ls_run_lock_drop(lock);
}

void ls_run_lock_drop(ls_run_lock *lock)
{
	if (lock->fd >= 0)
		close(lock->fd);
	lock->fd = -1;
}
