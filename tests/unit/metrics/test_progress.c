/* The progress line: on a pseudo-terminal as people see it, elsewhere not at all. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "metrics/progress.h"
#include "unit/test_main.h"

static void sleep_for(double seconds)
{
	struct timespec pause = { (time_t)seconds, (long)((seconds - floor(seconds)) * 1e9) };
	nanosleep(&pause, NULL);
}

/* Stderr becomes the far end of a pseudo-terminal; `near` is the end we read what it shows from. */
typedef struct terminal {
	int near, saved;
} terminal;

static void terminal_set_width(terminal *t, unsigned short columns)
{
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	assert_int_equal(ioctl(t->near, TIOCSWINSZ, &size), 0);
}

static int terminal_open(void **state)
{
	static terminal t;
	t.near = posix_openpt(O_RDWR | O_NOCTTY);
	if (t.near < 0 || grantpt(t.near) != 0 || unlockpt(t.near) != 0)
		return -1;
	int far = open(ptsname(t.near), O_RDWR | O_NOCTTY);
	if (far < 0)
		return -1;
	fflush(stderr);
	t.saved = dup(STDERR_FILENO);
	dup2(far, STDERR_FILENO);
	close(far);
	setenv("TERM", "xterm", 1);
	*state = &t;
	return 0;
}

static int terminal_close(void **state)
{
	terminal *t = *state;
	dup2(t->saved, STDERR_FILENO);
	close(t->saved);
	close(t->near);
	return 0;
}

enum { PATIENCE_MS = 10000, TRIES = 100 };

