/*
 * allreduce.c - the all-reduce of lockstep/exchange.h: of any program's arrays. That of gradients is
 * strategies/allreduce.c.
 *
 *     ls_allreduce_sum()
 *       ls_allreduce_agree()    sizes: all ranks want the same sum           (agree.c)
 *       ls_allreduce_assign()   who has which contributions: each is there once
 *       plan_sums()             partial sums of every rank, and how the tree joins them
 *       reserve_sums()          memory for them, on all ranks or on none
 *       add_own()               this rank's partial sums
 *       reduce_scatter()        to the owners of shards, and in the order of the tree into one
 *       all_gather()            the sums of all shards
 *
 * Invariants
 *  1. What is wrong with the arguments of one rank, and that it is out of memory, is known to all before anything of
 *     the arrays is sent: all fail, and no message is left under way.
 *  2. A rank sends at most one message to each other rank in each part, and waits for its own before the next: slot p
 *     is the message from rank p, slot ranks + p the one to it.
 *  3. Nothing waits longer than `timeout` without a message. After that the transport is abandoned, and memory that
 *     messages may still touch is not freed.
 *
 * Own partial sums lie by shards, so that what one owner gets is one message: those of shard s at begin(s) * partials,
 * one behind the other.
 */
#include <stdlib.h>

#include "base/handles.h"
#include "base/memory.h"
#include "exchange/allreduce/state.h"

enum { LINE = 16 }; /* floats: shards are whole cache lines */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

void ls_allreduce_release_plan(ls_allreduce *a)
{
	free(a->indices);
	free(a->holder);
	free(a->values);
	free(a->inputs);
	free(a->listed);
	free(a->pieces);
	free(a->own.joins);
	free(a->own.begin);
	free(a->own.partial);
	free(a->total.joins);
	free(a->total.begin);
	free(a->total.partial);
	a->indices = NULL;
	a->holder = NULL;
	a->values = a->inputs = NULL;
	a->listed = NULL;
	a->pieces = NULL;
	a->own = a->total = (ls_fold){ 0 };
	a->room = 0;
}

static int fold_room(ls_fold *fold, size_t n)
{
	fold->joins = calloc(n, sizeof(*fold->joins));
	fold->begin = calloc(n + 1, sizeof(*fold->begin));
	fold->partial = calloc(n, sizeof(*fold->partial));
	return fold->joins && fold->begin && fold->partial;
}

static ls_status reserve_plan(ls_allreduce *a, int64_t contributions)
{
	size_t n = (size_t)contributions;

	if (contributions <= a->room)
		return LS_OK;
	ls_allreduce_release_plan(a);
	a->indices = calloc(n, sizeof(*a->indices));
	a->holder = calloc(n, sizeof(*a->holder));
	a->values = calloc(n, sizeof(*a->values));
	a->inputs = calloc(n, sizeof(*a->inputs));
	a->listed = calloc(n, sizeof(*a->listed));
	a->pieces = calloc(n, sizeof(*a->pieces));
	int folds = fold_room(&a->own, n) & fold_room(&a->total, n);
	if (!a->indices || !a->holder || !a->values || !a->inputs || !a->listed || !a->pieces || !folds) {
		ls_allreduce_release_plan(a);
		return ls_fail(LS_EMEMORY, "all-reduce: no memory for the sums of %lld contributions",
			       (long long)contributions);
	}
	a->room = contributions;
	return LS_OK;
}

