/*
 * Hosts as people write them.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/launch.h>

#include "unit/test_main.h"

static void expect(const char *text, size_t expected, const char *const *names, const int *devices)
{
	ls_host *hosts = NULL;
	size_t count = 0;
	assert_int_equal(ls_hosts_parse(&hosts, &count, text), LS_OK);
	assert_int_equal(count, expected);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(hosts[i].name, names[i]);
		assert_int_equal(hosts[i].devices, devices[i]);
	}
	ls_hosts_free(hosts);
}

static void entries_keep_their_order(void **state)
{
	(void)state;
	expect("lm1:3,lm6:2", 2, (const char *[]){ "lm1", "lm6" }, (int[]){ 3, 2 });
	expect("b:1,a:4096,b:2", 3, (const char *[]){ "b", "a", "b" }, (int[]){ 1, 4096, 2 });
	expect("node-1.example_x.org", 1, (const char *[]){ "node-1.example_x.org" }, (int[]){ 0 });
	expect("a,10.0.0.7", 2, (const char *[]){ "a", "10.0.0.7" }, (int[]){ 0, 0 });
}

static void mistakes_are_named(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message;
	} bad[] = {
		{ NULL, "the list is empty" },
		{ "", "the list is empty" },
		{ ",", "entry 1 names no host" },
		{ "a:1,", "entry 2 names no host" },
		{ "a:1,,b:1", "entry 2 names no host" },
		{ ":3", "entry 1 names no host" },
		{ "a:", "host 'a': '' is not a number of devices (1 to 4096)" },
		{ "a:0", "host 'a': '0' is not a number" },
		{ "a:-1", "host 'a': '-1' is not a number" },
		{ "a:4097", "host 'a': '4097' is not a number" },
		{ "a:2x,b:1", "host 'a': '2x' is not a number" },
		{ "a:2:3", "host 'a': '2:3' is not a number" },
		{ "a:1.5", "host 'a': '1.5' is not a number" },
		{ "b:1,a:123456789012345678901234567890123456789", "host 'a': '1234" },
		{ "a b:1", "'a b' is not a host name" },
		{ "a:1, b:1", "' b' is not a host name" },
		{ "--mca:1", "'--mca' is not a host name" },
		{ "a;b", "'a;b' is not a host name" },
		{ ".", "'.' is not a host name" },
		{ "a..b", "'a..b' is not a host name" },
		{ ".a:1", "'.a' is not a host name" },
		{ "a:1,b", "'a' says how many devices it has, 'b' does not" },
		{ "a,b:1", "'b' says how many devices it has, 'a' does not" },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ls_host *hosts = NULL;
		size_t count = 77;
		assert_int_equal(ls_hosts_parse(&hosts, &count, bad[i].text), LS_EINVALID);
		if (!strstr(ls_last_error(), bad[i].message) || !strstr(ls_last_error(), "like lm1:3,lm6:2"))
			fail_msg("'%s': %s", bad[i].text ? bad[i].text : "NULL", ls_last_error());
		assert_null(hosts);
		assert_int_equal(count, 77);
	}
	char *endless = calloc(1, 301);
	assert_non_null(endless);
	memset(endless, 'x', 300);
	ls_host *hosts = NULL;
	size_t count;
	assert_int_equal(ls_hosts_parse(&hosts, &count, endless), LS_EINVALID);
	free(endless);
}

/* What inet_aton() would read as an address, in every form it takes, and what only looks like one. */
static void numbers_are_no_hosts(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"0",           "1",          "5",
		"1.5",         "1.2.3",      "0x10",
		"0X1F",        "0x",         "0x7f.1",
		"0x7f.0.0.1",  "127.1",      "127.0.1",
		"010.0.0.1",   "10.0.0.07",  "10.0.0.0x7",
		"256.0.0.1",   "1.2.3.256",  "1.2.3.4.5",
		"2130706433",  "4294967296", "00",
		"1.",          "10.0.0.7.",  "0.0.0.0",
		"0.0.0.5",     "224.0.0.1",  "255.255.255.255",
		"1.2.3.999",   "a.1",        "lm1.0x10",
		"99999999999", "1-.2",       "10.0.0.1000",
		"10.0.0.00",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		static const char *const around[][2] = {
			{ "", "" }, { "", ":2" }, { "lm1,", "" }, { "lm1:1,", ":2" }, { "", ",5" }
		};
		for (size_t f = 0; f < sizeof(around) / sizeof(around[0]); f++) {
			char text[128], quoted[96];
			ls_host *hosts = NULL;
			size_t count = 77;
			snprintf(text, sizeof(text), "%s%s%s", around[f][0], bad[i], around[f][1]);
			snprintf(quoted, sizeof(quoted), "'%s' is neither a name nor a complete address", bad[i]);
			if (ls_hosts_parse(&hosts, &count, text) != LS_EINVALID || !strstr(ls_last_error(), quoted))
				fail_msg("'%s': %s", text, hosts ? "taken" : ls_last_error());
			assert_int_equal(count, 77);
		}
	}
}

static void names_with_digits_are_hosts(void **state)
{
	(void)state;
	static const char *const good[] = {
		"lm1",       "1a",          "0x1g",          "x0",          "10.0.0.7", "1.0.0.5", "192.168.255.0",
		"127.0.0.1", "223.1.2.255", "4.example.org", "1.2.3.4.org", "node-5",   "5-node",  "lm1.",
		"10-0-0-1",  "0x10.org",    "a_1",           "1.2.3.4a",
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		expect(good[i], 1, &good[i], (int[]){ 0 });
}

static void this_host_is_known(void **state)
{
	(void)state;
	char here[300] = "";
	assert_int_equal(gethostname(here, 255), 0);
	assert_true(ls_host_is_here("localhost"));
	assert_true(ls_host_is_here("127.0.0.1"));
	assert_true(ls_host_is_here(here));
	if (!strchr(here, '.')) {
		size_t length = strlen(here);
		memcpy(here + length, ".example.org", 13);
		assert_true(ls_host_is_here(here));
		here[length] = '\0';
	}
	memcpy(here + strlen(here), "x", 2);
	assert_false(ls_host_is_here(here));
	assert_false(ls_host_is_here("no-such-host.invalid"));
}

TEST_MAIN(entries_keep_their_order, mistakes_are_named, numbers_are_no_hosts, names_with_digits_are_hosts,
	  this_host_is_known)
