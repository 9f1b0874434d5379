/*
 * launch.c - start the nodes through mpirun, pass on what they say, and see to it that all of it ends.
 *
 * Invariants
 *  1. mpirun is in a process group of its own: Ctrl-C reaches this process only, which asks the nodes to stop by
 *     SIGUSR1 (mpirun passes that on and does nothing itself). A second request ends mpirun by SIGTERM.
 *  2. mpirun ends with this process, however that ends (PR_SET_PDEATHSIG); a node ends with its daemon.
 *  3. Every wait has an end: nodes are up within `timeout`, and mpirun is gone `grace_s` after it has said that the job
 *     ends, or was asked to end it; else it is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lockstep/launch.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "exchange/transport.h"
#include "launch/command.h"
#include "launch/output.h"
#include "launch/reach.h"

/* mpirun wakes its nodes, waits, sends SIGTERM, waits, sends SIGKILL: LS_LAUNCH_WAIT_S each time, and the same again
 * with its daemons on other hosts. */
static const double grace_s = 4 * LS_LAUNCH_WAIT_S + 4, probe_s = 3;

static volatile sig_atomic_t stops_wanted;

typedef struct launch {
	const ls_launch_options *options;
	ls_host *hosts;
	size_t count;
	ls_arena arena;
	char **command, *devices;
	ls_launch_output output;
	pid_t mpirun;
	int from; /* its standard error */
	int stops;
	int late; /* nodes were not up in time */
	double started, ending;
	int wait_status;
} launch;

int ls_launched(void)
{
	return ls_mpi_launched();
}

ls_status ls_launched_devices(int node, int *devices)
{
	return ls_mpi_launched_devices(node, devices);
}

int ls_launched_by_us(void)
{
	return getenv(LS_LAUNCH_MARK) != NULL;
}

void ls_launch_report(void)
{
	static const char up[] = LS_LAUNCH_UP "\n";
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	ssize_t ignored = write(STDERR_FILENO, up, sizeof up - 1);
	(void)ignored; /* without a reader there is nobody to tell */
}

void ls_launch_stop(void)
{
	stops_wanted++;
}

/* ---- mpirun ------------------------------------------------------------------------------------------------------ */

static void become_mpirun(launch *l, int to, pid_t parent)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	int nothing = open("/dev/null", O_RDONLY);
	if (getppid() == parent && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(to, STDERR_FILENO) >= 0) {
		setenv(LS_LAUNCH_MARK, "1", 1);
		if (l->devices)
			setenv(LS_DEVICES_PER_NODE, l->devices, 1);
		execv(l->command[0], l->command);
	}
	_exit(127);
}

static ls_status start_mpirun(launch *l)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return ls_fail_errno(LS_EIO, "hosts: cannot make a pipe");
	pid_t self = getpid();
	l->mpirun = fork();
	if (l->mpirun == 0)
		become_mpirun(l, ends[1], self);
	close(ends[1]);
	if (l->mpirun < 0) {
		close(ends[0]);
		return ls_fail_errno(LS_EIO, "hosts: cannot start %s", l->command[0]);
	}
	setpgid(l->mpirun, l->mpirun); /* whoever comes first */
	l->from = ends[0];
	fcntl(l->from, F_SETFL, O_NONBLOCK);
	l->started = ls_clock_seconds();
	return LS_OK;
}

/* Returns 0 at the end of its output. */
static int read_output(launch *l)
{
	char bytes[4096];
	ssize_t count = read(l->from, bytes, sizeof bytes);
	if (count > 0)
		ls_launch_output_take(&l->output, bytes, (size_t)count, ls_clock_seconds());
	return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

static void begin_ending(launch *l)
{
	if (l->ending == 0)
		l->ending = ls_clock_seconds();
}

/* A node that is not up yet would not understand SIGUSR1. */
static void heed_stops(launch *l)
{
	while (l->stops < stops_wanted) {
		int gently = l->stops == 0 && l->output.nodes_up == l->count;
		kill(l->mpirun, gently ? SIGUSR1 : SIGTERM);
		if (!gently)
			begin_ending(l);
		l->stops++;
	}
}

static void heed_clock(launch *l)
{
	double now = ls_clock_seconds();
	if (l->output.end != LS_LAUNCH_RUNS)
		begin_ending(l);
	if (l->ending == 0 && l->output.nodes_up < l->count && now - l->started > l->options->timeout) {
		l->late = 1;
		kill(l->mpirun, SIGTERM);
		begin_ending(l);
	}
	if (l->ending > 0 && now - l->ending > grace_s)
		kill(-l->mpirun, SIGKILL);
}

/* Until mpirun is gone. Its output may be held open longer by a process it left behind: that is not waited for. */
static void attend(launch *l)
{
	int open = 1;
	for (;;) {
		struct pollfd wait = { .fd = open ? l->from : -1, .events = POLLIN };
		poll(&wait, 1, 50);
		while (open && wait.revents && (open = read_output(l)) && poll(&wait, 1, 0) > 0)
			;
		ls_launch_output_flush(&l->output, ls_clock_seconds(), 0);
		heed_stops(l);
		heed_clock(l);
		if (waitpid(l->mpirun, &l->wait_status, WNOHANG) == l->mpirun)
			break;
	}
	struct pollfd rest = { .fd = l->from, .events = POLLIN };
	while (open && poll(&rest, 1, 0) > 0 && read_output(l))
		;
	close(l->from);
}

/* ---- how it went ------------------------------------------------------------------------------------------------- */

/* "b, c": the hosts that are not this one, each once. */
static void name_others(const launch *l, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < l->count; i++) {
		int known = ls_host_is_here(l->hosts[i].name);
		for (size_t k = 0; k < i; k++)
			known = known || !strcmp(l->hosts[k].name, l->hosts[i].name);
		if (!known && used < size)
			used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", l->hosts[i].name);
	}
	if (!used)
		snprintf(out, size, "this host");
}

