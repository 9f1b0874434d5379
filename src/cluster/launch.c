/*
 * launch.c - start the nodes through mpirun, pass on what they print, and make sure that all of them end.
 *
 * Invariants
 *  1. mpirun is in a process group of its own: Ctrl-C reaches this process only, which writes a request to mpirun's
 *     standard input. mpirun forwards that to the first node, which asks the others (node.c). No signal is used for it:
 *     libraries that mpirun loads may replace its handlers (LLVM does, through hwloc's OpenCL plugin). A second request
 *     ends mpirun by SIGTERM.
 *  2. mpirun ends with this process, however that ends (PR_SET_PDEATHSIG); a node ends with its daemon.
 *  3. Every wait has an end: nodes are up within `timeout`, and have found each other within as long again; and mpirun
 *     is gone `grace_s` after a node has reported why it ends, mpirun has reported the end of the job, or was asked to
 *     end it; else it is killed. Without that it would wait for the daemon of a host that is cut off until the link is
 *     back.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lockstep/launch.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/status.h"
#include "cluster/command.h"
#include "cluster/launch_run.h"
#include "cluster/launched.h"
#include "cluster/members.h"
#include "cluster/reach.h"
#include "cluster/session.h"
#include "cluster/slurm.h"

/* mpirun wakes its nodes, waits, sends SIGTERM, waits, sends SIGKILL: LS_LAUNCH_WAIT_S each time, and the same again
 * with its daemons on other hosts. */
static const double grace_s = 4 * LS_LAUNCH_WAIT_S + 4, probe_s = 3;
/* The same where mpirun waits for nothing (see command.h): it has no more to do than to end its daemons. */
static const double hurried_s = 1.5;

static volatile sig_atomic_t stops_wanted;

int ls_launched(void)
{
	return ls_mpi_launched();
}

ls_status ls_launched_devices(int node, int *devices)
{
	return ls_mpi_launched_devices(node, devices);
}

void ls_launch_stop(void)
{
	stops_wanted++;
}

int ls_launch_is_stopping(void)
{
	return stops_wanted > 0;
}

/* ---- mpirun ------------------------------------------------------------------------------------------------------ */

/* hwloc's plugins for graphics would load drivers and, with them, LLVM: what they find is of no use here. */
static void set_environment(const ls_launch_run *l)
{
	setenv("HWLOC_COMPONENTS", LS_HWLOC_COMPONENTS, 0);
	setenv(LS_LAUNCH_MARK, "1", 1);
	setenv(LS_NODE_HOSTS, l->names, 1);
	if (l->devices)
		setenv(LS_DEVICES_PER_NODE, l->devices, 1);
	if (l->watch)
		ls_sessions_export(l->watch->sessions);
	for (char **word = l->allocation; word && *word; word++)
		putenv(*word);
}

static void become_mpirun(ls_launch_run *l, int input, int output, pid_t parent)
{
	if (ls_child_prepare(parent) && dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0) {
		set_environment(l);
		execv(l->command[0], l->command);
	}
	_exit(127);
}

/* Its input is a socket, for a write to that can do without SIGPIPE. */
static ls_status make_channels(int input[2], int output[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input))
		return ls_fail_errno(LS_EIO, "hosts: cannot make a socket");
	if (pipe2(output, O_CLOEXEC)) {
		ls_status status = ls_fail_errno(LS_EIO, "hosts: cannot make a pipe");
		close(input[0]);
		close(input[1]);
		return status;
	}
	return LS_OK;
}

static ls_status start_mpirun(ls_launch_run *l)
{
	int input[2], output[2];
	LS_TRY(make_channels(input, output));
	pid_t self = getpid();
	l->mpirun = fork();
	if (l->mpirun == 0)
		become_mpirun(l, input[0], output[1], self);
	close(input[0]);
	close(output[1]);
	if (l->mpirun < 0) {
		ls_status status = ls_fail_errno(LS_EIO, "hosts: cannot start %s", l->command[0]);
		close(input[1]);
		close(output[0]);
		return status;
	}
	setpgid(l->mpirun, l->mpirun); /* parent and child both do: either may be first */
	l->to = input[1];
	l->from = output[0];
	fcntl(l->from, F_SETFL, O_NONBLOCK);
	l->started = ls_clock_seconds();
	return LS_OK;
}

