/*
 * supervisor.h - inside of elastic.c and elastic_after.c: what the supervisor of an elastic run knows.
 */
#ifndef LS_CLUSTER_SUPERVISOR_H
#define LS_CLUSTER_SUPERVISOR_H

#include <lockstep/launch.h>

#include "cluster/faults.h"
#include "cluster/host_log.h"
#include "cluster/launch_watch.h"
#include "cluster/look.h"
#include "cluster/members.h"
#include "cluster/pace.h"
#include "cluster/reach.h"
#include "cluster/session.h"

typedef struct ls_supervisor {
	const ls_elastic_options *options;
	ls_members members;
	ls_host *now; /* (now_count) of the start under way */
	size_t now_count;
	ls_look look;
	double look_every, next_look; /* seconds */
	ls_launch_watch watch;        /* of the start under way, or of the last one */
	int is_under_way, has_trained;
	char complaint[1024]; /* the last about the list, so that each is printed once */
	int unstarted;
	ls_pace pace;
	uint64_t before; /* number of the newest start in the run directory when the supervisor began */
	ls_sessions sessions;
	ls_host_log log;
	ls_faults faults; /* that nodes are given on purpose: no host is to blame for a lost node then */
} ls_supervisor;

/* What asking a host has shown. */
void ls_supervisor_take_answer(ls_supervisor *s, const ls_reach *reach);

/* After a failure: the list may not name any more who failed. */
void ls_supervisor_look_now(ls_supervisor *s, double seconds);

/* It is left out for a while: a line, and one in the run's metrics. */
void ls_supervisor_say_excluded(ls_supervisor *s, const char *name, const char *because);

/* Hosts that may take part in the next start, malloc'd; how many. */
size_t ls_supervisor_usable(const ls_supervisor *s, ls_host **out);

/* Other hosts than those of the last start may train, and they are enough. */
int ls_supervisor_has_others(const ls_supervisor *s);

/* joined[i]: host i was not in the last start that trained; how many. */
size_t ls_supervisor_find_joined(const ls_supervisor *s, int *joined);

/* A start has ended. *ends: the run does. */
ls_status ls_supervisor_after(ls_supervisor *s, int *ends);

#endif
