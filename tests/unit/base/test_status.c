/*
 * Error messages, log lines, clocks and the choice of instruction set.
 */
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <lockstep/version.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/status.h"
#include "unit/test_main.h"

static void names(void **state)
{
	(void)state;
	assert_string_equal(ls_status_name(LS_OK), "ok");
	assert_string_equal(ls_status_name(LS_EFORMAT), "format");
	assert_string_equal(ls_status_name(LS_EUNSUPPORTED), "unsupported");
	assert_string_equal(ls_status_name(LS_EPEER), "peer");
	assert_string_equal(ls_status_name((ls_status)99), "unknown");
	assert_string_equal(ls_status_name((ls_status)-1), "unknown");
}

static void version(void **state)
{
	(void)state;
	char numbers[32];
	snprintf(numbers, sizeof(numbers), "%d.%d.%d", LS_VERSION_MAJOR, LS_VERSION_MINOR, LS_VERSION_PATCH);
	assert_string_equal(LS_VERSION_STRING, numbers);
	assert_string_equal(ls_version(), numbers);
	assert_true(LS_VERSION_AT_LEAST(LS_VERSION_MAJOR, LS_VERSION_MINOR, LS_VERSION_PATCH));
	assert_false(LS_VERSION_AT_LEAST(LS_VERSION_MAJOR, LS_VERSION_MINOR, LS_VERSION_PATCH + 1));
	assert_false(LS_VERSION_AT_LEAST(LS_VERSION_MAJOR, LS_VERSION_MINOR + 1, 0));
	assert_false(LS_VERSION_AT_LEAST(LS_VERSION_MAJOR + 1, 0, 0));
	assert_true(LS_VERSION_AT_LEAST(LS_VERSION_MAJOR, LS_VERSION_MINOR - 1, LS_VERSION_PATCH + 9));
	assert_true(LS_VERSION_AT_LEAST(LS_VERSION_MAJOR - 1, LS_VERSION_MINOR + 9, 0));
}

static void messages(void **state)
{
	(void)state;
	assert_int_equal(ls_fail(LS_EFORMAT, "%s has %d bytes", "a.idx", 3), LS_EFORMAT);
	assert_string_equal(ls_last_error(), "a.idx has 3 bytes");
	assert_int_equal(ls_fail_context(LS_EFORMAT, "reading %s", "MNIST"), LS_EFORMAT);
	assert_string_equal(ls_last_error(), "reading MNIST: a.idx has 3 bytes");
	errno = ENOENT;
	assert_int_equal(ls_fail_errno(LS_EIO, "cannot open %s", "x"), LS_EIO);
	assert_string_equal(ls_last_error(), "cannot open x: No such file or directory");
	ls_fail(LS_EIO, "%s, again", ls_last_error()); /* an argument that is the message itself */
	assert_string_equal(ls_last_error(), "cannot open x: No such file or directory, again");
}

static void long_messages_are_cut(void **state)
{
	(void)state;
	static char text[10000];
	memset(text, 'a', sizeof(text) - 1);
	ls_fail(LS_EIO, "%s", text);
	size_t length = strlen(ls_last_error());
	assert_true(length > 1000 && length < sizeof(text));
	for (int i = 0; i < 5; i++)
		ls_fail_context(LS_EIO, "%s", text);
	assert_int_equal(strlen(ls_last_error()), length);
}

static void *fail_elsewhere(void *argument)
{
	const char *before = ls_last_error();
	*(int *)argument = before[0] == '\0';
	ls_fail(LS_EIO, "of the other thread");
	return NULL;
}

static void a_message_belongs_to_its_thread(void **state)
{
	(void)state;
	pthread_t thread;
	int empty = 0;
	ls_fail(LS_EIO, "of this thread");
	assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &empty), 0);
	pthread_join(thread, NULL);
	assert_true(empty);
	assert_string_equal(ls_last_error(), "of this thread");
}

