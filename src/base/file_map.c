/*
 * file_map.c - files mapped read-only.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

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
