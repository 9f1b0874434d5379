#include "data/readers/trees.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define LINE_MAX_BYTES ((size_t)1 << 24)

typedef struct parser {
	ls_tree *tree;
	const char *text;
	size_t bytes, at;
	const char *file;
	uint64_t line;
} parser;

static ls_status bad(const parser *p, const char *what)
{
	return ls_fail(LS_EFORMAT, "%s:%llu:%zu: %s", p->file, (unsigned long long)p->line, p->at + 1, what);
}

void ls_tree_free(ls_tree *tree)
{
	free(tree->text);
	free(tree->word);
	free(tree->phrases);
	*tree = (ls_tree){ 0 };
}

static void skip_spaces(parser *p)
{
	while (p->at < p->bytes && (p->text[p->at] == ' ' || p->text[p->at] == '\t'))
		p->at++;
}

static int next_is(const parser *p, char c)
{
	return p->at < p->bytes && p->text[p->at] == c;
}

/* The text that an escaped treebank word stands for. */
static const char *meaning(const char *word, size_t bytes)
{
	static const char *const table[][2] = { { "-LRB-", "(" }, { "-RRB-", ")" }, { "-LSB-", "[" },
						{ "-RSB-", "]" }, { "-LCB-", "{" }, { "-RCB-", "}" },
						{ "``", "\"" },   { "''", "\"" },   { "`", "'" } };
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strlen(table[i][0]) == bytes && memcmp(table[i][0], word, bytes) == 0)
			return table[i][1];
	return NULL;
}

/* Append a word to the sentence: never longer than it was written, and a space. */
static ls_status add_word(ls_tree *tree, const char *word, size_t bytes)
{
	const char *other = meaning(word, bytes);
	LS_TRY(ls_array_grow(&tree->text, &tree->text_room, tree->bytes + bytes + 1, 1));
	LS_TRY(ls_array_grow(&tree->word, &tree->word_room, tree->words + 2, sizeof(*tree->word)));
	if (tree->words)
		tree->text[tree->bytes++] = ' ';
	tree->word[tree->words++] = (uint32_t)tree->bytes;
	if (other) {
		word = other;
		bytes = strlen(other);
	}
	for (size_t i = 0; i < bytes; i++) {
		int escaped = word[i] == '\\' && i + 1 < bytes && (word[i + 1] == '/' || word[i + 1] == '*');
		if (!escaped)
			tree->text[tree->bytes++] = word[i];
	}
	tree->word[tree->words] = (uint32_t)tree->bytes + 1;
	return LS_OK;
}

/* "(LABEL": a phrase begins. */
static ls_status open_phrase(parser *p, uint32_t parent)
{
	ls_tree *tree = p->tree;
	LS_TRY(ls_array_grow(&tree->phrases, &tree->phrase_room, tree->count + 1, sizeof(*tree->phrases)));
	p->at++;
	skip_spaces(p);
	int label = p->at < p->bytes ? p->text[p->at] - '0' : -1;
	if (label < 0 || label >= LS_TREE_LABELS)
		return bad(p, "expected a label, 0 to 4");
	p->at++;
	if (p->at < p->bytes && p->text[p->at] != ' ' && p->text[p->at] != '\t' && p->text[p->at] != '(')
		return bad(p, "expected a space after the label");
	tree->phrases[tree->count] = (ls_phrase){ .label = label, .first = (uint32_t)tree->words, .parent = parent };
	tree->count++;
	return LS_OK;
}

static ls_status read_word(parser *p, const ls_phrase *phrase)
{
	if (phrase->first != p->tree->words)
		return bad(p, "a word next to a tree: a phrase is one word, or trees");
	size_t begin = p->at;
	while (p->at < p->bytes && !strchr(" \t()", p->text[p->at]))
		p->at++;
	LS_TRY(add_word(p->tree, p->text + begin, p->at - begin));
	skip_spaces(p);
	return next_is(p, ')') ? LS_OK : bad(p, "expected ')' after the word");
}

/* One step inside the phrase `*open`; leaves it in the phrase that is open then, `end` when the sentence is closed. */
static ls_status step(parser *p, uint32_t *open, int *done)
{
	ls_tree *tree = p->tree;
	skip_spaces(p);
	if (p->at == p->bytes)
		return bad(p, "the line ends inside a tree: a ')' is missing");
	if (p->text[p->at] == '(') {
		LS_TRY(open_phrase(p, *open));
		*open = (uint32_t)tree->count - 1;
		return LS_OK;
	}
	ls_phrase *phrase = &tree->phrases[*open];
	if (p->text[p->at] != ')')
		return read_word(p, phrase);
	phrase->words = (uint32_t)tree->words - phrase->first;
	if (!phrase->words)
		return bad(p, "a phrase without a word");
	p->at++;
	*done = phrase->parent == *open;
	*open = phrase->parent;
	return LS_OK;
}

ls_status ls_tree_read(ls_tree *tree, const char *text, size_t bytes, const char *file, uint64_t line)
{
	parser p = { tree, text, bytes, 0, file, line };
	uint32_t open = 0;
	int done = 0;
	tree->bytes = tree->words = tree->count = 0;
	if (bytes > LINE_MAX_BYTES)
		return bad(&p, "a line of more than 16 MB");
	skip_spaces(&p);
	if (!next_is(&p, '('))
		return bad(&p, "expected a tree: '(' and a label");
	LS_TRY(open_phrase(&p, 0));
	while (!done)
		LS_TRY(step(&p, &open, &done));
	skip_spaces(&p);
	return p.at == p.bytes ? LS_OK : bad(&p, "text after the tree; expected one tree per line");
}

const char *ls_tree_line(const char *text, size_t bytes, size_t *at, uint64_t *line, size_t *length)
{
	while (*at < bytes) {
		const char *begin = text + *at, *end = memchr(begin, '\n', bytes - *at);
		size_t found = end ? (size_t)(end - begin) : bytes - *at;
		*at += found + (end != NULL);
		++*line;
		found -= found && begin[found - 1] == '\r';
		size_t blank = 0;
		while (blank < found && (begin[blank] == ' ' || begin[blank] == '\t'))
			blank++;
		*length = found;
		if (blank < found)
			return begin;
	}
	return NULL;
}
