/*
 * stop.c - the signal handler; only async-signal-safe calls in it.
 */
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/train.h>

static volatile sig_atomic_t first_signal;
static const char *message;

static void on_signal(int signal)
{
	int saved = errno;
	if (first_signal)
		_exit(128 + signal);
	first_signal = signal;
	ls_train_stop();
	ssize_t ignored = write(STDERR_FILENO, message, strlen(message));
	(void)ignored; /* nothing better to do with it here */
	errno = saved;
}

void ls_stop_on_signals(int has_run)
{
	/* the line break separates it from ^C and from a progress line */
	message = has_run ? "\nfinishing the step, writing a checkpoint; again to stop at once\n"
			  : "\nfinishing the step; again to stop at once\n";
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGINT);
	sigaddset(&action.sa_mask, SIGTERM);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int ls_stop_signal(void)
{
	return first_signal;
}
