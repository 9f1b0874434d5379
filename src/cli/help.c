/*
 * help.c - help that fits a screen.
 *
 * An option is shown as it would be typed, with its default in the place of the value ("--lr 0.001"), or the kind of
 * value where it has none. Options stand in groups, one or two to a line.
 */
#include <stdio.h>
#include <string.h>

#include "args.h"

enum { NAME_WIDTH = 20, HELP_WIDTH = 18 };

static int is_unset(const char *text)
{
	return !*text || !strcmp(text, "0");
}

static void print_option(const ls_setting *row, const void *defaults, int pad)
{
	char value[64] = "", shown[128];
	if (row->arg)
		ls_setting_format(row, defaults, value, sizeof value);
	snprintf(shown, sizeof shown, "--%s%s%s", row->name, row->arg ? " " : "",
		 !row->arg         ? ""
		 : is_unset(value) ? row->arg
				   : value);
	printf(" %-*s %-*s", NAME_WIDTH, shown, pad ? HELP_WIDTH : 0, row->help);
}

static void print_options(const ls_args *args, const void *defaults)
{
	const char *group = NULL;
	int column = 0;
	const ls_setting *row, *next;
	for (size_t i = 0; (row = args->at(i)); i++) {
		if (row->group && (!group || strcmp(group, row->group) != 0)) {
			printf("%s:\n", row->group);
			group = row->group;
			column = 0;
		}
		next = args->at(i + 1);
		int same_group = next && (!next->group || !strcmp(next->group, group ? group : ""));
		int line_ends = !same_group || ++column % args->columns == 0;
		print_option(row, defaults, !line_ends);
		if (line_ends)
			putchar('\n');
	}
}

void ls_args_help(const ls_args *args, const void *defaults)
{
	printf("usage: %s%s%s [OPTION]...\n%s\n", args->command, args->operands ? " " : "",
	       args->operands ? args->operands : "", args->purpose);
	print_options(args, defaults);
	if (args->example)
		printf("Example: %s\n", args->example);
}
