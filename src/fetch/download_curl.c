/*
 * download_curl.c - the transfer of a download with libcurl.
 */
#ifdef LS_HAVE_CURL
#include "fetch/download.h"

#include <curl/curl.h>
#include <errno.h>
#include <lockstep/version.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/progress_bar.h"

typedef struct fetch {
	const ls_download_options *options;
	CURL *curl;
	FILE *file;
	uint64_t have; /* bytes in the part */
	int too_large, write_errno;
	ls_progress_bar meter;
	char message[CURL_ERROR_SIZE];
} fetch;

static void curl_start(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t on_bytes(char *data, size_t size, size_t count, void *context)
{
	fetch *f = context;
	size_t bytes = size * count;
	f->too_large = f->have + bytes > f->options->limit;
	if (f->too_large)
		return 0;
	if (fwrite(data, 1, bytes, f->file) != bytes) {
		f->write_errno = errno;
		return 0;
	}
	f->have += bytes;
	return bytes;
}

static int on_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
	fetch *f = context;
	(void)up_total;
	(void)up_now;
	(void)now;
	f->meter.total = total > 0 ? f->meter.first + (uint64_t)total : 0;
	ls_progress_bar_update(&f->meter, f->have);
	return 0;
}

static void set_options(fetch *f)
{
	const ls_download_options *o = f->options;
	CURL *curl = f->curl;
	curl_easy_setopt(curl, CURLOPT_URL, o->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
	curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "lockstep/" LS_VERSION_STRING);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, o->connect_s ? o->connect_s : 5L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 100L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, o->stall_s ? o->stall_s : 20L);
	curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)f->have);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, f);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, f->message);
}

static ls_status fetch_failed(const fetch *f, CURLcode code)
{
	const char *url = f->options->url;
	if (f->too_large)
		return ls_fail(LS_EFORMAT, "%s is larger than the %llu bytes it may have", url,
			       (unsigned long long)f->options->limit);
	if (f->write_errno) {
		errno = f->write_errno;
		return ls_fail_errno(LS_EIO, "cannot write %s", f->options->part);
	}
	return ls_fail(LS_EIO, "%s: %s", url, f->message[0] ? f->message : curl_easy_strerror(code));
}

/* The server does not know ranges. (A part as long as the server's file, or longer, ends well here; whether it is
 * the right file is for the caller to find out.) */
static int must_restart(const fetch *f, CURLcode code)
{
	return f->meter.first > 0 && code == CURLE_RANGE_ERROR;
}

static CURLcode perform(fetch *f)
{
	set_options(f);
	ls_progress_bar_begin(&f->meter, f->options->title, "MB", 1e6, f->have, 0, f->options->quiet);
	CURLcode code = curl_easy_perform(f->curl);
	ls_progress_bar_end(&f->meter);
	return code;
}

static ls_status transfer(fetch *f)
{
	CURLcode code = perform(f);
	if (code != CURLE_OK && must_restart(f, code)) {
		if (fflush(f->file) != 0 || ftruncate(fileno(f->file), 0) != 0)
			return ls_fail_errno(LS_EIO, "cannot empty %s", f->options->part);
		f->have = 0;
		code = perform(f);
	}
	return code == CURLE_OK ? LS_OK : fetch_failed(f, code);
}

ls_status ls_download_curl(const ls_download_options *options, int fd, uint64_t have)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, curl_start);
	fetch f = { .options = options, .have = have };
	f.curl = curl_easy_init();
	if (!f.curl)
		return ls_fail(LS_EMEMORY, "no memory to download %s", options->url);
	int own = dup(fd);
	if (own < 0 || !(f.file = fdopen(own, "ab"))) {
		ls_fail_errno(LS_EIO, "cannot open %s", options->part);
		if (own >= 0)
			close(own);
		curl_easy_cleanup(f.curl);
		return LS_EIO;
	}
	ls_status status = transfer(&f);
	if (fclose(f.file) != 0 && !status)
		status = ls_fail_errno(LS_EIO, "cannot write %s", options->part);
	curl_easy_cleanup(f.curl);
	return status;
}
#else
typedef int ls_no_curl; /* a file of C needs a declaration */
#endif
