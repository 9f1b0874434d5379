/*
 * wordpiece_lines.c - the tokenizer as a filter, for wordpiece.py to compare with.
 *
 *     wordpiece_lines                 print the version of Unicode it knows
 *     wordpiece_lines VOCAB           answer each line "OPTIONS HEX" with "WORDS | PIECES", or "!BYTE" for an error
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "hex.h"

#include "tokenizer/basic_tokenizer.h"
#include "tokenizer/wordpiece.h"

static ls_status print_word(void *context, const char *word, size_t bytes, ls_word_kind kind)
{
	int *first = context;
	printf("%s%.*s", *first ? "" : " ", (int)(kind == LS_WORD_LONG ? 1 : bytes), kind == LS_WORD_LONG ? "-" : word);
	*first = 0;
	return LS_OK;
}

static int option(const char *options, const char *name)
{
	const char *found = strstr(options, name);
	return !found ? 0 : found[strlen(name)] == '=' ? atoi(found + strlen(name) + 1) : 1;
}

static int answer(const ls_vocab *vocab, const char *options, const char *text, size_t bytes)
{
	ls_wordpiece *wordpiece;
	ls_tokens tokens = { 0 };
	int first = 1;
	ls_wordpiece_options o = { option(options, "cased"), option(options, "replace"), option(options, "max") };
	ls_basic basic = { o.cased, o.replace_invalid, o.word_max ? o.word_max : LS_WORD_MAX_DEFAULT, print_word,
			   &first };
	if (ls_wordpiece_new(&wordpiece, vocab, &o) != LS_OK)
		return 1;
	if (ls_wordpiece_encode(wordpiece, text, bytes, &tokens) != LS_OK) {
		size_t byte = 0;
		sscanf(ls_last_error(), "byte %zu", &byte);
		printf("!%zu\n", byte);
	} else {
		int failed = ls_basic_split(&basic, text, bytes) != LS_OK;
		fputs(" |", stdout);
		for (size_t i = 0; i < tokens.count && !failed; i++)
			printf(" %s", ls_vocab_piece(vocab, tokens.ids[i]));
		fputs(tokens.count ? "\n" : " \n", stdout);
	}
	ls_tokens_free(&tokens);
	ls_wordpiece_free(wordpiece);
	return 0;
}

int main(int argc, char **argv)
{
	static char line[1 << 16], options[64];
	ls_vocab *vocab;
	if (argc < 2)
		return puts(utf8proc_unicode_version()) < 0;
	if (ls_vocab_load(&vocab, argv[1]) != LS_OK) {
		fprintf(stderr, "%s\n", ls_last_error());
		return 1;
	}
	int failed = 0, used;
	while (!failed && fgets(line, sizeof(line), stdin)) {
		failed = sscanf(line, "%63s %n", options, &used) != 1;
		size_t bytes = hex_decode(line + used);
		char *text = malloc(bytes + 1); /* of its size, so that a sanitizer sees a byte too far */
		if (failed || !text)
			return 1;
		memcpy(text, line + used, bytes);
		failed = answer(vocab, options, text, bytes);
		free(text);
	}
	ls_vocab_free(vocab);
	return failed;
}
