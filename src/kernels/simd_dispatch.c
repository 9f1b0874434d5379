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

#if defined(__x86_64__)
extern const ls_bf16_kernels ls_bf16_native, ls_bf16_amx;

int ls_bf16_is_native(void)
{
	return ls_isa_get() == LS_ISA_AVX512 && __builtin_cpu_supports("avx512bf16");
}

int ls_bf16_amx_is_native(void)
{
	return ls_bf16_is_native() && ls_isa_has_amx(); /* which rounds with AVX512-BF16 */
}

const ls_bf16_kernels *ls_bf16_get(void)
{
	return ls_bf16_is_native() ? &ls_bf16_native : &ls_simd_get()->bf16;
}

const ls_bf16_kernels *ls_bf16_amx_get(void)
{
	return ls_bf16_amx_is_native() ? &ls_bf16_amx : &ls_simd_get()->bf16_amx;
}
#else
int ls_bf16_is_native(void)
{
	return 0;
}

int ls_bf16_amx_is_native(void)
{
	return 0;
}

const ls_bf16_kernels *ls_bf16_get(void)
{
	return &ls_simd_get()->bf16;
}

const ls_bf16_kernels *ls_bf16_amx_get(void)
{
	return &ls_simd_get()->bf16_amx;
}
#endif
