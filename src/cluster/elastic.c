/*
 * elastic.c - the supervisor of a run that goes on while hosts die, leave and join.
 *
 * MPI cannot lose a node and go on, so the nodes of a run live for one start: when one is lost the others are ended,
 * and those hosts that are left start again from the newest checkpoint. Checkpoints do not depend on the number of
 * nodes, and every sample has its place in the epoch, so the bits are those of a run that nothing happened to.
 *
 *     hosts that may take part -> start -> ends well, fails by itself, is stopped: so does the supervisor
 *              ^                    |----> a node is lost: its host is to blame, silent hosts are left out
 *              |                    |----> it fails before it trains, and hosts have joined: these are left out
 *              |                    `----> other hosts are there: nodes stop with a checkpoint
 *              `---- fewer than min_nodes: wait
 *
 * What follows a start that has ended is in elastic_after.c.
 *
 * Invariants
 *  1. At most one start is under way, and it ends with this process (launch.c). What is left of an earlier one, on a
 *     host that was cut off, ends by itself, and cannot publish (checkpoint/generation.h).
 *  2. A failure that another start would come to as well (bad settings, a full disk, a loss that is not finite) ends
 *     the run; only lost nodes are started again, max_restarts times (pace.h). A joining host with another version or
 *     other data is left out instead of ending the run (suspects.h).
 *  3. The list of hosts is read, and names are resolved, by a thread beside (look.h): what hangs there delays a restart
 *     by RECOVER_S at most, and none after the one that showed it. This thread asks only hosts at known addresses.
 *  4. This process keeps nothing on disk that a run needs: when it dies, the run is as after any other kill, and is
 *     resumed like that. Between two starts it adds what happened to hosts to the run's metrics (host_log.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lockstep/launch.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "base/status.h"
#include "checkpoint/generation.h"
#include "cluster/host_list.h"
#include "cluster/slurm.h"
#include "cluster/supervisor.h"

/* Seconds between two looks at the list and at silent hosts, and after which a start on a host counts as good. */
static const double LOOK_S = 1, GOOD_S = LS_MEMBER_ROW_S;

/* ---- looking at the list ----------------------------------------------------------------------------------------- */

static int takes_part(const ls_supervisor *s, const char *name)
{
	for (size_t i = 0; i < s->now_count; i++)
		if (!strcmp(s->now[i].name, name))
			return 1;
	return 0;
}

static void complain(ls_supervisor *s, const char *why)
{
	if (!strcmp(s->complaint, why))
		return;
	snprintf(s->complaint, sizeof(s->complaint), "%s", why);
	ls_log_warning("%s; the hosts stay as they were", why);
}

/* Those that take part and have answered before: of them, mpirun and the nodes know more than an answer shows. */
static void begin_look(ls_supervisor *s)
{
	ls_host *known = s->is_under_way ? calloc(s->now_count + 1, sizeof(*known)) : NULL;
	size_t count = 0;

	for (size_t i = 0; known && i < s->now_count; i++) {
		const ls_member *member = ls_members_find(&s->members, s->now[i].name);
		if (member && member->has_answered)
			known[count++] = s->now[i];
	}
	ls_look_begin(&s->look, known, count);
}

void ls_supervisor_say_excluded(ls_supervisor *s, const char *name, const char *because)
{
	char why[128];

	snprintf(why, sizeof(why), "%s; excluded for %.0f s", because, ls_members_find(&s->members, name)->out_s);
	ls_log_line("Elastic: host %s %s", name, why);
	ls_host_log_host(&s->log, ls_clock_wall(), name, "out", why);
}