/* What has come, when it is at least `wanted` bytes, or time is up. The kernel carries it in its own time. */
static const char *terminal_read(terminal *t, size_t wanted)
{
	static char text[4096];
	size_t length = 0;
	struct pollfd ready = { .fd = t->near, .events = POLLIN };
	while (length < sizeof(text) - 1 && poll(&ready, 1, length < wanted ? PATIENCE_MS : 50) > 0) {
		ssize_t got = read(t->near, text + length, sizeof(text) - 1 - length);
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	text[length] = '\0';
	return text;
}

static void expect(terminal *t, const char *text)
{
	assert_string_equal(terminal_read(t, strlen(text)), text);
}

/* A display that was updated in its first second, if the machine lets us. */
static ls_progress *begin_quickly(terminal *t)
{
	for (int i = 0; i < TRIES; i++) {
		double begun = ls_clock_seconds();
		ls_progress *progress = ls_progress_begin();
		ls_progress_update(progress, "epoch 1/4", 209, 469, "loss 0.2134  1021 data/sec", 14.2);
		if (ls_clock_seconds() - begun < 1.0)
			return progress;
		ls_progress_end(progress);
		terminal_read(t, 1);
	}
	fail_msg("no update came within the first second in %d tries", TRIES);
	return NULL;
}

/* Three updates: the last two come within a tenth of a second of the first, if the machine lets us. */
static const char *update_quickly(terminal *t, ls_progress *progress)
{
	for (int i = 0; i < TRIES; i++) {
		double begun = ls_clock_seconds();
		ls_progress_update(progress, "epoch 1/4", 210, 469, "loss 0.2134  1021 data/sec", 13.2);
		ls_progress_update(progress, "epoch 1/4", 211, 469, "", 1.0);
		ls_progress_update(progress, "epoch 1/4", 212, 469, "", 1.0);
		double took = ls_clock_seconds() - begun;
		const char *text = terminal_read(t, 1);
		if (took < 0.1)
			return text;
		sleep_for(0.11);
	}
	fail_msg("three updates took more than a tenth of a second in each of %d tries", TRIES);
	return NULL;
}

static void test_line(void **state)
{
	terminal *t = *state;
	terminal_set_width(t, 100);
	ls_progress *progress = begin_quickly(t);
	assert_non_null(progress);
	expect(t, ""); /* not in the first second */
	sleep_for(1.05);
	assert_string_equal(update_quickly(t, progress),
			    "\repoch 1/4 |########------------| 210/469  loss 0.2134  1021 data/sec  0:14 left\033[K");
	sleep_for(0.11);
	ls_progress_update(progress, "epoch 1/4", 469, 469, "done", 3723.0);
	expect(t, "\repoch 1/4 |####################| 469/469  done  1:02:03 left\033[K");
	sleep_for(0.11);
	ls_progress_update(progress, "epoch 1/4", 5, 0, "x", NAN); /* nothing known about the end */
	expect(t, "\repoch 1/4 5  x\033[K");
	ls_progress_end(progress);
	expect(t, "\r\033[K");
}

/* A log line takes the progress line away and puts it back. */
static void test_log_lines_go_above(void **state)
{
	terminal *t = *state;
	terminal_set_width(t, 100);
	ls_progress *progress = ls_progress_begin();
	assert_non_null(progress);
	ls_log_note("early");
	expect(t, "early\r\n");
	sleep_for(1.05);
	ls_progress_update(progress, "test", 1, 2, "half", -1.0);
	terminal_read(t, 1);
	ls_log_note("hello");
	expect(t, "\r\033[Khello\r\n\rtest |##########----------| 1/2  half\033[K");
	ls_progress_end(progress);
	terminal_read(t, 1);
	ls_log_note("bye");
	expect(t, "bye\r\n"); /* the hook is gone */
}

/* A test inside training: the line comes back, and log lines still go above it. */
static void test_one_inside_another(void **state)
{
	terminal *t = *state;
	terminal_set_width(t, 100);
	ls_progress *outer = ls_progress_begin();
	sleep_for(1.05);
	ls_progress_update(outer, "epoch", 1, 2, "half", -1.0);
	terminal_read(t, 1);
	ls_progress *inner = ls_progress_begin();
	ls_progress_end(inner);
	expect(t, "\repoch |##########----------| 1/2  half\033[K");
	ls_log_note("hello");
	expect(t, "\r\033[Khello\r\n\repoch |##########----------| 1/2  half\033[K");
	inner = ls_progress_begin();
	ls_progress_end(outer); /* in the other order: the inner one keeps the line */
	ls_log_note("still");
	expect(t, "still\r\n");
	ls_progress_end(inner);
	ls_log_note("bye");
	expect(t, "bye\r\n");
}

static void assert_fits(terminal *t, ls_progress *progress, unsigned short columns, const char *expected)
{
	terminal_set_width(t, columns);
	sleep_for(0.11);
	ls_progress_update(progress, "epoch 1/4", 210, 469, "loss 0.2134", 61.0);
	const char *text = terminal_read(t, strlen(expected) + 4);
	assert_int_equal(text[0], '\r');
	size_t length = strlen(text) - 4; /* without the return and the erase */
	assert_true(length < columns);
	assert_int_equal(strncmp(text + 1, expected, strlen(expected)), 0);
	assert_int_equal(length, strlen(expected));
}

static void test_narrow_terminals(void **state)
{
	terminal *t = *state;
	ls_progress *progress = ls_progress_begin();
	assert_non_null(progress);
	sleep_for(1.0);
	assert_fits(t, progress, 80, "epoch 1/4 |########------------| 210/469  loss 0.2134  1:01 left");
	assert_fits(t, progress, 55, "epoch 1/4 |####------| 210/469  loss 0.2134  1:01 left");
	assert_fits(t, progress, 47, "epoch 1/4 210/469  loss 0.2134  1:01 left");
	assert_fits(t, progress, 20, "epoch 1/4 210/469  ");
	assert_fits(t, progress, 2, "e");
	assert_fits(t, progress, 0xffff, "epoch 1/4 |########------------| 210/469  loss 0.2134  1:01 left");
	ls_progress_end(progress);
}

static void test_silence(void **state)
{
	terminal *t = *state;
	ls_log_set_level(LS_LOG_ERROR);
	assert_null(ls_progress_begin());
	ls_log_set_level(LS_LOG_INFO);
	setenv("TERM", "dumb", 1);
	assert_null(ls_progress_begin());
	setenv("TERM", "xterm", 1);

	int terminal_fd = dup(STDERR_FILENO), ends[2];
	char byte;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	dup2(ends[1], STDERR_FILENO);
	ls_progress *progress = ls_progress_begin();
	ls_progress_update(progress, "epoch", 1, 2, "", 1.0);
	ls_progress_end(progress);
	dup2(terminal_fd, STDERR_FILENO);
	close(terminal_fd);
	assert_null(progress);
	assert_int_equal(read(ends[0], &byte, 1), -1); /* nothing came */
	close(ends[0]);
	close(ends[1]);
	expect(t, "");
}

TEST_MAIN_EACH(terminal_open, terminal_close, test_line, test_log_lines_go_above, test_one_inside_another,
	       test_narrow_terminals, test_silence)
