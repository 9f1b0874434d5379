/*
 * serve.c - lockstep/serve.h: a server from its options to its end.
 *
 * To stop: no new connection is accepted and no new request taken; requests that have begun are completed, or given up
 * when the time that a request may take has passed; the batcher predicts what it has; the rest is closed.
 */
#include <lockstep/serve.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/handles.h"
#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "tools/serve/http.h"

enum {
	TOKEN_MIN = 8,
	TOKEN_MAX = 4096,
	OTHER_FILES = 128,
	BODIES_HELD = 64,
	BATCHES_WAITING = 64,
	SAMPLES_WAITING = 16384
};

static atomic_int is_asked_to_stop, is_serving;

typedef struct server {
	const ls_serve_options *options;
	ls_model *model;
	char *token;   /* NULL: none */
	char *columns; /* of a table, "area, city"; NULL: it takes images or text */
	ls_counters counters;
	ls_budget budget;
	ls_batcher *batcher;
	ls_http *http;
	ls_listener listener;
} server;

void ls_serve_stop(void)
{
	atomic_store(&is_asked_to_stop, 1);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static ls_status check_range(const char *name, double value, double least, double most)
{
	if (value >= least && value <= most)
		return LS_OK;
	return ls_fail(LS_EINVALID, "options.%s is %.10g; it must be from %.10g to %.10g", name, value, least, most);
}

static ls_status check(const ls_serve_options *o)
{
	if (o->stop)
		LS_TRY(ls_handle_check(o->stop, LS_STOP_KIND));
	if (!o->listen)
		return ls_fail(LS_EINVALID, "options.listen is missing: an ADDRESS:PORT such as 127.0.0.1:8080");
	LS_TRY(check_range("max_batch", (double)o->max_batch, 1, 65536));
	LS_TRY(check_range("max_wait_ms", o->max_wait_ms, 0, 60000));
	LS_TRY(check_range("max_body", (double)o->max_body, 1024, 1 << 30));
	LS_TRY(check_range("max_connections", (double)o->max_connections, 1, 65536));
	return check_range("timeout", o->timeout, 0.1, 86400);
}

/* ---- the token --------------------------------------------------------------------------------------------------- */

static ls_status read_token(char **out, const char *path)
{
	ls_file_map map;
	struct stat facts;

	LS_TRY(ls_file_map_open(&map, path));
	const char *text = (const char *)map.data;
	size_t length = 0;
	while (length < map.bytes && length <= TOKEN_MAX && text[length] > ' ' && text[length] < 0x7f)
		length++;
	int is_line = length == map.bytes || (length < map.bytes && strchr("\r\n", text[length]) && text[length]);
	char *token = length > 0 ? strndup(text, length) : NULL;
	LS_TRY(ls_file_map_end(&map, LS_OK));
	if (!is_line || !token || length < TOKEN_MIN || length > TOKEN_MAX) {
		free(token);
		return ls_fail(
			LS_EFORMAT,
			"%s: the first line must be a token of %d to %d letters, digits and signs without spaces", path,
			TOKEN_MIN, TOKEN_MAX);
	}
	if (stat(path, &facts) == 0 && (facts.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH)))
		ls_log_warning("%s holds the token, and its group or others may read or change it; try chmod 600",
			       path);
	*out = token;
	return LS_OK;
}

/* Whoever can reach the port can use the machine: beyond the machine itself that takes a token. */
static ls_status choose_token(server *s)
{
	if (s->options->token_file)
		return read_token(&s->token, s->options->token_file);
	if (!s->listener.is_loopback)
		return ls_fail(LS_EINVALID,
			       "%s can be reached from other machines, which needs options.token_file; without one use "
			       "127.0.0.1",
			       s->options->listen);
	return LS_OK;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static ls_status list_columns(server *s)
{
	ls_model_column column;
	size_t bytes;

	if (!ls_model_column_at(s->model, 0, &column))
		return LS_OK;
	FILE *to = open_memstream(&s->columns, &bytes);
	for (size_t i = 0; to && ls_model_column_at(s->model, i, &column); i++)
		fprintf(to, "%s%s", i > 0 ? ", " : "", column.name);
	if (to && fclose(to) == 0)
		return LS_OK;
	return ls_fail(LS_EMEMORY, "no memory for the names of columns");
}

/* What would fail for every request fails now. */
static ls_status check_model(const server *s)
{
	ls_model_facts facts;

	LS_TRY(ls_model_describe(s->model, &facts));
	if (facts.predicts_next)
		return ls_fail(LS_EUNSUPPORTED,
			       "the model predicts the next token, not a class: `lockstep generate` uses it");
	if (s->columns)
		return LS_OK;
	if (facts.tokens_max == 0) {
		if (!ls_model_normalisation(s->model) && !s->options->quiet)
			ls_log_warning(
				"the weights do not say how images were normalised: only requests with \"values\": "
				"\"normalised\" can be answered, unless options.mean and options.deviation are given");
		return LS_OK;
	}
	ls_text_sample sample = { .tokens = calloc((size_t)facts.tokens_max, sizeof(int32_t)) };
	ls_status status = sample.tokens ? ls_model_tokenize(s->model, "", 0, &sample, NULL)
					 : ls_fail(LS_EMEMORY, "no memory for %d tokens", facts.tokens_max);
	free(sample.tokens);
	return status;
}

/* ---- start ------------------------------------------------------------------------------------------------------- */

static ls_status allow_files(int64_t connections)
{
	struct rlimit files;
	rlim_t wanted = (rlim_t)connections + OTHER_FILES;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted)
		return LS_OK;
	if (files.rlim_max < wanted)
		return ls_fail(LS_EINVALID,
			       "options.max_connections %lld need %llu open files, and ulimit -n allows %llu",
			       (long long)connections, (unsigned long long)wanted, (unsigned long long)files.rlim_max);
	files.rlim_cur = wanted;
	setrlimit(RLIMIT_NOFILE, &files);
	return LS_OK;
}

