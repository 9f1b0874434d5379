/*
 * serve.h - predictions over HTTP.
 *
 *     ls_serve_options options = LS_SERVE_OPTIONS_INIT;
 *     if (ls_serve(model, &options, NULL)) { puts(ls_last_error()); return 1; }
 *
 *     curl -d '{"inputs": [[0, 0, ...]]}' http://127.0.0.1:8080/predict
 *     {"predictions":[{"label":7,"probability":0.894036353}]}
 *
 * A request is predicted at once when the model is free; requests that arrive while it computes are predicted together.
 * That never changes an answer: a prediction has the same bits whatever is predicted with it. docs/predict.md has the
 * requests and answers.
 */
#ifndef LOCKSTEP_SERVE_H
#define LOCKSTEP_SERVE_H

#include <lockstep/hooks.h>
#include <lockstep/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_serve_options {
	size_t size;        /* set by LS_SERVE_OPTIONS_INIT */
	const char *listen; /* "127.0.0.1:8080", "[::1]:8080"; port 0: any that is free */
	/* its first line must come with every request, "Authorization: Bearer TOKEN"; NULL: none, only where the
	 * address is a loopback one, and then the Host header of a request must be localhost, a loopback address or the
	 * name in `listen`, else it is answered with 421 */
	const char *token_file;
	ls_resize resize; /* images of another size */

	int64_t max_batch;  /* samples that are predicted at a time */
	double max_wait_ms; /* longest time that samples wait for others, until there are max_batch; 0: they do not */
	int64_t max_body;   /* bytes of a request */
	int64_t max_connections; /* more are answered with 503 */
	/* Seconds for the head of a request, from when the connection was opened or last answered, and again for the
	 * body. After that the connection is closed; one whose body is late gets a 408 first. */
	double timeout;
	int quiet;  /* print nothing */
	int unused; /* fills the struct up; stays 0 */
	/* Ends this call, as ls_serve_stop() does; a handle that was requested before ends it at once. Borrowed; NULL:
	 * none */
	const ls_stop *stop;
} ls_serve_options;
#define LS_SERVE_OPTIONS_INIT                                                                                          \
	{                                                                                                              \
		.size = sizeof(ls_serve_options), .listen = "127.0.0.1:8080", .max_batch = 64, .max_body = 8 << 20,    \
		.max_connections = 512, .timeout = 30                                                                  \
	}

typedef struct ls_serve_result {
	uint64_t requests; /* answered, with whatever status */
	uint64_t samples;  /* predicted */
	uint64_t batches;
	uint64_t reserved[8]; /* 0 */
} ls_serve_result;

/*
 * Serve until ls_serve_stop() or a request of options.stop: then no new request is taken, those that were accepted
 * are answered, and it returns LS_OK. Prints "listening on http://ADDRESS:PORT" on standard output when it is ready.
 * One at a time in a process; no other thread may use the model meanwhile. May raise the soft limit on open files to
 * the hard one. `result` may be NULL.
 */
LS_API ls_status ls_serve(ls_model *model, const ls_serve_options *options, ls_serve_result *result);

/* From another thread or a signal handler. Asked for before it began, the next ls_serve() returns at once. */
LS_API void ls_serve_stop(void);

#ifdef __cplusplus
}
#endif
#endif
