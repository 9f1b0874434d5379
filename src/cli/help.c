/*
 * help.c - help that fits a screen.
 *
 * An option is shown as it would be typed, with its default in the place of the value ("--lr 0.001"), or the kind of
 * value where it has none. Options stand in groups, one or two to a line. A long table is shown in parts: the rows it
 * marks as common, one group, or all of it.
 */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "command.h"

enum { NAME_WIDTH = 20, HELP_WIDTH = 18 };

static int is_unset(const char *text)
{
	return !*text || !strcmp(text, "0");
}

static void print_option(const ls_setting *row, const void *defaults, int pad)
{
	char value[64] = "", shown[128];
	if (row->arg)
		ls_setting_format(row, defaults, value, sizeof(value));
	snprintf(shown, sizeof(shown), "--%s%s%s", row->name, row->arg ? " " : "",
		 !row->arg         ? ""
		 : is_unset(value) ? row->arg
				   : value);
	printf(" %-*s %-*s", NAME_WIDTH, shown, pad ? HELP_WIDTH : 0, row->help);
}

/* The part of a table that is shown. */
typedef struct part {
	const ls_args *args;
	const char *group; /* NULL: of all groups ... */
	int common;        /* ... the common rows alone */
} part;

/* The next row of the part, from index *i on, which is moved behind it; NULL: no more. */
static const ls_setting *next_row(const part *p, size_t *i)
{
	const ls_setting *row;
	while ((row = p->args->at((*i)++))) {
		int wanted = p->group ? row->group && !strcmp(row->group, p->group)
				      : !p->common || (row->marks & LS_SETTING_COMMON);
		if (wanted)
			return row;
	}
	return NULL;
}

static int same_group(const ls_setting *row, const ls_setting *next)
{
	return next && (!next->group || (row->group && !strcmp(next->group, row->group)));
}

static void print_options(const part *p, const void *defaults)
{
	size_t i = 0;
	int column = 0;
	const ls_setting *before = NULL, *row = next_row(p, &i), *next;
	for (; row; before = row, row = next) {
		next = next_row(p, &i);
		if (row->group && !(before && same_group(before, row))) {
			printf("%s:\n", row->group);
			column = 0;
		}
		int line_ends = !same_group(row, next) || ++column % p->args->columns == 0;
		print_option(row, defaults, !line_ends);
		if (line_ends)
			putchar('\n');
	}
}

/* "text" of "Text": headings are known by their first word, in small letters. */
static const char *topic_of(const ls_setting *row, char *out, size_t size)
{
	snprintf(out, size, "%.*s", (int)strcspn(row->group, " "), row->group);
	for (char *c = out; *c; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
	return out;
}

/* The heading of the topic named; NULL: none, and `list` has those there are, "model|text|all". */
static const char *find_topic(const ls_args *args, const char *topic, char *list, size_t size)
{
	const ls_setting *row, *before = NULL;
	char word[32];
	size_t used = 0;
	for (size_t i = 0; (row = args->at(i)); before = row, i++) {
		if (before && same_group(before, row))
			continue;
		topic_of(row, word, sizeof(word));
		if (topic && !strcmp(topic, word))
			return row->group;
		if (used < size)
			used += (size_t)snprintf(list + used, size - used, "%s|", word);
	}
	if (used < size)
		snprintf(list + used, size - used, "all");
	return NULL;
}

int ls_args_help(const ls_args *args, const void *defaults, const char *topic)
{
	char topics[160] = "";
	part p = { .args = args, .common = args->brief && !topic };
	if (args->brief)
		p.group = find_topic(args, topic, topics, sizeof(topics));
	if (topic && !p.group && strcmp(topic, "all") != 0)
		return ls_usage_error(args->command, "no help on '%s'; there is --help %s", topic, topics);
	printf("usage: %s%s%s [OPTION]...\n%s\n", args->command, args->operands ? " " : "",
	       args->operands ? args->operands : "", args->purpose);
	print_options(&p, defaults);
	if (p.common)
		printf("More: --help %s\n", topics);
	if (args->example && !topic)
		printf("Example: %s\n", args->example);
	return LS_EXIT_OK;
}
