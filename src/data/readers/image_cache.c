#include "data/readers/image_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/files.h"

/* The first bytes of the file; records follow at RECORDS. */
typedef struct header {
	char magic[32];
	uint64_t key, images, bytes;
} header;

#define MAGIC "lockstep image cache 1\n"
enum { RECORDS = 4096 };

struct ls_image_cache {
	int fd;
	ls_image_cache_options o; /* path: NULL */
};

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static header header_of(const ls_image_cache_options *o)
{
	header h = { .magic = MAGIC, .key = o->key, .images = o->images, .bytes = o->bytes };
	return h;
}

static off_t record_at(const ls_image_cache_options *o, uint64_t index)
{
	return (off_t)(RECORDS + index * (sizeof(uint64_t) + o->bytes));
}

/* Half of what is free stays free. */
static ls_status check_room(const ls_image_cache_options *o)
{
	char folder[4096];
	struct statvfs disk;
	double need = (double)record_at(o, o->images);

	snprintf(folder, sizeof(folder), "%s", o->path);
	char *slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	if (statvfs(slash ? folder : ".", &disk) != 0)
		return ls_fail_errno(LS_EIO, "cannot write to %s", folder);
	double room = (double)disk.f_bavail * (double)disk.f_frsize;
	return need <= room / 2 ? LS_OK
				: ls_fail(LS_EIO, "decoded images take %.1f GB, and %s has %.1f GB free", need / 1e9,
					  folder, room / 1e9);
}

/* An empty cache, in a file of its own: processes that use an older one keep theirs. */
static ls_status create(const ls_image_cache_options *o, int *fd)
{
	header h = header_of(o);
	char draft[4096];

	LS_TRY(check_room(o));
	snprintf(draft, sizeof(draft), "%s.part", o->path);
	LS_TRY(ls_file_open_own(fd, draft, O_RDWR | O_TRUNC));
	int good = pwrite(*fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) && ftruncate(*fd, record_at(o, o->images)) == 0;
	if (good && rename(draft, o->path) == 0)
		return LS_OK;
	ls_status status = ls_fail_errno(LS_EIO, "cannot write %s", o->path);
	unlink(draft);
	close(*fd);
	return status;
}

static int is_same(int fd, const ls_image_cache_options *o)
{
	header h, wanted = header_of(o);
	return pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) && memcmp(&h, &wanted, sizeof(h)) == 0;
}

/* The one that is there, if it is of the same images, else a new one. */
static ls_status open_file(const ls_image_cache_options *o, int *fd)
{
	if (ls_path_exists(o->path)) {
		LS_TRY(ls_file_open_own(fd, o->path, O_RDWR));
		if (is_same(*fd, o))
			return LS_OK;
		close(*fd);
	}
	return create(o, fd);
}

/* One process at a time, so that all find the same file. */
static ls_status open_alone(const ls_image_cache_options *o, int *fd)
{
	char path[4096];
	int lock;

	if ((size_t)snprintf(path, sizeof(path), "%s.lock", o->path) >= sizeof(path))
		return ls_fail(LS_EINVALID, "the name of the image cache is too long");
	LS_TRY(ls_file_open_own(&lock, path, O_RDWR));
	ls_status status = flock(lock, LOCK_EX) == 0 ? open_file(o, fd) : ls_fail_errno(LS_EIO, "cannot lock %s", path);
	close(lock);
	return status;
}

ls_status ls_image_cache_open(ls_image_cache **out, const ls_image_cache_options *options)
{
	ls_image_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return ls_fail(LS_EMEMORY, "no memory for an image cache");
	c->o = *options;
	ls_status status = open_alone(options, &c->fd);
	if (status != LS_OK) {
		free(c);
		return status;
	}
	c->o.path = NULL;
	*out = c;
	return LS_OK;
}

void ls_image_cache_close(ls_image_cache *c)
{
	if (!c)
		return;
	close(c->fd);
	free(c);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static uint64_t sum_of(const ls_image_cache *c, uint64_t index, const uint8_t *bytes)
{
	uint64_t sum = XXH64(bytes, c->o.bytes, c->o.key ^ index);
	return sum != 0 ? sum : 1; /* 0: a hole of the file */
}

int ls_image_cache_get(const ls_image_cache *c, uint64_t index, uint8_t *bytes)
{
	uint64_t sum = 0;
	struct iovec parts[] = { { &sum, sizeof(sum) }, { bytes, c->o.bytes } };
	ssize_t got = preadv(c->fd, parts, 2, record_at(&c->o, index));

	return got == (ssize_t)(sizeof(sum) + c->o.bytes) && sum == sum_of(c, index, bytes);
}

void ls_image_cache_put(const ls_image_cache *c, uint64_t index, const uint8_t *bytes)
{
	uint64_t sum = sum_of(c, index, bytes);
	struct iovec parts[] = { { &sum, sizeof(sum) }, { (void *)bytes, c->o.bytes } };

	if (pwritev(c->fd, parts, 2, record_at(&c->o, index)) < 0)
		return; /* absent then */
}
