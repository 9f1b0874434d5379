/*
 * node.c - a node's side of ls_launch(): it reports that it is up, receives requests to stop, and leaves no daemon of
 * mpirun behind on a host that is cut off, however it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <lockstep/launch.h>

#include "base/thread.h"
#include "cluster/command.h"
#include "cluster/launched.h"
#include "cluster/output.h"
#include "cluster/session.h"

int ls_launched_by_us(void)
{
	return getenv(LS_LAUNCH_MARK) != NULL;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static int requests = -1; /* what standard input was */

/* The handler is the program's own, so the signal goes to this process alone. The end of the input is no request:
 * mpirun gives an empty one to all nodes but the first. */
static void *hear_requests(void *unused)
{
	char byte;
	ssize_t count;
	while ((count = read(requests, &byte, 1)) == 1 || (count < 0 && errno == EINTR))
		if (count == 1 && byte == LS_LAUNCH_REQUEST[0])
			kill(getpid(), SIGUSR1);
	return unused;
}

static int start_hearing(void)
{
	pthread_t thread;
	int error = ls_thread_start(&thread, hear_requests, NULL);
	if (!error)
		pthread_detach(thread);
	return error;
}

/* Take over standard input; other readers of it find it empty. */
static void take_input(void)
{
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	requests = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int error = requests < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ? errno : start_hearing();
	if (nothing >= 0)
		close(nothing);
	if (error)
		fprintf(stderr, "warning: this node cannot be asked to stop: %s\n", strerror(error));
}

/* ---- the daemon -------------------------------------------------------------------------------------------------- */

/*
 * A daemon of mpirun that cannot deliver the last output of its node keeps trying: TCP holds on to data that was sent
 * for a quarter of an hour, and keepalive does not count while there is such data. So a node on another host has a
 * guard, a process that waits for its end and then ends the daemon: in the normal case mpirun has ended it long before.
 * It is there from the start, because a node that a signal ends, its daemon's too, can start nothing any more. A node
 * that ends well dismisses its guard: the daemon then stays until the others are done.
 */
enum { DAEMON_MS = 1000 * (4 * LS_LAUNCH_WAIT_S + 2), TERM_MS = 2000 };

static pid_t reporter, guard; /* guard: 0, none */

/* Only daemons: mpirun itself has our launcher, and what Slurm starts is left alone. */
static int is_daemon(pid_t pid)
{
	char path[64], name[32] = "";
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	FILE *file = fopen(path, "re");
	if (file && !fgets(name, sizeof(name), file))
		name[0] = '\0';
	if (file)
		fclose(file);
	return !strcmp(name, "orted\n") || !strcmp(name, "prted\n");
}

static void end_daemon(struct pollfd *daemon)
{
	if (!poll(daemon, 1, DAEMON_MS) && !syscall(SYS_pidfd_send_signal, daemon->fd, SIGTERM, NULL, 0) &&
	    !poll(daemon, 1, TERM_MS))
		syscall(SYS_pidfd_send_signal, daemon->fd, SIGKILL, NULL, 0);
}

/* In a process of its own, which holds none of the pipes to the daemon. */
static void stand_guard(int daemon, int node, const char *session)
{
	struct pollfd ends[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = STDOUT_FILENO, .events = POLLIN } };
	setsid();
	prctl(PR_SET_NAME, "lockstep-guard");
	/* both above: ls_launch_report() has seen to it that the standard ones are open */
	if (dup2(daemon, STDIN_FILENO) < 0 || dup2(node, STDOUT_FILENO) < 0 || close_range(STDERR_FILENO, ~0U, 0))
		_exit(1);
	while (poll(ends, 2, -1) < 0 && errno == EINTR)
		;
	if (!ends[0].revents)
		end_daemon(&ends[0]);
	if (session[0])
		ls_session_remove(session); /* one that was killed has left it */
	_exit(0);
}

/* Where the kernel is older than Linux 5.3, there is none. */
static void post_guard(void)
{
	char session[4096];
	pid_t parent = getppid();
	if (!is_daemon(parent))
		return;
	ls_session_sweep();
	ls_session_of_daemon(session, sizeof(session));
	int daemon = (int)syscall(SYS_pidfd_open, parent, 0), node = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (daemon > STDERR_FILENO && node > STDERR_FILENO) {
		guard = fork();
		if (guard == 0)
			stand_guard(daemon, node, session);
	}
	if (daemon >= 0)
		close(daemon);
	if (node >= 0)
		close(node);
}

static void on_exit_of_node(int status, void *unused)
{
	(void)unused;
	if (status == 0 && getpid() == reporter && guard > 0)
		kill(guard, SIGKILL);
}

/* Without a reader there is nothing to report to. */
static void report_line(const char *line)
{
	ssize_t ignored = write(STDERR_FILENO, line, strlen(line));
	(void)ignored;
}

void ls_launch_report_joins(int has_joined)
{
	if (ls_launched_by_us())
		report_line(has_joined ? LS_LAUNCH_JOINED "\n" : LS_LAUNCH_JOINS "\n");
}

void ls_launch_report_trains(void)
{
	if (ls_launched_by_us())
		report_line(LS_LAUNCH_TRAINS "\n");
}

void ls_launch_report(void)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (!reporter) {
		post_guard();
		take_input();
		on_exit(on_exit_of_node, NULL);
	}
	reporter = getpid();
	report_line(LS_LAUNCH_UP "\n");
}

void ls_launch_report_heard(const char *reason)
{
	if (ls_launched_by_us())
		fprintf(stderr, LS_LAUNCH_HEARD "%s\n", reason);
}

void ls_launch_report_end(ls_status status, const char *message)
{
	const char *mark = status == LS_EINTERRUPTED ? LS_LAUNCH_STOPS
			   : status == LS_EPEER      ? LS_LAUNCH_LOST
						     : LS_LAUNCH_FAILS;
	fprintf(stderr, "%s%s\n", ls_launched_by_us() ? mark : "", message); /* one call, so it cannot be torn */
}
