/*
 * combine.c - units of work: fold partial sums of a block, measure it, update it.
 *
 * A unit is one block. Gathering makes the node's partial sums out of its devices'; updating folds the partial sums of
 * all nodes (on one node: of all devices) and calls `update` while the sums are in cache.
 */
#include <string.h>

#include "base/clock.h"
#include "exchange/bf16.h"
#include "exchange/inside.h"

int ls_exchange_is_stale_server(const ls_exchange *x)
{
	return x->o.staleness > 0 && x->node >= x->workers;
}

/* The extra floats are few and always exact. */
int ls_exchange_is_bf16(const ls_exchange *x, int bucket)
{
	return x->o.wire == LS_WIRE_BF16 && x->nodes > 1 && bucket < x->plan.buckets - 1;
}

int ls_exchange_must_gather(const ls_exchange *x, const ls_round *round, int bucket)
{
	return x->nodes > 1 && (ls_round_gathers(round) || ls_exchange_is_bf16(x, bucket) ||
				round->gather.inputs == 0 || x->o.staleness > 0);
}

static float *source_at(const ls_exchange *x, const ls_round *round, int input, size_t at)
{
	const ls_round_source *s = &round->source[input];
	return x->store[s->device * x->slots + s->slot] + at;
}

/* Where the node's partial sum number `output` of a bucket lies, from float `at` on: the first of the stores it is made
 * of, where it may be sent as it is. */
void *ls_exchange_output(const ls_exchange *x, const ls_round *round, int bucket, int output, size_t at)
{
	if (ls_exchange_is_bf16(x, bucket))
		return (uint16_t *)x->outgoing[output] + at;
	if (ls_exchange_is_flat(x) && ls_exchange_must_gather(x, round, bucket))
		return x->outgoing[output] + at;
	return source_at(x, round, round->gather.begin[output], at);
}

/* With staleness a worker's gradient is its own mean: what servers are given has no step of its own to be part of. */
static void scale(float *sums, size_t count, float by)
{
	for (size_t i = 0; i < count; i++)
		sums[i] *= by;
}

void ls_exchange_run_gather(ls_exchange *x, int bucket, int unit, int participant)
{
	const ls_round *round = &x->rounds[x->step & 1];
	ls_participant *part = &x->part[participant];
	size_t begin, end;
	double start = x->o.act ? ls_clock_seconds() : 0;

	ls_partition_block(&x->plan, bucket, (size_t)unit, &begin, &end);
	for (int i = 0; i < round->gather.inputs; i++)
		part->inputs[i] = source_at(x, round, i, begin);
	for (int j = 0; j < round->gather.outputs; j++) {
		void *out = ls_exchange_output(x, round, bucket, j, begin);
		float *sums = ls_exchange_is_bf16(x, bucket) ? part->sums : out;
		ls_fold_run(&round->gather, j, part->inputs, end - begin, sums, part->scratch);
		if (x->o.staleness > 0 && bucket < x->plan.buckets - 1)
			scale(sums, end - begin, x->scale);
		if (sums != out)
			ls_bf16_pack(out, sums, end - begin);
	}
	if (x->o.act)
		x->o.act(x->o.context, LS_ACT_COMBINE, participant, bucket, start, ls_clock_seconds());
}

/* Piece i of the step, as floats, from `begin` on. */
static const float *input_at(ls_exchange *x, const ls_round *round, int bucket, int i, size_t begin, size_t end,
			     ls_participant *part)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	const ls_round_partial *partial = &round->partial[i];
	int own = !x->stale && partial->row < 0, row = x->stale ? i : partial->row;
	float *expanded = part->expanded;
	const void *message = own ? NULL : ls_exchange_incoming(x, bucket, row), *at;

	if (!x->stale) /* there, one worker's is expanded at a time */
		expanded += (size_t)(own ? x->rows + partial->output : row) * x->plan.block;
	if (own)
		at = ls_exchange_output(x, round, bucket, partial->output, begin);
	else if (ls_exchange_open_partial(x, bucket, i, begin, end, expanded))
		return expanded;
	else if (ls_exchange_is_bf16(x, bucket))
		at = (const uint16_t *)message + (begin - b->begin);
	else
		at = (const float *)message + (begin - b->begin);
	if (!ls_exchange_is_bf16(x, bucket))
		return at;
	ls_bf16_expand(expanded, at, end - begin);
	return expanded;
}

