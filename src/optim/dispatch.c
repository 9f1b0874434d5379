/*
 * dispatch.c - which instruction set's loops are used.
 */
#include "base/isa.h"
#include "optim/simd.h"

extern const ls_optim_simd ls_optim_simd_generic;
#ifdef __x86_64__
extern const ls_optim_simd ls_optim_simd_avx2, ls_optim_simd_avx512;
#endif

static const ls_optim_simd *const tables[LS_ISA_COUNT] = {
	[LS_ISA_GENERIC] = &ls_optim_simd_generic,
#ifdef __x86_64__
	[LS_ISA_AVX2] = &ls_optim_simd_avx2,
	[LS_ISA_AVX512] = &ls_optim_simd_avx512,
#endif
};

const ls_optim_simd *ls_optim_simd_of(int isa)
{
	return isa >= 0 && isa < LS_ISA_COUNT ? tables[isa] : NULL;
}

const ls_optim_simd *ls_optim_simd_get(void)
{
	return tables[ls_isa_get()];
}