/* Run `work` in a child with stdout and stderr in pipes; returns the exit status. */
static int capture(void (*work)(void), char *out, char *err, size_t size)
{
	int pipes[2][2];
	assert_int_equal(pipe(pipes[0]) | pipe(pipes[1]), 0);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		dup2(pipes[0][1], 1);
		dup2(pipes[1][1], 2);
		work();
		fflush(NULL);
		_exit(0);
	}
	char *into[2] = { out, err };
	for (int i = 0; i < 2; i++) {
		size_t used = 0;
		close(pipes[i][1]);
		for (ssize_t got; (got = read(pipes[i][0], into[i] + used, size - 1 - used)) > 0;)
			used += (size_t)got;
		into[i][used] = '\0';
		close(pipes[i][0]);
	}
	int status = -1;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void hook(void *context, int show)
{
	fputs(show ? "]" : "[", context);
	fflush(context);
}

static void log_all(void)
{
	ls_log_set_hook(hook, stdout);
	ls_log_line("line %d", 1);
	ls_log_set_hook(NULL, NULL);
	ls_log_note("note");
	ls_log_warning("hot");
	ls_log_set_level(LS_LOG_WARNING);
	ls_log_line("line 2");
	ls_log_note("unseen");
	ls_log_warning("hotter");
	ls_log_set_level(LS_LOG_ERROR);
	ls_log_line("unseen");
	ls_log_warning("unseen");
}

static void log_lines(void **state)
{
	(void)state;
	char out[512], err[512];
	assert_int_equal(ls_log_get_level(), LS_LOG_INFO);
	assert_int_equal(capture(log_all, out, err, sizeof(out)), 0);
	assert_string_equal(out, "[line 1\n]line 2\n");
	assert_string_equal(err, "note\nwarning: hot\nwarning: hotter\n");
}

static const char *wish; /* for the children below: the choice is made once per process */

static void print_isa(void)
{
	setenv("LOCKSTEP_ISA", wish, 1);
	ls_status status = ls_isa_check();
	printf("%s %s %s", ls_isa_name(ls_isa_get()), ls_status_name(status), status ? ls_last_error() : "");
}

static void check_isa(const char *value, const char *expected)
{
	char out[512], err[512];
	wish = value;
	assert_int_equal(capture(print_isa, out, err, sizeof(out)), 0);
	if (strncmp(out, expected, strlen(expected)) != 0)
		fail_msg("LOCKSTEP_ISA=%s gives '%s', not '%s'", value, out, expected);
}

/* Before anything in this process asks for the instruction set. */
static void instruction_sets(void **state)
{
	(void)state;
	check_isa("generic", "generic ok");
	char out[512], err[512];
	wish = "pentium";
	assert_int_equal(capture(print_isa, out, err, sizeof(out)), 0);
	assert_non_null(strstr(out, "invalid"));
	assert_non_null(strstr(out, "LOCKSTEP_ISA=pentium"));
	wish = "avx512"; /* this processor's, or refused */
	assert_int_equal(capture(print_isa, out, err, sizeof(out)), 0);
	assert_true(strncmp(out, "avx512 ok", 9) == 0 || strstr(out, " unsupported LOCKSTEP_ISA=avx512"));
	wish = "neon"; /* another family of processors, or this one */
	assert_int_equal(capture(print_isa, out, err, sizeof(out)), 0);
	assert_true(strncmp(out, "neon ok", 7) == 0 || strstr(out, " unsupported LOCKSTEP_ISA=neon"));
	assert_true(ls_isa_has(LS_ISA_GENERIC) && ls_isa_has((int)ls_isa_get()));
	assert_false(ls_isa_has(-1) || ls_isa_has(LS_ISA_COUNT));
	assert_false(ls_isa_has(LS_ISA_AVX2) && ls_isa_has(LS_ISA_NEON));
	assert_string_equal(ls_isa_name((ls_isa)77), "unknown");
}

static void clocks_run_forward(void **state)
{
	(void)state;
	double a = ls_clock_seconds(), b = ls_clock_seconds();
	assert_true(b >= a);
	assert_true(ls_clock_wall() > 1.7e9);
}

TEST_MAIN(instruction_sets, version, names, messages, long_messages_are_cut, a_message_belongs_to_its_thread, log_lines,
	  clocks_run_forward)