/* That a host does not answer is no news before it has, nor of one that nodes run on. */
void ls_supervisor_take_answer(ls_supervisor *s, const ls_reach *reach)
{
	const char *name = reach->host;
	const ls_member *member = ls_members_find(&s->members, name);

	if (!member || !reach->is_asked)
		return;
	if (reach->answers) {
		ls_members_set_address(&s->members, name, &reach->address);
		return;
	}
	if (s->is_under_way && takes_part(s, name))
		return;
	int was_silent = member->is_silent;
	ls_members_set_silent(&s->members, name, 1);
	if (was_silent || !member->is_silent || !takes_part(s, name))
		return;
	if (!member->has_answered) { /* it may be an alias: where nobody else is left, it is tried again */
		ls_members_doubt(&s->members, name, ls_clock_seconds(), LS_MEMBER_OUT_S);
		ls_supervisor_say_excluded(s, name, "does not answer");
		return;
	}
	ls_log_line("Elastic: host %s does not answer; excluded until it does", name);
	ls_host_log_host(&s->log, ls_clock_wall(), name, "silent", "does not answer");
}

static void end_look(ls_supervisor *s)
{
	ls_look *k = &s->look;

	if (k->status != LS_OK) {
		if (k->status != LS_EINTERRUPTED)
			complain(s, k->why);
	} else {
		if (ls_members_name(&s->members, k->found, k->count) != LS_OK)
			complain(s, ls_last_error());
		else
			s->complaint[0] = '\0';
		for (size_t i = 0; i < k->count; i++)
			ls_supervisor_take_answer(s, &k->reaches[i]);
	}
	ls_look_release(k);
}

/* Now and then; without waiting. */
static void look_around(ls_supervisor *s)
{
	double now = ls_clock_seconds();

	if (ls_look_is_done(&s->look)) {
		end_look(s);
		s->next_look = now + s->look_every;
	} else if (!s->look.is_pending && now >= s->next_look) {
		begin_look(s);
	}
}

static void nap(void)
{
	const struct timespec moment = { .tv_nsec = 50000000 };
	nanosleep(&moment, NULL);
}

/* 0: it has not ended until then. */
static int await_look(ls_supervisor *s, double end)
{
	while (s->look.is_pending && !ls_look_is_done(&s->look)) {
		if (ls_launch_is_stopping() || ls_clock_seconds() > end)
			return 0;
		nap();
	}
	if (s->look.is_pending)
		end_look(s);
	return 1;
}

/* After a failure: the list may not name any more who failed. What hung the last time is not waited for. */
void ls_supervisor_look_now(ls_supervisor *s, double seconds)
{
	double end = ls_clock_seconds() + seconds;

	if (s->look.took > seconds || !await_look(s, end)) /* one under way may have begun before the failure */
		return;
	begin_look(s);
	await_look(s, end);
	s->next_look = ls_clock_seconds() + s->look_every;
}

/* ---- who takes part ---------------------------------------------------------------------------------------------- */

size_t ls_supervisor_usable(const ls_supervisor *s, ls_host **out)
{
	ls_host *hosts = calloc(s->members.count + 1, sizeof(*hosts));
	*out = hosts;
	return hosts ? ls_members_usable(&s->members, ls_clock_seconds(), hosts) : 0;
}

static int same_hosts(const ls_host *a, const ls_host *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(a[i].name, b[i].name) != 0 || a[i].devices != b[i].devices)
			return 0;
	return 1;
}

int ls_supervisor_has_others(const ls_supervisor *s)
{
	ls_host *hosts;
	size_t count = ls_supervisor_usable(s, &hosts);
	int others =
		count >= (size_t)s->options->min_nodes && (count != s->now_count || !same_hosts(hosts, s->now, count));
	free(hosts);
	return others;
}

/* How long the start has trained; less than 0: it has not. */
static double trained_seconds(const ls_supervisor *s, double now)
{
	return s->watch.trains > 0 ? now - s->watch.trains : -1;
}

static int wants_others(void *context)
{
	ls_supervisor *s = context;

	look_around(s);
	return ls_pace_may_regroup(&s->pace, trained_seconds(s, ls_clock_seconds())) && ls_supervisor_has_others(s);
}

