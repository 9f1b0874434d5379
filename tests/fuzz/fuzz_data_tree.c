/*
 * Any bytes as a file of trees: refused, or sentences whose phrases lie inside them.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "data/readers/trees.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tree(const ls_tree *tree)
{
	if (!tree->count || !tree->words || tree->phrases[0].words != tree->words)
		abort();
	for (size_t i = 0; i < tree->words; i++)
		if (tree->word[i] > tree->bytes || tree->word[i + 1] <= tree->word[i] ||
		    tree->word[i + 1] > tree->bytes + 1)
			abort();
	for (size_t i = 0; i < tree->count; i++) {
		const ls_phrase *p = &tree->phrases[i], *parent = &tree->phrases[p->parent];
		if (p->label < 0 || p->label >= LS_TREE_LABELS || !p->words || p->parent > i ||
		    p->first < parent->first || p->first + p->words > parent->first + parent->words)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *line;
	size_t at = 0, length;
	uint64_t number = 0;
	ls_tree tree = { 0 };
	while ((line = ls_tree_line((const char *)data, size, &at, &number, &length))) {
		if (line < (const char *)data || line + length > (const char *)data + size)
			abort();
		if (ls_tree_read(&tree, line, length, "input", number) == LS_OK)
			check_tree(&tree);
	}
	ls_tree_free(&tree);
	return 0;
}
