/*
 * download.h - one file over HTTP, continued where an earlier attempt stopped.
 */
#ifndef LS_FETCH_DOWNLOAD_H
#define LS_FETCH_DOWNLOAD_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_download_options {
	const char *url;
	const char *part;  /* file the bytes are appended to; what is there is not fetched again */
	const char *title; /* of the progress bar */
	uint64_t limit;    /* most bytes the file may have */
	long connect_s;    /* give up connecting after so many seconds; 0: 5 */
	long stall_s;      /* give up when (nearly) nothing came for so many seconds; 0: 20 */
	int quiet;
} ls_download_options;

/* On success there is nothing more to fetch: `part` is the file, or what was there before was as long already. On
 * failure it keeps what came. */
ls_status ls_download(const ls_download_options *options);

#endif
