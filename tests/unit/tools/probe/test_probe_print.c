/*
 * Warnings of `lockstep probe` about its figures. Its files belong to the command, not to a library, so they are
 * included.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/probe_print.c"
#include "cli/text_table.c"
#include "unit/test_main.h"

/* Whether the text of a node with `cores` cores warns about them, when all together do `gflop` and one alone 100. */
static int compares(int cores, double gflop)
{
	ls_probe_node node = { .host = "a", .cores = cores, .gflop_per_s_core = 100, .gflop_per_s = gflop };
	ls_probe_result result = { .node_count = 1, .nodes = &node };
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	assert_non_null(to);
	assert_int_equal(ls_probe_print_text(&result, to), 0);
	fclose(to);
	int found = strstr(text, "cores together") != NULL;
	free(text);
	return found;
}

static void test_cores(void **state)
{
	(void)state;
	assert_true(compares(2, 120));
	assert_true(compares(2, 260));
	assert_false(compares(2, 190));
	assert_false(compares(1, 62)); /* nothing to compare: the same core, measured twice */
	assert_false(compares(1, 140));
}

TEST_MAIN(test_cores)
