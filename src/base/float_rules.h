/*
 * float_rules.h - how a thread rounds: to nearest, with subnormal numbers.
 *
 * This is how every thread of a process starts. But a library that was compiled with -ffast-math,
 * loaded into the program that trains, may have set its threads to flush subnormal numbers to zero, and
 * then their bits would be others.
 */
#ifndef LS_BASE_FLOAT_RULES_H
#define LS_BASE_FLOAT_RULES_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#define LS_FLOAT_RULES UINT64_C(0xe040) /* MXCSR: flush to zero, rounding mode, denormals are zeros */
#elif defined(__aarch64__)
#define LS_FLOAT_RULES UINT64_C(0x3c80003) /* FPCR: DN, FZ, RMode, FZ16, AH, FIZ */
#endif

/* The calling thread's rules as they were, for ls_float_rules_restore(); from now on they are the usual ones. */
static inline uint64_t ls_float_rules_set(void)
{
#if defined(__x86_64__)
	const uint64_t before = _mm_getcsr();
	if (before & LS_FLOAT_RULES)
		_mm_setcsr((unsigned)(before & ~LS_FLOAT_RULES));
	return before;
#elif defined(__aarch64__)
	uint64_t before;
	__asm__ volatile("mrs %0, fpcr" : "=r"(before));
	if (before & LS_FLOAT_RULES)
		__asm__ volatile("msr fpcr, %0" : : "r"(before & ~LS_FLOAT_RULES));
	return before;
#else
	return 0;
#endif
}

static inline void ls_float_rules_restore(uint64_t before)
{
#if defined(__x86_64__)
	if (before & LS_FLOAT_RULES)
		_mm_setcsr((unsigned)before);
#elif defined(__aarch64__)
	if (before & LS_FLOAT_RULES)
		__asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
	(void)before;
#endif
}

#endif
