/*
 * stop.c - the signal handler; only async-signal-safe calls in it.
 */
#include "stop.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lockstep/launch.h>
#include <lockstep/serve.h>
#include <lockstep/status.h>
#include <lockstep/sweep.h>
#include <lockstep/train.h>

/* SIGUSR1 is what a node raises when its launcher asks it to stop (ls_launch_report()). */
static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1 };
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

static volatile sig_atomic_t first_signal, heard;
static void (*stop)(void);
static int patience; /* number of signals that ask to stop; the next one exits */
static const char *message;

/* timeout(1) signals its child, then its process group: one request in two signals. A node does not merge them, for
 * its launcher has done so. */
enum { SAME_REQUEST_MS = 500 };
static int merges;
static volatile int64_t counted_at; /* milliseconds; one thread takes signals (main.c), and the handler blocks them */

static int repeats_the_last(void)
{
	struct timespec clock = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &clock);
	int64_t now = (int64_t)clock.tv_sec * 1000 + clock.tv_nsec / 1000000;
	if (merges && heard > 0 && now - counted_at < SAME_REQUEST_MS)
		return 1;
	counted_at = now;
	return 0;
}

static void on_signal(int signal)
{
	int saved = errno;
	if (repeats_the_last()) {
		errno = saved;
		return;
	}
	if (heard++ >= patience) {
		ls_discard_drafts();
		_exit(128 + signal);
	}
	stop();
	if (!first_signal) {
		first_signal = signal;
		ssize_t ignored = write(STDERR_FILENO, message, strlen(message));
		(void)ignored; /* nothing better to do with it here */
	}
	errno = saved;
}

void ls_stop_on_signals(ls_stop_role role, int has_run)
{
	int is_measurement = role == LS_STOP_SWEEP || role == LS_STOP_FAULTS;
	stop = is_measurement             ? ls_sweep_stop
	       : role == LS_STOP_LAUNCHER ? ls_launch_stop
	       : role == LS_STOP_SERVER   ? ls_serve_stop
					  : ls_train_stop;
	merges = role != LS_STOP_NODE;
	patience = is_measurement ? INT_MAX : role == LS_STOP_LAUNCHER ? 2 : 1;
	/* the line break separates it from ^C and from a progress line */
	message = role == LS_STOP_NODE     ? ""
		  : role == LS_STOP_SWEEP  ? "\nending the measurement; those that are done are kept\n"
		  : role == LS_STOP_FAULTS ? "\nending the measurement\n"
		  : role == LS_STOP_SERVER ? "\nanswering the requests that are here; again to stop at once\n"
		  : role == LS_STOP_TEXT   ? "\nstopping; again to stop at once\n"
		  : has_run                ? "\nfinishing the step, writing a checkpoint; again to stop at once\n"
					   : "\nfinishing the step; again to stop at once\n";
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, before;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < SIGNALS; i++)
		sigaddset(&action.sa_mask, signals[i]);
	for (size_t i = 0; i < SIGNALS; i++)
		if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN) /* nohup's stays ignored */
			sigaction(signals[i], &action, NULL);
}

int ls_stop_signal(void)
{
	return first_signal;
}
