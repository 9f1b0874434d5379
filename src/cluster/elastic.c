/*
 * elastic.c - the supervisor of a run that goes on while hosts die, leave and join.
 *
 * MPI cannot lose a node and go on, so the nodes of a run live for one start: when one is lost the others are ended,
 * and those hosts that are left start again from the newest checkpoint. Checkpoints do not depend on the number of
 * nodes, and every sample has its place in the epoch, so the bits are those of a run that nothing happened to.
 *
 *     hosts that may take part -> start -> ends well, fails by itself, is stopped: so does the supervisor
 *              ^                    |----> a node is lost: its host is to blame, silent hosts are left out
 *              |                    `----> other hosts are there: nodes stop with a checkpoint
 *              `---- fewer than min_nodes: wait
 *
 * Invariants
 *  1. At most one start is under way, and it ends with this process (launch.c). What is left of an earlier one, on a
 *     host that was cut off, ends by itself, and cannot publish (checkpoint/generation.h).
 *  2. A failure that another start would come to as well (bad settings, a full disk, a loss that is not finite) ends
 *     the run; only lost nodes are started again, max_restarts times.
 *  3. The list of hosts is read, and hosts that do not take part are asked whether they answer, by a thread beside:
 *     what hangs there stops nobody.
 *  4. This process keeps nothing on disk that a run needs: when it dies, the run is as after any other kill, and is
 *     resumed like that. Between two starts it adds what happened to hosts to the run's metrics (host_log.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lockstep/launch.h>

#include "base/background.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "base/status.h"
#include "checkpoint/generation.h"
#include "cluster/faults.h"
#include "cluster/host_list.h"
#include "cluster/host_log.h"
#include "cluster/launch_watch.h"
#include "cluster/members.h"
#include "cluster/reach.h"
#include "cluster/slurm.h"

/* Seconds: between two looks at the list and at silent hosts, for a host's answer, for a command that prints hosts; and
 * after which a start on a host counts as good. */
static const double LOOK_S = 1, ANSWER_S = 1, DISCOVER_S = 10, GOOD_S = LS_MEMBER_ROW_S;
enum { UNSTARTED_MOST = 3 }; /* starts in a row that fail although all hosts answer */

/* A look at the list of hosts, by the thread beside. */
typedef struct look {
	const ls_elastic_options *options;
	int is_pending;
	ls_status status;
	char why[1024];
	ls_host *hosts; /* (count) as named now */
	int *answers;   /* (count) */
	size_t count;
} look;

typedef struct supervisor {
	const ls_elastic_options *options;
	ls_members members;
	ls_host *now; /* (now_count) of the start under way */
	size_t now_count;
	ls_background beside;
	look look;
	double look_every, next_look; /* seconds */
	char complaint[1024];         /* the last about the list, so that each is printed once */
	int restarts, unstarted;
	uint64_t before; /* number of the newest start in the run directory when the supervisor began */
	ls_sessions sessions;
	ls_host_log log;
	ls_faults faults; /* that nodes are given on purpose: no host is to blame for a lost node then */
} supervisor;

/* ---- looking at the list ----------------------------------------------------------------------------------------- */

static void look_at_list(void *context)
{
	look *k = context;

	k->status = ls_host_list_read(&k->hosts, &k->count, k->options->hosts, k->options->discover, DISCOVER_S);
	if (k->status == LS_OK && !(k->answers = calloc(k->count, sizeof(*k->answers)))) {
		ls_hosts_free(k->hosts);
		k->status = ls_fail(LS_EMEMORY, "no memory for %zu hosts", k->count);
	}
	if (k->status == LS_OK)
		ls_launch_answers(k->hosts, k->count, ANSWER_S, k->answers);
	else
		snprintf(k->why, sizeof(k->why), "%s", ls_last_error());
}

static void begin_look(supervisor *s)
{
	s->look = (look){ .options = s->options, .is_pending = 1 };
	ls_background_do(&s->beside, look_at_list, &s->look);
}

static int takes_part(const supervisor *s, const char *name)
{
	for (size_t i = 0; i < s->now_count; i++)
		if (!strcmp(s->now[i].name, name))
			return 1;
	return 0;
}

static void complain(supervisor *s, const char *why)
{
	if (!strcmp(s->complaint, why))
		return;
	snprintf(s->complaint, sizeof(s->complaint), "%s", why);
	ls_log_warning("%s; the hosts stay as they were", why);
}

/* Of hosts that take part, mpirun and the nodes know more than an answer shows. */
static void end_look(supervisor *s)
{
	look *k = &s->look;

	k->is_pending = 0;
	if (k->status != LS_OK) {
		complain(s, k->why);
		return;
	}
	if (ls_members_name(&s->members, k->hosts, k->count) != LS_OK)
		complain(s, ls_last_error());
	else
		s->complaint[0] = '\0';
	for (size_t i = 0; i < k->count; i++)
		if (!takes_part(s, k->hosts[i].name))
			ls_members_set_silent(&s->members, k->hosts[i].name, !k->answers[i]);
	free(k->answers);
	ls_hosts_free(k->hosts);
}

