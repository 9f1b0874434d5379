/*
 * status.c - the thread's last error message.
 */
#include "base/status.h"

#include <errno.h>
#include <lockstep/version.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = 2048 };

static _Thread_local char message[MESSAGE_SIZE];

const char *ls_status_name(ls_status status)
{
	static const char *const names[] = {
#define LS_STATUS_NAME(id, name, text) name,
		LS_STATUS_TABLE(LS_STATUS_NAME)
#undef LS_STATUS_NAME
	};
	unsigned index = (unsigned)status;
	return index < sizeof(names) / sizeof(names[0]) ? names[index] : "unknown";
}

const char *ls_last_error(void)
{
	return message;
}

const char *ls_version(void)
{
	return LS_VERSION_STRING;
}

/* Arguments may point into the old message, so the new one is composed beside it. Too long is cut, never an error. */
static void compose(const char *format, va_list arguments, const char *between, const char *after)
{
	char fresh[MESSAGE_SIZE];
	int length = vsnprintf(fresh, sizeof(fresh), format, arguments);
	size_t used = length < 0 ? 0 : (size_t)length < sizeof(fresh) ? (size_t)length : sizeof(fresh) - 1;
	fresh[used] = '\0';
	snprintf(fresh + used, sizeof(fresh) - used, "%s%s", between, after);
	memcpy(message, fresh, strlen(fresh) + 1);
}

ls_status ls_fail(ls_status status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	compose(format, arguments, "", "");
	va_end(arguments);
	return status;
}

ls_status ls_fail_errno(ls_status status, const char *format, ...)
{
	char reason[256];
	const char *text = strerror_r(errno, reason, sizeof(reason));
	va_list arguments;
	va_start(arguments, format);
	compose(format, arguments, ": ", text);
	va_end(arguments);
	return status;
}

ls_status ls_fail_context(ls_status status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	compose(format, arguments, ": ", message);
	va_end(arguments);
	return status;
}
