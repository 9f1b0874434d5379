/*
 * args.c - glibc's argp on a table of ls_setting rows, with our own words for mistakes.
 *
 * argp walks the command line; it runs silently, because its messages contain neither the nearest name nor the range of
 * a number. A key above the characters stands for a row: KEY_OF_ROW + index.
 */
#include "args.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

#include "command.h"
#include "messages.h"

enum { KEY_OF_ROW = 256 };

typedef struct parse {
	const ls_args *args;
	void *options;
	const char **operands;
	int operand_count;
	int code; /* LS_ARGS_GO, or what to exit with */
} parse;

static const ls_setting *row_of_key(const ls_args *args, int key)
{
	const ls_setting *row;
	if (key >= KEY_OF_ROW)
		return args->at((size_t)(key - KEY_OF_ROW));
	for (size_t i = 0; (row = args->at(i)); i++)
		if (row->key && row->key == key)
			return row;
	return NULL;
}

static const ls_setting *row_of_name(const ls_args *args, const char *name, size_t length)
{
	const ls_setting *row;
	for (size_t i = 0; (row = args->at(i)); i++)
		if (strlen(row->name) == length && !strncmp(row->name, name, length))
			return row;
	return NULL;
}

static int unknown_option(const ls_args *args, const char *dashes, const char *typed, size_t length)
{
	const char *names[LS_ARGS_MAX + 1] = { "help" };
	char name[64], advice[256];
	size_t count = 1;
	const ls_setting *row;
	for (; count <= LS_ARGS_MAX && (row = args->at(count - 1)); count++)
		names[count] = row->name;
	snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1), typed);
	ls_option_explain(advice, sizeof(advice), name, names, count);
	return ls_usage_error(args->command, "unknown option '%s%s'%s", dashes, name, advice);
}

/* An option may be cut short as long as only one begins so; says which do when there are several. Returns LS_ARGS_GO
 * when that is not what is wrong. */
static int ambiguous_option(const ls_args *args, const char *typed, size_t length)
{
	char list[512] = "";
	size_t used = 0;
	int count = 0;
	const ls_setting *row;
	for (size_t i = 0; length && (row = args->at(i)); i++) {
		if (strncmp(row->name, typed, length) != 0 || used >= sizeof(list))
			continue;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s--%s", count++ ? ", " : "", row->name);
	}
	if (count < 2)
		return LS_ARGS_GO;
	return ls_usage_error(args->command, "'--%.*s' may be %s", (int)length, typed, list);
}

/* argp only reports that it could not parse a word; find out why. */
static int explain(const ls_args *args, const char *word)
{
	if (strncmp(word, "--", 2) != 0) {
		const ls_setting *brief = row_of_key(args, word[1]);
		if (brief)
			return ls_usage_error(args->command, "-%c needs a value, %s", brief->key, brief->arg);
		return unknown_option(args, "-", word + 1, strcspn(word + 1, "="));
	}
	const char *name = word + 2;
	size_t length = strcspn(name, "=");
	const ls_setting *row = row_of_name(args, name, length);
	if (row && row->arg)
		return ls_usage_error(args->command, "--%s needs a value, %s", row->name, row->arg);
	if (row)
		return ls_usage_error(args->command, "--%s takes no value", row->name);
	int code = ambiguous_option(args, name, length);
	return code != LS_ARGS_GO ? code : unknown_option(args, "--", name, length);
}

/* Whether a word by itself is as it should be: an operand, a flag, an option with its value. */
static int is_well_formed(const ls_args *args, const char *word)
{
	if (word[0] != '-' || !word[1])
		return 1;
	size_t length = strcspn(word + 2, "=");
	int is_long = word[1] == '-';
	const ls_setting *row = is_long ? row_of_name(args, word + 2, length) : row_of_key(args, word[1]);
	int has_value = is_long ? word[2 + length] == '=' : word[2] != '\0';
	return row && has_value == (row->arg != NULL);
}

/* Where argp stopped: at the word before the next one, or inside the next, "-lr", with characters left. */
static const char *wrong_word(const ls_args *args, const struct argp_state *state)
{
	const char *before = state->argv[state->next - 1];
	const char *next = state->next < state->argc ? state->argv[state->next] : NULL;
	return next && is_well_formed(args, before) && next[0] == '-' && next[1] != '-' ? next : before;
}

static error_t take_operand(parse *p, const char *operand)
{
	if (p->operand_count < p->args->operands_max) {
		p->operands[p->operand_count++] = operand;
		return 0;
	}
	p->code = ls_usage_error(p->args->command, "'%s' is one argument too many", operand);
	return EINVAL;
}

