/*
 * main.c - the process of the lockstep command: descriptors, signals, stack. Its subcommands are in commands.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "command.h"

/* Output that did not arrive is a failure, too: a full disk, a reader that went away. */
static int close_output(int code)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return code;
	if (errno == 0 && write(STDOUT_FILENO, "", 0) == 0) /* a stream does not remember why a write failed */
		errno = 0;
	ls_command_end("lockstep", LS_EIO, "cannot write to standard output%s%s", errno ? ": " : "",
		       errno == EBADF ? "it is closed"
		       : errno        ? strerror(errno)
				      : "");
	return code ? code : LS_EXIT_FAILURE;
}

/* A closed descriptor must not become a checkpoint that messages are then written into. The one in the place of
 * standard output cannot be written to, so that what is printed is missed: close_output() reports it. */
static int fill_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int mode = fd == STDERR_FILENO ? O_WRONLY : O_RDONLY;
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", mode) != fd)
			return -1;
	}
	return 0;
}

#define STACK_LEAST ((size_t)1 << 20)

typedef struct command_call {
	int argc, code;
	char **argv;
	sigset_t signals; /* that the command's thread leaves blocked */
} command_call;

static void *run_command(void *argument)
{
	command_call *call = argument;
	pthread_sigmask(SIG_SETMASK, &call->signals, NULL);
	call->code = ls_command_dispatch(&ls_commands, call->argc, call->argv);
	return NULL;
}

/* In a thread whose stack is not the limited one: tables lie on it, code is built on it, files may be nested. That
 * thread alone takes signals, for their handlers must not run twice at the same time. */
static int run_in_thread(command_call *call, unsigned long long limit)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	int error = pthread_attr_init(&attributes);
	if (!error)
		error = pthread_attr_setstacksize(&attributes, 8 * STACK_LEAST);
	if (!error)
		error = pthread_create(&thread, &attributes, run_command, call);
	int started = !error;
	if (started)
		error = pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &call->signals, NULL);
	if (started)
		return error;
	ls_command_end("lockstep", LS_EMEMORY,
		       "cannot start a thread with a larger stack than the %llu kB of ulimit -s: %s", limit >> 10,
		       strerror(error));
	return error;
}

static int dispatch(int argc, char **argv)
{
	command_call call = { .argc = argc, .argv = argv };
	struct rlimit stack;
	pthread_sigmask(SIG_SETMASK, NULL, &call.signals);
	if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= STACK_LEAST)
		run_command(&call);
	else if (run_in_thread(&call, stack.rlim_cur))
		return LS_EXIT_FAILURE;
	return call.code;
}

static void end_clean(int number)
{
	ls_discard_drafts();
	raise(number); /* comes when this returns, and now ends the process */
}

/* What ends a command leaves no half-written file. Commands that can do better set handlers of their own. */
static void clean_up_on_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = end_clean, .sa_flags = SA_RESETHAND }, before;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigaction(signals[i], NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
}

int main(int argc, char **argv)
{
	if (fill_standard_descriptors())
		return LS_EXIT_FAILURE;
	signal(SIGPIPE, SIG_IGN); /* `| head` must not kill a training run: close_output() reports it */
	signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error like a full disk, with a message */
	clean_up_on_signals();
	if (argc == 2 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
		printf("lockstep %s\n", ls_version());
		return close_output(LS_EXIT_OK);
	}
	return close_output(dispatch(argc, argv));
}