static ls_status reserve(float **floats, size_t *have, size_t wanted, const char *what)
{
	if (wanted <= *have)
		return LS_OK;
	ls_floats_free(*floats, *have);
	*floats = NULL;
	*have = 0;
	LS_TRY(ls_floats_new(floats, wanted, what));
	*have = wanted;
	return LS_OK;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Where rank p's shard begins; of p = ranks, where all end. */
static size_t shard_begin(const ls_allreduce *a, int p)
{
	size_t floats = (size_t)a->headers[0].floats, lines = (floats + LINE - 1) / LINE;
	size_t ranks = (size_t)a->ranks, at = lines / ranks * (size_t)p + lines % ranks * (size_t)p / ranks;

	return at * LINE < floats ? at * LINE : floats;
}

static size_t shard_floats(const ls_allreduce *a, int p)
{
	return shard_begin(a, p + 1) - shard_begin(a, p);
}

static int compare_pieces(const void *x, const void *y)
{
	int64_t a = ((const ls_allreduce_piece *)x)->partial.first, b = ((const ls_allreduce_piece *)y)->partial.first;
	return (a > b) - (a < b);
}

/* The largest partial sums of every rank, in the order of the tree. */
static void plan_sums(ls_allreduce *a)
{
	int64_t contributions = a->headers[0].contributions;
	int count = 0, own = 0;

	for (int64_t i = 0; i < contributions; i++)
		if (a->holder[i] == a->rank)
			a->listed[own++] = ls_partial_leaf(i, contributions);
	ls_fold_make(&a->own, a->listed, own, contributions);
	for (int p = 0; p < a->ranks; p++) {
		a->partials[p] = ls_partial_list(a->holder, contributions, p, a->listed, contributions);
		for (int i = 0; i < a->partials[p]; i++)
			a->pieces[count++] = (ls_allreduce_piece){ .partial = a->listed[i], .rank = p, .output = i };
	}
	qsort(a->pieces, (size_t)count, sizeof(*a->pieces), compare_pieces);
	for (int i = 0; i < count; i++)
		a->listed[i] = a->pieces[i].partial;
	ls_fold_make(&a->total, a->listed, count, contributions);
}

/* Where partial sums of other ranks go. */
static void place_partials(ls_allreduce *a)
{
	size_t shard = shard_floats(a, a->rank), at = 0;

	for (int p = 0; p < a->ranks; p++) {
		a->place[p] = (int64_t)at;
		at += p == a->rank ? 0 : (size_t)a->partials[p] * shard;
	}
}

static ls_allreduce_memory memory_of(const ls_allreduce *a, int p)
{
	size_t others = 0;

	for (int q = 0; q < a->ranks; q++)
		others += q == p ? 0 : (size_t)a->partials[q];
	return (ls_allreduce_memory){ .scratch = ls_fold_scratch(a->headers[0].contributions),
				      .packed = (size_t)a->partials[p] * (size_t)a->headers[0].floats,
				      .received = others * shard_floats(a, p) };
}

static int is_more(ls_allreduce_memory wanted, ls_allreduce_memory have)
{
	return wanted.scratch > have.scratch || wanted.packed > have.packed || wanted.received > have.received;
}

static ls_status reserve_own(ls_allreduce *a, ls_allreduce_memory wanted)
{
	LS_TRY(reserve(&a->scratch, &a->scratch_floats, wanted.scratch, "all-reduce"));
	LS_TRY(reserve(&a->packed, &a->packed_floats, wanted.packed, "all-reduce: own partial sums"));
	return reserve(&a->received, &a->received_floats, wanted.received, "all-reduce: partial sums of other ranks");
}

/* What is allocated follows from the calls so far, which all ranks have made: all know whether one of them needs more
 * now, and ask each other only then whether it got it. */
static ls_status reserve_sums(ls_allreduce *a)
{
	int grows = 0;

	for (int p = 0; p < a->ranks; p++)
		grows |= is_more(memory_of(a, p), a->memory[p]);
	if (!grows)
		return LS_OK;
	ls_status status = ls_allreduce_agree_on_memory(a, reserve_own(a, memory_of(a, a->rank)));
	for (int p = 0; p < a->ranks; p++) {
		ls_allreduce_memory *have = &a->memory[p], more = memory_of(a, p);
		if (status != LS_OK) { /* a rank that failed has less than before: ask again next time */
			*have = (ls_allreduce_memory){ 0 };
			continue;
		}
		have->scratch = more.scratch > have->scratch ? more.scratch : have->scratch;
		have->packed = more.packed > have->packed ? more.packed : have->packed;
		have->received = more.received > have->received ? more.received : have->received;
	}
	return status;
}

/* Own partial sum j of shard s. */
static float *packed_at(const ls_allreduce *a, int s, int64_t j)
{
	return a->packed + shard_begin(a, s) * (size_t)a->partials[a->rank] + (size_t)j * shard_floats(a, s);
}

static void add_own(ls_allreduce *a, const ls_contribution *mine)
{
	int inputs = 0;

	for (int64_t i = 0; i < a->headers[a->rank].count; i++)
		a->values[mine[i].index] = mine[i].values;
	for (int64_t i = 0; i < a->headers[0].contributions; i++)
		if (a->holder[i] == a->rank)
			a->inputs[inputs++] = a->values[i];
	for (int s = 0; s < a->ranks; s++) {
		for (int i = 0; i < inputs; i++)
			a->values[i] = a->inputs[i] + shard_begin(a, s);
		for (int j = 0; j < a->own.outputs; j++)
			ls_fold_run(&a->own, j, a->values, shard_floats(a, s), packed_at(a, s, j), a->scratch);
	}
}

static ls_status reduce_scatter(ls_allreduce *a, float *out)
{
	size_t shard = shard_floats(a, a->rank);

	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(ls_allreduce_receive(a, p, LS_ALLREDUCE_TAG_PARTIALS, a->received + a->place[p],
						    (size_t)a->partials[p] * shard * sizeof(float)));
	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(ls_allreduce_send(a, p, LS_ALLREDUCE_TAG_PARTIALS, packed_at(a, p, 0),
						 (size_t)a->partials[a->rank] * shard_floats(a, p) * sizeof(float)));
	LS_TRY(ls_allreduce_await(a, "reduce-scatter"));
	for (int i = 0; i < a->total.inputs; i++) {
		const ls_allreduce_piece *from = &a->pieces[i];
		a->inputs[i] = from->rank == a->rank
				       ? packed_at(a, a->rank, from->output)
				       : a->received + a->place[from->rank] + (size_t)from->output * shard;
	}
	ls_fold_run(&a->total, 0, a->inputs, shard, out + shard_begin(a, a->rank), a->scratch);
	return LS_OK;
}

static ls_status all_gather(ls_allreduce *a, float *out)
{
	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(ls_allreduce_receive(a, p, LS_ALLREDUCE_TAG_SUMS, out + shard_begin(a, p),
						    shard_floats(a, p) * sizeof(float)));
	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(ls_allreduce_send(a, p, LS_ALLREDUCE_TAG_SUMS, out + shard_begin(a, a->rank),
						 shard_floats(a, a->rank) * sizeof(float)));
	return ls_allreduce_await(a, "all-gather");
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

ls_status ls_allreduce_sum(ls_allreduce *a, const ls_contribution *mine, int64_t count, int64_t contributions,
			   float *out, size_t floats)
{
	LS_TRY(ls_handle_check(a, LS_ALLREDUCE_KIND));
	if (a->is_broken)
		return ls_fail(LS_EPEER, "all-reduce: an earlier call lost a rank; end the program and start it again");
	ls_status status = ls_allreduce_check(mine, count, contributions, out, floats);
	if (status == LS_OK)
		status = reserve_plan(a, contributions);
	ls_allreduce_header own = { .call = a->calls++,
				    .floats = (int64_t)floats,
				    .contributions = contributions,
				    .count = count,
				    .refused = status };
	LS_TRY(ls_allreduce_agree(a, status, &own));
	LS_TRY(ls_allreduce_assign(a, mine));
	plan_sums(a);
	place_partials(a);
	LS_TRY(reserve_sums(a));
	if (floats == 0)
		return LS_OK;
	add_own(a, mine);
	LS_TRY(reduce_scatter(a, out));
	return all_gather(a, out);
}
