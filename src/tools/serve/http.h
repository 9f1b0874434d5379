/*
 * http.h - the HTTP side of a server, on libmicrohttpd: connections, paths, the token, limits.
 *
 * A few threads read requests and write answers. A request whose body is complete becomes a job of the batcher, and its
 * connection sleeps until the job is done, so no thread waits for a prediction.
 */
#ifndef LS_TOOLS_SERVE_HTTP_H
#define LS_TOOLS_SERVE_HTTP_H

#include "tools/serve/call.h"
#include "tools/serve/counters.h"
#include "tools/serve/listen.h"

typedef struct ls_http ls_http;

typedef struct ls_http_options {
	ls_listener listener; /* its socket is the server's from now on */
	const char *token;    /* NULL: none is asked for */
	ls_call_context call;
	ls_request_shape shape; /* of what the model takes */
	ls_batcher *batcher;
	ls_counters *counters;
	int64_t max_body, max_connections;
	double timeout;
} ls_http_options;

/* LS_EUNSUPPORTED in builds without libmicrohttpd. */
ls_status ls_http_check(void);

ls_status ls_http_start(ls_http **out, const ls_http_options *options);

/* Close connections that took too long to complete a request; call it several times per second. */
void ls_http_tick(ls_http *http);

/* From now on new requests are refused. Those that have begun may be completed. */
void ls_http_refuse(ls_http *http);
/* Requests that have begun and are not answered. */
int64_t ls_http_active(ls_http *http);

/* Close what is left. The batcher must have ended: nobody waits for it. Harmless on NULL. */
void ls_http_stop(ls_http *http);

#endif
