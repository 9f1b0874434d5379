/*
 * agree.c - before anything is summed: all ranks want the same sum, every contribution is there once, and all ranks
 * have the memory.
 */
#include <stdio.h>

#include "exchange/allreduce/state.h"

#define CONTRIBUTIONS_MOST (INT64_C(1) << 24)

ls_status ls_allreduce_check(const ls_contribution *mine, int64_t count, int64_t contributions, const float *out,
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

/* Every rank has its own of `all`, (ranks) of `bytes` each, and gets the others'. */
static ls_status exchange(ls_allreduce *a, int tag, void *all, size_t bytes, const char *what)
{
	char *at = all;

	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(ls_allreduce_receive(a, p, tag, at + (size_t)p * bytes, bytes));
	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(ls_allreduce_send(a, p, tag, at + (size_t)a->rank * bytes, bytes));
	return ls_allreduce_await(a, what);
}

static ls_status fail_without_memory(int p)
{
	return ls_fail(LS_EMEMORY, "all-reduce: rank %d has not enough memory; its own message says for what", p);
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
	const ls_allreduce_header *first = &a->headers[0];

	for (int p = 0; p < a->ranks; p++) {
		const ls_allreduce_header *h = &a->headers[p];
		if (h->call != first->call)
			return ls_fail(LS_EMISMATCH, "all-reduce: rank 0 makes call %lld, rank %d call %lld",
				       (long long)first->call, p, (long long)h->call);
		if (h->refused == LS_EMEMORY && p != a->rank)
			return fail_without_memory(p);
		if (h->refused != LS_OK && p != a->rank)
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
			LS_TRY(ls_allreduce_receive(a, p, LS_ALLREDUCE_TAG_INDICES, a->indices + at, bytes));
		at += a->headers[p].count;
	}
	for (int p = 0; p < a->ranks; p++)
		if (p != a->rank)
			LS_TRY(ls_allreduce_send(a, p, LS_ALLREDUCE_TAG_INDICES, a->indices + own,
						 (size_t)a->headers[a->rank].count * sizeof(int64_t)));
	return ls_allreduce_await(a, "exchange of indices");
}

/* There are as many as there must be: none twice is none missing. */
ls_status ls_allreduce_assign(ls_allreduce *a, const ls_contribution *mine)
{
	int64_t contributions = a->headers[0].contributions, at = 0;

	LS_TRY(exchange_indices(a, mine));
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

ls_status ls_allreduce_agree(ls_allreduce *a, ls_status refused, const ls_allreduce_header *own)
{
	char reason[512] = "";

	a->headers[a->rank] = *own;
	if (refused != LS_OK)
		snprintf(reason, sizeof(reason), "%s", ls_last_error());
	LS_TRY(exchange(a, LS_ALLREDUCE_TAG_HEADER, a->headers, sizeof(*a->headers), "first exchange"));
	if (refused != LS_OK)
		return ls_fail(refused, "%s", reason);
	return check_headers(a);
}

ls_status ls_allreduce_agree_on_memory(ls_allreduce *a, ls_status reserved)
{
	char reason[512] = "";

	a->out_of_memory[a->rank] = reserved != LS_OK;
	if (reserved != LS_OK)
		snprintf(reason, sizeof(reason), "%s", ls_last_error());
	LS_TRY(exchange(a, LS_ALLREDUCE_TAG_MEMORY, a->out_of_memory, sizeof(*a->out_of_memory), "check for memory"));
	if (reserved != LS_OK)
		return ls_fail(reserved, "%s", reason);
	for (int p = 0; p < a->ranks; p++)
		if (a->out_of_memory[p])
			return fail_without_memory(p);
	return LS_OK;
}
