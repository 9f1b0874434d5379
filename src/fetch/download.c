/*
 * download.c - download to a part file, continuing where an earlier download stopped. The bytes come from libcurl, or
 * from what the program gave to ls_set_downloader().
 */
#include "fetch/download.h"

#include <errno.h>
#include <fcntl.h>
#include <lockstep/data.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

static struct {
	ls_downloader download; /* NULL: libcurl */
	void *context;
} program;

void ls_set_downloader(ls_downloader download, void *context)
{
	program.download = download;
	program.context = context;
}

/* Open the part for appending, ours alone. */
static ls_status part_open(const char *path, int *out, uint64_t *have)
{
	struct stat facts;
	int fd = -1;
	LS_TRY(ls_file_open_own(&fd, path, O_RDWR | O_APPEND));
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		close(fd);
		return ls_fail(LS_EIO, "%s is being downloaded by another process", path);
	}
	if (fstat(fd, &facts) != 0) {
		ls_fail_errno(LS_EIO, "cannot open %s", path);
		close(fd);
		return LS_EIO;
	}
	*out = fd;
	*have = (uint64_t)facts.st_size;
	return LS_OK;
}

static ls_status download_program(const ls_download_options *options, int fd, uint64_t have)
{
	ls_status status = program.download(program.context, options->url, options->part, have, options->limit);
	struct stat facts;

	if (status)
		return ls_fail(status, "%s could not be downloaded", options->url);
	if (fstat(fd, &facts) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", options->part);
	if ((uint64_t)facts.st_size > options->limit)
		return ls_fail(LS_EFORMAT, "%s is larger than the %llu bytes it may have", options->url,
			       (unsigned long long)options->limit);
	return LS_OK;
}

static ls_status transfer(const ls_download_options *options, int fd, uint64_t have)
{
	if (program.download)
		return download_program(options, fd, have);
#ifdef LS_HAVE_CURL
	return ls_download_curl(options, fd, have);
#else
	return ls_fail(LS_EUNSUPPORTED,
		       "%s: this build cannot download; get the files yourself and give their directory (options.from)",
		       options->url);
#endif
}

ls_status ls_download(const ls_download_options *options)
{
	struct stat facts;
	uint64_t have = 0;
	int fd = -1;

	LS_TRY(part_open(options->part, &fd, &have));
	ls_status status = transfer(options, fd, have);
	if (fstat(fd, &facts) == 0 && facts.st_size == 0)
		unlink(options->part); /* nothing received: leave no empty file */
	if (close(fd) != 0 && !status)
		status = ls_fail_errno(LS_EIO, "cannot write %s", options->part);
	return status;
}
