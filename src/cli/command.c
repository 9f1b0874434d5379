/*
 * command.c - finding a subcommand, and printing errors the same way everywhere.
 */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/launch.h>
#include <lockstep/train.h>

#include "messages.h"

enum { COMMANDS_MAX = 16 };

static void hint(const char *command)
{
	fprintf(stderr, "try '%s --help'\n", command);
}

__attribute__((format(printf, 3, 0))) static void print_end(const char *command, ls_status status, const char *format,
							    va_list arguments)
{
	char *text = NULL, *whole = NULL;
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	if (!text || asprintf(&whole, "%s: %s", command, text) < 0)
		whole = NULL;
	if (whole)
		ls_messages_rewrite(whole);
	ls_launch_report_end(status, whole ? whole : "lockstep: out of memory");
	free(whole);
	free(text);
}

int ls_usage_error(const char *command, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	print_end(command, LS_EINVALID, format, arguments);
	va_end(arguments);
	hint(command);
	return LS_EXIT_USAGE;
}

void ls_command_end(const char *command, ls_status status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	print_end(command, status, format, arguments);
	va_end(arguments);
}

int ls_command_finish(const char *command, ls_status status)
{
	if (status == LS_OK)
		return LS_EXIT_OK;
	int reported_elsewhere = ls_last_error()[0] == '\0'; /* by another node of the run */
	if (!reported_elsewhere)
		ls_command_end(command, status, "%s", ls_last_error());
	if (status != LS_EINVALID)
		return LS_EXIT_FAILURE;
	if (!reported_elsewhere)
		hint(command);
	return LS_EXIT_USAGE;
}

char **ls_command_words(const char *command, int argc, char **argv, size_t before, size_t behind)
{
	char **words = calloc(before + (size_t)argc + behind + 1, sizeof(*words));
	if (words)
		memcpy(words + before, argv, (size_t)argc * sizeof(*words));
	else
		ls_command_end(command, LS_EMEMORY, "no memory for a command line of %d words", argc);
	return words;
}

static int print_help(const ls_command_group *group, FILE *to, int code)
{
	fprintf(to, "usage: %s COMMAND [OPTION]...\n%s\n\n", group->name, group->purpose);
	for (size_t i = 0; i < group->count; i++)
		fprintf(to, "  %-8s %s\n", group->commands[i].name, group->commands[i].summary);
	fprintf(to, "\n'%s COMMAND --help' lists the options of a command.\n%s", group->name,
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
