/*
 * array_sum.c - the all-reduce of lockstep/exchange.h.
 *
 *     ls_allreduce_sum()
 *       exchange_headers()   sizes: all ranks want the same sum
 *       exchange_indices()   who has which contributions: each is there once
 *       plan_sums()          partial sums of every rank, and how the tree joins them
 *       add_own()            this rank's partial sums
 *       reduce_scatter()     to the owners of shards, and in the order of the tree into one
 *       all_gather()         the sums of all shards
 *
 * Invariants
 *  1. What is wrong with the arguments of one rank is known to all before anything of the arrays is sent: all fail, and
 *     no message is left under way.
 *  2. A rank sends at most one message to each other rank in each part, and waits for its own before the next: slot p
 *     is the message from rank p, slot ranks + p the one to it.
 *  3. Nothing waits longer than `timeout` without a message. After that the transport is abandoned, and memory that
 *     messages may still touch is not freed.
 *
 * Own partial sums lie by shards, so that what one owner gets is one message: those of shard s at begin(s) * partials,
 * one behind the other.
 */
#include "exchange/array_sum.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/options.h"
#include "exchange/tree.h"

#define DEFAULT_TIMEOUT 30.0
#define CONTRIBUTIONS_MOST (INT64_C(1) << 24)
enum { LINE = 16 }; /* floats: shards are whole cache lines */
enum { TAG_HEADER = 1, TAG_INDICES, TAG_PARTIALS, TAG_SUMS };

/* What a rank says about its call. */
typedef struct header {
	int64_t call; /* number of the call */
	int64_t floats, contributions, count;
	int64_t is_refused; /* its own arguments are wrong: it sends nothing more */
} header;

/* A partial sum of some rank. */
typedef struct piece {
	ls_partial partial;
	int rank, output; /* its number among the rank's */
} piece;

struct ls_allreduce {
	ls_transport *transport; /* NULL: alone */
	int rank, ranks;
	double timeout;
	int64_t calls;
	int is_broken;
	header *headers;           /* (ranks) */
	int *done;                 /* (slots) found by poll() */
	char *pending;             /* (slots) operations under way */
	int64_t *partials, *place; /* (ranks) partial sums, and where they lie in `received` */

	/* of the call under way, with room for the largest so far */
	int64_t room;         /* contributions */
	int64_t *indices;     /* (room) of all ranks, rank by rank */
	int *holder;          /* (room) which rank has it */
	const float **values; /* (room) own ones, by index; then those of `own` or `total` */
	const float **inputs; /* (room) */
	ls_partial *listed;   /* (room) */
	piece *pieces;        /* (room) */
	ls_fold own, total;   /* own contributions -> own partial sums; all partial sums -> the sum */
	float *packed, *received, *scratch;
	size_t packed_floats, received_floats, scratch_floats;
	ls_allreduce *next; /* of those that are broken */
};

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static ls_status break_down(ls_allreduce *a, ls_status status)
{
	a->is_broken = 1;
	if (a->transport->ops->abandon)
		a->transport->ops->abandon(a->transport);
	return status;
}

static ls_status send_to(ls_allreduce *a, int peer, int tag, const void *buffer, size_t bytes)
{
	if (bytes == 0)
		return LS_OK;
	ls_status status = a->transport->ops->send(a->transport, a->ranks + peer, peer, tag, buffer, bytes);
	a->pending[a->ranks + peer] = status == LS_OK;
	return status == LS_OK ? LS_OK : break_down(a, status);
}

static ls_status receive_from(ls_allreduce *a, int peer, int tag, void *buffer, size_t bytes)
{
	if (bytes == 0)
		return LS_OK;
	ls_status status = a->transport->ops->receive(a->transport, peer, peer, tag, buffer, bytes, NULL);
	a->pending[peer] = status == LS_OK;
	return status == LS_OK ? LS_OK : break_down(a, status);
}

static int count_pending(const ls_allreduce *a)
{
	int count = 0;
	for (int slot = 0; slot < 2 * a->ranks; slot++)
		count += a->pending[slot];
	return count;
}

/* "rank 3" or "ranks 1, 4, 5, ...": those a message is still expected of, or else to. */
static ls_status fail_silent(ls_allreduce *a, const char *what)
{
	char names[128] = "";
	int count = 0, shown = 0;

	for (int p = 0; p < a->ranks; p++) {
		if (!a->pending[p] && !a->pending[a->ranks + p])
			continue;
		if (count++ < 8)
			shown += snprintf(names + shown, sizeof(names) - (size_t)shown, "%s%d", shown ? ", " : "", p);
	}
	return break_down(
		a, ls_fail(LS_EPEER,
			   "all-reduce: rank%s %s%s did not take part in the %s within %g s; end the program with "
			   "MPI_Abort(), or give a longer options.timeout",
			   count == 1 ? "" : "s", names, count > 8 ? ", ..." : "", what, a->timeout));
}

