/*
 * isa.c - which instruction set this process uses.
 */
#include "base/isa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *const isa_names[LS_ISA_COUNT] = { "generic", "avx2", "avx512", "neon" };

static pthread_once_t looked = PTHREAD_ONCE_INIT, chose = PTHREAD_ONCE_INIT;
static int isa_here[LS_ISA_COUNT]; /* this build and this processor have it */
static ls_isa isa_best, isa_chosen;
static char isa_wish[32]; /* LOCKSTEP_ISA as it was at the first call */

static void detect(void)
{
	isa_here[LS_ISA_GENERIC] = 1;
#if defined(__x86_64__)
	__builtin_cpu_init();
	isa_here[LS_ISA_AVX2] =
		__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
	isa_here[LS_ISA_AVX512] = isa_here[LS_ISA_AVX2] && __builtin_cpu_supports("avx512f") &&
				  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
				  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#elif defined(__aarch64__)
	isa_here[LS_ISA_NEON] = 1;
#endif
	for (int isa = 0; isa < LS_ISA_COUNT; isa++)
		if (isa_here[isa])
			isa_best = (ls_isa)isa;
}

static ls_isa named(const char *name)
{
	int isa = 0;
	while (isa < LS_ISA_COUNT && strcmp(name, isa_names[isa]) != 0)
		isa++;
	return (ls_isa)isa;
}

static void choose(void)
{
	const char *wish = getenv("LOCKSTEP_ISA");
	pthread_once(&looked, detect);
	isa_chosen = isa_best;
	if (!wish || !*wish)
		return;
	strncpy(isa_wish, wish, sizeof(isa_wish) - 1);
	if (ls_isa_has(named(isa_wish)))
		isa_chosen = named(isa_wish);
}

ls_isa ls_isa_get(void)
{
	pthread_once(&chose, choose);
	return isa_chosen;
}

int ls_isa_has(int isa)
{
	pthread_once(&looked, detect);
	return isa >= 0 && isa < LS_ISA_COUNT && isa_here[isa];
}

const char *ls_isa_name(ls_isa isa)
{
	return (unsigned)isa < LS_ISA_COUNT ? isa_names[isa] : "unknown";
}

int ls_isa_is_emulated(ls_isa isa)
{
#if defined(__FP_FAST_FMAF)
	(void)isa;
	return 0;
#else
	return isa == LS_ISA_GENERIC;
#endif
}

ls_status ls_isa_check(void)
{
	pthread_once(&chose, choose);
	if (!isa_wish[0])
		return LS_OK;
	if (named(isa_wish) == LS_ISA_COUNT)
		return ls_fail(LS_EINVALID, "LOCKSTEP_ISA=%s is unknown; known are generic, avx2, avx512 and neon",
			       isa_wish);
	if (!ls_isa_has(named(isa_wish)))
		return ls_fail(LS_EUNSUPPORTED, "LOCKSTEP_ISA=%s, but the best that this processor has is %s", isa_wish,
			       isa_names[isa_best]);
	return LS_OK;
}
