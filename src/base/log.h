/*
 * log.h - the one way to print lines for users.
 *
 * Result lines (ls_log_line) go to stdout, notes and warnings to stderr. A progress display registers a hook that is
 * called with `show = 0` before a line is printed and `show = 1` after, so that lines never land in the middle of it.
 */
#ifndef LS_BASE_LOG_H
#define LS_BASE_LOG_H

typedef enum ls_log_level { LS_LOG_ERROR, LS_LOG_WARNING, LS_LOG_INFO } ls_log_level;

void ls_log_set_level(ls_log_level level); /* default LS_LOG_INFO; LS_LOG_ERROR silences lines, too */
ls_log_level ls_log_get_level(void);
void ls_log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ls_log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ls_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Where lines of this thread go, and of threads that it starts from then on (thread.h): with other levels than the
 * process's, or to a function. A sink stays in place while such threads run. NULL: the process's own.
 */
typedef enum ls_log_kind { LS_LOG_KIND_LINE, LS_LOG_KIND_NOTE, LS_LOG_KIND_WARNING } ls_log_kind;
typedef struct ls_log_sink {
	ls_log_level level;
	void (*put)(void *context, ls_log_kind kind, const char *text); /* NULL: they are printed */
	void *context;
} ls_log_sink;
const ls_log_sink *ls_log_use(const ls_log_sink *sink); /* returns the one before */
const ls_log_sink *ls_log_in_use(void);

/* Whether notes of this thread are printed: then so may progress be. */
int ls_log_prints(void);

typedef void (*ls_log_hook)(void *context, int show);
void ls_log_set_hook(ls_log_hook hook, void *context); /* NULL removes it */

#endif