/* Now and then; without waiting. */
static void look_around(supervisor *s)
{
	double now = ls_clock_seconds();

	if (ls_background_is_busy(&s->beside))
		return;
	if (s->look.is_pending) {
		end_look(s);
		s->next_look = now + s->look_every;
	} else if (now >= s->next_look) {
		begin_look(s);
	}
}

static void nap(void)
{
	const struct timespec moment = { .tv_nsec = 50000000 };
	nanosleep(&moment, NULL);
}

/* After a failure: the list may not name any more who failed. Waits for as long as a command may take. */
static void look_now(supervisor *s)
{
	if (!s->options->discover)
		return;
	for (int looks = 0; looks < 2; looks++) { /* the one under way may have begun before the failure */
		if (looks == 1)
			begin_look(s);
		while (ls_background_is_busy(&s->beside))
			nap();
		if (s->look.is_pending)
			end_look(s);
	}
	s->next_look = ls_clock_seconds() + s->look_every;
}

/* ---- who takes part ---------------------------------------------------------------------------------------------- */

static size_t usable(const supervisor *s, ls_host **out)
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

/* Other hosts than those that train may, and they are enough. */
static int wants_others(void *context)
{
	supervisor *s = context;
	ls_host *hosts;

	look_around(s);
	size_t count = usable(s, &hosts);
	int others =
		count >= (size_t)s->options->min_nodes && (count != s->now_count || !same_hosts(hosts, s->now, count));
	free(hosts);
	return others;
}

/* The hosts of the next start: at least min_nodes, which are waited for. */
static ls_status gather(supervisor *s)
{
	size_t need = (size_t)s->options->min_nodes, said = SIZE_MAX;

	for (;;) {
		ls_host *hosts;
		size_t count = usable(s, &hosts);
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
static int has_begun(const supervisor *s)
{
	return ls_generation_newest(s->options->run) > s->before;
}

/* Once the run has begun, every start continues it. */
static char *const *arguments(const supervisor *s)
{
	char path[4096];
	if (!has_begun(s) || ls_path_join(path, sizeof(path), s->options->run, "run.json") != LS_OK)
		return s->options->argv;
	return ls_path_exists(path) ? s->options->resume_argv : s->options->argv;
}

static void write_log(supervisor *s)
{
	if (has_begun(s))
		ls_host_log_write(&s->log, s->options->run);
}

/* Nodes that were not up in time may be slow rather than lost: a busy machine, a cold file system. The next start
 * gets twice as long. */
static double start_seconds(const supervisor *s)
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
	supervisor *s = context;

	ls_log_line("Elastic: host %s %s", name, words[change].text);
	ls_host_log_host(&s->log, ls_clock_wall(), name, words[change].event, "");
}

static ls_status start(supervisor *s, int starts, ls_launch_watch *watch, int *exit_code)
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
	*watch = (ls_launch_watch){ .regroups = wants_others,
				    .context = s,
				    .node = -1,
				    .start_s = start_seconds(s),
				    .sessions = &s->sessions };
	double began = ls_clock_seconds();
	ls_status status = ls_launch_watched(&launch, watch, exit_code);
	for (size_t i = 0; i < s->now_count && ls_clock_seconds() - began > GOOD_S; i++)
		ls_members_clear(&s->members, s->now[i].name);
	if (watch->family > 0)
		ls_sessions_note(&s->sessions, watch->family);
	free(text);
	return status;
}

/* ---- after a start that failed ----------------------------------------------------------------------------------- */

/* The clock of day may jump while a run goes on: only the moment itself is taken from it. */
static double wall_of(double moment)
{
	return ls_clock_wall() - (ls_clock_seconds() - moment);
}

/* Which hosts of the start do not answer; how many. */
static size_t ask_all(supervisor *s)
{
	size_t silent = 0;
	int *answers = calloc(s->now_count, sizeof(*answers));

	if (!answers)
		return 0;
	ls_launch_answers(s->now, s->now_count, ANSWER_S, answers);
	for (size_t i = 0; i < s->now_count; i++) {
		ls_members_set_silent(&s->members, s->now[i].name, !answers[i]);
		silent += !answers[i];
		if (answers[i])
			continue;
		ls_log_line("Elastic: host %s does not answer; excluded until it does", s->now[i].name);
		ls_host_log_host(&s->log, ls_clock_wall(), s->now[i].name, "silent", "does not answer");
	}
	free(answers);
	return silent;
}

