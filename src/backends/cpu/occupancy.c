#include "backends/cpu/occupancy.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

typedef struct run {
	size_t begin, end;
} run;

/* Runs in order, a gap between any two. */
typedef struct set {
	run *runs;
	size_t count, room;
} set;

typedef struct part {
	set through, within;
} part;

struct ls_occupancy {
	int moments;
	part *parts; /* the whole time is part 1; those of part p are 2p and 2p + 1 */
	size_t count;
};

/* A part as it is reached from above: its number and its first and last moment. */
typedef struct place {
	size_t number;
	int first, last;
} place;

static place below(place p, int second)
{
	int middle = p.first + (p.last - p.first) / 2;
	return second ? (place){ 2 * p.number + 1, middle + 1, p.last } : (place){ 2 * p.number, p.first, middle };
}

static int is_inside(place p, int from, int to)
{
	return from <= p.first && p.last <= to;
}

static int overlaps(place p, int from, int to)
{
	return from <= p.last && p.first <= to;
}

ls_status ls_occupancy_new(ls_occupancy **out, int moments)
{
	ls_occupancy *o = calloc(1, sizeof(*o));
	size_t microbatches = 1;
	while (microbatches < (size_t)moments)
		microbatches *= 2;
	if (o) {
		o->moments = moments;
		o->count = 2 * microbatches;
		o->parts = calloc(o->count, sizeof(*o->parts));
	}
	if (!o || !o->parts) {
		free(o);
		return ls_fail(LS_EMEMORY, "no memory to plan %d moments", moments);
	}
	*out = o;
	return LS_OK;
}

void ls_occupancy_free(ls_occupancy *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->count; i++) {
		free(o->parts[i].through.runs);
		free(o->parts[i].within.runs);
	}
	free(o->parts);
	free(o);
}

/* The first run that ends behind `address`, or the count. */
static size_t first_behind(const set *s, size_t address)
{
	size_t low = 0, high = s->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (s->runs[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Add a run; runs that overlap or touch it are merged with it. */
static ls_status set_add(set *s, run added)
{
	size_t first = first_behind(s, added.begin > 0 ? added.begin - 1 : 0), end = first;
	for (; end < s->count && s->runs[end].begin <= added.end; end++) {
		added.begin = s->runs[end].begin < added.begin ? s->runs[end].begin : added.begin;
		added.end = s->runs[end].end > added.end ? s->runs[end].end : added.end;
	}
	LS_TRY(ls_array_grow(&s->runs, &s->room, s->count + 1, sizeof(*s->runs)));
	memmove(s->runs + first + 1, s->runs + end, (s->count - end) * sizeof(*s->runs));
	s->runs[first] = added;
	s->count = s->count - (end - first) + 1;
	return LS_OK;
}

/* The lowest address, from `address` on, with `bytes` free in this set. */
static size_t set_lowest(const set *s, size_t address, size_t bytes)
{
	for (size_t i = first_behind(s, address); i < s->count && s->runs[i].begin < address + bytes; i++)
		address = s->runs[i].end;
	return address;
}

static size_t lowest(const ls_occupancy *o, place p, int from, int to, size_t address, size_t bytes)
{
	const part *here = &o->parts[p.number];
	if (!overlaps(p, from, to))
		return address;
	if (is_inside(p, from, to))
		return set_lowest(&here->within, address, bytes);
	address = set_lowest(&here->through, address, bytes);
	address = lowest(o, below(p, 0), from, to, address, bytes);
	return lowest(o, below(p, 1), from, to, address, bytes);
}

/* Any set may move the address up; repeat until all of them agree. */
size_t ls_occupancy_lowest(const ls_occupancy *o, int from, int to, size_t bytes)
{
	size_t address = 0, before;
	do {
		before = address;
		address = lowest(o, (place){ 1, 0, o->moments - 1 }, from, to, address, bytes);
	} while (address != before);
	return address;
}

static ls_status take(ls_occupancy *o, place p, int from, int to, run taken)
{
	part *here = &o->parts[p.number];
	if (!overlaps(p, from, to))
		return LS_OK;
	LS_TRY(set_add(&here->within, taken));
	if (is_inside(p, from, to))
		return set_add(&here->through, taken);
	LS_TRY(take(o, below(p, 0), from, to, taken));
	return take(o, below(p, 1), from, to, taken);
}

ls_status ls_occupancy_take(ls_occupancy *o, int from, int to, size_t begin, size_t bytes)
{
	return bytes > 0 ? take(o, (place){ 1, 0, o->moments - 1 }, from, to, (run){ begin, begin + bytes }) : LS_OK;
}
