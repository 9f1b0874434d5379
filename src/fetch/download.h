/*
 * download.h - download one file over HTTP, continuing an earlier attempt.
 */
#ifndef LS_FETCH_DOWNLOAD_H
#define LS_FETCH_DOWNLOAD_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_download_options {
	const char *url;
	const char *part;  /* file that the bytes are appended to; its present bytes are not fetched again */
	const char *title; /* of the progress bar */
	uint64_t limit;    /* most bytes the file may have */
	long connect_s;    /* give up connecting after N seconds; 0: 5 */
	long stall_s;      /* give up after N seconds with (nearly) no data; 0: 20 */
	int quiet;
} ls_download_options;

/* On success `part` is complete, or was already as long as the server's file. On failure it keeps the bytes received.
 */
ls_status ls_download(const ls_download_options *options);

/* Its transfer with libcurl: append to `fd`, the open part, which has `have` bytes. */
ls_status ls_download_curl(const ls_download_options *options, int fd, uint64_t have);

#endif
