/*
 * isa.h - the instruction set in use, and how one source becomes several.
 *
 * A file in a folder named simd/ is compiled once for each instruction set, with LS_ISA_SYMBOL(name) expanding to
 * name_generic, name_avx2 or name_avx512. It exports one constant table of functions; the module's dispatch selects the
 * table of ls_isa_get(). Such files are compiled without floating-point contraction surprises: what they sum, and in
 * which order, is written out in lanes.
 */
#ifndef LS_BASE_ISA_H
#define LS_BASE_ISA_H

#include <stddef.h>

#include "base/status.h"

typedef enum ls_isa { LS_ISA_GENERIC, LS_ISA_AVX2, LS_ISA_AVX512, LS_ISA_COUNT } ls_isa;

/* The best instruction set of this processor, or a lower one set by LOCKSTEP_ISA=generic|avx2|avx512; constant for the
 * process. */
ls_isa ls_isa_get(void);
const char *ls_isa_name(ls_isa isa);

/* Whether two instruction sets, by name, train to the same bits: avx2 and avx512 do (all sums have the same order and a
 * fused multiply-add per term, whichever kernels compute them), generic has no fused multiply-add and rounds twice. An
 * unknown name equals only itself. */
int ls_isa_same_bits(const char *a, const char *b);

/* The dispatch of a module: declare the tables of functions that its simd/ files export, and list them by ls_isa. On
 * processors other than x86-64 only the generic table is built; the others are NULL. */
#if defined(__x86_64__)
#define LS_ISA_DECLARE(type, name) extern const type name##_generic, name##_avx2, name##_avx512
#define LS_ISA_TABLES(name)                                                                                            \
	{                                                                                                              \
		&name##_generic, &name##_avx2, &name##_avx512                                                          \
	}
#else
#define LS_ISA_DECLARE(type, name) extern const type name##_generic
#define LS_ISA_TABLES(name)                                                                                            \
	{                                                                                                              \
		&name##_generic, NULL, NULL                                                                            \
	}
#endif

/* LOCKSTEP_ISA names an unknown set, or one this processor lacks: an error to show before any work starts. */
ls_status ls_isa_check(void);

#define LS_ISA_PASTE2(name, suffix) name##_##suffix
#define LS_ISA_PASTE(name, suffix) LS_ISA_PASTE2(name, suffix)
#define LS_ISA_SYMBOL(name) LS_ISA_PASTE(name, LS_ISA_SUFFIX) /* LS_ISA_SUFFIX comes from the build */

#endif