/* The hosts of the next start: at least min_nodes, which are waited for. */
static ls_status gather(ls_supervisor *s)
{
	size_t need = (size_t)s->options->min_nodes, said = SIZE_MAX;

	for (;;) {
		ls_host *hosts;
		size_t count = ls_supervisor_usable(s, &hosts);
		if (hosts && count < need) {
			size_t possible = ls_members_possible(&s->members, ls_clock_seconds(), hosts);
			count = possible >= need ? possible : count;
		}
		free(s->now);
		s->now = hosts;
		s->now_count = 0;
		if (!hosts)
			return ls_fail(LS_EMEMORY, "no memory for the hosts of an elastic run");
		if (ls_launch_is_stopping())
			return ls_fail(LS_EINTERRUPTED, "stopped on request");
		if (count >= need) {
			s->now_count = count;
			return LS_OK;
		}
		if (said != count)
			ls_log_line("Elastic: waiting for hosts: %zu of %zu available", count, need);
		said = count;
		look_around(s);
		nap();
	}
}

/* ---- a start ----------------------------------------------------------------------------------------------------- */

/* A start of ours has taken the run directory: until then it may hold somebody else's run, which is not to be
 * touched. */
static int has_begun(const ls_supervisor *s)
{
	return ls_generation_newest(s->options->run) > s->before;
}

/* Once the run has begun, every start continues it. */
static char *const *arguments(const ls_supervisor *s)
{
	char path[4096];
	if (!has_begun(s) || ls_path_join(path, sizeof(path), s->options->run, "run.json") != LS_OK)
		return s->options->argv;
	return ls_path_exists(path) ? s->options->resume_argv : s->options->argv;
}

static void write_log(ls_supervisor *s)
{
	if (has_begun(s))
		ls_host_log_write(&s->log, s->options->run);
}

/* Nodes that were not up in time may be slow rather than lost: a busy machine, a cold file system. The next start
 * gets twice as long. */
static double start_seconds(const ls_supervisor *s)
{
	return s->options->timeout * (double)(1 << s->unstarted);
}

static void note_change(void *context, const char *name, ls_member_change change)
{
	static const struct {
		const char *event, *text;
	} words[] = { [LS_MEMBER_NEW] = { "new", "joined" },
		      [LS_MEMBER_BACK] = { "back", "came back" },
		      [LS_MEMBER_REMOVED] = { "removed", "was removed from the list of hosts" } };
	ls_supervisor *s = context;

	ls_log_line("Elastic: host %s %s", name, words[change].text);
	ls_host_log_host(&s->log, ls_clock_wall(), name, words[change].event, "");
}

size_t ls_supervisor_find_joined(const ls_supervisor *s, int *joined)
{
	size_t count = 0;

	for (size_t i = 0; i < s->now_count; i++) {
		joined[i] = !ls_members_find(&s->members, s->now[i].name)->is_proven;
		count += (size_t)joined[i];
	}
	return count;
}

static int is_trial(const ls_supervisor *s)
{
	int *joined = calloc(s->now_count + 1, sizeof(*joined));
	size_t count = joined ? ls_supervisor_find_joined(s, joined) : 0;

	free(joined);
	return count > 0 && count < s->now_count;
}

static void note_training(ls_supervisor *s, double began)
{
	const ls_launch_watch *w = &s->watch;

	if (w->trains > 0) {
		s->has_trained = 1;
		ls_members_train(&s->members, s->now, s->now_count);
	}
	ls_pace_trained(&s->pace, trained_seconds(s, w->ended));
	for (size_t i = 0; i < s->now_count && ls_clock_seconds() - began > GOOD_S; i++)
		ls_members_clear(&s->members, s->now[i].name);
	if (w->family > 0)
		ls_sessions_note(&s->sessions, w->family);
}

