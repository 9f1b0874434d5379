/*
 * command.h - subcommands as rows of a table, and how a command ends.
 */
#ifndef LS_CLI_COMMAND_H
#define LS_CLI_COMMAND_H

#include <stddef.h>

#include <lockstep/status.h>

/* What a command exits with. One that was stopped by signal s exits with 128 + s. */
enum { LS_EXIT_OK = 0, LS_EXIT_FAILURE = 1, LS_EXIT_USAGE = 2, LS_EXIT_SKIPPED = 3 };

typedef struct ls_command {
	const char *name, *summary;
	int (*run)(int argc, char **argv); /* argv[0] is the command's own name; returns the exit code */
} ls_command;

/* A command that only has subcommands: "lockstep" itself, and "lockstep data". */
typedef struct ls_command_group {
	const char *name; /* "lockstep data": as typed, and as errors begin */
	const char *purpose;
	const char *more; /* printed below the table of subcommands; may be NULL */
	const ls_command *commands;
	size_t count;
} ls_command_group;

extern const ls_command_group ls_commands; /* of "lockstep": the table in commands.c */

/* Run the subcommand that argv[1] names; --help prints the table, an unknown name suggests the nearest. */
int ls_command_dispatch(const ls_command_group *group, int argc, char **argv);

/* Print "<command>: <message>" and "try '<command> --help'" on stderr; returns LS_EXIT_USAGE. */
int ls_usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Print "<command>: <message>", with which the command ends, on stderr, in a node for its launcher, too. */
void ls_command_end(const char *command, ls_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Print "<command>: <ls_last_error()>" on stderr and return the exit code for `status`; 0 and silence for LS_OK. */
int ls_command_finish(const char *command, ls_status status);

/* A copy of the words of a command line (free() it), with `before` NULLs in front of them and `behind` after them, and
 * one at the end. NULL, with a message, without memory: an LS_EXIT_FAILURE. */
char **ls_command_words(const char *command, int argc, char **argv, size_t before, size_t behind);

/* The subcommands, one file each: cmd_train.c ... */
int ls_cmd_train(int argc, char **argv);
int ls_cmd_eval(int argc, char **argv);
int ls_cmd_predict(int argc, char **argv);
int ls_cmd_generate(int argc, char **argv);
int ls_cmd_serve(int argc, char **argv);
int ls_cmd_export(int argc, char **argv);
int ls_cmd_data(int argc, char **argv);
int ls_cmd_models(int argc, char **argv);
int ls_cmd_bench(int argc, char **argv);
int ls_cmd_plan(int argc, char **argv);
int ls_cmd_probe(int argc, char **argv);
int ls_cmd_report(int argc, char **argv);
int ls_cmd_slurm(int argc, char **argv);
int ls_cmd_k8s(int argc, char **argv);

#endif
