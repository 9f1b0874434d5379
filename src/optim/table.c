/*
 * table.c - the table of optimizers, from the list in table.h: a new optimizer is a line there and a file of
 * optimizers/.
 */
#include "optim/table.h"

#include <string.h>

#include "base/names.h"

#define DECLARE(name) LS_ISA_DECLARE(ls_optimizer_kind, ls_optimizer_##name);
LS_OPTIMIZERS(DECLARE)

/* A row of each optimizer for each instruction set. */
#define ROWS(name) LS_ISA_TABLES(ls_optimizer_##name),
static const ls_optimizer_kind *const kinds[][LS_ISA_COUNT] = { LS_OPTIMIZERS(ROWS) };

const ls_optimizer_kind *ls_optimizer_of(int isa, size_t i)
{
	return i < sizeof(kinds) / sizeof(*kinds) && isa >= 0 && isa < LS_ISA_COUNT ? kinds[i][isa] : NULL;
}

const ls_optimizer_kind *ls_optimizer_at(size_t i)
{
	return ls_optimizer_of((int)ls_isa_get(), i);
}

const char *ls_optimizer_name_at(size_t i)
{
	const ls_optimizer_kind *kind = ls_optimizer_at(i);
	return kind ? kind->name : NULL;
}

ls_status ls_optimizer_find(const char *name, const ls_optimizer_kind **out)
{
	size_t row;
	LS_TRY(ls_name_find("optimizer", name, ls_optimizer_name_at, &row));
	*out = ls_optimizer_at(row);
	return LS_OK;
}

const double *ls_optimizer_default(const char *optimizer, const char *hyper)
{
	const ls_optimizer_kind *kind = ls_optimizer_at(ls_name_row(optimizer, ls_optimizer_name_at));
	for (int i = 0; kind && i < LS_HYPERS_MAX && kind->hypers[i].name; i++)
		if (strcmp(kind->hypers[i].name, hyper) == 0)
			return &kind->hypers[i].value;
	return NULL;
}