static ls_status count_restart(supervisor *s, const char *why)
{
	if (s->restarts++ < s->options->max_restarts)
		return LS_OK;
	return ls_fail(LS_EPEER,
		       "%s, and the run was started again %d time%s already (options.max_restarts); continue with "
		       "options.run %s options.resume",
		       why, s->options->max_restarts, ls_plural((uint64_t)s->options->max_restarts, "s"),
		       s->options->run);
}

static void leave_out(supervisor *s, const char *name, double seconds)
{
	char why[128];

	snprintf(why, sizeof(why), "failed %d times in a row; excluded for %.0f s", LS_MEMBER_FAILURES, seconds);
	ls_log_line("Elastic: host %s %s", name, why);
	ls_host_log_host(&s->log, ls_clock_wall(), name, "out", why);
}

static ls_status after_loss(supervisor *s, const ls_launch_watch *watch)
{
	const char *name = watch->node >= 0 && (size_t)watch->node < s->now_count ? s->now[watch->node].name : NULL;

	s->unstarted = 0;
	ls_log_line("Elastic: %s", watch->why);
	if (name)
		ls_host_log_host(&s->log, wall_of(watch->ended), name, "lost", watch->why);
	LS_TRY(count_restart(s, watch->why));
	ask_all(s);
	look_now(s);
	if (name && s->faults.every <= 0 && ls_members_blame(&s->members, name, ls_clock_seconds()))
		leave_out(s, name, ls_members_find(&s->members, name)->out_s);
	return LS_OK;
}

static ls_status after_no_start(supervisor *s, const ls_launch_watch *watch)
{
	const char *why = watch->why[0] ? watch->why : "nodes did not start on all hosts";

	size_t silent = ask_all(s);
	look_now(s);
	if (silent > 0 || wants_others(s)) {
		s->unstarted = 0;
		return LS_OK;
	}
	if (++s->unstarted >= UNSTARTED_MOST)
		return ls_fail(LS_EIO, "hosts: nodes could not be started %d times in a row: %s", UNSTARTED_MOST, why);
	ls_log_line("Elastic: nodes could not be started: %s", why);
	return count_restart(s, why);
}

/* *ends: the run does. */
static ls_status after(supervisor *s, const ls_launch_watch *watch, int *ends)
{
	static const char *const outcomes[] = { [LS_OUTCOME_ENDED] = "ended",
						[LS_OUTCOME_STOPPED] = "stopped",
						[LS_OUTCOME_REGROUP] = "regroup",
						[LS_OUTCOME_LOST] = "lost",
						[LS_OUTCOME_UNSTARTED] = "unstarted" };

	ls_host_log_stop(&s->log, wall_of(watch->ended), outcomes[watch->outcome], watch->why);
	*ends = 0;
	switch (watch->outcome) {
	case LS_OUTCOME_LOST:
		return after_loss(s, watch);
	case LS_OUTCOME_UNSTARTED:
		return after_no_start(s, watch);
	case LS_OUTCOME_REGROUP:
		s->unstarted = 0;
		return LS_OK;
	default:
		*ends = 1;
		return LS_OK;
	}
}

static ls_status supervise(supervisor *s, int *exit_code)
{
	int ends = 0;

	for (int starts = 0; !ends; starts++) {
		ls_launch_watch watch;
		LS_TRY(gather(s));
		LS_TRY(start(s, starts, &watch, exit_code));
		LS_TRY(after(s, &watch, &ends));
	}
	return LS_OK;
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

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
static ls_status read_first(supervisor *s)
{
	const ls_elastic_options *o = s->options;
	ls_host *hosts = NULL;
	size_t count = 0;

	LS_TRY(ls_host_list_read(&hosts, &count, o->hosts, o->discover, DISCOVER_S));
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
	supervisor s = { .options = &own, .look_every = LOOK_S };

	LS_TRY(LS_OPTIONS_TAKE(&own, options, max_restarts, "LS_ELASTIC_OPTIONS_INIT"));
	if (!own.hosts && !own.discover && ls_slurm_is_here()) {
		own.discover = ls_slurm_discover();
		s.look_every = LS_SLURM_LOOK_S;
	}
	LS_TRY(check(&own));
	LS_TRY(ls_faults_given(&s.faults));
	s.before = ls_generation_newest(own.run);
	ls_status status = read_first(&s);
	if (status == LS_OK)
		status = ls_background_begin(&s.beside, "the list of hosts");
	if (status == LS_OK)
		status = supervise(&s, exit_code);
	ls_background_end(&s.beside);
	if (s.look.is_pending && s.look.status == LS_OK) {
		free(s.look.answers);
		ls_hosts_free(s.look.hosts);
	}
	write_log(&s);
	ls_host_log_release(&s.log);
	ls_members_release(&s.members);
	free(s.now);
	return status;
}
