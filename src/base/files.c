/*
 * files.c - drafts and maps.
 *
 * Invariants of a draft
 *  1. It lives beside its final name as "<path>.draft", so the rename stays inside one file system.
 *  2. It is locked while it is written: a second writer is refused, and what a killed one left behind is overwritten.
 *  3. The rename happens after its bytes are on disk, and publish returns after the rename is.
 */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The lock belongs to the inode: after a rename the name may belong to another one, so look again. */
static int same_file(int fd, const char *path)
{
	struct stat opened, named;
	return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_dev == named.st_dev &&
	       opened.st_ino == named.st_ino;
}

static ls_status open_locked(const ls_file_draft *draft, int *out)
{
	for (;;) {
		int fd = open(draft->draft, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0)
			return ls_fail_errno(LS_EIO, "cannot create %s", draft->path);
		if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
			close(fd);
			return ls_fail(LS_EIO, "%s is being written by another process; stop that one first",
				       draft->path);
		} /* other failures: a file system without locks */
		if (same_file(fd, draft->draft)) {
			*out = fd;
			return LS_OK;
		}
		close(fd);
	}
}

ls_status ls_file_begin(ls_file_draft *draft, const char *path)
{
	draft->stream = NULL;
	int length = snprintf(draft->path, sizeof draft->path, "%s", path);
	int draft_length = snprintf(draft->draft, sizeof draft->draft, "%s.draft", path);
	if (length < 0 || draft_length < 0 || (size_t)draft_length >= sizeof draft->draft)
		return ls_fail(LS_EINVALID, "path is too long: %.100s...", path);
	int fd = -1;
	LS_TRY(open_locked(draft, &fd));
	if (ftruncate(fd, 0) != 0 || !(draft->stream = fdopen(fd, "wb"))) {
		ls_fail_errno(LS_EIO, "cannot write %s", draft->path);
		unlink(draft->draft);
		close(fd);
		return LS_EIO;
	}
	return LS_OK;
}

ls_status ls_file_write(ls_file_draft *draft, const void *data, size_t bytes)
{
	if (bytes && fwrite(data, 1, bytes, draft->stream) != bytes)
		return ls_fail_errno(LS_EIO, "cannot write %s", draft->path);
	return LS_OK;
}

static ls_status sync_parent(const char *path)
{
	char directory[4096];
	snprintf(directory, sizeof directory, "%s", path);
	char *slash = strrchr(directory, '/');
	if (!slash)
		return ls_path_sync(".");
	slash[slash == directory] = '\0'; /* "/file" lies in "/" */
	return ls_path_sync(directory);
}

/* The rename comes before the close: the lock lasts until the name is the final one. */
ls_status ls_file_publish(ls_file_draft *draft)
{
	FILE *stream = draft->stream;
	errno = EIO; /* for an earlier write error that the stream remembers */
	if (ferror(stream) || fflush(stream) != 0 || fsync(fileno(stream)) != 0) {
		ls_fail_errno(LS_EIO, "cannot write %s, which is left as it was", draft->path);
		ls_file_abandon(draft);
		return LS_EIO;
	}
	if (rename(draft->draft, draft->path) != 0) {
		ls_fail_errno(LS_EIO, "cannot rename %s to %s", draft->draft, draft->path);
		ls_file_abandon(draft);
		return LS_EIO;
	}
	draft->stream = NULL;
	if (fclose(stream) != 0)
		return ls_fail_errno(LS_EIO, "cannot close %s", draft->path);
	return sync_parent(draft->path);
}

void ls_file_abandon(ls_file_draft *draft)
{
	if (!draft->stream)
		return;
	unlink(draft->draft);
	fclose(draft->stream);
	draft->stream = NULL;
}

ls_status ls_file_finish(ls_file_draft *draft, ls_status status)
{
	if (status == LS_OK)
		return ls_file_publish(draft);
	ls_file_abandon(draft);
	return status;
}

ls_status ls_file_put(const char *path, const void *data, size_t bytes)
{
	ls_file_draft draft;
	LS_TRY(ls_file_begin(&draft, path));
	return ls_file_finish(&draft, ls_file_write(&draft, data, bytes));
}

ls_status ls_file_put_text(const char *path, const char *text)
{
	ls_file_draft draft;
	LS_TRY(ls_file_begin(&draft, path));
	ls_status status = ls_file_write(&draft, text, strlen(text));
	if (status == LS_OK)
		status = ls_file_write(&draft, "\n", 1);
	return ls_file_finish(&draft, status);
}

static ls_status map_descriptor(ls_file_map *map, int fd, const char *path)
{
	struct stat facts;
	if (fstat(fd, &facts) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", path);
	if (!S_ISREG(facts.st_mode))
		return ls_fail(LS_EIO, "%s is not a regular file", path);
	if (facts.st_size == 0) {
		*map = (ls_file_map){ 0 };
		return LS_OK;
	}
	void *data = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return ls_fail_errno(LS_EIO, "cannot map %s", path);
	*map = (ls_file_map){ data, (size_t)facts.st_size };
	return LS_OK;
}

ls_status ls_file_map_open(ls_file_map *map, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not keep us waiting */
	if (fd < 0)
		return ls_fail_errno(errno == ENOENT ? LS_ENOTFOUND : LS_EIO, "cannot open %s", path);
	ls_status status = map_descriptor(map, fd, path);
	close(fd);
	return status;
}

void ls_file_map_close(ls_file_map *map)
{
	if (map->data)
		munmap((void *)(uintptr_t)map->data, map->bytes);
	*map = (ls_file_map){ 0 };
}
