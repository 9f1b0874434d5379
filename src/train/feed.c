#include "train/feed.h"

#include <stdlib.h>
#include <string.h>

static ls_status make_arrays(ls_feed *f, int64_t leaves)
{
	const ls_layout *l = f->options.layout;

	for (int i = 0; i < LS_FEED_RING; i++) {
		f->ring[i].cut = calloc((size_t)l->nodes + 1, sizeof(int64_t));
		if (f->ring[i].cut == NULL)
			return ls_fail(LS_EMEMORY, "no memory to deal steps");
	}
	f->device_cut = calloc((size_t)l->devices + 2, sizeof(int64_t));
	f->together_cut = calloc((size_t)l->nodes + 1, sizeof(int64_t));
	f->loader = calloc((size_t)l->devices + 1, sizeof(*f->loader));
	f->node = calloc((size_t)leaves, sizeof(int));
	f->device = calloc((size_t)leaves, sizeof(int));
	if (!f->device_cut || !f->together_cut || !f->loader || !f->node || !f->device)
		return ls_fail(LS_EMEMORY, "no memory to deal steps of %lld leaves", (long long)leaves);
	return LS_OK;
}

static ls_status open_loaders(ls_feed *f)
{
	const ls_feed_options *o = &f->options;
	ls_loader_options options = { .seed = o->seed,
				      .shuffle = 1,
				      .leaf = o->leaf,
				      .global_batch = o->global_batch,
				      .start_epoch = o->start_epoch,
				      .start_step = o->start_step,
				      .dealt = 1 };

	for (int i = 0; i < o->layout->devices; i++)
		LS_TRY(ls_loader_new(&f->loader[i], o->dataset, &options));
	return LS_OK;
}

/* One step more: who gets what, and this node's loaders set to work. */
static ls_status deal_step(ls_feed *f)
{
	const ls_feed_options *o = &f->options;
	const ls_layout *l = o->layout;
	ls_feed_step *s = &f->ring[f->dealt % LS_FEED_RING];

	ls_loader_step_at(f->samples, o->global_batch, o->leaf, f->epoch_step, &s->shape);
	ls_dealer_deal(&f->dealer, s->shape.leaves, s->cut);
	if (l->devices > 0)
		ls_deal_devices(s->cut[l->node], s->cut[l->node + 1], l->devices, f->device_cut);
	for (int i = 0; i < l->devices; i++)
		LS_TRY(ls_loader_deal(f->loader[i], f->device_cut[i], f->device_cut[i + 1] - f->device_cut[i]));
	f->epoch_step = s->shape.last_in_epoch ? 0 : f->epoch_step + 1;
	f->dealt++;
	return LS_OK;
}

static ls_status deal_ahead(ls_feed *f)
{
	while (f->dealt < f->learned + LS_FEED_AHEAD && f->dealt < f->options.steps)
		LS_TRY(deal_step(f));
	return LS_OK;
}

static ls_status open(ls_feed *f)
{
	const ls_feed_options *o = &f->options;
	const ls_layout *l = o->layout;
	ls_step_shape shape;

	f->samples = ls_dataset_describe(o->dataset)->samples;
	f->steps_per_epoch = ls_loader_steps(f->samples, o->global_batch);
	f->epoch_step = o->start_step;
	ls_loader_step_at(f->samples, o->global_batch, o->leaf, 0, &shape);
	LS_TRY(make_arrays(f, shape.leaves));
	LS_TRY(ls_dealer_init(&f->dealer, l->nodes, l->devices_of, l->weight, l->share == LS_SHARE_AUTO));
	LS_TRY(open_loaders(f));
	return deal_ahead(f);
}

ls_status ls_feed_open(ls_feed *f, const ls_feed_options *options)
{
	*f = (ls_feed){ .options = *options };
	ls_status status = open(f);
	if (status != LS_OK)
		ls_feed_close(f);
	return status;
}

void ls_feed_close(ls_feed *f)
{
	for (int i = 0; f->loader != NULL && i < f->options.layout->devices; i++)
		ls_loader_free(f->loader[i]);
	ls_dealer_release(&f->dealer);
	free(f->device);
	free(f->node);
	free(f->loader);
	free(f->together_cut);
	free(f->device_cut);
	for (int i = 0; i < LS_FEED_RING; i++)
		free(f->ring[i].cut);
	*f = (ls_feed){ 0 };
}

void ls_feed_begin(ls_feed *f, ls_trainer_deal *deal, int *last_in_epoch)
{
	const ls_layout *l = f->options.layout;
	const ls_feed_step *s = &f->ring[f->begun++ % LS_FEED_RING];

	ls_layout_assign(l, s->cut, f->device_cut, f->node, f->device);
	*deal = (ls_trainer_deal){
		.leaves = s->shape.leaves, .samples = s->shape.samples, .node = f->node, .device = f->device
	};
	*last_in_epoch = s->shape.last_in_epoch;
}

ls_status ls_feed_learn(ls_feed *f, const ls_trainer_report *report)
{
	const ls_feed_step *s = &f->ring[f->learned++ % LS_FEED_RING];

	ls_dealer_learn(&f->dealer, s->cut, report->node_s);
	return deal_ahead(f);
}

ls_status ls_feed_pass(ls_feed *f)
{
	f->learned++;
	return deal_ahead(f);
}

/* As if so many steps had gone that way: a dealer does not turn around for a single one. */
enum { TOGETHER = 16 };

void ls_feed_learn_together(ls_feed *f, const int64_t *leaves, const double *seconds)
{
	int64_t *cut = f->together_cut;

	for (int n = 0; n < f->options.layout->nodes; n++)
		cut[n + 1] = cut[n] + leaves[n];
	for (int i = 0; i < TOGETHER; i++)
		ls_dealer_learn(&f->dealer, cut, seconds);
}

ls_status ls_feed_next(void *context, int device, const ls_leaf **leaf)
{
	ls_feed *f = context;
	return ls_loader_next(f->loader[device], leaf);
}
