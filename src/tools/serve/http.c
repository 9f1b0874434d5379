#include "tools/serve/http.h"

#include "base/status.h"

#ifdef LS_HAVE_HTTPD
#include <math.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/pin.h"
#include "tools/serve/answer.h"
#include "tools/serve/connections.h"
#include "tools/serve/head.h"
#include "tools/serve/host.h"

#ifndef MHD_HTTP_CONTENT_TOO_LARGE /* before 0.9.74 */
#define MHD_HTTP_CONTENT_TOO_LARGE 413
#endif
#ifndef MHD_HTTP_MISDIRECTED_REQUEST /* before 0.9.53 */
#define MHD_HTTP_MISDIRECTED_REQUEST 421
#endif
#ifndef MHD_HTTP_UNPROCESSABLE_CONTENT /* before 0.9.74 */
#define MHD_HTTP_UNPROCESSABLE_CONTENT 422
#endif

enum { THREADS_MIN = 2, THREADS_MAX = 4, SPARE_CONNECTIONS = 64 };
#define DISCARD_MAX ((int64_t)64 << 20) /* of a body that nobody wants: read, so that the client gets to see why */

struct ls_http {
	ls_http_options options;
	struct MHD_Daemon *daemon;
	atomic_int is_refusing;
	atomic_llong active;
	ls_connections connections;
};

typedef struct route route;

/* A request, from its first line to its answer. */
typedef struct http_request {
	ls_call call; /* first: the batcher's job */
	ls_http *http;
	struct MHD_Connection *connection;
	const route *route;
	unsigned code; /* of the answer; 0: not known yet */
	char *answer;
	const char *kind; /* of the answer */
	int is_waiting;   /* for the batcher */
	int closes;
	double complete; /* when the body was */
	uint8_t *body;
	size_t size, room;
	int64_t held; /* of the budget, for the body */
} http_request;

static void set_answer(http_request *r, unsigned code, char *text, const char *kind)
{
	free(r->answer);
	r->code = text ? code : MHD_HTTP_INTERNAL_SERVER_ERROR;
	r->answer = text;
	r->kind = kind;
}

static void refuse(http_request *r, unsigned code, const char *message)
{
	set_answer(r, code, ls_answer_error(message), "application/json");
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

struct route {
	const char *path, *method;
	int is_open;                     /* without the token, too */
	void (*answer)(http_request *r); /* when the request is complete; sets an answer, or waits for one */
};

static ls_connection *connection_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

static void answer_health(http_request *r)
{
	set_answer(r, MHD_HTTP_OK, strdup("{\"status\":\"ok\"}"), "application/json");
}

static void answer_description(http_request *r)
{
	set_answer(r, MHD_HTTP_OK, ls_answer_description(r->http->options.call.model, &r->http->options.call.facts),
		   "application/json");
}

static void answer_metrics(http_request *r)
{
	ls_http *h = r->http;
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	ls_gauges gauges = { .connections = ls_connections_count(&h->connections) };
	gauges.waiting = ls_batcher_waiting(h->options.batcher);
	if (to) {
		ls_counters_print(h->options.counters, gauges, to);
		fclose(to);
	}
	set_answer(r, MHD_HTTP_OK, text, "text/plain; version=0.0.4");
}

/* By the batcher's thread. */
static void prediction_done(ls_batch_job *job, ls_status status, const char *error)
{
	http_request *r = (http_request *)(void *)job;

	if (status != LS_OK)
		refuse(r, MHD_HTTP_INTERNAL_SERVER_ERROR, error);
	MHD_resume_connection(r->connection);
}

static ls_status parse_body(http_request *r, ls_request *request)
{
	const ls_request_shape *shape = &r->http->options.shape;
	const char *kind = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Content-Type");
	const char *top = MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, "top");
	int is_image = (kind && strncasecmp(kind, "image/", 6) == 0) ||
		       (r->size > 0 && (r->body[0] == 0x89 || r->body[0] == 0xff)); /* with which no JSON begins */
	int64_t classes = 0;

	if (top && (ls_parse_int(top, "top", &classes) != LS_OK || classes < 1))
		return ls_fail(LS_EFORMAT, "query parameter \"top\" must be an integer of at least 1");
	LS_TRY(is_image ? ls_request_from_image(request, shape, r->body, r->size)
			: ls_request_from_json(request, shape, r->body, r->size));
	request->top = top ? classes : request->top;
	return LS_OK;
}

