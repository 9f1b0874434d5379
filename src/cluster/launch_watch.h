/*
 * launch_watch.h - inside of launch.h: what the supervisor of an elastic run asks of a launch, and what it learns.
 */
#ifndef LS_CLUSTER_LAUNCH_WATCH_H
#define LS_CLUSTER_LAUNCH_WATCH_H

#include <lockstep/launch.h>

#include "cluster/session.h"

typedef enum ls_launch_outcome {
	LS_OUTCOME_ENDED,     /* all nodes ended well, or one failed by itself: another start would come to the same */
	LS_OUTCOME_STOPPED,   /* on the user's request */
	LS_OUTCOME_REGROUP,   /* on the supervisor's, with a checkpoint */
	LS_OUTCOME_LOST,      /* a node died, is silent or cut off */
	LS_OUTCOME_UNSTARTED, /* nodes did not come up everywhere */
	LS_OUTCOME_UNFIT,     /* before they trained: a host does not have what it needs, or not what the others have */
} ls_launch_outcome;

typedef struct ls_launch_watch {
	int (*regroups)(void *context); /* asked some 20 times per second: are nodes to stop, and be started anew? */
	void *context;
	double start_s;              /* in which nodes must be up, if that is more than the timeout */
	const ls_sessions *sessions; /* of earlier starts, which the nodes remove */
	int is_trial;                /* hosts have joined others that trained before: they may be unfit */

	double trains; /* since when nodes have trained, by ls_clock_seconds(); 0: they have not. Set meanwhile, too */
	ls_launch_outcome outcome;
	int node;        /* that was lost; -1: not known */
	int is_killed;   /* a signal ended it: its host may be well */
	char why[1024];  /* what was reported of it */
	unsigned family; /* Open MPI's number of the job; 0: not known */
	double ended;    /* when its end was known, by ls_clock_seconds() */
} ls_launch_watch;

/* ls_launch() with a supervisor: what a lost node or a failed start comes to is in the watch, not printed. */
ls_status ls_launch_watched(const ls_launch_options *options, ls_launch_watch *watch, int *exit_code);

/* Whether ls_launch_stop() was called. */
int ls_launch_is_stopping(void);

#endif
