/*
 * arguments.c - the list of options that a recipe's "arguments" may have.
 *
 * A recipe may come from anybody, and running it must not do more than train and measure: only settings of training are
 * on the list, none that names a file or a directory, starts a process elsewhere, or has a field of its own (which
 * would be recorded as the field says and run as the argument does). Users give such options on their own command line.
 */
#include "sweep/arguments.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/names.h"
#include "sweep/command.h"

static const char *const with_value[] = {
	"--test-samples", "--dropout",       "--seq-len",        "--layers",   "--width",        "--heads",
	"--ffn",          "--max-len",       "--global-batch",   "--leaf",     "--lr",           "--momentum",
	"--beta1",        "--beta2",         "--epsilon",        "--schedule", "--weight-decay", "--clip-norm",
	"--lr-min",       "--lr-step-every", "--lr-step-factor", "--seed",     "--pin",          "--staleness",
	"--share",        "--exchange",      "--bucket-bytes",   "--timeout",  "--audit-every",  "--ckpt-every",
	"--keep",         "--log-every",     "--eval-every",
};
static const char *const without_value[] = { "--cased", "--phrases", "--replace-invalid", "--nesterov",
					     "--lr-scale-workers" };

static const char *const own_field[] = { "--model",   "--data",      "--optimizer", "--nodes", "--devices", "--threads",
					 "--servers", "--placement", "--wire",      "--batch", "--rate",    "--samples",
					 "--steps",   "--warmup",    "--repeat",    "--epochs" };

/* Is the option "--name" or "--name=value" on a list? */
static int is_on(const char *const *list, size_t count, const char *word)
{
	size_t length = strcspn(word, "=");
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == length && !strncmp(list[i], word, length))
			return 1;
	return 0;
}

static ls_status refuse(const ls_json_place *at, const char *word)
{
	const char *candidates[LS_COUNT(with_value) + LS_COUNT(without_value)];
	char option[64], shown[128];

	snprintf(option, sizeof(option), "%.*s", (int)strcspn(word, "="), word);
	ls_text_printable(shown, sizeof(shown), option);
	if (is_on(own_field, LS_COUNT(own_field), word))
		return ls_fail(LS_EFORMAT, "%s: %sarguments has %s, which has a field of its own", at->label,
			       at->prefix, shown);
	memcpy(candidates, with_value, sizeof(with_value));
	memcpy(candidates + LS_COUNT(with_value), without_value, sizeof(without_value));
	const char *nearest = ls_name_nearest(option, candidates, LS_COUNT(candidates));
	if (nearest != NULL && strcmp(nearest, option) != 0)
		return ls_fail(LS_EFORMAT, "%s: %sarguments has '%s', which a recipe may not set; did you mean '%s'?",
			       at->label, at->prefix, shown, nearest);
	return ls_fail(LS_EFORMAT,
		       "%s: %sarguments has '%s', which a recipe may not set: only options of training that name no "
		       "file; give it on the command line",
		       at->label, at->prefix, shown);
}

static ls_status check_words(const ls_json_place *at, char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int given = strchr(words[i], '=') != NULL;
		if (is_on(without_value, LS_COUNT(without_value), words[i]) && !given)
			continue;
		if (!is_on(with_value, LS_COUNT(with_value), words[i]))
			return refuse(at, words[i]);
		if (!given && ++i == count)
			return ls_fail(LS_EFORMAT, "%s: %sarguments ends with %s, which needs a value", at->label,
				       at->prefix, words[count - 1]);
	}
	return LS_OK;
}

ls_status ls_recipe_arguments_check(const ls_json_place *at, const char *arguments)
{
	ls_arena arena = { 0 };
	ls_argv words = { .arena = &arena };
	char **word = NULL;
	size_t count = 0;
	ls_status status = ls_argv_split(&words, arguments);

	if (status != LS_OK) {
		char why[512];
		snprintf(why, sizeof(why), "%s", ls_last_error());
		status = ls_fail(LS_EFORMAT, "%s: %s%s", at->label, at->prefix, why);
	} else {
		count = words.count;
		status = ls_argv_end(&words, &word);
	}
	if (status == LS_OK && count > 0)
		status = check_words(at, word, count);
	ls_arena_release(&arena);
	return status;
}
