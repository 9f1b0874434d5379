/*
 * backend.c - the table of backends.
 */
#include "backends/backend.h"

#include "base/isa.h"
#include "base/names.h"

static const ls_backend *const backends[] = { &ls_backend_cpu, &ls_backend_replay };

const ls_backend *ls_backend_at(size_t i)
{
	return i < sizeof(backends) / sizeof(backends[0]) ? backends[i] : NULL;
}

static const char *name_at(size_t i)
{
	return ls_backend_at(i) ? ls_backend_at(i)->name : NULL;
}

ls_status ls_backend_choose(const char *name, const ls_backend **out)
{
	size_t row = 0;

	if (name)
		LS_TRY(ls_name_find("backend", name, name_at, &row));
	LS_TRY(ls_isa_check());
	if (backends[row]->check)
		LS_TRY(backends[row]->check());
	*out = backends[row];
	return LS_OK;
}

size_t ls_backend_shared_grads(const ls_graph *graph, int64_t n)
{
	return graph->coupled || n <= LS_TILE ? ls_graph_shared_floats(graph) : 0;
}
