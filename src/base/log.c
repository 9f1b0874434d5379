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

ls_log_level ls_log_get_level(void)
{
	return atomic_load(&level_now);
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

/* In one call, so that lines of several nodes that share a terminal are not torn. Cut where there is no memory. */
__attribute__((format(printf, 3, 0))) static void print_line(FILE *to, const char *prefix, const char *format,
							     va_list arguments)
{
	char some[256], *all = NULL;
	va_list again;
	va_copy(again, arguments);
	if (vsnprintf(some, sizeof(some), format, arguments) >= (int)sizeof(some) && vasprintf(&all, format, again) < 0)
		all = NULL;
	va_end(again);
	if (rewrite_message)
		rewrite_message(all ? all : some);
	fprintf(to, "%s%s\n", prefix, all ? all : some);
	fflush(to);
	free(all);
}

/* The hook runs under the lock: it may draw on the terminal, but must not log. */
__attribute__((format(printf, 3, 0))) static void print(FILE *to, const char *prefix, const char *format,
							va_list arguments)
{
	pthread_mutex_lock(&printing);
	if (display_hook)
		display_hook(display_context, 0);
	print_line(to, prefix, format, arguments);
	if (display_hook)
		display_hook(display_context, 1);
	pthread_mutex_unlock(&printing);
}

void ls_log_line(const char *format, ...)
{
	if (ls_log_get_level() < LS_LOG_WARNING)
		return;
	va_list arguments;
	va_start(arguments, format);
	print(stdout, "", format, arguments);
	va_end(arguments);
}

void ls_log_note(const char *format, ...)
{
	if (ls_log_get_level() < LS_LOG_INFO)
		return;
	va_list arguments;
	va_start(arguments, format);
	print(stderr, "", format, arguments);
	va_end(arguments);
}

void ls_log_warning(const char *format, ...)
{
	if (ls_log_get_level() < LS_LOG_WARNING)
		return;
	va_list arguments;
	va_start(arguments, format);
	print(stderr, "warning: ", format, arguments);
	va_end(arguments);
}
