/*
 * log.c - lines for people, never in the middle of a progress display.
 */
#include "base/log.h"

#include <lockstep/status.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t printing =
	PTHREAD_MUTEX_INITIALIZER; /* guards the streams, the hook, its context and the rewriting */
static ls_log_hook display_hook;
static void *display_context;
static ls_message_rewrite rewrite_message;
static _Atomic(ls_log_level) level_now = LS_LOG_INFO;

void ls_log_set_level(ls_log_level level)
{
	atomic_store(&level_now, level);
}

static _Thread_local const ls_log_sink *sink_now;

const ls_log_sink *ls_log_use(const ls_log_sink *sink)
{
	const ls_log_sink *before = sink_now;
	sink_now = sink;
	return before;
}

const ls_log_sink *ls_log_in_use(void)
{
	return sink_now;
}

ls_log_level ls_log_get_level(void)
{
	return sink_now ? sink_now->level : atomic_load(&level_now);
}

int ls_log_prints(void)
{
	return ls_log_get_level() >= LS_LOG_INFO && !(sink_now && sink_now->put);
}

void ls_log_set_hook(ls_log_hook hook, void *context)
{
	pthread_mutex_lock(&printing);
	display_hook = hook;
	display_context = context;
	pthread_mutex_unlock(&printing);
}

void ls_set_message_rewrite(ls_message_rewrite rewrite)
{
	pthread_mutex_lock(&printing);
	rewrite_message = rewrite;
	pthread_mutex_unlock(&printing);
}

/* The text of a line; `some` is used where it is long enough. Cut where there is no memory. To be freed: *all. */
__attribute__((format(printf, 4, 0))) static char *compose(char *some, size_t size, char **all, const char *format,
							   va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	*all = NULL;
	if (vsnprintf(some, size, format, arguments) >= (int)size && vasprintf(all, format, again) < 0)
		*all = NULL;
	va_end(again);
	return *all ? *all : some;
}

/* In one call, so that lines of several nodes that share a terminal are not torn. The hook runs under the lock: it may
 * draw on the terminal, but must not log. */
static void print(ls_log_kind kind, char *text)
{
	FILE *to = kind == LS_LOG_KIND_LINE ? stdout : stderr;

	pthread_mutex_lock(&printing);
	if (display_hook)
		display_hook(display_context, 0);
	if (rewrite_message)
		rewrite_message(text);
	fprintf(to, "%s%s\n", kind == LS_LOG_KIND_WARNING ? "warning: " : "", text);
	fflush(to);
	if (display_hook)
		display_hook(display_context, 1);
	pthread_mutex_unlock(&printing);
}

/* A program's function is called without the lock: it may call the library. */
static void give(const ls_log_sink *sink, ls_log_kind kind, char *text)
{
	pthread_mutex_lock(&printing);
	if (rewrite_message)
		rewrite_message(text);
	pthread_mutex_unlock(&printing);
	sink->put(sink->context, kind, text);
}

__attribute__((format(printf, 3, 0))) static void log_text(ls_log_kind kind, ls_log_level least, const char *format,
							   va_list arguments)
{
	char some[256], *all;

	if (ls_log_get_level() < least)
		return;
	char *text = compose(some, sizeof(some), &all, format, arguments);
	if (sink_now && sink_now->put)
		give(sink_now, kind, text);
	else
		print(kind, text);
	free(all);
}

void ls_log_line(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	log_text(LS_LOG_KIND_LINE, LS_LOG_WARNING, format, arguments);
	va_end(arguments);
}

void ls_log_note(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	log_text(LS_LOG_KIND_NOTE, LS_LOG_INFO, format, arguments);
	va_end(arguments);
}

void ls_log_warning(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	log_text(LS_LOG_KIND_WARNING, LS_LOG_WARNING, format, arguments);
	va_end(arguments);
}