static int is_alias(const char *name, size_t length)
{
	const ls_option_alias *alias;
	for (size_t i = 0; (alias = ls_option_alias_at(i)); i++)
		if (strlen(alias->name) == length && !strncmp(alias->name, name, length))
			return 1;
	return 0;
}

/* A value that its option refuses. Where the option was cut short to another trainer's name, as in "--device cuda",
 * that is what is wrong. */
static int refused(const ls_args *args, const struct argp_state *state, const ls_setting *row, const char *value,
		   ls_status status)
{
	const char *word = state->argv[state->next - 1];
	if (value && word == value && state->next > 1)
		word = state->argv[state->next - 2];
	size_t length = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
	if (length && length != strlen(row->name) && is_alias(word + 2, length))
		return unknown_option(args, "--", word + 2, length);
	return ls_command_finish(args->command, status);
}

/* "-run zz" is -r with the value "un" to argp; a whole long name after one dash was meant as that. NULL: there is none.
 */
static const char *one_dash_word(const ls_args *args, const struct argp_state *state, const char *value)
{
	const char *word = state->argv[state->next - 1];
	int is_glued = value && word[0] == '-' && value == word + 2;
	return is_glued && row_of_name(args, word + 1, strcspn(word + 1, "=")) ? word : NULL;
}

static error_t take(int key, char *value, struct argp_state *state)
{
	parse *p = state->input;
	switch (key) {
	case ARGP_KEY_ARG:
		return take_operand(p, value);
	case ARGP_KEY_ERROR:
		if (p->code == LS_ARGS_GO)
			p->code = explain(p->args, wrong_word(p->args, state));
		return 0;
	}
	const ls_setting *row = row_of_key(p->args, key);
	if (!row)
		return ARGP_ERR_UNKNOWN;
	const char *word = one_dash_word(p->args, state, value);
	if (word) {
		p->code = unknown_option(p->args, "-", word + 1, strcspn(word + 1, "="));
		return EINVAL;
	}
	ls_status status = p->args->set ? p->args->set(p->options, row, value) : ls_setting_set(row, p->options, value);
	if (status)
		p->code = refused(p->args, state, row, value, status);
	return status ? EINVAL : 0;
}

static void list_options(const ls_args *args, struct argp_option out[LS_ARGS_MAX + 1])
{
	const ls_setting *row;
	size_t i = 0;
	for (; i < LS_ARGS_MAX && (row = args->at(i)); i++) {
		int key = row->key ? row->key : KEY_OF_ROW + (int)i;
		out[i] = (struct argp_option){ .name = row->name, .key = key, .arg = row->arg, .doc = row->help };
	}
	out[i] = (struct argp_option){ 0 };
}

/* The option that a word such as "--strategy" or "-m" is; NULL: none. */
static const ls_setting *row_of_word(const ls_args *args, const char *word)
{
	if (strncmp(word, "--", 2) == 0)
		return row_of_name(args, word + 2, strlen(word + 2));
	return word[0] == '-' && word[1] && !word[2] ? row_of_key(args, word[1]) : NULL;
}

/* Help is wanted whatever else is typed, and shows defaults, so it comes before anything is set. What stands behind it
 * is its topic, where there are topics, or as the last word an option. Returns LS_ARGS_GO when it is not wanted. */
static int help(const ls_args *args, const void *options, int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0)
			continue;
		const char *next = i + 1 < argc ? argv[i + 1] : "";
		const ls_setting *row = i + 2 == argc ? row_of_word(args, next) : NULL;
		if (row)
			return ls_args_help_option(args, options, row);
		return ls_args_help(args, options, args->brief && *next && *next != '-' ? next : NULL);
	}
	return LS_ARGS_GO;
}

int ls_args_parse(const ls_args *args, void *options, const char **operands, int argc, char **argv)
{
	ls_messages_use(args);
	int code = help(args, options, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	struct argp_option list[LS_ARGS_MAX + 1];
	list_options(args, list);
	struct argp argp = { .options = list, .parser = take };
	parse p = { .args = args, .options = options, .operands = operands, .code = LS_ARGS_GO };
	for (int i = 0; i < args->operands_max; i++)
		operands[i] = NULL;
	error_t error = argp_parse(&argp, argc, argv, ARGP_NO_HELP | ARGP_NO_ERRS | ARGP_NO_EXIT, NULL, &p);
	if (error && p.code == LS_ARGS_GO)
		return ls_usage_error(args->command, "cannot read the arguments: %s", strerror(error));
	if (error)
		return p.code;
	if (p.operand_count < args->operands_min)
		return ls_usage_error(args->command, "%s is missing", args->operands);
	return LS_ARGS_GO;
}
