#include "exchange/round.h"

#include <stdlib.h>

static ls_status fold_init(ls_fold *fold, ls_arena *arena, int64_t inputs)
{
	size_t n = (size_t)inputs + 1;

	fold->joins = ls_arena_alloc(arena, n * sizeof(*fold->joins));
	fold->begin = ls_arena_alloc(arena, n * sizeof(*fold->begin));
	fold->partial = ls_arena_alloc(arena, n * sizeof(*fold->partial));
	return fold->joins && fold->begin && fold->partial ? LS_OK : LS_EMEMORY;
}

static ls_status schedule_init(ls_device_schedule *s, ls_arena *arena, int64_t microbatches)
{
	size_t n = (size_t)microbatches + 1;

	s->capacity = microbatches;
	s->microbatch = ls_arena_alloc(arena, n * sizeof(*s->microbatch));
	s->join = ls_arena_alloc(arena, n * sizeof(*s->join));
	s->index = ls_arena_alloc(arena, n * sizeof(*s->index));
	s->partial = ls_arena_alloc(arena, n * sizeof(*s->partial));
	s->partial_slot = ls_arena_alloc(arena, n * sizeof(*s->partial_slot));
	return s->microbatch && s->join && s->index && s->partial && s->partial_slot ? LS_OK : LS_EMEMORY;
}

static ls_status allocate(ls_round *r, int64_t microbatches)
{
	size_t n = (size_t)microbatches + 1;

	r->device = ls_arena_alloc(&r->arena, ((size_t)r->devices + 1) * sizeof(*r->device));
	r->source = ls_arena_alloc(&r->arena, n * sizeof(*r->source));
	r->partial = ls_arena_alloc(&r->arena, n * sizeof(*r->partial));
	r->listed = ls_arena_alloc(&r->arena, n * sizeof(*r->listed));
	r->computes = ls_arena_alloc(&r->arena, (size_t)r->nodes * sizeof(*r->computes));
	if (!r->device || !r->source || !r->partial || !r->listed || !r->computes)
		return LS_EMEMORY;
	for (int d = 0; d < r->devices; d++)
		LS_TRY(schedule_init(&r->device[d], &r->arena, microbatches));
	LS_TRY(fold_init(&r->gather, &r->arena, microbatches));
	return fold_init(&r->combine, &r->arena, microbatches);
}

ls_status ls_round_init(ls_round *r, int64_t microbatches, int nodes, int node, int devices, int flat)
{
	*r = (ls_round){ .nodes = nodes, .node = node, .devices = devices, .flat = flat };
	if (allocate(r, microbatches) != LS_OK) {
		ls_round_release(r);
		return ls_fail(LS_EMEMORY, "no memory to plan steps of %lld micro-batches", (long long)microbatches);
	}
	return LS_OK;
}

void ls_round_release(ls_round *r)
{
	ls_arena_release(&r->arena);
	*r = (ls_round){ 0 };
}

/* Partial sums of this node's devices, by first micro-batch: a merge of sorted lists, small ones. */
static int merge_sources(ls_round *r)
{
	int count = 0;
	for (int64_t microbatch = 0; microbatch < r->microbatches; microbatch++)
		for (int d = 0; d < r->devices; d++)
			for (int i = 0; i < r->device[d].partials; i++)
				if (r->device[d].partial[i].first == microbatch) {
					r->listed[count] = r->device[d].partial[i];
					r->source[count++] =
						(ls_round_source){ .device = d, .slot = r->device[d].partial_slot[i] };
				}
	return count;
}

/* One output, adding from left to right. */
static void make_flat(ls_fold *fold, int inputs)
{
	fold->inputs = inputs;
	fold->outputs = inputs > 0;
	for (int i = 0; i < inputs; i++)
		fold->joins[i] = i > 0;
	fold->begin[0] = 0;
	fold->begin[fold->outputs] = inputs;
}

static int compare_partials(const void *a, const void *b)
{
	int64_t x = ((const ls_round_partial *)a)->partial.first, y = ((const ls_round_partial *)b)->partial.first;
	return (x > y) - (x < y);
}

static void list_nodes(ls_round *r, const int *node_of)
{
	int count = 0;
	for (int n = 0; n < r->nodes; n++) {
		int held = (int)ls_partial_list(node_of, r->microbatches, n, r->listed, r->microbatches);
		r->computes[n] = held > 0;
		for (int i = 0; i < (r->flat ? held > 0 : held); i++)
			r->partial[count++] = (ls_round_partial){ .partial = r->listed[i], .node = n, .output = i };
	}
	qsort(r->partial, (size_t)count, sizeof(*r->partial), compare_partials);
	for (int i = 0, row = 0; i < count; i++) {
		r->listed[i] = r->partial[i].partial;
		r->partial[i].row = r->partial[i].node == r->node ? -1 : row++;
	}
	if (r->flat)
		make_flat(&r->combine, count);
	else
		ls_fold_make(&r->combine, r->listed, count, r->microbatches);
}

void ls_round_assign(ls_round *r, uint64_t step, int64_t microbatches, const int *node_of, const int *device_of)
{
	r->step = step;
	r->microbatches = microbatches;
	r->active = 0;
	for (int d = 0; d < r->devices; d++) {
		ls_device_schedule_make(&r->device[d], node_of, device_of, microbatches, r->node, d);
		r->active += r->device[d].count > 0;
	}
	int sources = merge_sources(r);
	if (r->flat)
		make_flat(&r->gather, sources);
	else
		ls_fold_make(&r->gather, r->listed, sources, microbatches);
	list_nodes(r, node_of);
}

ls_round_room ls_round_room_of(const ls_round *r)
{
	ls_round_room room = { .outputs = r->gather.outputs };

	for (int d = 0; d < r->devices; d++)
		room.stores = r->device[d].slots > room.stores ? r->device[d].slots : room.stores;
	for (int i = 0; i < r->combine.inputs; i++)
		room.others += r->partial[i].node != r->node;
	return room;
}

/* Partial sums that a run of up to `microbatches` micro-batches falls into, wherever it begins: their sizes rise to the
 * middle and fall again, and 1, 1, 2, 2, 4, 4, ... are the shortest. */
static int run_partials(int64_t microbatches)
{
	int partials = 0;
	for (int64_t size = 1; size <= microbatches; partials++) {
		microbatches -= size;
		size <<= partials % 2;
	}
	return partials;
}

static int least(int64_t a, int64_t b)
{
	return (int)(a < b ? a : b);
}

ls_round_room ls_round_room_any(int64_t microbatches, int workers, int devices)
{
	int64_t run = microbatches >= workers ? microbatches - workers + 1
					      : microbatches; /* no worker goes without, where there are enough */
	int64_t of_device = devices > 0 ? (run + devices - 1) / devices : 0;
	int partials = run_partials(run);

	return (ls_round_room){
		.stores = of_device > 0 ? 1 + run_partials(of_device - 1) : 0, /* before the last joins */
		.outputs = partials,
		.others = least(microbatches, (int64_t)partials * (devices > 0 ? workers - 1 : workers))
	};
}

static int larger(int a, int b)
{
	return a > b ? a : b;
}

ls_round_room ls_round_room_both(ls_round_room a, ls_round_room b)
{
	return (ls_round_room){ .stores = larger(a.stores, b.stores),
				.outputs = larger(a.outputs, b.outputs),
				.others = larger(a.others, b.others) };
}

int ls_round_gathers(const ls_round *r)
{
	return r->gather.inputs != r->gather.outputs;
}
