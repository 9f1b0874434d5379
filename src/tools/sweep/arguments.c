/*
 * arguments.c - the options that "arguments" of a recipe may contain.
 *
 * Recipes may come from strangers, and running one must not do more than train and measure. Only settings of training
 * are allowed, none that names a file or a directory, starts processes on other hosts, or has a field of its own (the
 * results would record the field, while the argument takes effect). Users give such options on the command line.
 */
#include "tools/sweep/arguments.h"

#include <stdio.h>
#include <string.h>

#include <lockstep/models.h>

#include "base/array.h"
#include "base/names.h"
#include "tools/sweep/command.h"

/* An option that a recipe may set. */
typedef struct argument {
	const char *name;
	int has_value, of_bench; /* of_bench: lockstep bench has it, too */
} argument;

static const argument arguments[] = {
	{ "--dropout", 1, 1 },
	{ "--seq-len", 1, 1 },
	{ "--layers", 1, 1 },
	{ "--width", 1, 1 },
	{ "--heads", 1, 1 },
	{ "--ffn", 1, 1 },
	{ "--batch", 1, 1 },
	{ "--micro-batch", 1, 1 },
	{ "--seed", 1, 1 },
	{ "--pin", 1, 1 },
	{ "--staleness", 1, 1 },
	{ "--share", 1, 1 },
	{ "--bucket-bytes", 1, 1 },
	{ "--timeout", 1, 1 },
	{ "--test-samples", 1, 1 },
	{ "--max-len", 1, 1 },
	{ "--lr", 1, 1 },
	{ "--momentum", 1, 1 },
	{ "--beta1", 1, 1 },
	{ "--beta2", 1, 1 },
	{ "--epsilon", 1, 1 },
	{ "--schedule", 1, 0 },
	{ "--weight-decay", 1, 1 },
	{ "--clip-norm", 1, 1 },
	{ "--lr-min", 1, 0 },
	{ "--lr-step-every", 1, 0 },
	{ "--audit-every", 1, 0 },
	{ "--lr-step-factor", 1, 0 },
	{ "--ckpt-every", 1, 0 },
	{ "--keep", 1, 0 },
	{ "--log-every", 1, 0 },
	{ "--eval-every", 1, 0 },
	{ "--cased", 0, 1 },
	{ "--phrases", 0, 1 },
	{ "--replace-invalid", 0, 0 },
	{ "--nesterov", 0, 1 },
	{ "--lr-scale-workers", 0, 0 },
	{ "--augment", 1, 0 },
	{ "--label-smoothing", 1, 0 },
	{ "--image-size", 1, 1 },
};

static const char *const own_field[] = { "--model",     "--data",    "--optimizer", "--nodes", "--devices",
					 "--threads",   "--servers", "--strategy",  "--wire",  "--batch-per-device",
					 "--precision", "--rate",    "--samples",   "--steps", "--warmup",
					 "--repeat",    "--epochs" };

/* Name of the field that the option sets: "batch_per_device". */
static const char *field_of(const char *option, char *out, size_t size)
{
	snprintf(out, size, "%s", option + 2);
	for (char *at = out; *at; at++)
		*at = *at == '-' ? '_' : *at;
	return out;
}

/* Options that exist but are refused: no "did you mean" for them. */
static const char *const refused[] = {
	"--run",   "--resume",       "--init",        "--trace",   "--trace-steps", "--vocab",       "--data-dir",
	"--hosts", "--out",          "--plan-memory", "--profile", "--fault-every", "--profile-out", "--replay",
	"--quiet", "--replay-speed", "--json",        "--list",    "--again",       "--quick",       "--full",
	"--help",  "--epoch",        "--launches",    "--seeds",   "--channels",    "--classes"
};

/* Is `word` the option "--name" or "--name=value"? */
static int is_option(const char *name, const char *word)
{
	return strlen(name) == strcspn(word, "=") && !strncmp(name, word, strlen(name));
}

static int is_on(const char *const *list, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (is_option(list[i], word))
			return 1;
	return 0;
}

static const argument *argument_of(const char *word)
{
	for (size_t i = 0; i < LS_COUNT(arguments); i++)
		if (is_option(arguments[i].name, word))
			return &arguments[i];
	return NULL;
}

/* The nearest argument or field to `option`, which does not exist. */
static const char *nearest_of(const char *option)
{
	const char *candidates[LS_COUNT(arguments) + LS_COUNT(own_field)];

	if (strncmp(option, "--", 2) != 0 || is_on(refused, LS_COUNT(refused), option))
		return NULL;
	for (size_t i = 0; i < LS_COUNT(arguments); i++)
		candidates[i] = arguments[i].name;
	memcpy(candidates + LS_COUNT(arguments), own_field, sizeof(own_field));
	return ls_name_nearest(option, candidates, LS_COUNT(candidates));
}

