/*
 * dispatch.c - which table of loops this process uses.
 */
#include "base/isa.h"
#include "optim/simd.h"

LS_ISA_DECLARE(ls_optim_simd, ls_optim_simd);

static const ls_optim_simd *const tables[LS_ISA_COUNT] = LS_ISA_TABLES(ls_optim_simd);

const ls_optim_simd *ls_optim_simd_of(int isa)
{
	return isa >= 0 && isa < LS_ISA_COUNT ? tables[isa] : NULL;
}

const ls_optim_simd *ls_optim_simd_get(void)
{
	return tables[ls_isa_get()];
}
