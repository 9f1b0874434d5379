/*
 * settings_checks.h - what tests of settings share.
 */
#ifndef UNIT_RUN_SETTINGS_CHECKS_H
#define UNIT_RUN_SETTINGS_CHECKS_H

#include <string.h>

#include "settings/settings.h"
#include "unit/test_main.h"

#define assert_message(part)                                                                                           \
	do {                                                                                                           \
		if (!strstr(ls_last_error(), part))                                                                    \
			fail_msg("'%s' does not contain '%s'", ls_last_error(), part);                                 \
	} while (0)

static inline void set(ls_train_options *options, const char *name, const char *value)
{
	if (ls_train_options_set(options, name, value))
		fail_msg("%s=%s: %s", name, value ? value : "(flag)", ls_last_error());
}

#endif
