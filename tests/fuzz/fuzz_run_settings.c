/*
 * Any bytes as settings: lines "name value" as people type them, or the JSON that a run keeps. Refused with a message,
 * or settings that are within their rows' ranges, become JSON and come back the same.
 */
#include "fuzz/common.h"
#include "settings/settings.h"

/* Lines, in which the text stays, so that the options' strings do. */
static void type_lines(ls_train_options *options, char *text)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char *space = strchr(line, ' ');
		if (space)
			*space = '\0';
		if (ls_train_options_set(options, line, space ? space + 1 : NULL) != LS_OK)
			fuzz_require(ls_last_error()[0] != '\0');
	}
}

/* What was stored is read back as the same settings, of which two nodes have nothing to say. */
static void round_trip(const ls_train_options *options)
{
	ls_settings_stored back = { .owner = NULL };
	char *first = NULL, *again = NULL;
	if (ls_settings_to_json(options, (ls_settings_context){ 0 }, &first) != LS_OK) {
		fuzz_require(strstr(ls_last_error(), "cannot be stored") != NULL);
		return;
	}
	fuzz_require(ls_settings_from_json(&back, first, "fuzz") == LS_OK);
	fuzz_require(ls_settings_to_json(&back.options, (ls_settings_context){ 0 }, &again) == LS_OK);
	fuzz_require(strcmp(first, again) == 0);
	fuzz_require(ls_settings_agree(first, "one", again, "other") == LS_OK);
	ls_settings_stored_release(&back);
	free(first);
	free(again);
}

static void try_typed(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	type_lines(&options, text);
	fuzz_require(ls_settings_check(&options) == LS_OK);
	round_trip(&options);
	free(text);
}

static void try_stored(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *init = NULL;
	ls_settings_stored stored = { .owner = NULL };
	ls_train_options now = LS_TRAIN_OPTIONS_INIT;
	if (ls_settings_from_json(&stored, text, "fuzz") == LS_OK) {
		if (ls_settings_check(&stored.options) == LS_OK)
			round_trip(&stored.options);
		ls_settings_stored_release(&stored);
	} else {
		fuzz_require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
	}
	if (ls_settings_compare(&now, NULL, (ls_settings_context){ 0 }, text, "fuzz") != LS_OK)
		fuzz_require(ls_last_error()[0] != '\0');
	if (ls_settings_get_init(text, &init) == LS_OK)
		free(init);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_typed(data, size);
	try_stored(data, size);
	return 0;
}
