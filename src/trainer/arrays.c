#include "trainer/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/packed_text.h"
#include "exchange/assigner.h"
#include "trainer/sample_check.h"

/* What a device computes with. */
typedef struct device_view {
	ls_microbatch microbatch;
	ls_microbatch_text text; /* in `memory` */
	void *memory;
	size_t bytes;
	int32_t *labels; /* (micro-batch) of text, and 0 where targets are in place of labels */
	int64_t next;    /* micro-batch */
} device_view;

struct ls_arrays {
	const ls_graph *graph;
	int devices;
	int64_t microbatch;
	device_view *view;  /* (devices) */
	int64_t *cut;       /* (devices + 1) */
	int *node, *device; /* (micro-batches) */
	uint64_t *numbers;  /* (batch) of samples that have none */

	/* the step under way */
	const ls_batch *batch;
	const uint64_t *indices;
	int64_t step_masked;
};

static ls_status make_text(ls_arrays *a, device_view *v)
{
	const ls_dataset_info info = { .tokens_max = a->graph->tokens_max, .masked_max = a->graph->masked_max };

	if (a->microbatch > INT32_MAX / info.tokens_max) /* rows of a micro-batch are int32 */
		return ls_fail(LS_EINVALID, "micro-batches of %lld samples of up to %d tokens are too large",
			       (long long)a->microbatch, info.tokens_max);
	v->bytes = ls_microbatch_text_bytes(&info, a->microbatch);
	LS_TRY(ls_buffer_new(&v->memory, v->bytes, "packed text"));
	ls_microbatch_text_place(&v->text, &info, a->microbatch, v->memory);
	return LS_OK;
}

static ls_status make(ls_arrays *a, int64_t batch)
{
	size_t microbatches = (size_t)((batch + a->microbatch - 1) / a->microbatch);

	a->view = calloc((size_t)a->devices, sizeof(*a->view));
	a->cut = calloc((size_t)a->devices + 1, sizeof(*a->cut));
	a->node = calloc(microbatches, sizeof(*a->node));
	a->device = calloc(microbatches, sizeof(*a->device));
	a->numbers = calloc((size_t)batch, sizeof(*a->numbers));
	if (!a->view || !a->cut || !a->node || !a->device || !a->numbers)
		return ls_fail(LS_EMEMORY, "no memory for steps of %lld samples", (long long)batch);
	for (int i = 0; i < a->devices; i++) {
		a->view[i].labels = calloc((size_t)a->microbatch, sizeof(*a->view[i].labels));
		if (!a->view[i].labels)
			return ls_fail(LS_EMEMORY, "no memory for %lld labels", (long long)a->microbatch);
		if (a->graph->tokens_max > 0)
			LS_TRY(make_text(a, &a->view[i]));
	}
	return LS_OK;
}

ls_status ls_arrays_new(ls_arrays **out, const ls_graph *graph, int devices, int64_t microbatch, int64_t batch)
{
	ls_arrays *a = calloc(1, sizeof(*a));
	if (!a)
		return ls_fail(LS_EMEMORY, "no memory for steps of %lld samples", (long long)batch);
	*a = (ls_arrays){ .graph = graph, .devices = devices, .microbatch = microbatch };
	ls_status status = make(a, batch);
	if (status != LS_OK) {
		ls_arrays_free(a);
		return status;
	}
	*out = a;
	return LS_OK;
}

void ls_arrays_free(ls_arrays *a)
{
	if (!a)
		return;
	for (int i = 0; a->view && i < a->devices; i++) {
		if (a->view[i].memory)
			ls_buffer_free(a->view[i].memory, a->view[i].bytes);
		free(a->view[i].labels);
	}
	free(a->numbers);
	free(a->device);
	free(a->node);
	free(a->cut);
	free(a->view);
	free(a);
}

static int64_t masked_of(const ls_batch *batch)
{
	int64_t sum = 0;
	for (int64_t i = 0; batch->text && i < batch->count; i++)
		sum += batch->text[i].masked;
	return sum;
}

void ls_arrays_begin(ls_arrays *a, const ls_batch *batch, uint64_t first, ls_node_trainer_assignment *assign)
{
	int64_t microbatches = (batch->count + a->microbatch - 1) / a->microbatch;

	a->batch = batch;
	a->indices = batch->indices ? batch->indices : a->numbers;
	a->step_masked = masked_of(batch);
	for (int64_t i = 0; !batch->indices && i < batch->count; i++)
		a->numbers[i] = first + (uint64_t)i;
	ls_assign_devices(0, microbatches, a->devices, a->cut);
	for (int d = 0; d < a->devices; d++) {
		a->view[d].next = a->cut[d];
		for (int64_t i = a->cut[d]; i < a->cut[d + 1]; i++)
			a->device[i] = d;
	}
	*assign = (ls_node_trainer_assignment){
		.microbatches = microbatches, .samples = batch->count, .node = a->node, .device = a->device
	};
}

/* Copy a sample behind those that are there. */
static void pack(ls_microbatch_text *to, int64_t i, const ls_text_sample *sample)
{
	int32_t at = to->start[i], masked = to->masked_start[i];
	size_t bytes = (size_t)sample->length * sizeof(*to->token);

	memcpy(to->token + at, sample->tokens, bytes);
	if (sample->segments)
		memcpy(to->segment + at, sample->segments, bytes);
	else
		memset(to->segment + at, 0, bytes);
	for (int k = 0; k < sample->masked; k++) {
		to->masked_at[masked + k] = at + sample->places[k];
		to->target[masked + k] = sample->targets[k];
	}
	to->start[i + 1] = at + sample->length;
	to->masked_start[i + 1] = masked + sample->masked;
}

static void pack_all(const ls_arrays *a, device_view *v, int64_t begin, int64_t count)
{
	v->text.start[0] = v->text.masked_start[0] = 0;
	for (int64_t i = 0; i < count; i++) {
		pack(&v->text, i, &a->batch->text[begin + i]);
		v->labels[i] = a->batch->text[begin + i].label;
	}
	v->text.packed.step_masked = a->step_masked;
	v->microbatch.text = &v->text.packed;
	v->microbatch.labels = v->labels;
}

ls_status ls_arrays_next(void *context, int device, const ls_microbatch **microbatch)
{
	ls_arrays *a = context;
	device_view *v = &a->view[device];
	int64_t begin = v->next * a->microbatch, left = a->batch->count - begin;
	int64_t count = left < a->microbatch ? left : a->microbatch;

	v->microbatch = (ls_microbatch){
		.count = count, .samples = a->indices + begin, .microbatch = v->next++, .step_samples = a->batch->count
	};
	if (a->batch->text) {
		pack_all(a, v, begin, count);
	} else {
		v->microbatch.images = a->batch->images + (size_t)begin * ls_sample_floats(a->graph);
		v->microbatch.labels = a->batch->labels ? a->batch->labels + begin : v->labels;
	}
	if (a->batch->targets) {
		v->microbatch.target_count = ls_graph_outputs(a->graph);
		v->microbatch.targets = a->batch->targets + begin * v->microbatch.target_count;
	}
	*microbatch = &v->microbatch;
	return LS_OK;
}
