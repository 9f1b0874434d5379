/*
 * team.h - the threads of one device.
 *
 * A team of T threads runs one function at a time on all its members (the caller is member 0). Inside the function
 * members synchronise at barriers. Barriers spin briefly, then sleep, so an oversubscribed machine still makes
 * progress.
 */
#ifndef LS_BASE_TEAM_H
#define LS_BASE_TEAM_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_team ls_team;

/* A member's view of its team. */
typedef struct ls_member {
	ls_team *team;
	int rank, size;
} ls_member;

typedef void (*ls_team_work)(void *context, ls_member member);

typedef struct ls_team_options {
	int threads;
	int crowd; /* threads of all teams of the process, which decides how long members spin; 0: only this team's */
	/* Unless NULL, run by each thread the team starts, before any work: to pin itself. Not for rank 0, the caller.
	 */
	void (*begin)(void *context, int rank);
	void *context; /* lives as long as the team */
} ls_team_options;

/* The threads of a team block signals: the program that runs the training handles them. */
ls_status ls_team_new_with(ls_team **out, const ls_team_options *options);
ls_status ls_team_new(ls_team **out, int threads); /* the only team, without `begin` */
void ls_team_free(ls_team *team);                  /* harmless on NULL, and in a process that was forked */
int ls_team_size(const ls_team *team);

/* For teams made from now on: the process has at least this many threads, whatever their options say. Where several
 * nodes are threads of one process, none of them knows of the others. */
void ls_team_expect_crowd(int threads);

/* Whether this process was forked after the team was made: the threads are not in it, and a run would wait for them
 * for ever. */
int ls_team_is_lost(const ls_team *team);

void ls_team_run(ls_team *team, ls_team_work work, void *context);
void ls_team_barrier(ls_member member);

/*
 * Dynamic scheduling of `count` independent units between barriers: each call returns a unit that no member has taken,
 * from this member's own range first, or -1 at the end. All members pass the same count. Every barrier resets it. A
 * team of one counts without atomics. Which member computes a unit must never matter to the result.
 */
int64_t ls_team_next(ls_member member, int64_t count);

/* The static counterpart: this member's contiguous range of [0, count). */
static inline void ls_team_range(ls_member member, int64_t count, int64_t *begin, int64_t *end)
{
	*begin = count * member.rank / member.size;
	*end = count * (member.rank + 1) / member.size;
}

#endif
