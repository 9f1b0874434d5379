/*
 * messages.h - the library's messages in the words of the command line.
 *
 * The library names fields, "options.lr_min must be ...", because programs set fields. Users of the command type
 * "--lr-min": every message that it prints, and every warning of the library, goes through here.
 */
#ifndef LS_CLI_MESSAGES_H
#define LS_CLI_MESSAGES_H

#include "args.h"

/* The options of this command, beside those of training, are flags as well. Warnings are rewritten from now on. */
void ls_messages_use(const ls_args *args);

/* Replace each "options.some_name" that is an option by "--some-name", in place: the text gets shorter. Other text, as
 * a file that is called options.txt, stays. */
void ls_messages_rewrite(char *message);

#endif
