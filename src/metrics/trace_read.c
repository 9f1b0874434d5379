/*
 * trace_read.c - see trace_read.h.
 */
#include "metrics/trace_read.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static ls_status malformed(const ls_trace_reader *reader, const char *what)
{
	return ls_fail(LS_EFORMAT, "a node's trace is malformed at byte %td of %td: %s", reader->at - reader->start,
		       reader->end - reader->start, what);
}

static ls_status take_little(ls_trace_reader *reader, int bytes, uint64_t *out)
{
	if (reader->end - reader->at < bytes)
		return malformed(reader, "it ends inside a number");
	uint64_t value = 0;
	for (int i = bytes; i-- > 0;)
		value = value << 8 | reader->at[i];
	reader->at += bytes;
	*out = value;
	return LS_OK;
}

static ls_status take_signed(ls_trace_reader *reader, int64_t *out)
{
	uint64_t bits = 0;
	LS_TRY(take_little(reader, 8, &bits));
	memcpy(out, &bits, sizeof(bits));
	return LS_OK;
}

static ls_status take_seconds(ls_trace_reader *reader, double *out)
{
	uint64_t bits = 0;
	double value;
	LS_TRY(take_little(reader, 8, &bits));
	memcpy(&value, &bits, sizeof(bits));
	if (!(fabs(value) <= LS_TRACE_SECONDS_MAX))
		return malformed(reader, "a time is out of range");
	*out = value;
	return LS_OK;
}

static ls_status take_text(ls_trace_reader *reader, ls_trace_text *out)
{
	uint64_t length = 0;
	LS_TRY(take_little(reader, 2, &length));
	if ((uint64_t)(reader->end - reader->at) < length)
		return malformed(reader, "it ends inside a name");
	*out = (ls_trace_text){ (const char *)reader->at, (size_t)length };
	reader->at += length;
	return LS_OK;
}

ls_status ls_trace_reader_open(ls_trace_reader *reader, const void *bytes, size_t size)
{
	uint64_t node = 0;
	*reader = (ls_trace_reader){ .start = bytes, .at = bytes, .end = (const uint8_t *)bytes + size, .lane = -1 };
	if (size < LS_TRACE_MAGIC_BYTES || memcmp(bytes, LS_TRACE_MAGIC, LS_TRACE_MAGIC_BYTES) != 0)
		return malformed(reader, "it does not begin with " LS_TRACE_MAGIC);
	reader->at += LS_TRACE_MAGIC_BYTES;
	LS_TRY(take_little(reader, 4, &node));
	if (node > INT_MAX)
		return malformed(reader, "there is no such node");
	reader->node = (int)node;
	return take_text(reader, &reader->host);
}

static ls_status take_lane(ls_trace_reader *reader, ls_trace_record *record)
{
	uint64_t lane = 0;
	LS_TRY(take_little(reader, 4, &lane));
	if (lane >= LS_TRACE_LANES_MAX)
		return malformed(reader, "there is no such lane");
	reader->lane = record->lane = (int)lane;
	return take_text(reader, &record->name);
}

static ls_status take_span(ls_trace_reader *reader, ls_trace_record *record)
{
	uint64_t overlaps = 0;
	LS_TRY(take_text(reader, &record->name));
	LS_TRY(take_text(reader, &record->category));
	LS_TRY(take_text(reader, &record->arg_names[0]));
	LS_TRY(take_text(reader, &record->arg_names[1]));
	LS_TRY(take_little(reader, 1, &overlaps));
	LS_TRY(take_seconds(reader, &record->begin_s));
	LS_TRY(take_seconds(reader, &record->end_s));
	LS_TRY(take_signed(reader, &record->step));
	LS_TRY(take_signed(reader, &record->args[0]));
	LS_TRY(take_signed(reader, &record->args[1]));
	if (overlaps > 1 || record->end_s < record->begin_s)
		return malformed(reader, "a span ends before it begins");
	record->overlaps = (int)overlaps;
	return LS_OK;
}

ls_status ls_trace_reader_next(ls_trace_reader *reader, ls_trace_record *record)
{
	uint64_t type = 0;
	LS_TRY(take_little(reader, 1, &type));
	*record = (ls_trace_record){ .type = (ls_trace_record_type)type, .lane = reader->lane };
	if (reader->lane < 0 && (type == LS_TRACE_SPAN || type == LS_TRACE_DROPPED))
		return malformed(reader, "a span before the first lane");
	switch (type) {
	case LS_TRACE_LANE:
		return take_lane(reader, record);
	case LS_TRACE_SPAN:
		return take_span(reader, record);
	case LS_TRACE_DROPPED:
		return take_little(reader, 8, &record->dropped);
	case LS_TRACE_END:
		return reader->at == reader->end ? LS_OK : malformed(reader, "data follows its end");
	}
	return malformed(reader, "unknown type of record");
}
