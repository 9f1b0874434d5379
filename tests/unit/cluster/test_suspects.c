/*
 * Whom an elastic run does without after a start that failed before it trained.
 */
#include <stdio.h>
#include <string.h>

#include "cluster/suspects.h"
#include "unit/test_main.h"

static void names_in_reports(void **state)
{
	static const struct {
		const char *report, *host;
		int is_named;
	} cases[] = {
		{ "host b cannot run /opt/lockstep: Lockstep must be installed", "b", 1 },
		{ "host b has no directory /x: start in one that is there", "b", 1 },
		{ "lost contact with host b: it or the network to it is down", "b", 1 },
		{ "ssh: connect to host lm1.example.org port 22: No route to host", "lm1.example.org", 1 },
		{ "ssh: connect to host lm1.example.org port 22: No route to host", "lm1", 0 },
		{ "node 0 (a) runs Lockstep 1 and node 1 (b) runs 2: install the same on all nodes", "b", 1 },
		{ "node 0 (a) runs Lockstep 1 and node 1 (b) runs 2: install the same on all nodes", "on", 0 },
		{ "a node failed on host lm12", "lm1", 0 },
		{ "a node failed on host lm1.", "lm1", 1 },
		{ "host lm12 and host lm1 failed", "lm1", 1 },
		{ "nobody knows", "b", 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(ls_suspects_names(cases[i].report, cases[i].host), cases[i].is_named);
}

/* "-": stays, "x": left out. */
static void finds(const char *joined, const char *report, const char *expected)
{
	static const ls_host hosts[] = { { .name = "a" }, { .name = "b" }, { .name = "c" }, { .name = "d" } };
	int are_new[4] = { 0 }, out[4];
	char text[5] = "";
	size_t count = strlen(joined), marked = 0;
	for (size_t i = 0; i < count; i++)
		are_new[i] = joined[i] == 'n';
	size_t found = ls_suspects_find(hosts, are_new, count, report, out);
	for (size_t i = 0; i < count; i++) {
		text[i] = out[i] ? 'x' : '-';
		marked += (size_t)out[i];
	}
	assert_string_equal(text, expected);
	assert_int_equal(found, marked);
}

static void who_is_left_out(void **state)
{
	static const char *const data = "the training sets of node 0 (a) and node 2 (c) have different samples";
	(void)state;
	finds("..n", data, "--x");
	finds("n..", data, "x--"); /* the first node is the one that is new */
	finds("..nn", data, "--x-");
	finds("...", data, "x-x");
	finds("...", "nobody knows", "---");
	finds("..n", "nobody knows", "--x");
	finds(".nnn", "nobody knows", "--xx"); /* b is tried alone */
	finds("nnnn", "host c cannot run it", "--x-");
	finds("nnnn", "nobody knows", "-xxx"); /* nobody is proven */
}

TEST_MAIN(names_in_reports, who_is_left_out)
