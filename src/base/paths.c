/*
 * paths.c - names in the file system.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

ls_status ls_path_join(char *out, size_t size, const char *directory, const char *name)
{
	size_t length = strlen(directory);
	const char *slash = length && directory[length - 1] != '/' ? "/" : "";
	int wanted = snprintf(out, size, "%s%s%s", directory, slash, name);
	if (wanted < 0 || (size_t)wanted >= size)
		return ls_fail(LS_EINVALID, "path is too long: %.100s.../%.100s", directory, name);
	return LS_OK;
}

ls_status ls_path_absolute(char *out, size_t size, const char *path)
{
	char here[4096];
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	if (path[0] == '/')
		return ls_path_join(out, size, "", path);
	if (!getcwd(here, sizeof(here)))
		return ls_fail_errno(LS_EIO, "cannot find out the working directory");
	return ls_path_join(out, size, here, strcmp(path, ".") == 0 ? "" : path);
}

ls_status ls_path_program(char *out, size_t size, const char *given)
{
	if (given)
		return ls_path_join(out, size, "", given);
	ssize_t length = readlink("/proc/self/exe", out, size); /* no NUL at its end */
	if (length < 0)
		return ls_fail_errno(LS_EIO, "cannot find this program's own path (/proc/self/exe)");
	if ((size_t)length >= size)
		return ls_fail(LS_EIO,
			       "this program's own path has %zu characters or more, and %zu at most can be used", size,
			       size - 1);
	out[length] = '\0';
	return LS_OK;
}

/* Make `part`, which is `whole` or a parent of it. */
static ls_status make_one(const char *part, const char *whole)
{
	if (mkdir(part, 0777) == 0 || (errno == EEXIST && ls_path_is_directory(part)))
		return LS_OK;
	if (errno == EEXIST || errno == ENOTDIR)
		return ls_fail(LS_EIO, "cannot make directory %s: %s is not a directory", whole, part);
	return ls_fail_errno(LS_EIO, "cannot make directory %s", whole);
}

ls_status ls_path_make(const char *directory)
{
	char path[4096];
	int length = snprintf(path, sizeof(path), "%s", directory);
	if (length <= 0 || (size_t)length >= sizeof(path))
		return ls_fail(LS_EINVALID, "cannot make a directory called '%.100s'", directory);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		LS_TRY(make_one(path, directory));
		*slash = '/';
	}
	return make_one(path, directory);
}

int ls_path_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void strip_slashes(char *path)
{
	for (size_t length = strlen(path); length > 1 && path[length - 1] == '/'; length--)
		path[length - 1] = '\0';
}

int ls_path_find_above(char *out, size_t size, const char *path, const char *name)
{
	enum { LEVELS = 4 };
	char file[4096];
	if ((size_t)snprintf(out, size, "%s", path) >= size)
		return 0;
	for (int i = 0; i < LEVELS; i++) {
		strip_slashes(out);
		if (ls_path_is_directory(out) && ls_path_join(file, sizeof(file), out, name) == LS_OK &&
		    ls_path_exists(file))
			return 1;
		char *slash = strrchr(out, '/');
		const char *last = slash ? slash + 1 : out;
		if (slash == out || strcmp(out, ".") == 0 || strcmp(last, "..") == 0) /* above ".." is not before it */
			break;
		if (slash)
			*slash = '\0';
		else
			snprintf(out, size, ".");
	}
	return 0;
}

int ls_path_is_directory(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

ls_status ls_path_sync(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return ls_fail_errno(LS_EIO, "cannot open directory %s", directory);
	ls_status status = LS_OK;
	if (fsync(fd) != 0 && errno != EINVAL) /* EINVAL: a file system that has nothing to sync */
		status = ls_fail_errno(LS_EIO, "cannot sync directory %s", directory);
	close(fd);
	return status;
}

enum { ASIDE_MAX = 1000 };

ls_status ls_path_set_aside(const char *path, char *out, size_t size)
{
	char name[4096], number[16] = "";
	struct stat facts;
	for (int i = 2; i <= ASIDE_MAX; i++) {
		int length = snprintf(name, sizeof(name), "%s.aside%s", path, number);
		if (length < 0 || (size_t)length >= sizeof(name) || (size_t)length >= size)
			return ls_fail(LS_EINVALID, "path is too long: %.100s...", path);
		if (lstat(name, &facts) != 0 && errno == ENOENT) {
			if (rename(path, name) != 0)
				return ls_fail_errno(LS_EIO, "cannot rename %s to %s", path, name);
			snprintf(out, size, "%s", name);
			return LS_OK;
		}
		snprintf(number, sizeof(number), "-%d", i);
	}
	return ls_fail(LS_EIO, "cannot set %s aside: there are %d others already; remove some", path, ASIDE_MAX - 1);
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
	(void)facts, (void)kind, (void)where;
	return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

ls_status ls_path_remove_tree(const char *path)
{
	if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
		return ls_fail_errno(LS_EIO, "cannot remove %s", path);
	return LS_OK;
}
