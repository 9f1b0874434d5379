/*
 * trace.c - recording spans without locks, and packing them while others record.
 *
 * Invariants
 *  1. A lane has one writer. Span number n lies in slot n % capacity; `done` spans are complete, and `begun` is raised
 *     to n + 1 before a word of span n is written.
 *  2. Every word of a slot is stored with release and loaded with acquire. So a reader that loads a word of span n +
 *     capacity while looking for span n finds `begun` > n + capacity afterwards, and leaves that span out: no lock, no
 *     torn span.
 *  3. A slot is one cache line, and so is a lane's head: lanes do not disturb each other.
 */
#include "metrics/trace.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "metrics/trace_read.h"

enum { NAME, KIND, BEGIN, END, STEP, ARG0, ARG1, WORDS };

typedef struct slot {
	_Alignas(64) _Atomic uint64_t words[WORDS];
} slot;

typedef struct lane_head {
	_Alignas(64) _Atomic uint64_t begun;
	_Atomic uint64_t done;
	slot *slots; /* [capacity] */
	char name[64];
} lane_head;

struct ls_trace {
	int node, lanes;
	size_t capacity;
	double offset_s;
	char host[256];
	void *memory; /* lane_head[lanes], then slot[lanes][capacity] */
	size_t bytes;
};

static lane_head *lane_at(const ls_trace *trace, int lane)
{
	assert(lane >= 0 && lane < trace->lanes);
	return (lane_head *)trace->memory + lane;
}

static ls_status take_memory(ls_trace *trace)
{
	size_t slots, bytes, heads = (size_t)trace->lanes * sizeof(lane_head);
	if (__builtin_mul_overflow((size_t)trace->lanes, trace->capacity, &slots) ||
	    __builtin_mul_overflow(slots, sizeof(slot), &bytes) || __builtin_add_overflow(bytes, heads, &trace->bytes))
		return ls_fail(LS_EINVALID, "a trace of %d lanes of %zu spans is too large", trace->lanes,
			       trace->capacity);
	LS_TRY(ls_buffer_new(&trace->memory, trace->bytes, "trace"));
	slot *first = (slot *)((char *)trace->memory + heads);
	for (int i = 0; i < trace->lanes; i++)
		lane_at(trace, i)->slots = first + (size_t)i * trace->capacity;
	return LS_OK;
}

ls_status ls_trace_new(ls_trace **out, int node, const char *host, int lanes, size_t events_max)
{
	if (node < 0 || lanes < 1 || lanes > LS_TRACE_LANES_MAX || events_max < 1)
		return ls_fail(LS_EINVALID, "a trace of node %d with %d lanes of %zu spans is not possible", node,
			       lanes, events_max);
	ls_trace *trace = calloc(1, sizeof(*trace));
	if (!trace)
		return ls_fail(LS_EMEMORY, "no memory for a trace");
	trace->node = node;
	trace->lanes = lanes;
	trace->capacity = events_max;
	snprintf(trace->host, sizeof(trace->host), "%s", host);
	ls_status status = take_memory(trace);
	if (status) {
		free(trace);
		return status;
	}
	*out = trace;
	return LS_OK;
}

void ls_trace_free(ls_trace *trace)
{
	if (!trace)
		return;
	ls_buffer_free(trace->memory, trace->bytes);
	free(trace);
}

void ls_trace_name_lane(ls_trace *trace, int lane, const char *name)
{
	if (trace)
		snprintf(lane_at(trace, lane)->name, sizeof(lane_at(trace, lane)->name), "%s", name);
}

void ls_trace_set_offset(ls_trace *trace, double seconds)
{
	if (trace)
		trace->offset_s = seconds;
}

double ls_trace_now(const ls_trace *trace)
{
	return trace ? ls_clock_seconds() : 0;
}

