/*
 * team.h - the threads of one device.
 *
 * A team of T threads runs one function at a time on all its members (the caller is member 0). Inside it members meet
 * at barriers. Barriers spin briefly, then sleep, so an oversubscribed machine still makes progress.
 */
#ifndef LS_BASE_TEAM_H
#define LS_BASE_TEAM_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_team ls_team;

/* What a member knows. */
typedef struct ls_member {
	ls_team *team;
	int rank, size;
} ls_member;

typedef void (*ls_team_work)(void *context, ls_member member);

ls_status ls_team_new(ls_team **out, int threads);
void ls_team_free(ls_team *team);
int ls_team_size(const ls_team *team);
void ls_team_run(ls_team *team, ls_team_work work, void *context);
void ls_team_barrier(ls_member member);

/*
 * Dynamic sharing of `count` independent units between barriers: each call returns a unit nobody has taken, from this
 * member's own range first, or -1. All members give the same count. Every barrier starts over. A team of one counts
 * without atomics. Which member computes a unit must never matter to the result.
 */
int64_t ls_team_next(ls_member member, int64_t count);

/* The static counterpart: this member's contiguous range of [0, count). */
static inline void ls_team_range(ls_member member, int64_t count, int64_t *begin, int64_t *end)
{
	*begin = count * member.rank / member.size;
	*end = count * (member.rank + 1) / member.size;
}

#endif
