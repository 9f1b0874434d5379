/*
 * args.h - a subcommand's command line, declared as a table.
 *
 * Rows are the library's ls_setting, so that an option reads, is checked and fails in the same words whichever
 * command it belongs to.
 */
#ifndef LS_CLI_ARGS_H
#define LS_CLI_ARGS_H

#include <stddef.h>

#include <lockstep/train.h>

typedef struct ls_args {
	const char *command;  /* "lockstep train" */
	const char *operands; /* shown in the usage line, "RUN|FILE"; NULL: takes none */
	const char *purpose;  /* one or two lines */
	const char *example;  /* the last line of help; may be NULL */
	int operands_min, operands_max;
	int brief; /* --help shows the common rows alone; `--help GROUP` and `--help all` the others */
	const ls_setting *(*at)(size_t i);
	/* The values of a row that have names; NULL: by ls_setting_value_at(). */
	int (*value_at)(const ls_setting *row, size_t i, ls_setting_value *out);
	/* How a row's field is set; NULL: by ls_setting_set(). */
	ls_status (*set)(void *options, const ls_setting *row, const char *value);
} ls_args;

/* The `at` function of a static array of rows. */
#define LS_ARGS_TABLE(function, rows)                                                                                  \
	static const ls_setting *function(size_t i)                                                                    \
	{                                                                                                              \
		return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;                                           \
	}

/* The same, and then the rows of another `at` function. */
#define LS_ARGS_TABLE_AND(function, rows, next)                                                                        \
	static const ls_setting *function(size_t i)                                                                    \
	{                                                                                                              \
		size_t own = sizeof(rows) / sizeof(rows[0]);                                                           \
		return i < own ? &rows[i] : next(i - own);                                                             \
	}

/* Most rows a table may have. */
enum { LS_ARGS_MAX = 96 };

/* Go on: ls_args_parse() returns this, or else the code to exit with. */
enum { LS_ARGS_GO = -1 };

/*
 * Fill `options` (which holds the defaults) and operands[0 .. operands_max), NULL where not given. Prints help on
 * request, and a message with a hint for a mistake.
 */
int ls_args_parse(const ls_args *args, void *options, const char **operands, int argc, char **argv);

/* `lockstep train --help`: usage, purpose, options in groups with defaults in the place of values, an example. `topic`
 * is a group, by the beginning of its heading, or "all"; NULL: what most jobs want. Returns the code to exit with. */
int ls_args_help(const ls_args *args, const void *defaults, const char *topic);

/* `lockstep train --help --strategy`: the option, and its values with a line on each where they have names. The shell's
 * completion reads this. */
int ls_args_help_option(const ls_args *args, const void *defaults, const ls_setting *row);

#endif
