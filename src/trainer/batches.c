#include "trainer/batches.h"

#include <stdlib.h>
#include <string.h>

#include "data/transforms/transforms.h"
#include "trainer/token_targets.h"

static ls_status make_arrays(ls_batches *f, int64_t microbatches)
{
	const ls_layout *l = f->options.layout;

	for (int i = 0; i < LS_BATCHES_RING; i++) {
		f->ring[i].cut = calloc((size_t)l->nodes + 1, sizeof(int64_t));
		if (!f->ring[i].cut)
			return ls_fail(LS_EMEMORY, "no memory to assign steps");
	}
	f->device_cut = calloc((size_t)l->devices + 2, sizeof(int64_t));
	f->together_cut = calloc((size_t)l->nodes + 1, sizeof(int64_t));
	f->loader = calloc((size_t)l->devices + 1, sizeof(*f->loader));
	f->node = calloc((size_t)microbatches, sizeof(int));
	f->device = calloc((size_t)microbatches, sizeof(int));
	if (!f->device_cut || !f->together_cut || !f->loader || !f->node || !f->device)
		return ls_fail(LS_EMEMORY, "no memory to assign steps of %lld micro-batches", (long long)microbatches);
	return LS_OK;
}

static ls_status open_loaders(ls_batches *f)
{
	const ls_batches_options *o = &f->options;
	ls_loader_options options = { .seed = o->seed,
				      .shuffle = 1,
				      .microbatch = o->microbatch,
				      .global_batch = o->global_batch,
				      .start_epoch = o->start_epoch,
				      .start_step = o->start_step,
				      .threads = ls_loader_threads(o->dataset, o->transforms, o->layout->threads),
				      .transforms = o->transforms,
				      .one_hot = o->transforms && ls_transforms_mix(o->transforms),
				      .assigned = 1 };

	for (int i = 0; i < o->layout->devices; i++)
		LS_TRY(ls_loader_new(&f->loader[i], o->dataset, &options));
	return LS_OK;
}

/* Assign one more step, and start this node's loaders on it. */
static ls_status assign_step(ls_batches *f)
{
	const ls_batches_options *o = &f->options;
	const ls_layout *l = o->layout;
	ls_assigned_step *s = &f->ring[f->assigned % LS_BATCHES_RING];

	ls_loader_step_at(f->samples, o->global_batch, o->microbatch, f->epoch_step, &s->shape);
	ls_assigner_assign(&f->assigner, s->shape.microbatches, s->cut);
	if (l->devices > 0)
		ls_assign_devices(s->cut[l->node], s->cut[l->node + 1], l->devices, f->device_cut);
	for (int i = 0; i < l->devices; i++)
		LS_TRY(ls_loader_assign(f->loader[i], f->device_cut[i], f->device_cut[i + 1] - f->device_cut[i]));
	f->epoch_step = s->shape.last_in_epoch ? 0 : f->epoch_step + 1;
	f->assigned++;
	return LS_OK;
}

static ls_status assign_ahead(ls_batches *f)
{
	while (f->assigned < f->learned + LS_BATCHES_AHEAD && f->assigned < f->options.steps)
		LS_TRY(assign_step(f));
	return LS_OK;
}

static ls_status open(ls_batches *f)
{
	const ls_batches_options *o = &f->options;
	const ls_layout *l = o->layout;
	ls_step_shape shape;

	f->samples = ls_dataset_describe(o->dataset)->samples;
	f->steps_per_epoch = ls_loader_steps(f->samples, o->global_batch);
	f->epoch_step = o->start_step;
	ls_loader_step_at(f->samples, o->global_batch, o->microbatch, 0, &shape);
	LS_TRY(make_arrays(f, shape.microbatches));
	LS_TRY(ls_assigner_init(&f->assigner, l->nodes, l->devices_of, l->weight, l->share == LS_SHARE_AUTO));
	LS_TRY(open_loaders(f));
	if (o->sample_log && l->devices > 0)
		LS_TRY(ls_sample_log_open(&f->log, o->sample_log, o->generation, l->node, l->devices, o->microbatch));
	return assign_ahead(f);
}

ls_status ls_batches_open(ls_batches *f, const ls_batches_options *options)
{
	*f = (ls_batches){ .options = *options };
	ls_status status = open(f);
	if (status != LS_OK)
		ls_batches_close(f);
	return status;
}

void ls_batches_close(ls_batches *f)
{
	for (int i = 0; f->loader && i < f->options.layout->devices; i++)
		ls_loader_free(f->loader[i]);
	ls_sample_log_close(&f->log);
	ls_assigner_release(&f->assigner);
	free(f->device);
	free(f->node);
	free(f->loader);
	free(f->together_cut);
	free(f->device_cut);
	for (int i = 0; i < LS_BATCHES_RING; i++)
		free(f->ring[i].cut);
	*f = (ls_batches){ 0 };
}

void ls_batches_begin(ls_batches *f, ls_node_trainer_assignment *assign, int *last_in_epoch)
{
	const ls_layout *l = f->options.layout;
	const ls_assigned_step *s = &f->ring[f->begun++ % LS_BATCHES_RING];

	ls_layout_assign(l, s->cut, f->device_cut, f->node, f->device);
	*assign = (ls_node_trainer_assignment){
		.microbatches = s->shape.microbatches, .samples = s->shape.samples, .node = f->node, .device = f->device
	};
	*last_in_epoch = s->shape.last_in_epoch;
}

ls_status ls_batches_learn(ls_batches *f, const ls_node_trainer_report *report)
{
	const ls_assigned_step *s = &f->ring[f->learned++ % LS_BATCHES_RING];

	ls_assigner_learn(&f->assigner, s->cut, report->node_s);
	return assign_ahead(f);
}

ls_status ls_batches_skip(ls_batches *f)
{
	f->learned++;
	return assign_ahead(f);
}

/* Counts as TOGETHER steps: an assigner does not change its mind for a single one. */
enum { TOGETHER = 16 };

void ls_batches_learn_together(ls_batches *f, const int64_t *microbatches, const double *seconds)
{
	int64_t *cut = f->together_cut;

	for (int n = 0; n < f->options.layout->nodes; n++)
		cut[n + 1] = cut[n] + microbatches[n];
	for (int i = 0; i < TOGETHER; i++)
		ls_assigner_learn(&f->assigner, cut, seconds);
}

ls_status ls_batches_next(void *context, int device, const ls_microbatch **microbatch)
{
	ls_batches *f = context;

	LS_TRY(ls_loader_next(f->loader[device], microbatch));
	if (*microbatch)
		LS_TRY(ls_token_targets_check_microbatch(f->options.graph, f->options.dataset, *microbatch));
	return f->log.lines && *microbatch ? ls_sample_log_add(&f->log, device, *microbatch) : LS_OK;
}