/* Returns 0 at the end of its output. */
static int read_output(ls_launch_run *l)
{
	char bytes[4096];
	ssize_t count = read(l->from, bytes, sizeof(bytes));
	if (count > 0)
		ls_launch_output_take(&l->output, bytes, (size_t)count, ls_clock_seconds());
	return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

static void begin_ending(ls_launch_run *l)
{
	if (l->ending == 0)
		l->ending = ls_clock_seconds();
}

/* A node that is not up yet would not understand. */
static int send_request(ls_launch_run *l)
{
	static const char request[] = LS_LAUNCH_REQUEST;
	ssize_t length = sizeof(request) - 1;
	return l->output.nodes_up == l->count &&
	       send(l->to, request, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) == length;
}

static int ask_gently(ls_launch_run *l)
{
	return l->stops == 0 && (l->regroup > 0 || send_request(l));
}

static void heed_stops(ls_launch_run *l)
{
	while (l->stops < stops_wanted) {
		if (!ask_gently(l)) {
			kill(l->mpirun, SIGTERM);
			begin_ending(l);
		}
		l->stops++;
	}
}

/* The supervisor wants other hosts: nodes stop with a checkpoint, within as much time as a
 * silent one is given, twice. */
static void heed_supervisor(ls_launch_run *l)
{
	double now = ls_clock_seconds();
	if (!l->watch || l->stops || l->ending > 0)
		return;
	if (l->regroup == 0 && l->output.nodes_up == l->count && l->watch->regroups(l->watch->context) &&
	    send_request(l)) {
		l->regroup = now;
		l->output.hides_stops = 1;
	}
	if (l->regroup > 0 && now - l->regroup > 2 * l->options->timeout) {
		kill(l->mpirun, SIGTERM);
		begin_ending(l);
	}
}

/* With a supervisor, the others are ended as soon as one is known to be lost. */
static void heed_end(ls_launch_run *l)
{
	int is_ending = l->output.end != LS_LAUNCH_RUNS || l->output.nodes_reported;
	int is_lost = l->watch && !l->output.nodes_failed && (is_ending || l->output.has_killed);
	if (l->ending == 0 && is_lost)
		kill(l->mpirun, SIGTERM);
	if (is_ending || is_lost)
		begin_ending(l);
}

/* Seconds in which nodes must be up. */
static double patience(const ls_launch_run *l)
{
	double timeout = l->options->timeout;
	return l->watch && l->watch->start_s > timeout ? l->watch->start_s : timeout;
}

/* A node that hangs while all meet in MPI_Init() lets the others hang there, too: nobody watches anybody yet. */
static int is_late(const ls_launch_run *l, double now)
{
	const ls_launch_output *o = &l->output;
	if (o->nodes_up < l->count)
		return now - l->started > patience(l);
	return o->joining > 0 && o->nodes_joined < l->count && now - o->joining > patience(l);
}

static void heed_clock(ls_launch_run *l)
{
	double now = ls_clock_seconds(), grace = l->watch && !l->output.nodes_failed ? hurried_s : grace_s;
	heed_end(l);
	if (l->ending == 0 && is_late(l, now)) {
		l->late = 1;
		kill(l->mpirun, SIGTERM);
		begin_ending(l);
	}
	if (l->ending > 0 && now - l->ending > grace) {
		l->killed = 1;
		kill(-l->mpirun, SIGKILL);
	}
}

/* Until mpirun is gone. Its output may be held open longer by a process it left behind: that is not waited for. What
 * comes after it was killed is about that. */
static void attend(ls_launch_run *l)
{
	int open = 1;
	for (;;) {
		struct pollfd wait = { .fd = open && !l->killed ? l->from : -1, .events = POLLIN };
		poll(&wait, 1, 50);
		while (open && wait.revents && (open = read_output(l)) && poll(&wait, 1, 0) > 0)
			;
		ls_launch_output_flush(&l->output, ls_clock_seconds(), 0);
		if (l->watch)
			l->watch->trains = l->output.trains;
		heed_stops(l);
		heed_supervisor(l);
		heed_clock(l);
		if (waitpid(l->mpirun, &l->wait_status, WNOHANG) == l->mpirun)
			break;
	}
	struct pollfd rest = { .fd = l->from, .events = POLLIN };
	while (open && !l->killed && poll(&rest, 1, 0) > 0 && read_output(l))
		;
	ls_launch_output_end(&l->output, ls_clock_seconds()); /* mpirun may end in the middle of a node's reason */
	close(l->from);
	close(l->to);
	ls_session_end_mpirun(l->mpirun);
}

/* ---- how it ended -------------------------------------------------------------------------------------------------
 */

/* "b, c": the hosts that are not this one, each once. */
static void name_others(const ls_launch_run *l, char *out, size_t size)
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

/* What mpirun reaches other hosts with. */
static const char *agent(void)
{
	const char *chosen = getenv("OMPI_MCA_plm_rsh_agent");
	chosen = chosen ? chosen : getenv("OMPI_MCA_orte_rsh_agent");
	return chosen ? chosen : "ssh";
}

/* "Host key verification failed." is all that ssh prints of a host it was never used for. */
static int names_a_host(const ls_launch_run *l, const char *text)
{
	for (size_t i = 0; i < l->count; i++) {
		const char *name = l->hosts[i].name;
		size_t length = strlen(name);
		for (const char *at = text; (at = strstr(at, name)); at += length) {
			int begins = at == text || !isalnum((unsigned char)at[-1]);
			if (begins && !isalnum((unsigned char)at[length]))
				return 1;
		}
	}
	return 0;
}

int ls_launch_is_unjoined(const ls_launch_run *l)
{
	return l->late && l->output.nodes_up == l->count;
}

static ls_status fail_unjoined(const ls_launch_run *l)
{
	return ls_fail(LS_EIO,
		       "hosts: only %zu of %zu nodes completed MPI_Init within %.0f s: a node hangs, or hosts cannot "
		       "connect to each other",
		       l->output.nodes_joined, l->count, patience(l));
}

/* Which host cannot be reached, else what ssh printed, else that nothing is known. */
static ls_status fail_start(ls_launch_run *l)
{
	char others[256], silent[512], why[1024];
	name_others(l, others, sizeof(others));
	ls_launch_output_explain(&l->output, why, sizeof(why));
	ls_launch_reach(l->hosts, l->count, probe_s, silent, sizeof(silent));
	if (silent[0])
		return ls_fail(LS_EIO, "hosts: cannot reach %s", silent);
	if (ls_launch_is_unjoined(l))
		return fail_unjoined(l);
	if (why[0] && names_a_host(l, why))
		return ls_fail(LS_EIO, "hosts: cannot start nodes on %s: %s", others, why);
	if (why[0])
		return ls_fail(LS_EIO, "hosts: cannot start nodes on %s: %s (try '%s HOST true' for each of them)",
			       others, why, agent());
	if (!l->late)
		return ls_fail(LS_EIO,
			       "hosts: cannot start nodes on %s: '%s' failed and did not say why; try it yourself with "
			       "the command 'true' on each of these hosts",
			       others, agent());
	return ls_fail(LS_EIO,
		       "hosts: no answer of nodes on %s within %.0f s: can those hosts open connections to this one?",
		       others, patience(l));
}

/* A status that no node gives itself: those it exits with after a signal are of signals that ask it to stop. */
static int is_violent(int code)
{
	int signal = code - 128;
	return signal > 0 && signal < NSIG && signal != SIGHUP && signal != SIGINT && signal != SIGTERM &&
	       signal != SIGUSR1;
}

void ls_launch_name_node(const ls_launch_run *l, int known, size_t node, char *out, size_t size)
{
	char here[256] = "";
	const char *host = known && node < l->count ? l->hosts[node].name : NULL;
	if (host && ls_host_is_here(host) && !gethostname(here, sizeof(here) - 1))
		host = here;
	if (host)
		snprintf(out, size, "node %zu (%s)", node, host);
	else
		snprintf(out, size, "a node");
}

/* mpirun's banner would have named it, but is lost when mpirun ends before it has printed it; its notes are not. */
static ls_status fail_killed(const ls_launch_run *l, int signal)
{
	char name[300];
	ls_launch_name_node(l, l->output.has_killed, l->output.killed, name, sizeof(name));
	return ls_fail(LS_EIO, "%s was ended by signal %d (%s)", name, signal, sigdescr_np(signal));
}

/* Neither a node nor mpirun has reported why. */
static ls_status fail_unexplained(const ls_launch_run *l, int exit_code)
{
	char name[300];
	int status = l->wait_status;
	if (WIFSIGNALED(status))
		return ls_fail(LS_EIO, "mpirun was ended by signal %d (%s)", WTERMSIG(status),
			       sigdescr_np(WTERMSIG(status)));
	if (is_violent(exit_code))
		return fail_killed(l, exit_code - 128);
	if (l->output.end == LS_LAUNCH_UNSTARTED)
		return ls_fail(LS_EIO, "mpirun lost its daemon on a host, and no node said why");
	ls_launch_name_node(l, l->output.noted_state[0] != '\0', l->output.noted, name, sizeof(name));
	if (l->output.noted_state[0])
		return ls_fail(LS_EIO, "%s ended with status %d and did not say why (mpirun reports: %s)", name,
			       exit_code, l->output.noted_state);
	return ls_fail(LS_EIO, "mpirun ended with status %d, and neither it nor a node said why", exit_code);
}

int ls_launch_is_unstarted(const ls_launch_run *l)
{
	return l->output.end == LS_LAUNCH_UNSTARTED && l->output.nodes_up < l->count;
}

/* A node's reason comes first, for it knows what it was doing; then mpirun's; then what another node had heard, for the
 * one that was to report it may have been ended before it could. */
static ls_status judge(ls_launch_run *l, int *exit_code)
{
	int status = l->wait_status, reported = l->output.nodes_reported;
	*exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (l->stops)
		return ls_fail(LS_EINTERRUPTED, "stopped on request");
	if (l->late || l->killed || *exit_code >= 128 + NSIG) /* mpirun's own numbers mean nothing to others */
		*exit_code = 1;
	if ((l->late || ls_launch_is_unstarted(l)) && !l->output.has_hidden)
		return fail_start(l);
	if (reported && *exit_code)
		return LS_OK;
	if (l->output.end == LS_LAUNCH_REASON)
		return ls_fail(LS_EIO, "%s", l->output.reason);
	if (is_violent(*exit_code) && (l->output.end == LS_LAUNCH_REPORTED || l->output.has_killed))
		return fail_killed(l, *exit_code - 128);
	if (*exit_code && l->output.heard[0])
		return ls_fail(LS_EIO, "%s", l->output.heard);
	return *exit_code ? fail_unexplained(l, *exit_code) : LS_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static ls_status prepare(ls_launch_run *l)
{
	LS_TRY(ls_hosts_parse(&l->hosts, &l->count, l->options->hosts));
	LS_TRY(ls_launch_devices(&l->arena, l->hosts, l->count, &l->devices));
	if (!(l->names = ls_members_text(l->hosts, l->count)))
		return ls_fail(LS_EMEMORY, "hosts: no memory for the names of %zu nodes", l->count);
	if (l->watch && ls_slurm_is_here() && !(l->allocation = ls_slurm_environment(&l->arena, l->hosts, l->count)))
		return ls_fail(LS_EMEMORY, "hosts: no memory for the names of %zu nodes", l->count);
	return ls_launch_command(&l->arena, l->options, l->watch != NULL, l->hosts, l->count, &l->command);
}

static ls_status launch_nodes(ls_launch_run *l, int *exit_code)
{
	LS_TRY(prepare(l));
	LS_TRY(start_mpirun(l));
	attend(l);
	int code = 1;
	if (l->watch)
		ls_launch_learn(l, WIFEXITED(l->wait_status) ? WEXITSTATUS(l->wait_status) : 1);
	int is_watched = l->watch && l->watch->outcome != LS_OUTCOME_ENDED && l->watch->outcome != LS_OUTCOME_STOPPED;
	ls_status status = is_watched ? LS_OK : judge(l, &code);
	ls_launch_output_flush(&l->output, ls_clock_seconds(), 1);
	*exit_code = code;
	return status;
}

ls_status ls_launch_watched(const ls_launch_options *options, ls_launch_watch *watch, int *exit_code)
{
	ls_launch_options own = LS_LAUNCH_OPTIONS_INIT;

	LS_TRY(LS_OPTIONS_TAKE(&own, options, timeout, "LS_LAUNCH_OPTIONS_INIT"));
#ifndef LS_HAVE_MPI
	(void)launch_nodes, (void)exit_code, (void)watch;
	return ls_fail(LS_EUNSUPPORTED,
		       "hosts: this build of Lockstep has no MPI and trains on one node only; install libopenmpi-dev "
		       "and build it again (asked for: %s)",
		       own.hosts);
#else
	ls_launch_run l = { .options = &own, .watch = watch, .output = { .to = stderr, .is_watched = watch != NULL } };
	l.output.hides_failures = watch && watch->is_trial;
	fflush(NULL);
	ls_status status = launch_nodes(&l, exit_code);
	ls_arena_release(&l.arena);
	ls_hosts_free(l.hosts);
	free(l.names);
	return status;
#endif
}

ls_status ls_launch(const ls_launch_options *options, int *exit_code)
{
	return ls_launch_watched(options, NULL, exit_code);
}
