/*
 * help.c - one option per line: its name, the kind of value, what it does, its default.
 *
 *     -b, --batch N          use N samples per step, over all devices (default 128)
 *
 * The names in a help text, "exchange by {values}", are those of the tables of the library.
 *
 * Options stand in groups, within 80 columns; what does not fit goes on below. A long table is shown in parts: the rows
 * it marks as common, one group, or all rows.
 */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "command.h"

enum { LINE = 80, TEXT_COLUMN = 25, GLUE = '\t' /* a space at which no line ends */ };

/* "(default 0.001)", in one piece, or "" where the text says it, or there is no value that stands for itself. */
static void describe_default(const ls_setting *row, const void *defaults, char *out, size_t size)
{
	char value[64] = "";
	out[0] = '\0';
	if (!row->arg || strstr(row->help, "default"))
		return;
	ls_setting_format(row, defaults, value, sizeof(value));
	int stands_for_another = !*value || value[0] == '-' || ((row->marks & LS_SETTING_NOT_0) && !strcmp(value, "0"));
	if (!stands_for_another)
		snprintf(out, size, "(default%c%s)", GLUE, value);
}

static int value_at(const ls_args *args, const ls_setting *row, size_t i, ls_setting_value *out)
{
	return args->value_at ? args->value_at(row, i, out) : ls_setting_value_at(row, i, out);
}

/* "exchange by allreduce, ps or mpi" of "exchange by {values}"; a text without that is the same text. */
static void write_help(const ls_args *args, const ls_setting *row, char *out, size_t size)
{
	static const char mark[] = "{values}";
	const char *at = strstr(row->help, mark);
	ls_setting_value value, next;
	size_t before = at ? (size_t)(at - row->help) : strlen(row->help);
	size_t used = (size_t)snprintf(out, size, "%.*s", (int)before, row->help);

	for (size_t i = 0; at && used < size && value_at(args, row, i, &value); i++) {
		int is_last = i > 0 && !value_at(args, row, i + 1, &next);
		used += (size_t)snprintf(out + used, size - used, "%s%s",
					 i == 0    ? ""
					 : is_last ? " or "
						   : ", ",
					 value.name);
	}
	if (at && used < size)
		snprintf(out + used, size - used, "%s", at + strlen(mark));
}

/* The name at the left, and the text, which is cut into words, from TEXT_COLUMN on. */
static void print_lines(const char *name, char *text)
{
	int column = printf("%-*s ", TEXT_COLUMN - 1, name);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		int length = (int)strlen(word), starts = column <= TEXT_COLUMN;
		if (!starts && column + 1 + length > LINE) {
			printf("\n%*s", TEXT_COLUMN, "");
			column = TEXT_COLUMN;
			starts = 1;
		}
		for (char *c = word; (c = strchr(c, GLUE));)
			*c = ' ';
		column += printf("%s%s", starts ? "" : " ", word);
	}
	putchar('\n');
}

static void print_option(const ls_args *args, const ls_setting *row, const void *defaults)
{
	char name[80], text[512], value[80];
	describe_default(row, defaults, value, sizeof(value));
	write_help(args, row, text, sizeof(text));
	size_t length = strlen(text);
	snprintf(text + length, sizeof(text) - length, "%s%s", *value ? " " : "", value);
	int used = row->key ? snprintf(name, sizeof(name), "  -%c, --%s", row->key, row->name)
			    : snprintf(name, sizeof(name), "  --%s", row->name);
	if (row->arg)
		snprintf(name + used, sizeof(name) - (size_t)used, " %s", row->arg);
	print_lines(name, text);
}

/* The part of a table that is shown. */
typedef struct part {
	const ls_args *args;
	const char *group; /* NULL: of all groups ... */
	int common;        /* ... the common rows alone */
} part;

static int is_shown(const part *p, const ls_setting *row)
{
	return p->group ? row->group && !strcmp(row->group, p->group) : !p->common || (row->marks & LS_SETTING_COMMON);
}

static int same_group(const ls_setting *row, const ls_setting *next)
{
	return !next->group || (row->group && !strcmp(next->group, row->group));
}

static void print_options(const part *p, const void *defaults)
{
	const ls_setting *before = NULL, *row;
	for (size_t i = 0; (row = p->args->at(i)); i++) {
		if (!is_shown(p, row))
			continue;
		if (row->group && !(before && same_group(before, row)))
			printf("%s:\n", row->group);
		print_option(p->args, row, defaults);
		before = row;
	}
}

/* "text" of "Text": a topic is the first word of its heading, in lower case. */
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

/* A topic that does not exist; the name of an option may be meant. */
static int refuse_topic(const ls_args *args, const char *topic, const char *topics)
{
	const ls_setting *row;
	for (size_t i = 0; (row = args->at(i)); i++)
		if (!strcmp(row->name, topic))
			return ls_usage_error(args->command, "'%s' is an option; try --help --%s", topic, topic);
	return ls_usage_error(args->command, "no help on '%s'; there is --help %s", topic, topics);
}

int ls_args_help(const ls_args *args, const void *defaults, const char *topic)
{
	char topics[160] = "";
	part p = { .args = args, .common = args->brief && !topic };
	if (args->brief)
		p.group = find_topic(args, topic, topics, sizeof(topics));
	if (topic && !p.group && strcmp(topic, "all") != 0)
		return refuse_topic(args, topic, topics);
	printf("usage: %s%s%s [OPTION]...\n%s\n", args->command, args->operands ? " " : "",
	       args->operands ? args->operands : "", args->purpose);
	print_options(&p, defaults);
	if (p.common)
		printf("More: --help %s\n", topics);
	if (args->example && !topic)
		printf("Example: %s\n", args->example);
	return LS_EXIT_OK;
}

int ls_args_help_option(const ls_args *args, const void *defaults, const ls_setting *row)
{
	ls_setting_value value;
	char name[80], text[512];
	print_option(args, row, defaults);
	for (size_t i = 0; value_at(args, row, i, &value); i++) {
		snprintf(name, sizeof(name), "    %s", value.name);
		snprintf(text, sizeof(text), "%s", value.summary);
		print_lines(name, text);
	}
	return LS_EXIT_OK;
}
