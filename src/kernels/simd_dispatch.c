/* simd_dispatch.c - which table of kernels this process uses. */
#include <stddef.h>

#include "base/isa.h"
#include "kernels/simd.h"

extern const ls_simd ls_simd_table_generic;
#if defined(__x86_64__)
extern const ls_simd ls_simd_table_avx2, ls_simd_table_avx512;
#endif

const ls_simd *ls_simd_of(int isa)
{
	switch (isa) {
	case LS_ISA_GENERIC:
		return &ls_simd_table_generic;
#if defined(__x86_64__)
	case LS_ISA_AVX2:
		return &ls_simd_table_avx2;
	case LS_ISA_AVX512:
		return &ls_simd_table_avx512;
#endif
	default:
		return NULL;
	}
}

const ls_simd *ls_simd_get(void)
{
	return ls_simd_of((int)ls_isa_get());
}
