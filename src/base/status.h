/*
 * status.h - writing the error that lockstep/status.h reads.
 */
#ifndef LS_BASE_STATUS_H
#define LS_BASE_STATUS_H

#include <lockstep/status.h>

/* Record the message of this thread's failure and return `status`: `return ls_fail(LS_EIO, "...", path);` */
ls_status ls_fail(ls_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with ": <strerror(errno)>" appended. */
ls_status ls_fail_errno(ls_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put "<text>: " before this thread's message, to say what was being attempted; returns `status`. */
ls_status ls_fail_context(ls_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Pass a failure up. Use only where there is nothing to clean up. */
#define LS_TRY(expression)                                                                                             \
	do {                                                                                                           \
		ls_status ls_try_status_ = (expression);                                                               \
		if (ls_try_status_ != LS_OK)                                                                           \
			return ls_try_status_;                                                                         \
	} while (0)

#endif
