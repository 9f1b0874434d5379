/*
 * file_target.c - where the name of a file that is to be written leads: what is there already, and may it be replaced
 * or written to.
 */
#include "base/file_target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *kind_name(mode_t mode)
{
	return S_ISDIR(mode)    ? "a directory"
	       : S_ISBLK(mode)  ? "a block device"
	       : S_ISSOCK(mode) ? "a socket"
	       : S_ISFIFO(mode) ? "a pipe"
	       : S_ISCHR(mode)  ? "a device"
	       : S_ISLNK(mode)  ? "a symbolic link"
				: "not a regular file";
}

ls_status ls_path_parent(char directory[4096], const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) + (slash == path) : 1; /* "/file" lies in "/" */
	if (length >= 4096)
		return ls_fail(LS_EINVALID, "path is too long: %.100s...", path);
	memcpy(directory, slash ? path : ".", length);
	directory[length] = '\0';
	return LS_OK;
}

/* In a directory like /tmp anybody may put a link or a pipe where our file is expected. The rule is that of Linux's
 * fs.protected_symlinks, which not every system sets: such a thing is used only when it is ours or the directory's
 * owner's. */
static ls_status check_planted(const char *path, const struct stat *there)
{
	char directory[4096];
	struct stat around;
	LS_TRY(ls_path_parent(directory, path));
	if (stat(directory, &around) != 0)
		return ls_fail_errno(LS_EIO, "cannot write %s", path);
	if (!(around.st_mode & S_ISVTX) || !(around.st_mode & S_IWOTH) || there->st_uid == geteuid() ||
	    there->st_uid == around.st_uid)
		return LS_OK;
	return ls_fail(LS_EINVALID, "cannot write %s: it is %s that another user put there", path,
		       kind_name(there->st_mode));
}

static ls_status refuse_kind(const char *path, mode_t mode)
{
	return ls_fail(LS_EINVALID, "cannot write %s: it is %s, not a file", path, kind_name(mode));
}

int ls_file_is_output(const struct stat *there)
{
	struct stat output;
	return fstat(STDOUT_FILENO, &output) == 0 && output.st_dev == there->st_dev && output.st_ino == there->st_ino;
}

ls_status ls_file_target(char out[4096], int *direct, const char *path)
{
	struct stat there;
	*direct = 0;
	int length = snprintf(out, 4096, "%s", path);
	if (length < 0 || length >= 4096)
		return ls_fail(LS_EINVALID, "path is too long: %.100s...", path);
	if (lstat(path, &there) != 0)
		return errno == ENOENT ? LS_OK : ls_fail_errno(LS_EIO, "cannot write %s", path);
	int linked = S_ISLNK(there.st_mode);
	if (linked || S_ISFIFO(there.st_mode))
		LS_TRY(check_planted(path, &there));
	if (linked && stat(path, &there) != 0)
		return errno == ENOENT ? ls_fail(LS_EIO, "cannot write %s: it is a symbolic link to nothing", path)
				       : ls_fail_errno(LS_EIO, "cannot write %s", path);
	*direct = S_ISCHR(there.st_mode) || S_ISFIFO(there.st_mode) || ls_file_is_output(&there);
	if (*direct)
		return LS_OK;
	if (!S_ISREG(there.st_mode))
		return refuse_kind(path, there.st_mode);
	char resolved[PATH_MAX];
	if (linked && (!realpath(path, resolved) || snprintf(out, 4096, "%s", resolved) >= 4096))
		return ls_fail_errno(LS_EIO, "cannot find where %s leads", path);
	return LS_OK;
}

/* Somebody may have put something else there while the draft was written. */
static ls_status check_replaced(const char *path)
{
	struct stat there;
	if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode))
		return refuse_kind(path, there.st_mode);
	return LS_OK;
}

ls_status ls_file_rename(const char *from, const char *to)
{
	LS_TRY(check_replaced(to));
	if (rename(from, to) != 0)
		return ls_fail_errno(LS_EIO, "cannot rename %s to %s", from, to);
	return LS_OK;
}

ls_status ls_file_open_own(int *out, const char *path, int flags)
{
	struct stat facts;
	int fd = open(path, flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
	if (fd < 0 && (errno == ELOOP || errno == ENXIO)) /* ENXIO: a pipe that nobody reads */
		return refuse_kind(path, errno == ELOOP ? S_IFLNK : S_IFIFO);
	if (fd < 0) {
		int cause = errno;
		ls_fail_errno(LS_EIO, "cannot write %s", path);
		errno = cause;
		return LS_EIO;
	}
	if (fstat(fd, &facts) != 0) {
		ls_fail_errno(LS_EIO, "cannot write %s", path);
		close(fd);
		return LS_EIO;
	}
	if (!S_ISREG(facts.st_mode)) {
		close(fd);
		return refuse_kind(path, facts.st_mode);
	}
	*out = fd;
	return LS_OK;
}
