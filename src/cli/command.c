/*
 * command.c - finding a subcommand, and telling what went wrong the same way everywhere.
 */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/train.h>

enum { COMMANDS_MAX = 16 };

static void hint(const char *command)
{
	fprintf(stderr, "try '%s --help'\n", command);
}

int ls_usage_error(const char *command, const char *format, ...)
{
	va_list arguments;
	fprintf(stderr, "%s: ", command);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	hint(command);
	return LS_EXIT_USAGE;
}

int ls_command_finish(const char *command, ls_status status)
{
	if (status == LS_OK)
		return LS_EXIT_OK;
	int told_elsewhere = ls_last_error()[0] == '\0'; /* by another node of the run */
	if (!told_elsewhere)
		fprintf(stderr, "%s: %s\n", command, ls_last_error());
	if (status != LS_EINVALID)
		return LS_EXIT_FAILURE;
	if (!told_elsewhere)
		hint(command);
	return LS_EXIT_USAGE;
}

static int print_help(const ls_command_group *group, FILE *to, int code)
{
	fprintf(to, "usage: %s COMMAND [OPTION]...\n%s\n\n", group->name, group->purpose);
	for (size_t i = 0; i < group->count; i++)
		fprintf(to, "  %-8s %s\n", group->commands[i].name, group->commands[i].summary);
	fprintf(to, "\n'%s COMMAND --help' tells what a command takes.\n%s", group->name,
		group->more ? group->more : "");
	return code;
}

static int unknown_command(const ls_command_group *group, const char *typed)
{
	const char *names[COMMANDS_MAX];
	size_t count = 0;
	for (; count < group->count && count < COMMANDS_MAX; count++)
		names[count] = group->commands[count].name;
	const char *kind = typed[0] == '-' ? "option" : "command";
	const char *nearest = ls_name_nearest(typed, names, count);
	if (nearest)
		return ls_usage_error(group->name, "unknown %s '%s'; did you mean '%s'?", kind, typed, nearest);
	return ls_usage_error(group->name, "unknown %s '%s'", kind, typed);
}

int ls_command_dispatch(const ls_command_group *group, int argc, char **argv)
{
	if (argc < 2)
		return print_help(group, stderr, LS_EXIT_USAGE);
	const char *name = argv[1];
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
		return print_help(group, stdout, LS_EXIT_OK);
	for (size_t i = 0; i < group->count; i++)
		if (!strcmp(group->commands[i].name, name))
			return group->commands[i].run(argc - 1, argv + 1);
	return unknown_command(group, name);
}
