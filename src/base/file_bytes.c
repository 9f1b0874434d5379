/*
 * file_bytes.c - all bytes that are asked for, at their place in an open file: pread() and pwrite() may stop early.
 */
#include <errno.h>
#include <unistd.h>

#include "base/files.h"

size_t ls_file_read_at(int fd, void *out, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	errno = 0;
	while (done < bytes) {
		ssize_t part = pread(fd, (char *)out + done, bytes - done, (off_t)(offset + done));
		if (part < 0 && errno == EINTR) {
			errno = 0;
			continue;
		}
		if (part <= 0)
			break;
		done += (size_t)part;
	}
	return done;
}

int ls_file_write_at(int fd, const void *data, size_t bytes, uint64_t offset)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t part = pwrite(fd, (const char *)data + done, bytes - done, (off_t)(offset + done));
		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			return -1;
		done += (size_t)part;
	}
	return 0;
}
