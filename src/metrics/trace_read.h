/*
 * trace_read.h - a packed trace, record by record. It came over a network: nothing in it is believed.
 *
 *     pack    "LSTRACE1"  u32 node  text host  record...  'Z', and nothing behind it
 *     record  'L'  u32 lane  text name                                   spans that follow are on this lane
 *             'E'  text name  text category  text arg0  text arg1  u8 overlaps  f64 begin  f64 end  i64 step  i64 arg0
 *                  i64 arg1                                              a span, in seconds of node 0's clock
 *             'D'  u64 dropped                                           spans the lane has lost
 *     text    u16 length  bytes
 *
 * Numbers are little-endian. An argument whose name is empty is not shown.
 */
#ifndef LS_METRICS_TRACE_READ_H
#define LS_METRICS_TRACE_READ_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define LS_TRACE_MAGIC "LSTRACE1"
enum { LS_TRACE_MAGIC_BYTES = 8, LS_TRACE_TEXT_MAX = 1023, LS_TRACE_LANES_MAX = 1 << 20 };

/* Times are exact to a nanosecond in an int64_t, sums included. */
#define LS_TRACE_SECONDS_MAX 2e9

typedef enum ls_trace_record_type {
	LS_TRACE_LANE = 'L',
	LS_TRACE_SPAN = 'E',
	LS_TRACE_DROPPED = 'D',
	LS_TRACE_END = 'Z'
} ls_trace_record_type;

/* Points into the pack; not terminated. */
typedef struct ls_trace_text {
	const char *bytes;
	size_t length;
} ls_trace_text;

typedef struct ls_trace_record {
	ls_trace_record_type type;
	int lane; /* of a span, too */
	ls_trace_text name, category, arg_names[2];
	int overlaps;
	double begin_s, end_s;
	int64_t step, args[2];
	uint64_t dropped;
} ls_trace_record;

typedef struct ls_trace_reader {
	const uint8_t *start, *at, *end;
	int node, lane; /* lane -1: none yet */
	ls_trace_text host;
} ls_trace_reader;

ls_status ls_trace_reader_open(ls_trace_reader *reader, const void *bytes, size_t size);

/* The next record; the last one is LS_TRACE_END, after which there is nothing to ask for. */
ls_status ls_trace_reader_next(ls_trace_reader *reader, ls_trace_record *record);

#endif
