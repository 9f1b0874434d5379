#include "messages.h"

#include <ctype.h>
#include <string.h>

#define PREFIX "options."

static const ls_args *command_args; /* NULL: training's options alone */

void ls_messages_use(const ls_args *args)
{
	command_args = args;
	ls_set_message_rewrite(ls_messages_rewrite);
}

static int is_option(const char *name)
{
	const ls_setting *row;
	for (size_t i = 0; command_args && (row = command_args->at(i)); i++)
		if (!strcmp(row->name, name))
			return 1;
	return ls_train_setting_of(name) != NULL;
}

/* The option that the field at the beginning of `text` is, "lr-min" of "lr_min: ..."; returns the field's length, 0:
 * there is no such option. */
static size_t option_at(const char *text, char *out, size_t size)
{
	size_t length = 0;
	while (length + 1 < size &&
	       (islower((unsigned char)text[length]) || isdigit((unsigned char)text[length]) || text[length] == '_')) {
		out[length] = text[length] == '_' ? '-' : text[length];
		length++;
	}
	out[length] = '\0';
	return length > 0 && is_option(out) ? length : 0;
}

void ls_messages_rewrite(char *message)
{
	const size_t prefix = strlen(PREFIX);
	char option[64], *at = message;

	while ((at = strstr(at, PREFIX))) {
		int starts_word = at == message || strchr(" ('\"`,;", at[-1]);
		size_t length = starts_word ? option_at(at + prefix, option, sizeof(option)) : 0;
		if (length == 0) {
			at += prefix;
			continue;
		}
		char *rest = at + prefix + length;
		memcpy(at, "--", 2);
		memcpy(at + 2, option, length);
		memmove(at + 2 + length, rest, strlen(rest) + 1);
		at += 2 + length;
	}
}
