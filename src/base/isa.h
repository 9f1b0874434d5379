/*
 * isa.h - the instruction set in use, and how one source becomes several.
 *
 * A file in a folder named simd/ is compiled once for each instruction set of the processor family, with
 * LS_ISA_SYMBOL(name) expanding to name_generic, name_avx2, name_avx512 or name_neon. It exports one constant table of
 * functions; the module's dispatch selects the table of ls_isa_get().
 *
 * All of them give the same bits. What such a file sums, and in which order, is written out in lanes; a multiply-add is
 * fused where the source says so and nowhere else (the compiler contracts nothing), and "generic" computes it exactly
 * where the processor has no such instruction (kernels/simd/fma.h).
 */
#ifndef LS_BASE_ISA_H
#define LS_BASE_ISA_H

#include <stddef.h>

#include "base/status.h"

typedef enum ls_isa { LS_ISA_GENERIC, LS_ISA_AVX2, LS_ISA_AVX512, LS_ISA_NEON, LS_ISA_COUNT } ls_isa;

/* The best instruction set of this processor, or the one that LOCKSTEP_ISA names; constant for the process. */
ls_isa ls_isa_get(void);
const char *ls_isa_name(ls_isa isa);

/* Whether this build and this processor have it. */
int ls_isa_has(int isa);

/* Whether this processor has AMX's tiles of bf16, and the operating system lets this process use them. */
int ls_isa_has_amx(void);

/* Whether fused multiply-adds are computed by other instructions: the same bits, many times slower. */
int ls_isa_is_emulated(ls_isa isa);

/* The dispatch of a module: declare the tables of functions that its simd/ files export, and list them by ls_isa. Those
 * of other families of processors are NULL. */
#if defined(__x86_64__)
#define LS_ISA_DECLARE(type, name) extern const type name##_generic, name##_avx2, name##_avx512
#define LS_ISA_TABLES(name)                                                                                            \
	{                                                                                                              \
		&name##_generic, &name##_avx2, &name##_avx512, NULL                                                    \
	}
#elif defined(__aarch64__)
#define LS_ISA_DECLARE(type, name) extern const type name##_generic, name##_neon
#define LS_ISA_TABLES(name)                                                                                            \
	{                                                                                                              \
		&name##_generic, NULL, NULL, &name##_neon                                                              \
	}
#else
#define LS_ISA_DECLARE(type, name) extern const type name##_generic
#define LS_ISA_TABLES(name)                                                                                            \
	{                                                                                                              \
		&name##_generic, NULL, NULL, NULL                                                                      \
	}
#endif

/* LOCKSTEP_ISA names an unknown set, or one this processor lacks: an error to show before any work starts. */
ls_status ls_isa_check(void);

#define LS_ISA_PASTE2(name, suffix) name##_##suffix
#define LS_ISA_PASTE(name, suffix) LS_ISA_PASTE2(name, suffix)
#define LS_ISA_SYMBOL(name) LS_ISA_PASTE(name, LS_ISA_SUFFIX) /* LS_ISA_SUFFIX comes from the build */

#endif
