/*
 * child.c - fork, pipes, poll, and termination in any case.
 */
#include "tools/sweep/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lockstep/sweep.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/names.h"

enum { OUT_MAX = 64 << 20, POLL_MS = 100 };

static volatile sig_atomic_t stop_wanted;

void ls_sweep_stop(void)
{
	stop_wanted = 1;
}

int ls_sweep_stopped(void)
{
	return stop_wanted;
}

typedef struct running {
	const ls_child_options *options;
	ls_child *child;
	pid_t pid;
	int from[2];          /* its stdout and stderr; -1: at the end */
	double begun, ending; /* 0: not being ended */
	int killed, stopped, overflow, no_memory;
} running;

static void become(const ls_child_options *o, int out, int err, pid_t parent)
{
	int nothing = open("/dev/null", O_RDONLY);
	if (ls_child_prepare(parent) && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
	    dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
		execvp(o->argv[0], o->argv);
	dprintf(STDERR_FILENO, "cannot start %s: %s\n", o->argv[0], strerror(errno));
	_exit(127);
}

static ls_status start(running *r)
{
	int out[2], err[2];
	pid_t self = getpid();

	if (pipe2(out, O_CLOEXEC) != 0)
		return ls_fail_errno(LS_EIO, "cannot make a pipe");
	if (pipe2(err, O_CLOEXEC) != 0) {
		close(out[0]), close(out[1]);
		return ls_fail_errno(LS_EIO, "cannot make a pipe");
	}
	fflush(NULL);
	r->pid = fork();
	if (r->pid == 0)
		become(r->options, out[1], err[1], self);
	close(out[1]), close(err[1]);
	r->from[0] = out[0], r->from[1] = err[0];
	if (r->pid < 0) {
		close(out[0]), close(err[0]);
		return ls_fail_errno(LS_EIO, "cannot start %s", r->options->argv[0]);
	}
	setpgid(r->pid, r->pid); /* parent and child both call it, in any order */
	r->begun = ls_clock_seconds();
	return LS_OK;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void keep_out(running *r, const char *bytes, size_t count)
{
	ls_child *c = r->child;
	size_t room = OUT_MAX - c->bytes;

	if (count > room)
		r->overflow = 1, count = room;
	char *grown = realloc(c->out, c->bytes + count + 1);
	if (!grown) {
		r->no_memory = 1;
		return;
	}
	memcpy(grown + c->bytes, bytes, count);
	c->out = grown;
	c->bytes += count;
	c->out[c->bytes] = '\0';
}

/* Only the end of stderr is kept. */
static void keep_error(ls_child *c, const char *bytes, size_t count)
{
	size_t size = sizeof(c->error) - 1, used = strlen(c->error);

	if (count > size)
		bytes += count - size, count = size;
	size_t drop = used + count > size ? used + count - size : 0;
	memmove(c->error, c->error + drop, used - drop);
	memcpy(c->error + used - drop, bytes, count);
	c->error[used - drop + count] = '\0';
}

static void take(running *r, int which)
{
	char bytes[8192];
	ssize_t count = read(r->from[which], bytes, sizeof(bytes));

	for (ssize_t i = 0; which == 1 && i < count; i++)
		bytes[i] = bytes[i] != '\0' ? bytes[i] : '?';
	if (count > 0 && which == 0)
		keep_out(r, bytes, (size_t)count);
	else if (count > 0)
		keep_error(r->child, bytes, (size_t)count);
	else if (count == 0 || errno != EINTR) {
		close(r->from[which]);
		r->from[which] = -1;
	}
}

/* Wait for more output; 0: there was none. */
static int read_output(running *r, int milliseconds)
{
	struct pollfd wait[2] = { { .fd = r->from[0], .events = POLLIN }, { .fd = r->from[1], .events = POLLIN } };

	if (poll(wait, 2, milliseconds) <= 0)
		return 0;
	for (int k = 0; k < 2; k++)
		if (wait[k].revents != 0)
			take(r, k);
	return 1;
}

/* ---- termination ------------------------------------------------------------------------------------------------- */

static void terminate(running *r)
{
	if (r->ending == 0) {
		r->ending = ls_clock_seconds();
		kill(-r->pid, SIGTERM);
	} else if (!r->killed && ls_clock_seconds() - r->ending > LS_CHILD_GRACE_S) {
		r->killed = 1;
		kill(-r->pid, SIGKILL);
	}
}

static void check_limits(running *r)
{
	double now = ls_clock_seconds();

	if (!r->options->goes_on && stop_wanted)
		r->stopped = 1;
	if (r->ending == 0 && now - r->begun > r->options->limit_s)
		r->child->late = 1;
	if (r->stopped || r->child->late || r->overflow || r->no_memory)
		terminate(r);
	if (r->options->tick)
		r->options->tick(r->options->context);
}

/* A process that the command left behind may keep the pipes open: it is not waited for. */
static void wait_for_end(running *r)
{
	int status;

	while (waitpid(r->pid, &status, WNOHANG) != r->pid) {
		read_output(r, POLL_MS);
		check_limits(r);
	}
	while ((r->from[0] >= 0 || r->from[1] >= 0) && read_output(r, 0))
		;
	for (int k = 0; k < 2; k++)
		if (r->from[k] >= 0)
			close(r->from[k]);
	if (r->ending > 0)
		kill(-r->pid, SIGKILL); /* processes that it started and left behind */
	r->child->seconds = ls_clock_seconds() - r->begun;
	r->child->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ls_status ls_child_run(ls_child *out, const ls_child_options *options)
{
	ls_child child = { 0 };
	running r = { .options = options, .child = &child };

	child.out = calloc(1, 1);
	if (!child.out)
		return ls_fail(LS_EMEMORY, "no memory for the output of %s", options->argv[0]);
	ls_status status = start(&r);
	if (status == LS_OK)
		wait_for_end(&r);
	if (status == LS_OK && r.stopped)
		status = ls_fail(LS_EINTERRUPTED, "stopped on request");
	if (status == LS_OK && r.no_memory)
		status = ls_fail(LS_EMEMORY, "no memory for the output of %s", options->argv[0]);
	if (status == LS_OK && r.overflow)
		status = ls_fail(LS_EMEMORY, "%s printed too much output", options->argv[0]);
	if (status == LS_OK)
		*out = child;
	else
		ls_child_release(&child);
	return status;
}

void ls_child_release(ls_child *child)
{
	free(child->out);
	*child = (ls_child){ 0 };
}

/* ---- reasons of failures ----------------------------------------------------------------------------------------- */

/* The last line that begins with a program's name, "lockstep bench: ...", as hints follow it; else the last line. */
static const char *error_line(const char *text, size_t *length)
{
	const char *found = NULL;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t n = strcspn(line, "\n");
		int names = !strncmp(line, "lockstep", 8) || !strncmp(line, "lab: ", 5);
		if (n > 0 && (names || !found || (found[0] != 'l')))
			found = line, *length = n;
	}
	return found;
}

const char *ls_child_reason(const ls_child *child, char *out, size_t size)
{
	size_t length = 0;
	char line[512];
	const char *found = error_line(child->error, &length);

	if (child->late)
		snprintf(out, size, "not done after %.0f s", child->seconds);
	else if (found) {
		snprintf(line, sizeof(line), "%.*s", (int)length, found);
		ls_text_printable(out, size, line);
	} else if (child->code > 128)
		snprintf(out, size, "ended by signal %d (%s)", child->code - 128, strsignal(child->code - 128));
	else
		snprintf(out, size, "ended with status %d and did not say why", child->code);
	return out;
}