/* Until all operations that were started are done. Naps get longer while nothing comes: ranks may share cores. */
static ls_status await_all(ls_allreduce *a, const char *what)
{
	double since = ls_clock_seconds(), nap = 0;

	while (count_pending(a) > 0) {
		int count = 0;
		ls_status status = a->transport->ops->poll(a->transport, a->done, 2 * a->ranks, &count);
		if (status != LS_OK)
			return break_down(a, status);
		for (int i = 0; i < count; i++)
			a->pending[a->done[i]] = 0;
		if (count > 0) {
			since = ls_clock_seconds();
			nap = 0;
			continue;
		}
		if (ls_clock_seconds() - since > a->timeout)
			return fail_silent(a, what);
		nap = nap < 1e-3 ? nap + 5e-6 : nap;
		a->transport->ops->nap(a->transport, nap);
	}
	return LS_OK;
}

/* ---- who has what ------------------------------------------------------------------------------------------------ */

static ls_status check_arguments(const ls_contribution *mine, int64_t count, int64_t contributions, const float *out,
				 size_t floats)
{
	if (contributions < 1 || contributions > CONTRIBUTIONS_MOST)
		return ls_fail(LS_EINVALID, "all-reduce: %lld contributions; there must be 1 to %lld",
			       (long long)contributions, (long long)CONTRIBUTIONS_MOST);
	if (count < 0 || count > contributions || (count > 0 && !mine))
		return ls_fail(LS_EINVALID, "all-reduce: this rank gives %lld of %lld contributions%s",
			       (long long)count, (long long)contributions,
			       count > 0 && !mine ? ", and `mine` is NULL" : "");
	if (floats > SIZE_MAX / sizeof(float) / (size_t)contributions / 2)
		return ls_fail(LS_EINVALID, "all-reduce: arrays of %zu floats are too large", floats);
	if (floats > 0 && !out)
		return ls_fail(LS_EINVALID, "all-reduce: `out` is NULL");
	for (int64_t i = 0; i < count; i++) {
		if (mine[i].index < 0 || mine[i].index >= contributions)
			return ls_fail(LS_EINVALID, "all-reduce: index %lld of contribution %lld is not in 0..%lld",
				       (long long)mine[i].index, (long long)i, (long long)contributions - 1);
		if (floats > 0 && !mine[i].values)
			return ls_fail(LS_EINVALID, "all-reduce: the values of contribution %lld are NULL",
				       (long long)mine[i].index);
	}
	return LS_OK;
}

static ls_status exchange_headers(ls_allreduce *a)
{
	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(receive_from(a, p, TAG_HEADER, &a->headers[p], sizeof(header)));
	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(send_to(a, p, TAG_HEADER, &a->headers[a->rank], sizeof(header)));
	return await_all(a, "first exchange");
}

static ls_status compare(int p, const char *what, int64_t first, int64_t other)
{
	if (first == other)
		return LS_OK;
	return ls_fail(LS_EMISMATCH,
		       "all-reduce: rank 0 sums %lld %s and rank %d %lld; all ranks must want the same sum",
		       (long long)first, what, p, (long long)other);
}

/* Every rank sees all headers, in the same order: all find the same mistake. */
static ls_status check_headers(const ls_allreduce *a)
{
	const header *first = &a->headers[0];

	for (int p = 0; p < a->ranks; p++) {
		const header *h = &a->headers[p];
		if (h->call != first->call)
			return ls_fail(LS_EMISMATCH, "all-reduce: rank 0 makes call %lld, rank %d call %lld",
				       (long long)first->call, p, (long long)h->call);
		if (h->is_refused && p != a->rank)
			return ls_fail(LS_EMISMATCH,
				       "all-reduce: the arguments of rank %d are not acceptable; its own "
				       "message says why",
				       p);
	}
	for (int p = 1; p < a->ranks; p++) {
		LS_TRY(compare(p, "floats", first->floats, a->headers[p].floats));
		LS_TRY(compare(p, "contributions", first->contributions, a->headers[p].contributions));
	}
	int64_t sum = 0;
	for (int p = 0; p < a->ranks; p++)
		sum += a->headers[p].count;
	if (sum != first->contributions)
		return ls_fail(LS_EMISMATCH, "all-reduce: all ranks together give %lld contributions of %lld",
			       (long long)sum, (long long)first->contributions);
	return LS_OK;
}

