#include "exchange/summation.h"

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

static ls_status allocate(ls_summation *sum, int64_t microbatches)
{
	size_t n = (size_t)microbatches + 1;

	sum->device = ls_arena_alloc(&sum->arena, ((size_t)sum->devices + 1) * sizeof(*sum->device));
	sum->source = ls_arena_alloc(&sum->arena, n * sizeof(*sum->source));
	sum->partial = ls_arena_alloc(&sum->arena, n * sizeof(*sum->partial));
	sum->listed = ls_arena_alloc(&sum->arena, n * sizeof(*sum->listed));
	sum->computes = ls_arena_alloc(&sum->arena, (size_t)sum->nodes * sizeof(*sum->computes));
	if (!sum->device || !sum->source || !sum->partial || !sum->listed || !sum->computes)
		return LS_EMEMORY;
	for (int d = 0; d < sum->devices; d++)
		LS_TRY(schedule_init(&sum->device[d], &sum->arena, microbatches));
	LS_TRY(fold_init(&sum->node_fold, &sum->arena, microbatches));
	return fold_init(&sum->total_fold, &sum->arena, microbatches);
}

ls_status ls_summation_init(ls_summation *sum, int64_t microbatches, int nodes, int node, int devices, int in_order)
{
	*sum = (ls_summation){ .nodes = nodes, .node = node, .devices = devices, .in_order = in_order };
	if (allocate(sum, microbatches) != LS_OK) {
		ls_summation_release(sum);
		return ls_fail(LS_EMEMORY, "no memory for the sums of %lld micro-batches", (long long)microbatches);
	}
	return LS_OK;
}

void ls_summation_release(ls_summation *sum)
{
	ls_arena_release(&sum->arena);
	*sum = (ls_summation){ 0 };
}

/* Partial sums of this node's devices, by first micro-batch: a merge of sorted lists, small ones. */
static int merge_sources(ls_summation *sum)
{
	int count = 0;
	for (int64_t microbatch = 0; microbatch < sum->microbatches; microbatch++)
		for (int d = 0; d < sum->devices; d++)
			for (int i = 0; i < sum->device[d].partials; i++)
				if (sum->device[d].partial[i].first == microbatch) {
					sum->listed[count] = sum->device[d].partial[i];
					sum->source[count++] =
						(ls_summation_source){ .device = d,
								       .slot = sum->device[d].partial_slot[i] };
				}
	return count;
}

/* One output, adding from left to right; of no inputs it is zero. */
static void fold_in_order(ls_fold *fold, int inputs)
{
	fold->inputs = inputs;
	fold->outputs = 1;
	for (int i = 0; i < inputs; i++)
		fold->joins[i] = i > 0;
	fold->begin[0] = 0;
	fold->begin[fold->outputs] = inputs;
}

static int compare_partials(const void *a, const void *b)
{
	int64_t x = ((const ls_summation_partial *)a)->partial.first,
		y = ((const ls_summation_partial *)b)->partial.first;
	return (x > y) - (x < y);
}

static void list_nodes(ls_summation *sum, const int *node_of)
{
	int count = 0;
	for (int n = 0; n < sum->nodes; n++) {
		int held = (int)ls_partial_list(node_of, sum->microbatches, n, sum->listed, sum->microbatches);
		sum->computes[n] = held > 0;
		for (int i = 0; i < (sum->in_order ? held > 0 : held); i++)
			sum->partial[count++] =
				(ls_summation_partial){ .partial = sum->listed[i], .node = n, .output = i };
	}
	qsort(sum->partial, (size_t)count, sizeof(*sum->partial), compare_partials);
	for (int i = 0, row = 0; i < count; i++) {
		sum->listed[i] = sum->partial[i].partial;
		sum->partial[i].row = sum->partial[i].node == sum->node ? -1 : row++;
	}
	if (sum->in_order)
		fold_in_order(&sum->total_fold, count);
	else
		ls_fold_make(&sum->total_fold, sum->listed, count, sum->microbatches);
}

void ls_summation_assign(ls_summation *sum, uint64_t step, int64_t microbatches, const int *node_of,
			 const int *device_of)
{
	sum->step = step;
	sum->microbatches = microbatches;
	sum->active = 0;
	for (int d = 0; d < sum->devices; d++) {
		ls_device_schedule_make(&sum->device[d], node_of, device_of, microbatches, sum->node, d);
		sum->active += sum->device[d].count > 0;
	}
	int sources = merge_sources(sum);
	if (sum->in_order)
		fold_in_order(&sum->node_fold, sources);
	else
		ls_fold_make(&sum->node_fold, sum->listed, sources, microbatches);
	list_nodes(sum, node_of);
}

ls_summation_buffers ls_summation_buffers_of(const ls_summation *sum)
{
	ls_summation_buffers most = { .outputs = sum->node_fold.outputs };

	for (int d = 0; d < sum->devices; d++)
		most.stores = sum->device[d].slots > most.stores ? sum->device[d].slots : most.stores;
	for (int i = 0; i < sum->total_fold.inputs; i++)
		most.others += sum->partial[i].node != sum->node;
	return most;
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

ls_summation_buffers ls_summation_buffers_any(int64_t microbatches, int workers, int devices)
{
	int64_t run = microbatches >= workers ? microbatches - workers + 1
					      : microbatches; /* no worker goes without, where there are enough */
	int64_t of_device = devices > 0 ? (run + devices - 1) / devices : 0;
	int partials = run_partials(run);

	return (ls_summation_buffers){
		.stores = of_device > 0 ? 1 + run_partials(of_device - 1) : 0, /* before the last joins */
		.outputs = partials,
		.others = least(microbatches, (int64_t)partials * (devices > 0 ? workers - 1 : workers))
	};
}

static int larger(int a, int b)
{
	return a > b ? a : b;
}

ls_summation_buffers ls_summation_buffers_max(ls_summation_buffers a, ls_summation_buffers b)
{
	return (ls_summation_buffers){ .stores = larger(a.stores, b.stores),
				       .outputs = larger(a.outputs, b.outputs),
				       .others = larger(a.others, b.others) };
}

int ls_summation_folds(const ls_summation *sum)
{
	return sum->node_fold.inputs != sum->node_fold.outputs;
}
