/*
 * memberships.h - who took part in an elastic run and when, from the lines about nodes in metrics.jsonl
 * (docs/files.md).
 *
 * Times are seconds since the first of these lines. They come from clocks of day of several hosts, which may jump and
 * differ: no time is taken to be before that of an earlier line, so a bar never ends before it begins.
 */
#ifndef LS_TOOLS_RESULTS_MEMBERSHIPS_H
#define LS_TOOLS_RESULTS_MEMBERSHIPS_H

#include "tools/results/metrics_log.h"

typedef struct ls_start {
	double begin, end;   /* it trained */
	double first_s;      /* its first step was recorded; NaN: none was */
	int64_t number;      /* 1, 2, ... of the run */
	int64_t step, again; /* where it began; how many recorded steps it computed again */
	int64_t last_step;   /* that was recorded */
	int64_t nodes, devices;
	int64_t batch, samples; /* per step and per epoch; 0: not known */
	int64_t fault_node;     /* that was to be lost on purpose; -1: none */
	double fault_s;         /* after as many seconds */
	char *hosts;            /* "a:1,b:1"; NULL: not known */
	char source[16];        /* "new", "snapshot", "checkpoint"; "": not known */
	char outcome[16];       /* "lost", "regroup", "unstarted", "stopped", "ended"; "": not known */
	char why[512];          /* "": no more is known */
} ls_start;

typedef struct ls_host_event {
	double at;
	char host[256], event[16], why[512]; /* "lost", "silent", "out", "back", "new", "removed" */
} ls_host_event;

typedef struct ls_memberships {
	ls_start *starts;
	size_t count, room;
	ls_host_event *events;
	size_t event_count, event_room;
	double origin, latest; /* of the clock of day; of the lines so far */
	int has_origin, is_open;
} ls_memberships;

/* Every line of the file, in order. */
ls_status ls_memberships_take(ls_memberships *memberships, const ls_metrics_line *line, const json_t *object);
void ls_memberships_release(ls_memberships *memberships); /* harmless when it is zero */

/* The next name in "a:1,b:1" into out, without its devices; NULL: there are no more. */
const char *ls_memberships_host(const char *hosts, char *out, size_t size);

#endif