/* Who cannot be reached, else what ssh said, else that nobody knows. */
static ls_status fail_start(launch *l)
{
	char others[256], silent[512], why[1024];
	name_others(l, others, sizeof others);
	ls_launch_output_explain(&l->output, why, sizeof why);
	ls_launch_reach(l->hosts, l->count, probe_s, silent, sizeof silent);
	if (silent[0])
		return ls_fail(LS_EIO, "hosts: cannot reach %s", silent);
	if (why[0])
		return ls_fail(LS_EIO, "hosts: cannot start nodes on %s: %s", others, why);
	return ls_fail(LS_EIO,
		       "hosts: no answer of nodes on %s within %.0f s: can those hosts open connections to this one?",
		       others, l->options->timeout);
}

/* A status that no node gives itself: those it exits with after a signal are of signals that ask it to stop. */
static int is_violent(int code)
{
	int signal = code - 128;
	return signal > 0 && signal < NSIG && signal != SIGHUP && signal != SIGINT && signal != SIGTERM &&
	       signal != SIGUSR1;
}

/* mpirun's banner would have named it, but is lost when mpirun ends before it has printed it; its notes are not. */
static ls_status fail_killed(const launch *l, int signal)
{
	const ls_launch_output *output = &l->output;
	char here[256] = "";
	if (!output->has_killed || output->killed >= l->count)
		return ls_fail(LS_EIO, "a node was ended by signal %d (%s)", signal, sigdescr_np(signal));
	const char *host = l->hosts[output->killed].name;
	if (ls_host_is_here(host) && !gethostname(here, sizeof here - 1))
		host = here;
	return ls_fail(LS_EIO, "node %zu (%s) was ended by signal %d (%s)", output->killed, host, signal,
		       sigdescr_np(signal));
}

static ls_status judge(launch *l, int *exit_code)
{
	int status = l->wait_status;
	*exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (l->stops)
		return ls_fail(LS_EINTERRUPTED, "stopped on request");
	if (l->late || *exit_code >= 128 + NSIG) /* mpirun's own numbers mean nothing to others */
		*exit_code = 1;
	if (l->late || l->output.end == LS_LAUNCH_UNSTARTED)
		return fail_start(l);
	if (l->output.end == LS_LAUNCH_REASON && l->output.nodes_told && *exit_code)
		return LS_OK; /* what they were doing, too */
	if (l->output.end == LS_LAUNCH_REASON)
		return ls_fail(LS_EIO, "%s", l->output.reason);
	if (is_violent(*exit_code) && (l->output.end == LS_LAUNCH_TOLD || l->output.has_killed))
		return fail_killed(l, *exit_code - 128);
	if (*exit_code && l->output.end == LS_LAUNCH_RUNS)
		return ls_fail(LS_EIO, "mpirun ended with status %d and did not say why", *exit_code);
	return LS_OK;
}

static ls_status prepare(launch *l)
{
	LS_TRY(ls_hosts_parse(&l->hosts, &l->count, l->options->hosts));
	LS_TRY(ls_launch_devices(&l->arena, l->hosts, l->count, &l->devices));
	return ls_launch_command(&l->arena, l->options, l->hosts, l->count, &l->command);
}

static ls_status launch_nodes(launch *l, int *exit_code)
{
	LS_TRY(prepare(l));
	LS_TRY(start_mpirun(l));
	attend(l);
	int code = 1;
	ls_status status = judge(l, &code);
	ls_launch_output_flush(&l->output, ls_clock_seconds(), 1);
	*exit_code = code;
	return status;
}

ls_status ls_launch(const ls_launch_options *options, int *exit_code)
{
#ifndef LS_HAVE_MPI
	(void)launch_nodes, (void)exit_code;
	return ls_fail(LS_EUNSUPPORTED,
		       "hosts: this build of Lockstep has no MPI and trains on one node only; install libopenmpi-dev "
		       "and build it again (asked for: %s)",
		       options->hosts);
#else
	launch l = { .options = options, .output.to = stderr };
	fflush(NULL);
	ls_status status = launch_nodes(&l, exit_code);
	ls_arena_release(&l.arena);
	ls_hosts_free(l.hosts);
	return status;
#endif
}
