/*
 * host_log.h - what happened to the hosts of an elastic run: lines of kind "host" and "stop" in RUN/metrics.jsonl.
 *
 * Nodes write that file while they train, so events wait here until a start has ended. Times are those of the event, by
 * the clock of the supervisor's host. What cannot be written is left out: no run ends because of its timeline.
 */
#ifndef LS_CLUSTER_HOST_LOG_H
#define LS_CLUSTER_HOST_LOG_H

#include <stddef.h>

typedef struct ls_host_log_event ls_host_log_event;

typedef struct ls_host_log {
	ls_host_log_event *list;
	size_t count, room;
	int has_failed; /* a warning was printed */
} ls_host_log;

/* event: "lost", "silent", "out", "back", "new" or "removed". why may be "". */
void ls_host_log_host(ls_host_log *log, double wall, const char *host, const char *event, const char *why);
/* outcome: "lost", "regroup", "unstarted", "stopped" or "ended". */
void ls_host_log_stop(ls_host_log *log, double wall, const char *outcome, const char *why);

/* Between two starts. Events stay while the run has no metrics.jsonl. */
void ls_host_log_write(ls_host_log *log, const char *run);
void ls_host_log_release(ls_host_log *log);

#endif
