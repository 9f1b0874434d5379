/*
 * quote.c - see quote.h.
 */
#include "quote.h"

#include <string.h>

int ls_shell_is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	return *word && word[strspn(word, plain)] == '\0';
}

static int has_control(const char *word)
{
	for (; *word; word++)
		if ((unsigned char)*word < 0x20 || *word == 0x7f)
			return 1;
	return 0;
}

/* $'...': a line break as three octal digits, so that it does not break the line. */
static void quote_escaped(FILE *to, const char *word)
{
	fputs("$'", to);
	for (; *word; word++) {
		if (*word == '\'' || *word == '\\')
			fprintf(to, "\\%c", *word);
		else if ((unsigned char)*word < 0x20 || *word == 0x7f)
			fprintf(to, "\\%03o", (unsigned)*word);
		else
			fputc(*word, to);
	}
	fputc('\'', to);
}

void ls_shell_quote(FILE *to, const char *word)
{
	if (ls_shell_is_plain(word)) {
		fputs(word, to);
	} else if (has_control(word)) {
		quote_escaped(to, word);
	} else {
		fputc('\'', to);
		for (; *word; word++)
			if (*word == '\'')
				fputs("'\\''", to);
			else
				fputc(*word, to);
		fputc('\'', to);
	}
}
