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

ls_status ls_backend_find(const char *name, const ls_backend **out)
{
	size_t row;
	LS_TRY(ls_name_find("backend", name, name_at, &row));
	*out = backends[row];
	return LS_OK;
}

ls_status ls_backend_check(const ls_backend *backend)
{
	LS_TRY(ls_isa_check());
	return backend->check ? backend->check() : LS_OK;
}