static void count_batch(void *context, int64_t samples)
{
	ls_counters_batch(context, samples);
}

static ls_status start_batcher(server *s)
{
	int64_t waiting = BATCHES_WAITING * s->options->max_batch;
	const ls_batcher_options options = { .model = s->model,
					     .max_batch = s->options->max_batch,
					     .max_wait = s->options->max_wait_ms * 1e-3,
					     .queue_max = waiting > SAMPLES_WAITING ? waiting : SAMPLES_WAITING,
					     .on_batch = count_batch,
					     .context = &s->counters };
	return ls_batcher_new(&s->batcher, &options);
}

static ls_status start_http(server *s)
{
	const ls_serve_options *o = s->options;
	ls_http_options options = { .listener = s->listener,
				    .token = s->token,
				    .call = { .model = s->model, .resize = o->resize, .budget = &s->budget },
				    .batcher = s->batcher,
				    .counters = &s->counters,
				    .max_body = o->max_body,
				    .max_connections = o->max_connections,
				    .timeout = o->timeout };

	LS_TRY(ls_model_describe(s->model, &options.call.facts));
	const ls_model_facts *f = &options.call.facts;
	options.shape = (ls_request_shape){ .input = s->columns          ? LS_REQUEST_OF_ROWS
						     : f->tokens_max > 0 ? LS_REQUEST_OF_TEXT
									 : LS_REQUEST_OF_IMAGES,
					    .channels = f->channels,
					    .height = f->height,
					    .width = f->width,
					    .columns = s->columns };
	s->listener.fd = -1; /* the HTTP side's now */
	return ls_http_start(&s->http, &options);
}

static ls_status start(server *s)
{
	LS_TRY(ls_http_check());
	LS_TRY(check(s->options));
	LS_TRY(list_columns(s));
	LS_TRY(check_model(s));
	LS_TRY(allow_files(s->options->max_connections));
	LS_TRY(ls_listen(&s->listener, s->options->listen));
	LS_TRY(choose_token(s)); /* of the address that was bound: a name may be another one the next time */
	s->budget.most = BODIES_HELD * s->options->max_body;
	LS_TRY(start_batcher(s));
	return start_http(s);
}

/* ---- run and stop ------------------------------------------------------------------------------------------------ */

static void sleep_a_moment(void)
{
	const struct timespec moment = { .tv_nsec = 50000000 };
	nanosleep(&moment, NULL);
}

static int is_stopped(const server *s)
{
	return atomic_load(&is_asked_to_stop) || ls_stop_is_requested(s->options->stop);
}

static void serve(server *s)
{
	while (!is_stopped(s)) {
		ls_http_tick(s->http);
		sleep_a_moment();
	}
	ls_http_refuse(s->http);
	for (double end = ls_clock_seconds() + s->options->timeout;
	     ls_http_active(s->http) > 0 && ls_clock_seconds() < end;) {
		ls_http_tick(s->http);
		sleep_a_moment();
	}
}

static void stop(server *s)
{
	if (s->batcher)
		ls_batcher_end(s->batcher);
	ls_http_stop(s->http);
	ls_batcher_free(s->batcher);
	if (s->listener.fd >= 0)
		close(s->listener.fd);
	free(s->token);
	free(s->columns);
}

static ls_serve_result result_of(const ls_counters *c)
{
	ls_serve_result result = { .samples = c->samples };

	for (int code = 0; code < LS_CODES; code++)
		result.requests += c->requests[code];
	for (int i = 0; i <= c->batch.count; i++)
		result.batches += c->batch.in[i];
	return result;
}

ls_status ls_serve(ls_model *model, const ls_serve_options *options, ls_serve_result *result)
{
	ls_serve_options own = LS_SERVE_OPTIONS_INIT;
	server s = { .options = &own, .model = model, .listener = { .fd = -1 } };

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, unused, "LS_SERVE_OPTIONS_INIT"));
	if (atomic_exchange(&is_serving, 1))
		return ls_fail(LS_EINVALID, "this process serves already: one ls_serve() at a time");
	ls_counters_init(&s.counters);
	ls_status status = start(&s);
	if (status == LS_OK) {
		if (!own.quiet) {
			printf("listening on %s\n", s.listener.url);
			fflush(stdout);
		}
		serve(&s);
	}
	stop(&s);
	if (status == LS_OK && result)
		*result = result_of(&s.counters);
	ls_counters_release(&s.counters);
	atomic_store(&is_asked_to_stop, 0);
	atomic_store(&is_serving, 0);
	return status;
}
