/*
 * hold.c - a gradient that is held back between its sums and the update.
 *
 * The exchange sums a step's gradient block by block and calls `update` for each. In a step that holds, the sums are
 * kept instead, here. The update then goes over the same blocks as the exchange's: the same norms in the same order,
 * and an optimizer that is element-wise, so the bits are those of a step in one piece.
 */
#include "trainer/hold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/update.h"

static size_t block_begin(const ls_node_trainer *t, size_t block)
{
	size_t at = block * LS_NORM_BLOCK, reachable = t->graph->params.reachable;
	return at < reachable ? at : reachable;
}

static size_t blocks_of(const ls_node_trainer *t)
{
	return ls_norm_blocks(t->graph->params.reachable);
}

/* One norm per block for clipping, a pair per run of the optimizer's own pass, which comes second. */
static ls_status make_norms(ls_node_trainer *t)
{
	size_t blocks = blocks_of(t), *at = calloc(blocks + 1, sizeof(*at));

	t->held_norms_at = at;
	for (size_t b = 0; at && b < blocks; b++) {
		size_t runs = ls_optimizer_runs(&t->graph->params, block_begin(t, b), block_begin(t, b + 1));
		at[b + 1] = at[b] + (t->kind->direction ? 2 * runs : 1);
	}
	t->held_norms = at ? calloc(at[blocks] + blocks, sizeof(*t->held_norms)) : NULL;
	return t->held_norms ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the norms of %zu blocks", blocks);
}

static ls_status make(ls_node_trainer *t)
{
	if (!t->held)
		LS_TRY(ls_floats_new(&t->held, t->graph->params.reachable, "held gradients"));
	return t->held_norms ? LS_OK : make_norms(t);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

void ls_node_trainer_hold(ls_node_trainer *t, size_t begin, size_t end, const float *sums)
{
	float *held = t->held + begin;

	if (t->held_samples == 0)
		memcpy(held, sums, (end - begin) * sizeof(*held));
	else
		for (size_t i = 0; i < end - begin; i++)
			held[i] += sums[i];
}

void ls_node_trainer_hold_layer(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	ls_driver *d = context;
	int64_t first, last;

	ls_team_range(member, (int64_t)(end - begin), &first, &last);
	ls_node_trainer_hold(d->trainer, begin + (size_t)first, begin + (size_t)last, grads + first);
}

ls_status ls_node_trainer_backward(ls_node_trainer *t, const ls_node_trainer_assignment *assign)
{
	LS_TRY(make(t));
	t->is_holding = 1;
	ls_status status = ls_node_trainer_step(t, assign);
	t->is_holding = 0;
	if (status == LS_OK)
		t->held_samples += assign->samples;
	return status;
}

ls_status ls_node_trainer_means(ls_node_trainer *t)
{
	size_t count = t->graph->params.reachable;

	LS_TRY(make(t));
	if (t->held_samples == 0)
		memset(t->held, 0, count * sizeof(*t->held));
	else if (t->held_samples > 1)
		for (size_t i = 0; i < count; i++)
			t->held[i] *= ls_node_trainer_held_scale(t);
	t->held_samples = 1;
	return LS_OK;
}

void ls_node_trainer_zero_gradient(ls_node_trainer *t)
{
	t->held_samples = 0;
}

/* ---- update ------------------------------------------------------------------------------------------------------ */

/* What all threads do together with the blocks of the gradient. */
typedef struct block_job {
	ls_node_trainer *trainer;
	int pass;   /* a norm pass; -1: the update */
	int device; /* of this copy */
} block_job;

static double *norms_of(const ls_node_trainer *t, int pass, size_t block)
{
	size_t clipping = t->held_norms_at[blocks_of(t)];
	return t->held_norms + (ls_node_trainer_is_clipping(t, pass) ? clipping + block : t->held_norms_at[block]);
}

static void work_on_block(ls_node_trainer *t, int pass, size_t block)
{
	size_t begin = block_begin(t, block), end = block_begin(t, block + 1);
	double scale = ls_node_trainer_record_of(t, t->step)->scale;
	ls_optimizer_pass optimizer = ls_node_trainer_pass(t, t->step, scale, t->held, 0);

	if (pass < 0)
		ls_optimizer_apply(&optimizer, begin, end);
	else if (ls_node_trainer_is_clipping(t, pass))
		ls_norm_block_sums(t->held + begin, end - begin, 0, 1, norms_of(t, pass, block));
	else
		ls_optimizer_norm_pass(&optimizer, begin, end, t->held + begin, norms_of(t, pass, block));
}

static void work(void *context, ls_member member)
{
	const block_job *job = context;
	ls_node_trainer *t = job->trainer;
	ls_member all = { .rank = job->device * member.size + member.rank, .size = t->options.devices * member.size };
	int64_t first, last;

	ls_team_range(all, (int64_t)blocks_of(t), &first, &last);
	for (int64_t b = first; b < last; b++)
		work_on_block(t, job->pass, (size_t)b);
}

static void drive(void *context, int device)
{
	block_job job = *(const block_job *)context;

	job.device = device;
	ls_devices_host_run(job.trainer->devices, device, work, &job);
}

static void run_blocks(ls_node_trainer *t, int pass)
{
	block_job job = { .trainer = t, .pass = pass };
	ls_devices_run(t->devices, t->options.devices, drive, &job);
}

/* The record of the next step serves for the update: none is under way. */
ls_status ls_node_trainer_update(ls_node_trainer *t, double *norm)
{
	ls_step_record *r = ls_node_trainer_record_of(t, t->step);
	size_t blocks = blocks_of(t);

	if (t->held_samples == 0)
		return ls_fail(LS_EINVALID,
			       "there is no gradient: call ls_trainer_backward() or ls_trainer_set_gradient() first");
	r->samples = t->held_samples;
	r->scale = 1.0 / (double)t->held_samples;
	r->gradient_norm = NAN;
	for (int pass = 0; pass < ls_node_trainer_norm_passes(&t->options, t->kind); pass++) {
		run_blocks(t, pass);
		if (ls_node_trainer_is_clipping(t, pass))
			ls_node_trainer_clip(t, r, norms_of(t, pass, 0), blocks);
		else
			ls_optimizer_ratios(&t->graph->params, LS_NORM_BLOCK, t->held_norms, t->ratios);
	}
	run_blocks(t, -1);
	ls_node_trainer_decay_unreachable(t);
	*norm = r->gradient_norm;
	t->steps_held--; /* an update that was no step */
	t->held_samples = 0;
	return LS_OK;
}