/* All partial sums of the step, folded: in `sums`, or where they are when there is one. */
static const float *fold_all(ls_exchange *x, int bucket, size_t begin, size_t end, ls_participant *part)
{
	const ls_round *round = &x->rounds[x->bucket[bucket].shard_step & 1];
	const ls_fold *fold = x->nodes == 1 ? &round->gather : &round->combine;

	if (x->o.library_sum)
		return ls_exchange_output(x, round, bucket, 0, begin);
	if (x->stale)
		return input_at(x, round, bucket, x->stale->bucket[bucket].worker, begin, end, part);
	for (int i = 0; i < fold->inputs; i++)
		part->inputs[i] =
			x->nodes == 1 ? source_at(x, round, i, begin) : input_at(x, round, bucket, i, begin, end, part);
	if (fold->inputs == 1)
		return part->inputs[0];
	ls_fold_run(fold, 0, part->inputs, end - begin, part->sums, part->scratch);
	return part->sums;
}

static float *summed_at(ls_exchange *x, int bucket, size_t begin)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	return x->summed + b->own_offset + (begin - b->begin);
}

static void apply(ls_exchange *x, int bucket, size_t begin, size_t end, const float *sums, int participant)
{
	const ls_bucket_state *b = &x->bucket[bucket];

	x->o.update(x->o.context, begin, end < x->plan.live || begin >= x->plan.extra_begin ? end : x->plan.live, sums,
		    participant);
	if (ls_exchange_is_bf16(x, bucket) && x->o.staleness == 0)
		ls_bf16_step(x->delta_out + b->own_offset + (begin - b->begin), x->o.params + begin,
			     x->o.master + begin, (end < x->plan.live ? end : x->plan.live) - begin);
}

/* The sums are kept, for what is left to be done with them. */
static void measure(ls_exchange *x, int bucket, size_t begin, size_t end, const float *sums, int participant)
{
	int round = x->bucket[bucket].rounds_done;
	const ls_figures *f = &x->figures[round];
	ls_measuring m = { .round = round,
			   .begin = begin,
			   .end = end < x->plan.live ? end : x->plan.live,
			   .sums = summed_at(x, bucket, begin),
			   .figures = f->all + f->at[ls_partition_block_at(&x->plan, begin)],
			   .participant = participant };

	if (sums != m.sums)
		memcpy(m.sums, sums, (end - begin) * sizeof(float));
	x->o.measure(x->o.context, &m);
}

static int is_to_measure(const ls_exchange *x, int bucket)
{
	return bucket < x->plan.buckets - 1 && x->bucket[bucket].rounds_done < x->o.rounds;
}

void ls_exchange_run_update(ls_exchange *x, int bucket, int unit, int participant)
{
	ls_bucket_state *b = &x->bucket[bucket];
	ls_participant *part = &x->part[participant];
	size_t begin = b->begin + (size_t)unit * x->plan.block;
	size_t end = begin + x->plan.block < b->end ? begin + x->plan.block : b->end;
	double start = x->o.act ? ls_clock_seconds() : 0, summed = 0;

	const float *sums = b->rounds_done > 0 ? summed_at(x, bucket, begin) : fold_all(x, bucket, begin, end, part);
	if (x->o.act)
		summed = ls_clock_seconds();
	if (is_to_measure(x, bucket))
		measure(x, bucket, begin, end, sums, participant);
	else
		apply(x, bucket, begin, end, sums, participant);
	if (x->o.act) {
		x->o.act(x->o.context, LS_ACT_COMBINE, participant, bucket, start, summed);
		x->o.act(x->o.context, LS_ACT_UPDATE, participant, bucket, summed, ls_clock_seconds());
	}
	if (ls_worklist_done(&x->update, bucket))
		ls_exchange_shard_summed(x, bucket);
}

void ls_exchange_publish_shard(ls_exchange *x, int bucket)
{
	const ls_bucket_state *b = &x->bucket[bucket];
	size_t units = (b->end - b->begin + x->plan.block - 1) / x->plan.block;
	ls_worklist_publish(&x->update, bucket, (int)units);
}

int ls_exchange_help(ls_exchange *x, int participant)
{
	int bucket, unit;
	if (!ls_worklist_take_any(&x->update, participant, &bucket, &unit))
		return 0;
	ls_exchange_run_update(x, bucket, unit, participant);
	return 1;
}