static ls_status start(ls_supervisor *s, int starts, int *exit_code)
{
	ls_launch_options launch = LS_LAUNCH_OPTIONS_INIT;
	char *text = ls_members_text(s->now, s->now_count);

	if (!text)
		return ls_fail(LS_EMEMORY, "no memory for the names of %zu hosts", s->now_count);
	ls_members_start(&s->members, s->now, s->now_count, starts ? note_change : NULL, s);
	write_log(s);
	ls_log_line("Elastic: %s on %zu node%s: %s", starts ? "continuing" : "starting", s->now_count,
		    ls_plural(s->now_count, "s"), text);
	launch.hosts = text;
	launch.argv = arguments(s);
	launch.timeout = s->options->timeout;
	s->watch = (ls_launch_watch){ .regroups = wants_others,
				      .context = s,
				      .node = -1,
				      .start_s = start_seconds(s),
				      .is_trial = is_trial(s),
				      .sessions = &s->sessions };
	double began = ls_clock_seconds();
	s->is_under_way = 1;
	ls_status status = ls_launch_watched(&launch, &s->watch, exit_code);
	s->is_under_way = 0;
	note_training(s, began);
	free(text);
	return status;
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static ls_status supervise(ls_supervisor *s, int *exit_code)
{
	int ends = 0;

	for (int starts = 0; !ends; starts++) {
		LS_TRY(gather(s));
		LS_TRY(start(s, starts, exit_code));
		LS_TRY(ls_supervisor_after(s, &ends));
	}
	return LS_OK;
}

static ls_status check(const ls_elastic_options *o)
{
	if (!o->run)
		return ls_fail(LS_EINVALID, "options.elastic needs options.run: a run goes on from its checkpoints");
	if (!o->hosts && !o->discover)
		return ls_fail(LS_EINVALID,
			       "options.elastic needs options.hosts or options.discover, unless Slurm names the "
			       "hosts of a job");
	if (o->hosts && o->discover)
		return ls_fail(LS_EINVALID, "options.hosts and options.discover both name the hosts; give one of them");
	return LS_OK;
}

/* A list that cannot change must name enough. */
static ls_status read_first(ls_supervisor *s)
{
	const ls_elastic_options *o = s->options;
	ls_host *hosts = NULL;
	size_t count = 0;

	LS_TRY(ls_host_list_read(&hosts, &count, o->hosts, o->discover, LS_DISCOVER_S, NULL));
	ls_status status = ls_members_name(&s->members, hosts, count);
	ls_hosts_free(hosts);
	LS_TRY(status);
	if (o->hosts && o->hosts[0] != '@' && count < (size_t)o->min_nodes)
		return ls_fail(LS_EINVALID, "options.min_nodes %d of %zu host%s: the run could never start",
			       o->min_nodes, count, ls_plural(count, "s"));
	return LS_OK;
}

ls_status ls_launch_elastic(const ls_elastic_options *options, int *exit_code)
{
	ls_elastic_options own = LS_ELASTIC_OPTIONS_INIT;
	ls_supervisor s = { .options = &own, .look_every = LOOK_S };

	LS_TRY(LS_OPTIONS_TAKE(&own, options, max_restarts, "LS_ELASTIC_OPTIONS_INIT"));
	int asks = !ls_slurm_is_here(); /* else srun starts the daemons, and no port says whether it can */
	if (!own.hosts && !own.discover && !asks) {
		own.discover = ls_slurm_discover();
		s.look_every = LS_SLURM_LOOK_S;
	}
	LS_TRY(check(&own));
	LS_TRY(ls_faults_given(&s.faults));
	s.before = ls_generation_newest(own.run);
	ls_status status = read_first(&s);
	if (status == LS_OK)
		status = ls_look_start(&s.look, &own, asks);
	if (status == LS_OK)
		status = supervise(&s, exit_code);
	ls_look_end(&s.look);
	write_log(&s);
	ls_host_log_release(&s.log);
	ls_members_release(&s.members);
	free(s.now);
	return status;
}