static uint64_t bits_of(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static double real_of(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

void ls_trace_span(ls_trace *trace, int lane, const char *name, const ls_trace_kind *kind, double begin_s, double end_s,
		   int64_t step, int64_t arg0, int64_t arg1)
{
	if (!trace)
		return;
	lane_head *head = lane_at(trace, lane);
	uint64_t number = atomic_load_explicit(&head->done, memory_order_relaxed);
	const uint64_t words[WORDS] = { (uintptr_t)name, (uintptr_t)kind, bits_of(begin_s), bits_of(end_s),
					(uint64_t)step,  (uint64_t)arg0,  (uint64_t)arg1 };
	slot *to = &head->slots[number % trace->capacity];
	atomic_store_explicit(&head->begun, number + 1, memory_order_relaxed);
	for (int i = 0; i < WORDS; i++)
		atomic_store_explicit(&to->words[i], words[i], memory_order_release);
	atomic_store_explicit(&head->done, number + 1, memory_order_release);
}

uint64_t ls_trace_dropped(const ls_trace *trace)
{
	uint64_t sum = 0;
	for (int i = 0; trace && i < trace->lanes; i++) {
		uint64_t done = atomic_load_explicit(&lane_at(trace, i)->done, memory_order_acquire);
		sum += done > trace->capacity ? done - trace->capacity : 0;
	}
	return sum;
}

/* ---- packing: trace_read.h has the format ---- */

static void put_little(FILE *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		putc_unlocked((int)(value >> (8 * i) & 0xff), to);
}

static void put_text(FILE *to, const char *text)
{
	size_t length = text ? strnlen(text, LS_TRACE_TEXT_MAX) : 0;
	put_little(to, length, 2);
	if (length)
		fwrite(text, 1, length, to);
}

/* The words of span `number`; 0 when the writer was there meanwhile (invariant 2). */
static int read_span(const ls_trace *trace, lane_head *head, uint64_t number, uint64_t words[WORDS])
{
	slot *from = &head->slots[number % trace->capacity];
	for (int i = 0; i < WORDS; i++)
		words[i] = atomic_load_explicit(&from->words[i], memory_order_acquire);
	return atomic_load_explicit(&head->begun, memory_order_relaxed) <= number + trace->capacity;
}

/* A clock that went wrong costs its span, not the trace. */
static int has_sane_time(double begin_s, double end_s)
{
	return fabs(begin_s) <= LS_TRACE_SECONDS_MAX && end_s >= begin_s && end_s <= LS_TRACE_SECONDS_MAX;
}

static int pack_span(FILE *to, const uint64_t words[WORDS], double offset_s)
{
	const ls_trace_kind *kind = (const ls_trace_kind *)(uintptr_t)words[KIND];
	double begin_s = real_of(words[BEGIN]) + offset_s, end_s = real_of(words[END]) + offset_s;
	if (!has_sane_time(begin_s, end_s))
		return 0;
	putc_unlocked(LS_TRACE_SPAN, to);
	put_text(to, (const char *)(uintptr_t)words[NAME]);
	put_text(to, kind->category);
	put_text(to, kind->arg0);
	put_text(to, kind->arg1);
	put_little(to, kind->overlaps != 0, 1);
	put_little(to, bits_of(begin_s), 8);
	put_little(to, bits_of(end_s), 8);
	for (int i = STEP; i <= ARG1; i++)
		put_little(to, words[i], 8);
	return 1;
}

static void pack_lane(FILE *to, const ls_trace *trace, int lane)
{
	lane_head *head = lane_at(trace, lane);
	uint64_t words[WORDS], packed = 0, done = atomic_load_explicit(&head->done, memory_order_acquire);
	if (!done && !head->name[0])
		return;
	putc_unlocked(LS_TRACE_LANE, to);
	put_little(to, (uint64_t)lane, 4);
	put_text(to, head->name);
	for (uint64_t i = done > trace->capacity ? done - trace->capacity : 0; i < done; i++)
		if (read_span(trace, head, i, words))
			packed += (uint64_t)pack_span(to, words, trace->offset_s);
	putc_unlocked(LS_TRACE_DROPPED, to);
	put_little(to, done - packed, 8);
}

ls_status ls_trace_pack(const ls_trace *trace, void **bytes, size_t *size)
{
	char *packed = NULL;
	size_t length = 0;
	if (!trace) {
		*bytes = NULL, *size = 0;
		return LS_OK;
	}
	if (!(fabs(trace->offset_s) <= LS_TRACE_SECONDS_MAX))
		return ls_fail(LS_EINVALID, "a clock offset of %g s is out of range", trace->offset_s);
	FILE *to = open_memstream(&packed, &length);
	if (!to)
		return ls_fail(LS_EMEMORY, "no memory to pack the trace");
	fwrite(LS_TRACE_MAGIC, 1, LS_TRACE_MAGIC_BYTES, to);
	put_little(to, (uint64_t)trace->node, 4);
	put_text(to, trace->host);
	for (int i = 0; i < trace->lanes; i++)
		pack_lane(to, trace, i);
	putc_unlocked(LS_TRACE_END, to);
	int failed = ferror(to);
	if (fclose(to) != 0 || failed) {
		free(packed);
		return ls_fail(LS_EMEMORY, "no memory to pack the trace");
	}
	*bytes = packed;
	*size = length;
	return LS_OK;
}
