/*
 * members.h - the hosts of an elastic run: who is named, who has failed, and who may take part in the next start.
 *
 * A host is `out` after LS_MEMBER_FAILURES failures in a row, for LS_MEMBER_OUT_S and twice as long each time after;
 * and while it does not answer. A start that trained clears its hosts, and a failure more than LS_MEMBER_ROW_S after
 * the last one begins a new row: where hosts fail in turn no start may last, and yet none of them is bad. Nothing here
 * knows a clock or a network: times and answers come from the caller.
 *
 * ssh may reach a host by an alias, a proxy or another port than the one that is asked. So silence is trusted only of a
 * host that has answered before. One that never has, and never trained either, may be off: it is not used while there
 * are enough others (ls_members_usable()), and may be tried while there are not (ls_members_possible()).
 */
#ifndef LS_CLUSTER_MEMBERS_H
#define LS_CLUSTER_MEMBERS_H

#include <lockstep/launch.h>

#include "cluster/reach.h"

enum { LS_MEMBER_FAILURES = 3 };
#define LS_MEMBER_ROW_S 60.0
#define LS_MEMBER_OUT_S 60.0
#define LS_MEMBER_OUT_MOST_S 960.0

typedef struct ls_member {
	ls_host host;
	int is_named;       /* in the list as it is now */
	int was_named;      /* and in the one before */
	int is_silent;      /* did not answer when it was last asked, and that means something */
	int has_answered;   /* at some time: from then on silence means something */
	int has_trained;    /* so nodes can be started on it, whatever its port answers */
	int is_proven;      /* it took part in the last start that trained */
	ls_address address; /* where it answered; length 0: it has not */
	int failures;       /* in a row */
	double failed_at;   /* the last one, by the caller's clock */
	double out_s;       /* how long it was left out last; 0: never */
	double out_until;   /* by the caller's clock */
	int is_doubted;     /* it was left out because it may be off: an answer ends that */
	int takes_part;     /* in the last start */
	int took_part;      /* in an earlier one, too */
} ls_member;

/* How a start differs from the one before. A host that is silent or left out is no change: that was known before. */
typedef enum ls_member_change { LS_MEMBER_NEW, LS_MEMBER_BACK, LS_MEMBER_REMOVED } ls_member_change;
typedef void ls_member_change_fn(void *context, const char *name, ls_member_change change);

typedef struct ls_members {
	ls_member *list;
	size_t count, capacity;
} ls_members;

/* The list as it is now. Hosts that were known keep their history; those that are not named any more stay known. A host
 * that is named twice is refused, and nothing is changed. */
ls_status ls_members_name(ls_members *members, const ls_host *hosts, size_t count);
void ls_members_release(ls_members *members);

/* It is left out from now on, for member->out_s: twice as long as the last time. */
void ls_members_exclude(ls_members *members, const char *name, double now);
/* The same, until it answers, or is named again after it was not: it may be off. `first_s`: for how
 * long, for the first time. */
void ls_members_doubt(ls_members *members, const char *name, double now, double first_s);
/* A start failed because of this host; 1: it is left out from now on, for member->out_s. */
int ls_members_blame(ls_members *members, const char *name, double now);
/* A start on this host lasted LS_MEMBER_ROW_S. */
void ls_members_clear(ls_members *members, const char *name);
/* A start on these hosts has begun to train. */
void ls_members_train(ls_members *members, const ls_host *hosts, size_t count);
/* What asking it has shown. */
void ls_members_set_silent(ls_members *members, const char *name, int is_silent);
/* It answers, there. */
void ls_members_set_address(ls_members *members, const char *name, const ls_address *address);

/* These hosts take part in the next start. `changed` is called for every host of which the last one
 * differs; NULL: there was none. */
void ls_members_start(ls_members *members, const ls_host *hosts, size_t count, ls_member_change_fn *changed,
		      void *context);
const ls_member *ls_members_find(const ls_members *members, const char *name); /* NULL: not known */

/* Those that may take part, in the order they were first named, into `out` (members->count); how many. */
size_t ls_members_usable(const ls_members *members, double now, ls_host *out);
/* With those whose silence may mean nothing. */
size_t ls_members_possible(const ls_members *members, double now, ls_host *out);
size_t ls_members_named(const ls_members *members);

/* "a:4,b:4", as ls_hosts_parse() reads it; malloc'd, NULL: no memory. */
char *ls_members_text(const ls_host *hosts, size_t count);

#endif
