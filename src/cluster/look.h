/*
 * look.h - a look at the hosts of an elastic run, by a thread beside: how they are named now, and which of them answer.
 *
 * What hangs there, a command that prints hosts or the system's resolver, stops nobody. A look takes nothing of the
 * supervisor's but copies, and its results may be read once it is done.
 */
#ifndef LS_CLUSTER_LOOK_H
#define LS_CLUSTER_LOOK_H

#include "base/background.h"
#include "cluster/reach.h"

/* Seconds that a command which prints hosts has. */
#define LS_DISCOVER_S 10.0

typedef struct ls_look {
	/* set once */
	const char *hosts, *discover; /* as in ls_elastic_options */
	int asks;                     /* whether hosts are asked at all: where ssh starts the nodes */
	ls_background beside;
	atomic_int is_cancelled;
	/* of one look */
	ls_host *known; /* (known_count) that need not be asked */
	size_t known_count;
	int is_pending; /* begun, and not released */
	ls_status status;
	char why[1024];
	ls_host *found; /* (count) as named now */
	ls_reach *reaches;
	size_t count;
	double lasted; /* seconds */
	double took;   /* seconds, of the last one that was released */
} ls_look;

ls_status ls_look_start(ls_look *look, const ls_elastic_options *options, int asks);
void ls_look_end(ls_look *look); /* harmless where it was not started */

/* `known`: hosts not to be asked, malloc'd and taken over. Only while no look is pending. */
void ls_look_begin(ls_look *look, ls_host *known, size_t count);
/* Whether a look is done and waits for ls_look_release(). */
int ls_look_is_done(ls_look *look);
void ls_look_release(ls_look *look);

#endif
