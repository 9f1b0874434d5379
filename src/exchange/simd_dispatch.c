/*
 * simd_dispatch.c - which table of sums this process uses.
 */
#include "base/isa.h"
#include "exchange/simd.h"

LS_ISA_DECLARE(ls_exchange_simd, ls_exchange_simd);

static const ls_exchange_simd *const tables[LS_ISA_COUNT] = LS_ISA_TABLES(ls_exchange_simd);

const ls_exchange_simd *ls_exchange_simd_of(int isa)
{
	return isa >= 0 && isa < LS_ISA_COUNT ? tables[isa] : NULL;
}

const ls_exchange_simd *ls_exchange_simd_get(void)
{
	return tables[ls_isa_get()];
}
