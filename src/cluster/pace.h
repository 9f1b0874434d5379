/*
 * pace.h - how often an elastic run may be interrupted: nodes are lost, and hosts come and go.
 *
 * Lost nodes are counted, and the count begins anew after a start that trained for LS_PACE_GOOD_S: what is limited are
 * restarts that lead nowhere, not the faults of a long run. A start with other hosts costs seconds, so one that follows
 * another closely must have trained for LS_PACE_WAIT_S first, and for twice as long each time after; where the last one
 * is LS_PACE_QUIET_S back, and two such waits, there is no wait. Times come from the caller.
 */
#ifndef LS_CLUSTER_PACE_H
#define LS_CLUSTER_PACE_H

#define LS_PACE_GOOD_S 300.0
#define LS_PACE_WAIT_S 2.0
#define LS_PACE_WAIT_MOST_S 60.0
#define LS_PACE_QUIET_S 30.0

typedef struct ls_pace {
	int restarts; /* after lost nodes, since the last start that trained well */
	int has_regrouped;
	double regrouped_at;
	double wait_s; /* that a start trains before other hosts are taken */
} ls_pace;

/* A start has ended, after this time of training. */
void ls_pace_trained(ls_pace *pace, double seconds);
/* A node was lost; 0: the run was started again `most` times already. */
int ls_pace_restart(ls_pace *pace, int most);
/* Whether a start that has trained for this time (< 0: it has not begun to) may be ended for other hosts. */
int ls_pace_may_regroup(const ls_pace *pace, double trained_s);
void ls_pace_regroup(ls_pace *pace, double now);

#endif
