/*
 * simd_dispatch.c - which table of kernels this process uses.
 */
#include "base/isa.h"
#include "kernels/simd.h"

LS_ISA_DECLARE(ls_simd, ls_simd_table);

static const ls_simd *const tables[LS_ISA_COUNT] = LS_ISA_TABLES(ls_simd_table);

const ls_simd *ls_simd_of(int isa)
{
	return isa >= 0 && isa < LS_ISA_COUNT ? tables[isa] : NULL;
}

const ls_simd *ls_simd_get(void)
{
	return tables[ls_isa_get()];
}
