/*
 * Hosts in a file, and those that a command prints.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include <pthread.h>
#include <stdatomic.h>

#include "cluster/host_list.h"
#include "cluster/members.h"
#include "unit/test_main.h"

static void expect_text(const char *text, const char *expected)
{
	ls_host *hosts = NULL;
	size_t count = 0;
	if (ls_host_list_parse(&hosts, &count, text, "list") != LS_OK)
		fail_msg("%s", ls_last_error());
	char *again = ls_members_text(hosts, count);
	assert_string_equal(again, expected);
	free(again);
	ls_hosts_free(hosts);
}

static void forms(void **state)
{
	(void)state;
	expect_text("a:4\nb:4\n", "a:4,b:4");
	expect_text("a:4", "a:4");
	expect_text("# ours\n\n  a:4  # the first\r\n\tb:2\r\n", "a:4,b:2");
	expect_text("a slots=4\nb   slots=2 max_slots=8\n", "a:4,b:2"); /* Open MPI's */
	expect_text("a 4\nb\t2\n", "a:4,b:2");
	expect_text("a:1,b:2\nc:3,\n", "a:1,b:2,c:3");
	expect_text("a\nb\n", "a,b");
}

static void refused(const char *text, const char *why)
{
	ls_host *hosts = NULL;
	size_t count = 77;
	assert_int_equal(ls_host_list_parse(&hosts, &count, text, "list"), LS_EINVALID);
	assert_null(hosts);
	assert_int_equal(count, 77);
	assert_non_null(strstr(ls_last_error(), "list"));
	if (!strstr(ls_last_error(), why))
		fail_msg("\"%s\" does not mention \"%s\"", ls_last_error(), why);
}

static void mistakes(void **state)
{
	(void)state;
	refused("", "names no host");
	refused("# nobody\n\n , ,\n", "names no host");
	refused("a:4\nb\n", "says how many devices");
	refused("a:four\n", "'four' is not a number of devices");
	refused("a two words\n", "'two' is not a number of devices");
	refused("-x:1\n", "not a host name");
	refused("@other\n", "not a host name");
	refused("Traceback (most recent call last):\n", "not a");
}

/* "@FILE" wherever hosts are named. */
static void a_file(void **state)
{
	char path[] = "/tmp/lockstep-hosts-XXXXXX", name[64];
	ls_host *hosts = NULL;
	size_t count = 0;
	(void)state;
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, "a 2\nb 1\n", 8) == 8);
	snprintf(name, sizeof(name), "@%s", path);
	assert_int_equal(ls_hosts_parse(&hosts, &count, name), LS_OK);
	assert_int_equal(count, 2);
	assert_int_equal(hosts[0].devices, 2);
	ls_hosts_free(hosts);
	assert_true(pwrite(fd, "c 1\n\0d 1\n", 9, 8) == 9); /* d would be left out without a word */
	assert_int_equal(ls_hosts_parse(&hosts, &count, name), LS_EFORMAT);
	assert_non_null(strstr(ls_last_error(), "bytes that are no text"));
	close(fd);
	unlink(path);
	assert_int_not_equal(ls_hosts_parse(&hosts, &count, name), LS_OK);
	assert_non_null(strstr(ls_last_error(), path));
}

static void discovers(const char *command, double seconds, const char *expected)
{
	ls_host *hosts = NULL;
	size_t count = 0;
	double began = ls_clock_seconds();
	ls_status status = ls_host_list_read(&hosts, &count, NULL, command, seconds, NULL);
	assert_true(ls_clock_seconds() - began < seconds + 3);
	if (status == LS_OK) {
		char *text = ls_members_text(hosts, count);
		assert_string_equal(text, expected);
		free(text);
		ls_hosts_free(hosts);
	} else if (!strstr(ls_last_error(), expected)) {
		fail_msg("%s: \"%s\" does not mention \"%s\"", command, ls_last_error(), expected);
	}
}

static void a_command(void **state)
{
	(void)state;
	discovers("echo a:4; echo b:4", 10, "a:4,b:4");
	discovers("printf 'a 1\\nb 2'", 10, "a:1,b:2");
	discovers("exit 3", 10, "'exit 3' failed with status 3");
	discovers("echo a:4; exit 1", 10, "failed with status 1");
	discovers("no-such-command-here 2>/dev/null", 10, "failed with status 127");
	discovers("kill -9 $$", 10, "was ended by signal 9");
	discovers("true", 10, "names no host");
	discovers("sleep 100", 0.3, "has not ended within");
	discovers("echo a:1; sleep 100 & wait", 0.3, "has not ended within");
	discovers("trap '' TERM; echo a:1; exec >/dev/null; sleep 100", 0.3, "has not ended within");
	discovers("yes a:1", 10, "prints more than a list of hosts");
	discovers("head -c 100 /dev/zero", 10, "bytes that are no text");
	discovers("echo '<html>not found</html>'", 10, "not a host name");
}

static void *cancel_soon(void *flag)
{
	usleep(100000);
	atomic_store((atomic_int *)flag, 1);
	return NULL;
}

/* A run that ends waits for no command. */
static void a_command_is_given_up(void **state)
{
	static const char *const commands[] = { "sleep 100", "echo a:1; exec >/dev/null; sleep 100" };
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		atomic_int cancel = 0;
		pthread_t thread;
		ls_host *hosts = NULL;
		size_t count = 0;
		double began = ls_clock_seconds();
		assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
		assert_int_equal(ls_host_list_read(&hosts, &count, NULL, commands[i], 60, &cancel), LS_EINTERRUPTED);
		assert_true(ls_clock_seconds() - began < 20);
		pthread_join(thread, NULL);
	}
}

TEST_MAIN(forms, mistakes, a_file, a_command, a_command_is_given_up)
