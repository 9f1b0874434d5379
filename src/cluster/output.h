/*
 * output.h - what comes out of mpirun's standard error: lines of the nodes, which are passed on, and mpirun's
 * own banners, which are understood and kept back.
 */
#ifndef LS_CLUSTER_OUTPUT_H
#define LS_CLUSTER_OUTPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a node prints when it is up, see ls_launch_report(). */
#define LS_LAUNCH_UP "lockstep: node is up"
/* What it prints before it waits for the others in MPI_Init(), and when it watches them, see
 * ls_launch_report_joins(). */
#define LS_LAUNCH_JOINS "lockstep: node joins"
#define LS_LAUNCH_JOINED "lockstep: node has joined"
/* What the first node prints when all nodes have trained a step, see ls_launch_report_trains(). */
#define LS_LAUNCH_TRAINS "lockstep: nodes train"
/* What precedes the message that a node ends with, see ls_launch_report_end(): it fails, or stops on request. Nothing
 * else that nodes print starts the end of a job. */
#define LS_LAUNCH_FAILS "lockstep: node fails: "
#define LS_LAUNCH_LOST "lockstep: node lost: " /* it fails because it has lost another */
#define LS_LAUNCH_STOPS "lockstep: node stops: "
/* What precedes a reason that another node is to report, see ls_launch_report_heard(). */
#define LS_LAUNCH_HEARD "lockstep: node heard: "

typedef enum ls_launch_end {
	LS_LAUNCH_RUNS,      /* mpirun has not reported the end of the job */
	LS_LAUNCH_REPORTED,  /* a node failed by itself and has reported why */
	LS_LAUNCH_UNSTARTED, /* a host could not be reached */
	LS_LAUNCH_REASON     /* what happened is in `reason` */
} ls_launch_end;

enum { LS_LAUNCH_HELD = 16, LS_LAUNCH_SEEN = 64, LS_LAUNCH_LINE = 4096 };

typedef struct ls_launch_output {
	FILE *to;
	char line[LS_LAUNCH_LINE];
	size_t length;
	int in_banner;
	char banner[LS_LAUNCH_LINE];
	size_t nodes_up;
	size_t nodes_joined; /* of those that join */
	double joining;      /* when the last one began to; 0: none has */
	double trains;       /* when they had trained a step; 0: they have not */
	int nodes_reported;  /* one of them has reported why it fails */
	int nodes_failed;    /* and not because it has lost another */
	char failed[1024];   /* the first such report; "": none */
	int hides_failures;  /* until nodes train, such reports are the supervisor's, and not passed on */
	int has_hidden;      /* one was not */
	char lost[1024];     /* the first report of a node that was lost; "": none */
	int is_watched;      /* such reports are the supervisor's, and not passed on */
	int hides_stops;     /* nor are those of nodes that stop */
	char heard[1024];    /* the first reason that a node has left to another to report; "": none */
	int has_killed;      /* mpirun has noted that a signal ended a node: the first such is `killed` */
	size_t killed;
	unsigned family;      /* number of the job in those notes; 0: there were none */
	size_t noted;         /* the first node that mpirun has noted to have ended badly, in the words of ... */
	char noted_state[64]; /* ... this; "": none */
	ls_launch_end end;
	char reason[1024];
	int is_unfit; /* the reason: a host does not have what nodes need */

	/* Lines wait a moment: those that ssh prints before mpirun reports that it could not start are its reason, and
	 * those that Open MPI prints of itself before it reports that a node is gone concern nobody. */
	struct {
		char *line;
		double at;
		int is_last; /* the message that a node ends with */
	} held[LS_LAUNCH_HELD];
	size_t held_count;

	/* Hashes of the last messages: a message that all nodes print is passed on once. */
	uint64_t seen[LS_LAUNCH_SEEN];
	size_t seen_count;
} ls_launch_output;

void ls_launch_output_take(ls_launch_output *output, const char *bytes, size_t count, double now);

/* Nothing more comes: what has no end of line yet is a line, and counts in the fields above. */
void ls_launch_output_end(ls_launch_output *output, double now);

/* Pass on what has waited long enough; with `all`, everything, a last line without an end, too. */
void ls_launch_output_flush(ls_launch_output *output, double now, int all);

/* The first failure that was not passed on (has_hidden) is the run's after all: it waits as a last line does. */
void ls_launch_output_show_failure(ls_launch_output *output, double now);

/* Take the lines that wait as one text, "a; b", into out: they are not passed on any more. */
void ls_launch_output_explain(ls_launch_output *output, char *out, size_t size);

#endif
