#include "run/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "checkpoint/generation.h"

#define LOCK_FILE ".lock"
#define TRIES 10

static ls_status refuse(int fd, const char *run)
{
	char text[32] = "";
	ssize_t length = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : 0;
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

/* flags: AT_SYMLINK_NOFOLLOW, or 0 to follow links. */
static int is_name_of(int fd, const char *path, int flags)
{
	struct stat held, named;
	return fstat(fd, &held) == 0 && fstatat(AT_FDCWD, path, &named, flags) == 0 && held.st_dev == named.st_dev &&
	       held.st_ino == named.st_ino;
}

/* Its file names the process, unless it is gone. */
static ls_status refuse_directory(const char *run, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ls_status status = refuse(fd, run);
	if (fd >= 0)
		close(fd);
	return status;
}

static ls_status lock_directory(int *out, const char *run, const char *path)
{
	int fd = open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return ls_fail_errno(LS_EIO, "cannot open the run directory %s", run);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		close(fd);
		return refuse_directory(run, path);
	}
	*out = fd;
	return LS_OK;
}

/* *fd: locked, or -1: between opening it and locking it another process has withdrawn, and the name is free or another
 * file's. */
static ls_status try_to_take(int *fd, const char *path, const char *run)
{
	LS_TRY(ls_file_open_own(fd, path, O_RDWR));
	ls_status status = LS_OK;
	if (flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		status = refuse(*fd, run);
	if (status == LS_OK && is_name_of(*fd, path, AT_SYMLINK_NOFOLLOW))
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
	LS_TRY(lock_directory(&lock->directory, run, path));
	ls_status status = LS_OK;
	for (int i = 0; status == LS_OK && fd < 0 && i < TRIES; i++)
		status = try_to_take(&fd, path, run);
	if (status == LS_OK && fd < 0)
		status = ls_fail(LS_EIO, "other trainers keep locking and releasing %s; try again", run);
	if (status != LS_OK) {
		ls_run_lock_drop(lock);
		return status;
	}
	sign(fd);
	lock->fd = fd;
	return LS_OK;
}

/* Only a clear answer counts: a file server that does not answer for a moment has not removed anything. */
static int is_elsewhere(int directory, const char *run)
{
	struct stat named;
	if (is_name_of(directory, run, 0))
		return 0;
	return fstatat(AT_FDCWD, run, &named, 0) == 0 || errno == ENOENT || errno == ENOTDIR;
}

ls_run_where ls_run_lock_where(const ls_run_lock *lock, const char *run, char *out, size_t size)
{
	char link[64];

	out[0] = '\0';
	if (lock->directory < 0)
		return LS_RUN_THERE;
	if (!is_elsewhere(lock->directory, run))
		return lock->generation > 0 && ls_generation_newest(run) > lock->generation ? LS_RUN_TAKEN
											    : LS_RUN_THERE;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", lock->directory);
	ssize_t length = readlink(link, out, size - 1);
	out[length > 0 ? length : 0] = '\0';
	if (length > 0 && is_name_of(lock->directory, out, 0))
		return LS_RUN_MOVED;
	out[0] = '\0'; /* the kernel adds " (deleted)" */
	return LS_RUN_REMOVED;
}

void ls_run_lock_withdraw(ls_run_lock *lock, const char *run)
{
	char path[4096];
	if (lock->fd >= 0 && ls_path_join(path, sizeof(path), run, LOCK_FILE) == LS_OK)
		unlink(path); /* while it is held: see try_to_take() */
	ls_run_lock_drop(lock);
}

void ls_run_lock_drop(ls_run_lock *lock)
{
	if (lock->fd >= 0)
		close(lock->fd);
	if (lock->directory >= 0)
		close(lock->directory);
	lock->fd = lock->directory = -1;
}
