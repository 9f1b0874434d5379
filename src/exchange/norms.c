/*
 * norms.c - where nothing is updated before all of the step is measured (clipping).
 *
 * Owners measure the blocks of their slices as they sum them and tell everybody; whoever has all of a step's norms
 * knows the scale, and owners then update from the sums they kept.
 */
#include <stdlib.h>

#include "exchange/inside.h"

enum { TAG_NORMS = LS_TAG_COLLECT - 1 };

/* Like a slice, norms roll by themselves: those of the next step are expected when this one's are complete. */
void ls_exchange_arm_norms(ls_exchange *x)
{
	if (x->norm_armed || x->norm_step != x->step)
		return;
	x->norm_armed = 1;
	for (int o = 0; o < x->plan.owners; o++)
		if (x->first_owner + o != x->node && x->norm_counts[o] > 0)
			ls_mail_post(&x->norm_in[o], x->norms_packed + (size_t)o * x->plan.blocks,
				     x->norm_counts[o] * sizeof(double));
}

static void apply_all(ls_exchange *x)
{
	for (int b = 0; b < x->plan.buckets - 1; b++) {
		if (x->bucket[b].begin == x->bucket[b].end)
			continue;
		x->bucket[b].applying = 1;
		ls_exchange_publish_slice(x, b);
	}
}

/* Blocks of owner o's live slices, in order: out of `norms` or into it. */
static void pack_norms(ls_exchange *x, int o, int into_norms)
{
	double *packed = x->norms_packed + (size_t)o * x->plan.blocks;
	for (int b = 0; b < x->plan.buckets - 1; b++) {
		size_t begin, end;
		ls_plan_slice(&x->plan, b, o, &begin, &end);
		for (; begin < end; begin += x->plan.block, packed++) {
			double *norm = &x->norms[ls_plan_block_at(&x->plan, begin)];
			*(into_norms ? norm : packed) = *(into_norms ? packed : norm);
		}
	}
}

static void norms_complete(ls_exchange *x)
{
	for (int o = 0; o < x->plan.owners; o++)
		if (o != x->owner)
			pack_norms(x, o, 1);
	x->norms_missing = x->norm_senders;
	x->summed_left = x->own_buckets;
	x->norm_step++;
	x->norm_armed = 0;
	x->o.measured_all(x->o.context, x->norms, x->plan.bucket[x->plan.buckets - 1].first_block);
	atomic_fetch_add(&x->norm_steps, 1);
	apply_all(x);
	if (x->nodes > 1 && !x->o.library_sum)
		ls_exchange_arm_norms(x);
}

static void count_norms(ls_exchange *x)
{
	if (--x->norms_missing == 0)
		norms_complete(x);
}

static void norms_done(void *context, ls_letter *letter)
{
	ls_mail *mail = context;
	ls_exchange *x = mail->exchange;

	(void)letter;
	ls_mail_home(mail);
	pthread_mutex_lock(&x->lock);
	count_norms(x);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

/* All of the own slices are summed and the last norms have left: tell everybody the new ones. */
static void tell_norms(ls_exchange *x)
{
	if (!x->norms_wanted || x->norms_leaving > 0)
		return;
	x->norms_wanted = 0;
	pack_norms(x, x->owner, 0);
	for (int n = 0; n < x->nodes && !x->o.library_sum; n++) {
		if (n == x->node)
			continue;
		x->norms_leaving++;
		ls_mail_post(&x->norm_out[n], x->norms_packed + (size_t)x->owner * x->plan.blocks,
			     x->norm_counts[x->owner] * sizeof(double));
	}
	count_norms(x);
}

static void norms_sent(void *context, ls_letter *letter)
{
	ls_mail *mail = context;
	ls_exchange *x = mail->exchange;

	(void)letter;
	ls_mail_home(mail);
	pthread_mutex_lock(&x->lock);
	x->norms_leaving--;
	tell_norms(x);
	pthread_mutex_unlock(&x->lock);
	ls_exchange_notify(x);
}

void ls_exchange_slice_measured(ls_exchange *x)
{
	if (--x->summed_left > 0)
		return;
	x->norms_wanted = 1;
	tell_norms(x);
}

ls_status ls_exchange_make_norms(ls_exchange *x)
{
	ls_letter own = { .outgoing = 1, .what = "norms of blocks, part", .done = norms_sent };
	ls_letter others = { .what = "norms of blocks, part", .done = norms_done };

	x->norm_out = ls_mail_new(x, (size_t)x->nodes, &own);
	x->norm_in = ls_mail_new(x, (size_t)x->plan.owners, &others);
	if (x->norm_out == NULL || x->norm_in == NULL)
		return ls_fail(LS_EMEMORY, "no memory for the letters of norms");
	for (int o = 0; o < x->plan.owners; o++)
		ls_mail_address(&x->norm_in[o], 0, x->first_owner + o, TAG_NORMS);
	for (int n = 0; n < x->nodes; n++)
		ls_mail_address(&x->norm_out[n], 0, n, TAG_NORMS);
	return LS_OK;
}

void ls_exchange_free_norms(ls_exchange *x)
{
	free(x->norm_in);
	free(x->norm_out);
}
