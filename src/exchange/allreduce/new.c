/*
 * new.c - making and freeing an ls_allreduce.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/handles.h"
#include "base/memory.h"
#include "base/options.h"
#include "exchange/allreduce/state.h"

#define DEFAULT_TIMEOUT 30.0

/* Objects that have lost a rank: messages may still be under way to their memory, so it stays until the program
 * ends. */
static _Atomic(ls_allreduce *) broken;

static void park(ls_allreduce *a)
{
	a->next = atomic_load(&broken);
	while (!atomic_compare_exchange_weak(&broken, &a->next, a))
		;
}

static void release(ls_allreduce *a)
{
	if (a->transport)
		a->transport->ops->free(a->transport);
	ls_floats_free(a->scratch, a->scratch_floats);
	free(a->place);
	free(a->memory);
	free(a->partials);
	free(a->pending);
	free(a->done);
	if (a->is_broken) {
		park(a);
		return;
	}
	ls_allreduce_release_plan(a);
	ls_floats_free(a->packed, a->packed_floats);
	ls_floats_free(a->received, a->received_floats);
	free(a->out_of_memory);
	free(a->headers);
	free(a);
}

void ls_allreduce_free(ls_allreduce *a)
{
	if (a && ls_handle_remove(a, LS_ALLREDUCE_KIND))
		release(a);
}

ls_status ls_allreduce_over(ls_allreduce **out, ls_transport *transport, double timeout)
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
	a->memory = calloc(ranks, sizeof(*a->memory));
	a->out_of_memory = calloc(ranks, sizeof(*a->out_of_memory));
	ls_status status = ls_handle_add(a, LS_ALLREDUCE_KIND);
	if (status == LS_OK &&
	    (!a->headers || !a->done || !a->pending || !a->partials || !a->place || !a->memory || !a->out_of_memory)) {
		ls_handle_remove(a, LS_ALLREDUCE_KIND);
		status = ls_fail(LS_EMEMORY, "all-reduce: no memory for %zu ranks", ranks);
	}
	if (status == LS_OK)
		*out = a;
	else
		release(a);
	return status;
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

	LS_TRY(ls_argument_check(out, "out"));
	LS_TRY(read_options(&o, options));
	LS_TRY(ls_mpi_transport_on(&transport, o.communicator, LS_ALLREDUCE_SLOTS, o.timeout));
	return ls_allreduce_over(out, transport, o.timeout);
}

int ls_allreduce_rank(const ls_allreduce *reduce)
{
	return ls_handle_check(reduce, LS_ALLREDUCE_KIND) == LS_OK ? reduce->rank : -1;
}

int ls_allreduce_ranks(const ls_allreduce *reduce)
{
	return ls_handle_check(reduce, LS_ALLREDUCE_KIND) == LS_OK ? reduce->ranks : -1;
}
