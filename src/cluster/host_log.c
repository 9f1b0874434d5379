#include "cluster/host_log.h"

#include <stdio.h>
#include <stdlib.h>

#include <lockstep/launch.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "metrics/metrics.h"

struct ls_host_log_event {
	double wall;
	const char *event;                       /* or outcome */
	char host[sizeof(((ls_host *)0)->name)]; /* "": a start's end */
	char why[512];
};

static void add(ls_host_log *t, double wall, const char *host, const char *event, const char *why)
{
	if (ls_array_grow(&t->list, &t->room, t->count + 1, sizeof(*t->list)) != LS_OK)
		return;
	ls_host_log_event *e = &t->list[t->count++];
	*e = (ls_host_log_event){ .wall = wall, .event = event };
	snprintf(e->host, sizeof(e->host), "%s", host);
	snprintf(e->why, sizeof(e->why), "%s", why);
}

void ls_host_log_host(ls_host_log *t, double wall, const char *host, const char *event, const char *why)
{
	add(t, wall, host, event, why);
}

void ls_host_log_stop(ls_host_log *t, double wall, const char *outcome, const char *why)
{
	add(t, wall, "", outcome, why);
}

static ls_status write_event(const ls_host_log_event *e, const char *run)
{
	const ls_metric_text host[] = { { "host", e->host }, { "event", e->event }, { "why", e->why } };
	const ls_metric_text stop[] = { { "outcome", e->event }, { "why", e->why } };

	if (e->host[0])
		return ls_metrics_append(run, LS_METRICS_HOST, e->wall, host, e->why[0] ? 3 : 2);
	return ls_metrics_append(run, LS_METRICS_STOP, e->wall, stop, e->why[0] ? 2 : 1);
}

void ls_host_log_write(ls_host_log *t, const char *run)
{
	char path[4096];

	if (ls_path_join(path, sizeof(path), run, "metrics.jsonl") != LS_OK || !ls_path_exists(path))
		return;
	for (size_t i = 0; i < t->count; i++) {
		if (write_event(&t->list[i], run) == LS_OK || t->has_failed)
			continue;
		t->has_failed = 1;
		ls_log_warning("%s: the run's timeline of hosts is not complete", ls_last_error());
	}
	t->count = 0;
}

void ls_host_log_release(ls_host_log *t)
{
	free(t->list);
	*t = (ls_host_log){ 0 };
}
