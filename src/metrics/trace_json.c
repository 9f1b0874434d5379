/*
 * trace_json.c - packs of all nodes to one file in the Trace Event Format.
 *
 * A node is a process of the picture (pid), a lane a thread (tid). Of the format we write, one event per line:
 *
 *   - M, metadata: process_name, thread_name, their sort indices, and process_labels where spans were lost
 *   - X, a span with its duration; on a lane these may lie inside each other but not overlap
 *   - b and e, begin and end with an id, for spans that overlap
 *
 * Times are microseconds after the earliest span, printed from whole nanoseconds: digits do not depend on the locale,
 * and a viewer that reads doubles loses none.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "metrics/trace.h"
#include "metrics/trace_read.h"

typedef struct writer {
	FILE *to;
	double zero_s;   /* time 0 of the file */
	uint64_t id;     /* of the last overlapping span */
	const char *gap; /* what separates the next event from the one before */
} writer;

/* Bytes of the UTF-8 character that text begins with, 0 when it begins with none: viewers refuse a file with such. */
static size_t character_length(const unsigned char *text, size_t left)
{
	static const struct {
		unsigned char low, high;
		uint32_t least;
	} leads[] = { { 0x00, 0x7f, 0 }, { 0xc0, 0xdf, 0x80 }, { 0xe0, 0xef, 0x800 }, { 0xf0, 0xf7, 0x10000 } };
	for (size_t extra = 0; extra < 4; extra++) {
		if (text[0] < leads[extra].low || text[0] > leads[extra].high)
			continue;
		uint32_t code = text[0] - leads[extra].low;
		for (size_t i = 1; i <= extra; i++) {
			if (i >= left || (text[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (text[i] & 0x3f);
		}
		int surrogate = code >= 0xd800 && code <= 0xdfff;
		return code >= leads[extra].least && code <= 0x10ffff && !surrogate ? extra + 1 : 0;
	}
	return 0;
}

/* Between quotes, escaped; a byte that is no UTF-8 shows as a question mark. */
static void put_text(FILE *to, ls_trace_text text)
{
	const unsigned char *at = (const unsigned char *)text.bytes;
	for (size_t i = 0, length; i < text.length; i += length ? length : 1) {
		length = character_length(at + i, text.length - i);
		if (!length)
			fputc('?', to);
		else if (at[i] < 0x20)
			fprintf(to, "\\u%04x", at[i]);
		else if (at[i] == '"' || at[i] == '\\')
			fprintf(to, "\\%c", at[i]);
		else
			fwrite(at + i, 1, length, to);
	}
}

static void put_name(FILE *to, const char *key, ls_trace_text text)
{
	fprintf(to, "\"%s\":\"", key);
	put_text(to, text);
	fputc('"', to);
}

static void put_microseconds(FILE *to, const char *key, int64_t ns)
{
	fprintf(to, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static FILE *begin_event(writer *w)
{
	fputs(w->gap, w->to);
	w->gap = ",\n";
	return w->to;
}

static void put_args(FILE *to, const ls_trace_record *span)
{
	const char *gap = "";
	fputs(",\"args\":{", to);
	if (span->step >= 0) {
		fprintf(to, "\"step\":%" PRId64, span->step);
		gap = ",";
	}
	for (int i = 0; i < 2; i++) {
		if (!span->arg_names[i].length)
			continue;
		fprintf(to, "%s\"", gap);
		put_text(to, span->arg_names[i]);
		fprintf(to, "\":%" PRId64, span->args[i]);
		gap = ",";
	}
	fputc('}', to);
}

static void put_event(writer *w, const ls_trace_record *span, int node, char phase)
{
	FILE *to = begin_event(w);
	int64_t begin = llround((span->begin_s - w->zero_s) * 1e9), end = llround((span->end_s - w->zero_s) * 1e9);
	fprintf(to, "{\"ph\":\"%c\",", phase);
	put_name(to, "name", span->name);
	fputc(',', to);
	put_name(to, "cat", span->category);
	fprintf(to, ",\"pid\":%d,\"tid\":%d", node, span->lane);
	put_microseconds(to, "ts", phase == 'e' ? end : begin);
	if (phase == 'X')
		put_microseconds(to, "dur", end - begin);
	else
		fprintf(to, ",\"id\":\"0x%" PRIx64 "\"", w->id);
	if (phase != 'e')
		put_args(to, span);
	fputc('}', to);
}

static void put_span(writer *w, const ls_trace_record *span, int node)
{
	if (!span->overlaps) {
		put_event(w, span, node, 'X');
		return;
	}
	w->id++;
	put_event(w, span, node, 'b');
	put_event(w, span, node, 'e');
}

static void put_process(writer *w, const ls_trace_reader *pack)
{
	FILE *to = begin_event(w);
	fprintf(to, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"node %d, ", pack->node,
		pack->node);
	put_text(to, pack->host);
	fputs("\"}}", to);
	fprintf(begin_event(w),
		"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%d,\"args\":{\"sort_index\":%d}}", pack->node,
		pack->node);
}

static void put_lane(writer *w, const ls_trace_record *lane, int node)
{
	char number[32];
	int length = snprintf(number, sizeof(number), "lane %d", lane->lane);
	ls_trace_text unnamed = { number, (size_t)length };
	FILE *to = begin_event(w);
	fprintf(to, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{", node, lane->lane);
	put_name(to, "name", lane->name.length ? lane->name : unnamed);
	fputs("}}", to);
	fprintf(begin_event(w),
		"{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}}",
		node, lane->lane, lane->lane);
}

static void put_dropped(writer *w, uint64_t dropped, int node)
{
	if (dropped)
		fprintf(begin_event(w),
			"{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%d,\"args\":{\"labels\":\"%" PRIu64
			" oldest spans dropped\"}}",
			node, dropped);
}

static ls_status put_pack(writer *w, const ls_trace_packed *packed)
{
	ls_trace_reader pack;
	ls_trace_record record = { 0 };
	uint64_t dropped = 0;
	LS_TRY(ls_trace_reader_open(&pack, packed->bytes, packed->size));
	put_process(w, &pack);
	while (record.type != LS_TRACE_END) {
		LS_TRY(ls_trace_reader_next(&pack, &record));
		if (record.type == LS_TRACE_LANE)
			put_lane(w, &record, pack.node);
		if (record.type == LS_TRACE_SPAN)
			put_span(w, &record, pack.node);
		dropped += record.dropped;
	}
	put_dropped(w, dropped, pack.node);
	return LS_OK;
}

/* Read a pack to its end; `earliest` is lowered to its first span. */
static ls_status check_pack(const ls_trace_packed *packed, double *earliest, int *node)
{
	ls_trace_reader pack;
	ls_trace_record record = { 0 };
	LS_TRY(ls_trace_reader_open(&pack, packed->bytes, packed->size));
	while (record.type != LS_TRACE_END) {
		LS_TRY(ls_trace_reader_next(&pack, &record));
		if (record.type == LS_TRACE_SPAN)
			*earliest = fmin(*earliest, record.begin_s);
	}
	*node = pack.node;
	return LS_OK;
}

static int compare_nodes(const void *a, const void *b)
{
	int left = *(const int *)a, right = *(const int *)b;
	return (left > right) - (left < right);
}

static ls_status check_nodes(int *nodes, size_t count)
{
	qsort(nodes, count, sizeof(*nodes), compare_nodes);
	for (size_t i = 1; i < count; i++)
		if (nodes[i] == nodes[i - 1])
			return ls_fail(LS_EFORMAT, "two traces are both of node %d", nodes[i]);
	return LS_OK;
}

static ls_status check_packs(const ls_trace_packed *packs, size_t count, double *zero_s)
{
	double earliest = INFINITY;
	ls_status status = LS_OK;
	size_t present = 0;
	int *nodes = calloc(count + 1, sizeof(*nodes));
	if (!nodes)
		return ls_fail(LS_EMEMORY, "no memory for the traces of %zu nodes", count);
	for (size_t i = 0; i < count && !status; i++)
		if (packs[i].size)
			status = check_pack(&packs[i], &earliest, &nodes[present++]);
	if (!status)
		status = check_nodes(nodes, present);
	free(nodes);
	if (!status)
		*zero_s = isfinite(earliest) ? earliest : 0;
	return status;
}

ls_status ls_trace_write(const char *path, const ls_trace_packed *packs, size_t count)
{
	writer w = { .gap = "\n" };
	ls_file_draft draft;
	LS_TRY(check_packs(packs, count, &w.zero_s));
	LS_TRY(ls_file_begin(&draft, path));
	w.to = draft.stream; /* it remembers what fails; ls_file_publish() reports it */
	ls_status status = LS_OK;
	fprintf(w.to, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"lockstep\":\"%s\"},\"traceEvents\":[",
		ls_version());
	for (size_t i = 0; i < count && !status; i++)
		if (packs[i].size)
			status = put_pack(&w, &packs[i]);
	fputs("\n]}\n", w.to);
	return ls_file_finish(&draft, status);
}