static ls_status refuse(const ls_json_place *at, const char *word)
{
	char option[64], shown[128], field[128];

	snprintf(option, sizeof(option), "%.*s", (int)strcspn(word, "="), word);
	ls_text_printable(shown, sizeof(shown), option);
	if (is_on(own_field, LS_COUNT(own_field), word))
		return ls_fail(LS_EFORMAT, "%s: %sarguments has %s, which has a field of its own, \"%s\"", at->label,
			       at->prefix, shown, field_of(shown, field, sizeof(field)));
	const char *nearest = nearest_of(option);
	if (nearest && is_on(own_field, LS_COUNT(own_field), nearest))
		return ls_fail(LS_EFORMAT,
			       "%s: %sarguments has '%s', which is not an option; did you mean the field \"%s\"?",
			       at->label, at->prefix, shown, field_of(nearest, field, sizeof(field)));
	if (nearest)
		return ls_fail(LS_EFORMAT, "%s: %sarguments has '%s', which is not an option; did you mean '%s'?",
			       at->label, at->prefix, shown, nearest);
	return ls_fail(LS_EFORMAT,
		       "%s: %sarguments has '%s', which a recipe may not set: only options of training that name no "
		       "file; give it on the command line",
		       at->label, at->prefix, shown);
}

static ls_status check_words(const ls_json_place *at, int is_bench, char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const argument *a = argument_of(words[i]);
		int given = strchr(words[i], '=') != NULL;
		if (!a)
			return refuse(at, words[i]);
		if (is_bench && !a->of_bench)
			return ls_fail(LS_EFORMAT,
				       "%s: %sarguments has '%s', which lockstep bench does not have; use it with "
				       "\"kind\": \"train\"",
				       at->label, at->prefix, a->name);
		if (given && !a->has_value)
			return ls_fail(LS_EFORMAT, "%s: %sarguments has '%s', and %s takes no value", at->label,
				       at->prefix, words[i], a->name);
		if (a->has_value && !given && ++i == count)
			return ls_fail(LS_EFORMAT, "%s: %sarguments ends with %s, which needs a value", at->label,
				       at->prefix, words[count - 1]);
	}
	return LS_OK;
}

/* Words of `text` in the arena. */
static ls_status split(ls_arena *arena, const char *text, char ***out, size_t *count)
{
	ls_argv words = { .arena = arena };

	LS_TRY(ls_argv_split(&words, text));
	*count = words.count;
	return ls_argv_end(&words, out);
}

ls_status ls_recipe_arguments_check(const ls_json_place *at, const char *kind, const char *text)
{
	ls_arena arena = { 0 };
	char **word = NULL;
	size_t count = 0;
	ls_status status = split(&arena, text, &word, &count);

	if (status != LS_OK) {
		char why[512];
		snprintf(why, sizeof(why), "%s", ls_last_error());
		status = ls_fail(LS_EFORMAT, "%s: %s%s", at->label, at->prefix, why);
	}
	if (status == LS_OK && count > 0)
		status = check_words(at, !strcmp(kind, "bench"), word, count);
	ls_arena_release(&arena);
	return status;
}

ls_status ls_recipe_argument_of(const char *text, const char *name, char *out, size_t size, int *found)
{
	ls_arena arena = { 0 };
	char **word = NULL, option[64];
	size_t count = 0;
	ls_status status = split(&arena, text, &word, &count);

	*found = 0;
	snprintf(option, sizeof(option), "--%s", name);
	for (size_t i = 0; i < count && status == LS_OK; i++) {
		const char *value = strchr(word[i], '=');
		if (!is_option(option, word[i]))
			continue;
		const argument *a = argument_of(word[i]);
		if (value)
			value++;
		else if (a && !a->has_value)
			value = "on";
		else
			value = i + 1 < count ? word[i + 1] : "";
		snprintf(out, size, "%s", value);
		*found = 1;
	}
	ls_arena_release(&arena);
	return status;
}

/* Options for some models only. */
static int model_has(const ls_model_row *row, const char *option)
{
	static const char *const sizes[] = { "--layers", "--width", "--heads", "--ffn", "--max-len" };
	static const char *const text[] = { "--seq-len", "--cased", "--phrases" };

	return (row->has_sizes || !is_on(sizes, LS_COUNT(sizes), option)) &&
	       (row->is_text || !is_on(text, LS_COUNT(text), option));
}

ls_status ls_recipe_arguments_fit(const ls_json_place *at, const char *text, const char *model)
{
	const ls_model_row *row = ls_model_row_of(model);
	ls_arena arena = { 0 };
	char **word = NULL;
	size_t count = 0;
	ls_status status = split(&arena, text, &word, &count);

	for (size_t i = 0; row && i < count && status == LS_OK; i++)
		if (!strncmp(word[i], "--", 2) && !model_has(row, word[i]))
			status = ls_fail(LS_EFORMAT, "%s: %sarguments has %.*s, which model %s does not have",
					 at->label, at->prefix, (int)strcspn(word[i], "="), word[i], model);
	ls_arena_release(&arena);
	return status;
}

int ls_recipe_argument_is_of_bench(const char *word, int *words)
{
	static const argument precision = { "--precision", 1, 1 }; /* has a field, from which it became an argument */
	const argument *a = is_option(precision.name, word) ? &precision : argument_of(word);

	*words = a && a->has_value && !strchr(word, '=') ? 2 : 1;
	return a && a->of_bench;
}
