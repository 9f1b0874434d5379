/*
 * assert_status.h - assertions on a status and the message that comes with it.
 */
#ifndef LS_TESTS_ASSERT_STATUS_H
#define LS_TESTS_ASSERT_STATUS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/status.h"

#define assert_ok(expression)                                                                                          \
	do {                                                                                                           \
		ls_status status_ = (expression);                                                                      \
		if (status_ != LS_OK)                                                                                  \
			fail_msg("%s: %s: %s", #expression, ls_status_name(status_), ls_last_error());                 \
	} while (0)

#define assert_fails(expression, status, text)                                                                         \
	do {                                                                                                           \
		assert_int_equal((expression), (status));                                                              \
		if (!strstr(ls_last_error(), (text)))                                                                  \
			fail_msg("the message \"%s\" does not contain \"%s\"", ls_last_error(), (text));               \
	} while (0)

#endif
