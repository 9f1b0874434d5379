/*
 * The library's messages name fields; the command shows flags. src/cli/messages.c is part of the command, so it is
 * included here.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../src/cli/messages.c"
#include "unit/test_main.h"

static const ls_setting rows[] = {
	{ "profile-out", 0, "FILE", "Replay", "record a profile", LS_SETTING_STRING, 0, 0, 0, 0 },
};
LS_ARGS_TABLE(row_at, rows)
static const ls_args bench = { .command = "lockstep bench", .at = row_at };

static void expect(const char *message, const char *expected)
{
	char text[256];
	snprintf(text, sizeof(text), "%s", message);
	ls_messages_rewrite(text);
	assert_string_equal(text, expected);
}

static void test_fields_become_flags(void **state)
{
	(void)state;
	expect("options.resume needs options.run", "--resume needs --run");
	expect("options.lr_step_every: 'x' is not a number", "--lr-step-every: 'x' is not a number");
	expect("use (options.cased) or `options.data babble`", "use (--cased) or `--data babble`");
	expect("options.batch 100 is not a multiple of options.micro_batch 32",
	       "--batch 100 is not a multiple of --micro-batch 32");
	expect("options.beta1", "--beta1");
	expect("", "");
}

static void test_other_text_stays(void **state)
{
	(void)state;
	expect("cannot open options.csv", "cannot open options.csv");
	expect("cannot open my/options.data", "cannot open my/options.data");
	expect("myoptions.lr is 3", "myoptions.lr is 3");
	expect("options.", "options.");
	expect("the options. run them", "the options. run them");
	expect("options.lr_mni is unknown", "options.lr_mni is unknown");
}

static void test_a_command_has_flags_of_its_own(void **state)
{
	(void)state;
	expect("options.profile_out records", "options.profile_out records");
	ls_messages_use(&bench);
	expect("options.profile_out records options.lr", "--profile-out records --lr");
	ls_set_message_rewrite(NULL);
}

TEST_MAIN(test_fields_become_flags, test_other_text_stays, test_a_command_has_flags_of_its_own)
