/*
 * trace.h - the timeline of a run: spans on lanes, recorded as they happen, shown by chrome://tracing and
 * Perfetto.
 *
 * A node has one trace; a lane is a row in the picture and belongs to one thread. Recording neither locks nor
 * allocates, so it may be used inside a step:
 *
 *     static const ls_trace_kind sends = { .category = "message", .arg0 = "bucket", .arg1 = "bytes", .overlaps = 1 };
 *
 *     ls_trace_new(&trace, node, host, lanes, 65536);
 *     ls_trace_name_lane(trace, 0, "device 0");
 *     double begin = ls_trace_now(trace);
 *     ...
 *     ls_trace_span(trace, 0, "reduce-scatter", &sends, begin, ls_trace_now(trace), step, bucket, bytes);
 *     ls_trace_set_offset(trace, seconds);        what to add to this node's clock to get node 0's
 *     ls_trace_pack(trace, &bytes, &size);        send this to node 0 ...
 *     ls_trace_write(path, packs, nodes);         ... which writes one file of all
 *
 * A trace that is NULL records nothing and packs to nothing: callers need not ask whether there is one.
 */
#ifndef LS_METRICS_TRACE_H
#define LS_METRICS_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_trace ls_trace;

/* What spans of one kind have in common. It is borrowed, as its strings are: make it static. */
typedef struct ls_trace_kind {
	const char *category;    /* "compute": viewers select by it */
	const char *arg0, *arg1; /* what a span's two numbers are, "bucket" and "bytes"; NULL: not shown */
	int overlaps; /* spans of a lane may overlap without one being inside the other: messages in flight */
} ls_trace_kind;

/* Lanes 0 .. lanes - 1, each keeping its newest `events_max` spans (64 bytes per span, all taken here). `host` is
 * copied.
 */
ls_status ls_trace_new(ls_trace **out, int node, const char *host, int lanes, size_t events_max);
void ls_trace_free(ls_trace *trace);

/* "device 0"; copied, cut at 63 bytes. Before the lane's first span. */
void ls_trace_name_lane(ls_trace *trace, int lane, const char *name);

/* ls_clock_seconds(), and 0 at no cost where nothing is recorded. */
double ls_trace_now(const ls_trace *trace);

/* One span; a lane has one writer at a time. `name` is borrowed until the trace is freed. A negative step is not shown.
 * When the lane is full its oldest span goes: the end of a run, where all lanes are complete, is what one looks at. */
void ls_trace_span(ls_trace *trace, int lane, const char *name, const ls_trace_kind *kind, double begin_s, double end_s,
		   int64_t step, int64_t arg0, int64_t arg1);

/* Spans lost so far because their lane was full. */
uint64_t ls_trace_dropped(const ls_trace *trace);

/* Seconds to add to this node's clock; takes effect when packed. */
void ls_trace_set_offset(ls_trace *trace, double seconds);

/* The trace as bytes to send, malloc'd; NULL and 0 of no trace. Other threads may go on recording: what they have not
 * finished, or have overwritten meanwhile, is left out. */
ls_status ls_trace_pack(const ls_trace *trace, void **bytes, size_t *size);

typedef struct ls_trace_packed {
	const void *bytes;
	size_t size; /* 0: this node has no trace */
} ls_trace_packed;

/* One JSON file of all nodes' packs, published whole; time 0 is the earliest span. LS_EFORMAT for a malformed pack,
 * before anything is written. */
ls_status ls_trace_write(const char *path, const ls_trace_packed *packs, size_t count);

#endif