static ls_status exchange_indices(ls_allreduce *a, const ls_contribution *mine)
{
	int64_t at = 0, own = 0;

	for (int p = 0; p < a->rank; p++)
		own += a->headers[p].count;
	for (int64_t i = 0; i < a->headers[a->rank].count; i++)
		a->indices[own + i] = mine[i].index;
	for (int p = 0; p < a->ranks; p++) {
		size_t bytes = (size_t)a->headers[p].count * sizeof(int64_t);
		if (p != a->rank)
			LS_TRY(receive_from(a, p, TAG_INDICES, a->indices + at, bytes));
		at += a->headers[p].count;
	}
	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(send_to(a, p, TAG_INDICES, a->indices + own,
				       (size_t)a->headers[a->rank].count * sizeof(int64_t)));
	return await_all(a, "exchange of indices");
}

/* There are as many as there must be: none twice is none missing. */
static ls_status assign(ls_allreduce *a)
{
	int64_t contributions = a->headers[0].contributions, at = 0;

	for (int64_t i = 0; i < contributions; i++)
		a->holder[i] = -1;
	for (int p = 0; p < a->ranks; p++)
		for (int64_t i = 0; i < a->headers[p].count; i++) {
			int64_t index = a->indices[at++];
			if (index < 0 || index >= contributions)
				return ls_fail(LS_EMISMATCH, "all-reduce: rank %d gives contribution %lld of %lld", p,
					       (long long)index, (long long)contributions);
			if (a->holder[index] >= 0)
				return ls_fail(LS_EMISMATCH,
					       "all-reduce: contribution %lld is given twice, by ranks %d and %d",
					       (long long)index, a->holder[index], p);
			a->holder[index] = p;
		}
	return LS_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void release_plan(ls_allreduce *a)
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
	release_plan(a);
	a->indices = calloc(n, sizeof(*a->indices));
	a->holder = calloc(n, sizeof(*a->holder));
	a->values = calloc(n, sizeof(*a->values));
	a->inputs = calloc(n, sizeof(*a->inputs));
	a->listed = calloc(n, sizeof(*a->listed));
	a->pieces = calloc(n, sizeof(*a->pieces));
	int folds = fold_room(&a->own, n) & fold_room(&a->total, n);
	if (!a->indices || !a->holder || !a->values || !a->inputs || !a->listed || !a->pieces || !folds) {
		release_plan(a);
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
	int64_t a = ((const piece *)x)->partial.first, b = ((const piece *)y)->partial.first;
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
			a->pieces[count++] = (piece){ .partial = a->listed[i], .rank = p, .output = i };
	}
	qsort(a->pieces, (size_t)count, sizeof(*a->pieces), compare_pieces);
	for (int i = 0; i < count; i++)
		a->listed[i] = a->pieces[i].partial;
	ls_fold_make(&a->total, a->listed, count, contributions);
}

