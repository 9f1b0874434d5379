/*
 * quote.h - words of a shell.
 */
#ifndef LS_CLI_QUOTE_H
#define LS_CLI_QUOTE_H

#include <stdio.h>

/* Whether a word needs no quotes, by shell, by sbatch or in YAML behind other letters. */
int ls_shell_is_plain(const char *word);

/* Write a word with shell quoting, without line breaks, so that it can also stand in a comment. */
void ls_shell_quote(FILE *to, const char *word);

#endif
