/*
 * elastic_after.c - after a start of an elastic run: whose fault it was, and whether there is another start.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "base/status.h"
#include "cluster/slurm.h"
#include "cluster/supervisor.h"
#include "cluster/suspects.h"

/* Seconds: for a fresh list of hosts after a loss; after a start that failed, where names may have to be resolved. */
static const double RECOVER_S = 5, RESOLVE_S = 3;
enum { UNSTARTED_MOST = 3 }; /* starts in a row that fail although all hosts answer */

/* The clock of day may jump while a run goes on: only the moment itself is taken from it. */
static double wall_of(double moment)
{
	return ls_clock_wall() - (ls_clock_seconds() - moment);
}

static size_t count_silent(const ls_supervisor *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->now_count; i++)
		count += (size_t)ls_members_find(&s->members, s->now[i].name)->is_silent;
	return count;
}

/* Those hosts of the start that have answered before, where they did. */
static void ask_known(ls_supervisor *s)
{
	ls_reach *list = calloc(s->now_count + 1, sizeof(*list));
	size_t count = 0;

	for (size_t i = 0; list && i < s->now_count; i++) {
		const ls_member *member = ls_members_find(&s->members, s->now[i].name);
		if (member->address.length > 0)
			list[count++] = (ls_reach){ .host = s->now[i].name, .address = member->address, .is_asked = 1 };
	}
	if (list)
		ls_reach_ask(list, count, LS_REACH_ANSWER_S, NULL);
	for (size_t i = 0; list && i < count; i++)
		ls_supervisor_take_answer(s, &list[i]);
	free(list);
}

static ls_status count_restart(ls_supervisor *s, const char *why)
{
	if (ls_pace_restart(&s->pace, s->options->max_restarts))
		return LS_OK;
	return ls_fail(LS_EPEER,
		       "%s, and the run was started again %d time%s already (options.max_restarts) without %.0f "
		       "minutes of training in between; continue with options.run %s options.resume",
		       why, s->options->max_restarts, ls_plural((uint64_t)s->options->max_restarts, "s"),
		       LS_PACE_GOOD_S / 60, s->options->run);
}

/* The host of a node that was lost. One whose silence could not be asked for may be off; of the others, only a row of
 * failures is their own fault. */
static void blame(ls_supervisor *s, const char *name)
{
	double now = ls_clock_seconds();
	const ls_member *member = ls_members_find(&s->members, name);
	char because[64];

	if (!s->watch.is_killed && !member->has_answered && !ls_host_is_here(name)) {
		ls_members_doubt(&s->members, name, now, s->look.asks ? LS_MEMBER_OUT_S : LS_SLURM_DOUBT_S);
		ls_supervisor_say_excluded(s, name, "stopped responding");
	} else if (s->faults.every <= 0 && ls_members_blame(&s->members, name, now)) {
		snprintf(because, sizeof(because), "failed %d times in a row", LS_MEMBER_FAILURES);
		ls_supervisor_say_excluded(s, name, because);
	}
}

/* Leave out who made a start fail that has not trained; how many. Who does not answer is left out anyway. */
static size_t exclude_suspects(ls_supervisor *s, int only_named)
{
	int *joined = calloc(2 * s->now_count + 1, sizeof(*joined));
	size_t excluded = 0;

	if (!joined)
		return 0;
	int *out = joined + s->now_count;
	ls_supervisor_find_joined(s, joined);
	ls_suspects_find(s->now, joined, s->now_count, s->watch.why, out);
	for (size_t i = 0; i < s->now_count; i++) {
		const char *name = s->now[i].name;
		int is_known = !only_named || ls_suspects_names(s->watch.why, name);
		if (!out[i] || !is_known || ls_members_find(&s->members, name)->is_silent)
			continue;
		ls_members_exclude(&s->members, name, ls_clock_seconds());
		ls_supervisor_say_excluded(s, name, "could not train with the others");
		excluded++;
	}
	free(joined);
	return excluded;
}

static ls_status after_loss(ls_supervisor *s)
{
	const ls_launch_watch *w = &s->watch;
	const char *name = w->node >= 0 && (size_t)w->node < s->now_count ? s->now[w->node].name : NULL;

	s->unstarted = 0;
	ls_log_line("Elastic: %s", w->why);
	if (name)
		ls_host_log_host(&s->log, wall_of(w->ended), name, "lost", w->why);
	LS_TRY(count_restart(s, w->why));
	ask_known(s);
	if (s->options->discover)
		ls_supervisor_look_now(s, RECOVER_S);
	int is_join = w->is_trial && w->trains == 0 && !w->is_killed;
	if (name && !(is_join && exclude_suspects(s, 1)))
		blame(s, name);
	return LS_OK;
}

static ls_status after_no_start(ls_supervisor *s)
{
	const char *why = s->watch.why[0] ? s->watch.why : "nodes did not start on all hosts";

	ask_known(s);
	ls_supervisor_look_now(s, s->options->discover ? RECOVER_S : RESOLVE_S);
	int is_explained = count_silent(s) > 0 || ls_supervisor_has_others(s);
	if (!is_explained && s->watch.is_trial && !ls_launch_is_stopping()) {
		ls_log_line("Elastic: nodes could not be started: %s", why);
		is_explained = exclude_suspects(s, 0) > 0;
	}
	if (is_explained) {
		s->unstarted = 0;
		return LS_OK;
	}
	if (++s->unstarted >= UNSTARTED_MOST)
		return ls_fail(LS_EIO, "hosts: nodes could not be started %d times in a row: %s", UNSTARTED_MOST, why);
	ls_log_line("Elastic: nodes could not be started: %s", why);
	return count_restart(s, why);
}

/* Before anything has trained, too few hosts that are fit are an error in the list: waiting would not mend it. Nor
 * would it to leave out hosts that nobody named: the run would go on alone. */
static ls_status after_unfit(ls_supervisor *s)
{
	ls_host *hosts;

	s->unstarted = 0;
	ls_log_line("Elastic: %s", s->watch.why);
	if (!exclude_suspects(s, !s->has_trained))
		return ls_fail(LS_EIO, "%s", s->watch.why);
	size_t left = ls_supervisor_usable(s, &hosts);
	free(hosts);
	return s->has_trained || left >= (size_t)s->options->min_nodes ? LS_OK : ls_fail(LS_EIO, "%s", s->watch.why);
}

/* *ends: the run does. */
ls_status ls_supervisor_after(ls_supervisor *s, int *ends)
{
	const ls_launch_watch *watch = &s->watch;
	static const char *const outcomes[] = {
		[LS_OUTCOME_ENDED] = "ended", [LS_OUTCOME_STOPPED] = "stopped",     [LS_OUTCOME_REGROUP] = "regroup",
		[LS_OUTCOME_LOST] = "lost",   [LS_OUTCOME_UNSTARTED] = "unstarted", [LS_OUTCOME_UNFIT] = "unstarted"
	};

	ls_host_log_stop(&s->log, wall_of(watch->ended), outcomes[watch->outcome], watch->why);
	*ends = 0;
	switch (watch->outcome) {
	case LS_OUTCOME_LOST:
		return after_loss(s);
	case LS_OUTCOME_UNSTARTED:
		return after_no_start(s);
	case LS_OUTCOME_UNFIT:
		return after_unfit(s);
	case LS_OUTCOME_REGROUP:
		s->unstarted = 0;
		ls_pace_regroup(&s->pace, ls_clock_seconds());
		return LS_OK;
	default:
		*ends = 1;
		return LS_OK;
	}
}
