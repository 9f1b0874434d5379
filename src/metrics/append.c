/*
 * append.c - see append.h.
 */
#include "metrics/append.h"

#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

#include "base/files.h"

ls_status ls_append_open(ls_append *file, const char *path, int flags)
{
	int length = snprintf(file->path, sizeof(file->path), "%s", path);
	if (length < 0 || (size_t)length >= sizeof(file->path))
		return ls_fail(LS_EINVALID, "path is too long: %.100s...", path);
	int fd = -1;
	LS_TRY(ls_file_open_own(&fd, path, O_WRONLY | O_APPEND | flags));
	file->stream = fdopen(fd, "a");
	if (!file->stream) {
		close(fd);
		return ls_fail(LS_EMEMORY, "no memory to write %s", path);
	}
	setvbuf(file->stream, file->buffer, _IOFBF, sizeof(file->buffer));
	file->whole = lseek(fd, 0, SEEK_END);
	return LS_OK;
}

ls_status ls_append_commit(ls_append *file)
{
	int fd = fileno(file->stream);
	if (fflush(file->stream) == 0 && !ferror(file->stream)) {
		file->whole = lseek(fd, 0, SEEK_END);
		return LS_OK;
	}
	ls_status status = ls_fail_errno(LS_EIO, "cannot write %s", file->path);
	__fpurge(file->stream);
	clearerr(file->stream);
	if (ftruncate(fd, file->whole) != 0)
		return ls_fail_errno(LS_EIO, "cannot write %s, nor cut it back to its last whole record", file->path);
	return status;
}

int ls_append_share(const ls_append *file)
{
	return fcntl(fileno(file->stream), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

void ls_append_close(ls_append *file)
{
	if (file->stream)
		fclose(file->stream);
	file->stream = NULL;
}