static void answer_prediction(http_request *r)
{
	ls_http *h = r->http;
	ls_request request = { 0 };
	ls_status status = parse_body(r, &request);

	if (status == LS_OK)
		status = ls_call_make(&r->call, &h->options.call, &request);
	ls_request_release(&request);
	if (status != LS_OK) {
		refuse(r,
		       status == LS_EMEMORY    ? MHD_HTTP_SERVICE_UNAVAILABLE
		       : status == LS_EINVALID ? MHD_HTTP_CONTENT_TOO_LARGE
					       : MHD_HTTP_BAD_REQUEST,
		       ls_last_error());
		return;
	}
	r->call.job.done = prediction_done;
	r->is_waiting = 1;
	MHD_suspend_connection(r->connection); /* before the batcher may resume it */
	if (!ls_batcher_submit(h->options.batcher, &r->call.job)) {
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests are waiting; try again later");
		MHD_resume_connection(r->connection);
	}
}

static const route routes[] = {
	{ "/predict", "POST", 0, answer_prediction },
	{ "/healthz", "GET", 1, answer_health },
	{ "/metrics", "GET", 0, answer_metrics },
	{ "/", "GET", 0, answer_description },
};

/* ---- before the body --------------------------------------------------------------------------------------------- */

static int is_allowed(const http_request *r)
{
	const char *token = r->http->options.token;

	return !token || (r->route && r->route->is_open) || ls_head_has_token(r->connection, token);
}

/* A web page whose own name was made to lead to this machine could read answers, for its browser takes them for those
 * of the page's server; but it sends that name. With a token no page can ask. Only before HTTP/1.1, which no browser
 * speaks, may there be no name. */
static int is_for_us(const http_request *r, const char *host)
{
	const ls_http_options *o = &r->http->options;

	return o->token || !host || ls_host_is_local(host, o->listener.host);
}

static void find_route(http_request *r, const char *path, const char *method)
{
	int found = 0;

	for (size_t i = 0; i < LS_COUNT(routes); i++) {
		if (strcmp(routes[i].path, path) != 0)
			continue;
		found = 1;
		int is_head = strcmp(method, "HEAD") == 0 && strcmp(routes[i].method, "GET") == 0;
		r->route = &routes[i];
		if (strcmp(routes[i].method, method) != 0 && !is_head)
			refuse(r, MHD_HTTP_METHOD_NOT_ALLOWED,
			       strcmp(routes[i].method, "GET") == 0 ? "this path takes GET" : "this path takes POST");
	}
	if (!found)
		refuse(r, MHD_HTTP_NOT_FOUND, "no such path; there are /, /predict, /healthz and /metrics");
}

static void refuse_host(http_request *r, const char *host)
{
	char message[256], shown[64];

	snprintf(message, sizeof(message),
		 "Host '%s' is not this machine; use localhost, or start the server with a token file to accept any "
		 "host name",
		 ls_host_printable(shown, sizeof(shown), host));
	refuse(r, MHD_HTTP_MISDIRECTED_REQUEST, message);
}

static void refuse_size(http_request *r)
{
	char message[96];
	snprintf(message, sizeof(message), "the request has more than %lld bytes",
		 (long long)r->http->options.max_body);
	refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, message);
}

/* Such a request is answered at once, and nothing is read after its head. */
static int refuse_head(http_request *r, const char *version)
{
	const char *why;
	unsigned code = ls_head_check(r->connection, version, &why);

	if (code == 0)
		return 0;
	refuse(r, code, why);
	r->closes = 1;
	return 1;
}

static void check_head(http_request *r, const char *path, const char *method)
{
	ls_http *h = r->http;
	const char *host = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Host");
	int is_crowded = ls_connections_count(&h->connections) > h->options.max_connections;
	find_route(r, path, method);
	if (!is_for_us(r, host))
		refuse_host(r, host);
	else if (!is_allowed(r))
		refuse(r, MHD_HTTP_UNAUTHORIZED,
		       "the token is missing or wrong; send it as Authorization: Bearer TOKEN");
	else if (atomic_load(&h->is_refusing))
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is stopping");
	else if (is_crowded)
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "too many connections; try again later");
	else if (r->code == 0 && ls_head_length(r->connection) > h->options.max_body)
		refuse_size(r);
	r->closes = is_crowded || atomic_load(&h->is_refusing);
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */

