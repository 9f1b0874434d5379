/*
 * messages.c - the messages of an all-reduce, and giving up on ranks that are silent.
 */
#include <stdio.h>

#include "base/clock.h"
#include "exchange/allreduce/state.h"

ls_status ls_allreduce_break_down(ls_allreduce *a, ls_status status)
{
	a->is_broken = 1;
	if (a->transport->ops->abandon)
		a->transport->ops->abandon(a->transport);
	return status;
}

ls_status ls_allreduce_send(ls_allreduce *a, int peer, int tag, const void *buffer, size_t bytes)
{
	if (bytes == 0)
		return LS_OK;
	ls_status status = a->transport->ops->send(a->transport, a->ranks + peer, peer, tag, buffer, bytes);
	a->pending[a->ranks + peer] = status == LS_OK;
	return status == LS_OK ? LS_OK : ls_allreduce_break_down(a, status);
}

ls_status ls_allreduce_receive(ls_allreduce *a, int peer, int tag, void *buffer, size_t bytes)
{
	if (bytes == 0)
		return LS_OK;
	ls_status status = a->transport->ops->receive(a->transport, peer, peer, tag, buffer, bytes, NULL);
	a->pending[peer] = status == LS_OK;
	return status == LS_OK ? LS_OK : ls_allreduce_break_down(a, status);
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
	return ls_allreduce_break_down(
		a, ls_fail(LS_EPEER,
			   "all-reduce: rank%s %s%s did not take part in the %s within %g s; end the program with "
			   "MPI_Abort(), or give a longer options.timeout",
			   count == 1 ? "" : "s", names, count > 8 ? ", ..." : "", what, a->timeout));
}

/* Naps get longer while nothing comes: ranks may share cores. */
ls_status ls_allreduce_await(ls_allreduce *a, const char *what)
{
	double since = ls_clock_seconds(), nap = 0;

	while (count_pending(a) > 0) {
		int count = 0;
		ls_status status = a->transport->ops->poll(a->transport, a->done, 2 * a->ranks, &count);
		if (status != LS_OK)
			return ls_allreduce_break_down(a, status);
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
