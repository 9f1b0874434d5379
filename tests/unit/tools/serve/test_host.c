/*
 * Whom a request is for: names and addresses of this machine, with and without a port, and what only looks like them.
 */
#include "tools/serve/host.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

static void check(const char *host, int expected)
{
	if (ls_host_is_local(host, "node7") != expected)
		fail_msg("'%s' is taken for %s", host, expected ? "another server" : "this one");
}

static void test_this_machine(void **state)
{
	static const char *const hosts[] = {
		"localhost",  "localhost:8080", "LocalHost:1",          "localhost.",  "localhost.:80",
		"localhost:", "127.0.0.1",      "127.0.0.1:8080",       "127.9.8.7:1", "127.0.0.1.",
		"[::1]",      "[::1]:8080",     "[0:0:0:0:0:0:0:1]:80", "node7",       "NODE7:8080"
	};
	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		check(hosts[i], 1);
}

static void test_others(void **state)
{
	static const char *const hosts[] = { "",
					     ":8080",
					     ".",
					     "evil.example",
					     "evil.example:8080",
					     "localhost.evil.example",
					     "127.0.0.1.evil.example",
					     "evil.localhost.example:80",
					     "xlocalhost",
					     "localhostx",
					     "128.0.0.1",
					     "192.168.0.1:8080",
					     "127.1",
					     "0.0.0.0",
					     "2130706433",
					     "::1",
					     "[::1",
					     "[::1]x",
					     "[::2]:80",
					     "[::ffff:10.0.0.1]:80",
					     "[localhost]",
					     "localhost:80x",
					     "localhost:80:81",
					     "localhost@evil.example",
					     "localhost/..",
					     "node70",
					     "node7.evil.example",
					     "localhost..",
					     " localhost",
					     "localhost, evil.example" };
	char longest[600];
	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		check(hosts[i], 0);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	check(longest, 0);
	memcpy(longest, "localhost", 9); /* is not cut to a name that fits */
	check(longest, 0);
}

static void check_shown(const char *host, const char *expected)
{
	char shown[64];

	assert_string_equal(ls_host_printable(shown, sizeof(shown), host), expected);
}

static void test_what_is_shown(void **state)
{
	char longest[600], start[64];
	(void)state;
	check_shown("evil.example:8080", "evil.example:8080");
	check_shown("[::1]:80", "[::1]:80");
	check_shown("Node-7_b", "Node-7_b");
	check_shown("", "");
	check_shown("a'b\"c\\d\x1b[2J\xff\xc3\xa9<b> %s\n", "a?b?c?d?[2J???"
							    "?b???s?");
	memset(longest, '\'', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memset(start, '?', 60);
	memcpy(start + 60, "...", 4);
	check_shown(longest, start);
}

TEST_MAIN(test_this_machine, test_others, test_what_is_shown)