static void drop_body(http_request *r)
{
	free(r->body);
	r->body = NULL;
	r->size = r->room = 0;
	ls_budget_give(r->http->options.call.budget, r->held);
	r->held = 0;
}

static void take_body(http_request *r, const char *data, size_t size)
{
	ls_http *h = r->http;

	if (r->code != 0)
		return; /* refused already */
	if (r->size + size > (size_t)h->options.max_body) {
		refuse_size(r);
	} else if (!ls_budget_take(h->options.call.budget, (int64_t)size)) {
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests are waiting; try again later");
	} else {
		r->held += (int64_t)size;
		if (ls_array_grow(&r->body, &r->room, r->size + size, 1) != LS_OK) {
			refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory for the request; try again later");
		} else {
			memcpy(r->body + r->size, data, size);
			r->size += size;
			return;
		}
	}
	drop_body(r);
}

/* ---- answering --------------------------------------------------------------------------------------------------- */

static void add_headers(const http_request *r, struct MHD_Response *response)
{
	MHD_add_response_header(response, "Content-Type", r->kind ? r->kind : "text/plain");
	if (r->code == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	if (r->code == MHD_HTTP_METHOD_NOT_ALLOWED && r->route)
		MHD_add_response_header(response, "Allow", r->route->method);
	if (r->code == MHD_HTTP_SERVICE_UNAVAILABLE)
		MHD_add_response_header(response, "Retry-After", "1");
	if (r->closes)
		MHD_add_response_header(response, "Connection", "close");
}

static enum MHD_Result send_answer(http_request *r)
{
	int is_prediction = r->is_waiting && r->code == MHD_HTTP_OK;
	size_t size = r->answer ? strlen(r->answer) : 0;
	struct MHD_Response *response = MHD_create_response_from_buffer(size, r->answer, MHD_RESPMEM_MUST_FREE);

	if (!response)
		return MHD_NO;
	r->answer = NULL; /* the response's */
	add_headers(r, response);
	enum MHD_Result result = MHD_queue_response(r->connection, r->code, response);
	MHD_destroy_response(response);
	ls_counters_request(r->http->options.counters, r->code, is_prediction ? ls_clock_seconds() - r->complete : -1);
	return result;
}

static void answer_outputs(http_request *r)
{
	const ls_call_context *c = &r->http->options.call;

	if (ls_call_check_outputs(&r->call, &c->facts) != LS_OK)
		refuse(r, MHD_HTTP_UNPROCESSABLE_CONTENT, ls_last_error());
	else
		set_answer(r, MHD_HTTP_OK,
			   ls_answer_predictions(c->model, &c->facts, r->call.chances, r->call.job.count, r->call.top),
			   "application/json");
}

/* The body is complete, or a prediction is. */
static enum MHD_Result go_on(http_request *r)
{
	ls_connections_set(&r->http->connections, connection_of(r->connection), LS_CONNECTION_BUSY);
	if (r->is_waiting && r->code == 0) {
		answer_outputs(r);
	} else if (r->code == 0) {
		r->complete = ls_clock_seconds();
		r->route->answer(r);
		drop_body(r);
		if (r->is_waiting)
			return MHD_YES;
	}
	return send_answer(r);
}

static http_request *begin_request(ls_http *h, struct MHD_Connection *from)
{
	http_request *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->http = h;
	r->connection = from;
	atomic_fetch_add(&h->active, 1);
	return r;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *from, const char *path, const char *method,
			      const char *version, const char *data, size_t *size, void **own)
{
	http_request *r = *own;

	if (!r) {
		r = *own = begin_request(context, from);
		if (!r)
			return MHD_NO;
		if (refuse_head(r, version))
			return send_answer(r);
		check_head(r, path, method);
		if (r->code != 0 && ls_head_length(r->connection) > DISCARD_MAX)
			return send_answer(r);
		ls_connections_set(&r->http->connections, connection_of(from), LS_CONNECTION_READING);
		return MHD_YES;
	}
	if (*size > 0) {
		take_body(r, data, *size);
		*size = 0;
		return MHD_YES;
	}
	return go_on(r);
}

static void request_ended(void *context, struct MHD_Connection *own, void **request,
			  enum MHD_RequestTerminationCode code)
{
	ls_http *h = context;
	http_request *r = *request;
	(void)code;

	ls_connections_set(&h->connections, connection_of(own), LS_CONNECTION_IDLE);
	if (!r)
		return;
	drop_body(r);
	ls_call_release(&r->call, h->options.call.budget);
	free(r->answer);
	free(r);
	*request = NULL;
	atomic_fetch_sub(&h->active, 1);
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

/* The library closes the socket after this has returned, so a connection in the list has one that is open. */
static void connection_changed(void *context, struct MHD_Connection *own, void **socket_context,
			       enum MHD_ConnectionNotificationCode code)
{
	ls_connections *all = &((ls_http *)context)->connections;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		int fd = MHD_get_connection_info(own, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		*socket_context = ls_connections_open(all, fd);
	} else {
		ls_connections_close(all, *socket_context);
		*socket_context = NULL;
	}
}

/* By hand: the library has no way to answer a request whose body is not there. */
void ls_http_tick(ls_http *h)
{
	static const char body[] = "{\"error\":\"the body of the request is too slow\"}";
	char too_slow[256];
	int64_t answered = 0;

	snprintf(too_slow, sizeof(too_slow),
		 "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: application/json\r\n"
		 "Content-Length: %zu\r\n\r\n%s",
		 sizeof(body) - 1, body);

	for (int64_t shut = ls_connections_shut_idle(&h->connections, h->options.timeout, too_slow, &answered);
	     shut > 0; shut--)
		ls_counters_timeout(h->options.counters);
	for (; answered > 0; answered--)
		ls_counters_request(h->options.counters, MHD_HTTP_REQUEST_TIMEOUT, -1);
}

ls_status ls_http_check(void)
{
	return LS_OK;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static void ignore_log(void *context, const char *format, va_list arguments)
{
	(void)context;
	(void)format;
	(void)arguments;
}

static struct MHD_Daemon *start_daemon(ls_http *h)
{
	const ls_http_options *o = &h->options;
	int cores = ls_pin_cores();
	unsigned threads = cores > THREADS_MAX ? THREADS_MAX : cores < THREADS_MIN ? THREADS_MIN : (unsigned)cores;
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
	sigset_t all, before;

	/* the program's thread handles signals */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	struct MHD_Daemon *daemon = MHD_start_daemon(
		flags | (strchr(o->listener.url, '[') ? MHD_USE_IPv6 : 0), 0, NULL, NULL, handle, h, /* logger first: */
		MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL, MHD_OPTION_LISTEN_SOCKET, o->listener.fd,
		MHD_OPTION_THREAD_POOL_SIZE, threads, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)(o->max_connections + SPARE_CONNECTIONS), MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)ceil(o->timeout) + 1, MHD_OPTION_NOTIFY_COMPLETED, request_ended, h,
		MHD_OPTION_NOTIFY_CONNECTION, connection_changed, h, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return daemon;
}

ls_status ls_http_start(ls_http **out, const ls_http_options *options)
{
	ls_http *h = calloc(1, sizeof(*h));

	if (h) {
		h->options = *options;
		ls_connections_init(&h->connections);
		h->daemon = start_daemon(h);
	}
	if (h && h->daemon) {
		*out = h;
		return LS_OK;
	}
	close(options->listener.fd);
	if (h)
		ls_connections_release(&h->connections);
	free(h);
	return ls_fail(LS_EMEMORY,
		       "cannot start the HTTP server for %lld connections; try a smaller options.max_connections",
		       (long long)options->max_connections);
}

void ls_http_refuse(ls_http *h)
{
	atomic_store(&h->is_refusing, 1);
	MHD_socket listening = MHD_quiesce_daemon(h->daemon);
	if (listening != MHD_INVALID_SOCKET)
		close(listening);
}

int64_t ls_http_active(ls_http *h)
{
	return atomic_load(&h->active);
}

void ls_http_stop(ls_http *h)
{
	if (!h)
		return;
	MHD_stop_daemon(h->daemon);
	ls_connections_release(&h->connections);
	free(h);
}

#else
#include <unistd.h>

ls_status ls_http_check(void)
{
	return ls_fail(LS_EUNSUPPORTED, "this build of Lockstep was made without libmicrohttpd: it cannot serve");
}

ls_status ls_http_start(ls_http **out, const ls_http_options *options)
{
	(void)out;
	close(options->listener.fd);
	return ls_http_check();
}

void ls_http_tick(ls_http *h)
{
	(void)h;
}

void ls_http_refuse(ls_http *h)
{
	(void)h;
}

int64_t ls_http_active(ls_http *h)
{
	(void)h;
	return 0;
}

void ls_http_stop(ls_http *h)
{
	(void)h;
}

#endif