static ls_status reserve_sums(ls_allreduce *a)
{
	size_t shard = shard_floats(a, a->rank), others = 0;

	for (int p = 0; p < a->ranks; p++) {
		a->place[p] = (int64_t)others;
		others += p == a->rank ? 0 : (size_t)a->partials[p] * shard;
	}
	LS_TRY(reserve(&a->scratch, &a->scratch_floats, ls_fold_scratch(a->headers[0].contributions), "all-reduce"));
	LS_TRY(reserve(&a->packed, &a->packed_floats, (size_t)a->partials[a->rank] * (size_t)a->headers[0].floats,
		       "all-reduce: own partial sums"));
	return reserve(&a->received, &a->received_floats, others, "all-reduce: partial sums of other ranks");
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
			LS_TRY(receive_from(a, p, TAG_PARTIALS, a->received + a->place[p],
					    (size_t)a->partials[p] * shard * sizeof(float)));
	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(send_to(a, p, TAG_PARTIALS, packed_at(a, p, 0),
				       (size_t)a->partials[a->rank] * shard_floats(a, p) * sizeof(float)));
	LS_TRY(await_all(a, "reduce-scatter"));
	for (int i = 0; i < a->total.inputs; i++) {
		const piece *from = &a->pieces[i];
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
			LS_TRY(receive_from(a, p, TAG_SUMS, out + shard_begin(a, p),
					    shard_floats(a, p) * sizeof(float)));
	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(send_to(a, p, TAG_SUMS, out + shard_begin(a, a->rank),
				       shard_floats(a, a->rank) * sizeof(float)));
	return await_all(a, "all-gather");
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

/* All ranks know of all arguments, or none goes on. */
static ls_status agree(ls_allreduce *a, ls_status refused, const header *own, char *reason, size_t size)
{
	a->headers[a->rank] = *own;
	if (refused != LS_OK)
		snprintf(reason, size, "%s", ls_last_error());
	LS_TRY(exchange_headers(a));
	if (refused != LS_OK)
		return ls_fail(refused, "%s", reason);
	return check_headers(a);
}

ls_status ls_allreduce_sum(ls_allreduce *a, const ls_contribution *mine, int64_t count, int64_t contributions,
			   float *out, size_t floats)
{
	char reason[512];

	if (a->is_broken)
		return ls_fail(LS_EPEER, "all-reduce: an earlier call lost a rank; end the program and start it again");
	ls_status status = check_arguments(mine, count, contributions, out, floats);
	if (status == LS_OK)
		status = reserve_plan(a, contributions);
	header own = { .call = a->calls++,
		       .floats = (int64_t)floats,
		       .contributions = contributions,
		       .count = count,
		       .is_refused = status != LS_OK };
	LS_TRY(agree(a, status, &own, reason, sizeof(reason)));
	LS_TRY(exchange_indices(a, mine));
	LS_TRY(assign(a));
	plan_sums(a);
	status = reserve_sums(a);
	if (status != LS_OK) /* the others go on, and must not take what comes next for this call */
		return a->transport ? break_down(a, status) : status;
	if (floats == 0)
		return LS_OK;
	add_own(a, mine);
	LS_TRY(reduce_scatter(a, out));
	return all_gather(a, out);
}

/* ---- making and freeing ------------------------------------------------------------------------------------------ */

/* Objects that have lost a rank: messages may still be under way to their memory, so it stays until the program
 * ends. */
static _Atomic(ls_allreduce *) broken;

static void park(ls_allreduce *a)
{
	a->next = atomic_load(&broken);
	while (!atomic_compare_exchange_weak(&broken, &a->next, a))
		;
}

void ls_allreduce_free(ls_allreduce *a)
{
	if (!a)
		return;
	if (a->transport)
		a->transport->ops->free(a->transport);
	ls_floats_free(a->scratch, a->scratch_floats);
	free(a->place);
	free(a->partials);
	free(a->pending);
	free(a->done);
	if (a->is_broken) {
		park(a);
		return;
	}
	release_plan(a);
	ls_floats_free(a->packed, a->packed_floats);
	ls_floats_free(a->received, a->received_floats);
	free(a->headers);
	free(a);
}

ls_status ls_array_sum_over(ls_allreduce **out, ls_transport *transport, double timeout)
{
	ls_allreduce *a = calloc(1, sizeof(*a));
	size_t ranks = transport ? (size_t)transport->size : 1;

	if (!a) {
		if (transport)
			transport->ops->free(transport);
		return ls_fail(LS_EMEMORY, "all-reduce: no memory");
	}
	a->transport = transport;
	a->rank = transport ? transport->rank : 0;
	a->ranks = (int)ranks;
	a->timeout = timeout > 0 ? timeout : DEFAULT_TIMEOUT;
	a->headers = calloc(ranks, sizeof(*a->headers));
	a->done = calloc(2 * ranks, sizeof(*a->done));
	a->pending = calloc(2 * ranks, sizeof(*a->pending));
	a->partials = calloc(ranks, sizeof(*a->partials));
	a->place = calloc(ranks, sizeof(*a->place));
	if (!a->headers || !a->done || !a->pending || !a->partials || !a->place) {
		ls_allreduce_free(a);
		return ls_fail(LS_EMEMORY, "all-reduce: no memory for %zu ranks", ranks);
	}
	*out = a;
	return LS_OK;
}

static ls_status read_options(ls_allreduce_options *out, const ls_allreduce_options *given)
{
	*out = (ls_allreduce_options)LS_ALLREDUCE_OPTIONS_INIT;
	if (!given)
		return LS_OK;
	LS_TRY(LS_OPTIONS_TAKE(out, given, timeout, "LS_ALLREDUCE_OPTIONS_INIT"));
	if (!(out->timeout >= 0 && out->timeout <= 1e9))
		return ls_fail(LS_EINVALID, "options.timeout must be between 0 and 1e9 seconds, not %g", out->timeout);
	out->timeout = out->timeout > 0 ? out->timeout : DEFAULT_TIMEOUT;
	return LS_OK;
}

ls_status ls_allreduce_new(ls_allreduce **out, const ls_allreduce_options *options)
{
	ls_allreduce_options o;
	ls_transport *transport = NULL;

	LS_TRY(read_options(&o, options));
	LS_TRY(ls_mpi_transport_on(&transport, o.communicator, LS_ARRAY_SUM_SLOTS, o.timeout));
	return ls_array_sum_over(out, transport, o.timeout);
}

int ls_allreduce_rank(const ls_allreduce *reduce)
{
	return reduce->rank;
}

int ls_allreduce_ranks(const ls_allreduce *reduce)
{
	return reduce->ranks;
}
