/*
 * isa.c - which instruction set this process uses.
 */
#include "base/isa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *const isa_names[LS_ISA_COUNT] = { "generic", "avx2", "avx512" };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static ls_isa isa_best, isa_chosen;
static char isa_wish[32]; /* LOCKSTEP_ISA as it was at the first call */

#if defined(__x86_64__)
static ls_isa detect(void)
{
	__builtin_cpu_init();
	int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
	int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		     __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
		     __builtin_cpu_supports("avx512vl");
	return avx2 ? avx512 ? LS_ISA_AVX512 : LS_ISA_AVX2 : LS_ISA_GENERIC;
}
#else
static ls_isa detect(void)
{
	return LS_ISA_GENERIC;
}
#endif

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
	isa_best = isa_chosen = detect();
	if (!wish || !*wish)
		return;
	strncpy(isa_wish, wish, sizeof(isa_wish) - 1);
	if (named(isa_wish) <= isa_best)
		isa_chosen = named(isa_wish);
}

ls_isa ls_isa_get(void)
{
	pthread_once(&once, choose);
	return isa_chosen;
}

const char *ls_isa_name(ls_isa isa)
{
	return (unsigned)isa < LS_ISA_COUNT ? isa_names[isa] : "unknown";
}

static int is_fused(ls_isa isa)
{
	return isa == LS_ISA_AVX2 || isa == LS_ISA_AVX512;
}

int ls_isa_same_bits(const char *a, const char *b)
{
	return strcmp(a, b) == 0 || (is_fused(named(a)) && is_fused(named(b)));
}

ls_status ls_isa_check(void)
{
	pthread_once(&once, choose);
	if (!isa_wish[0])
		return LS_OK;
	if (named(isa_wish) == LS_ISA_COUNT)
		return ls_fail(LS_EINVALID, "LOCKSTEP_ISA=%s is unknown; known are generic, avx2 and avx512", isa_wish);
	if (named(isa_wish) > isa_best)
		return ls_fail(LS_EUNSUPPORTED, "LOCKSTEP_ISA=%s, but this processor has no more than %s", isa_wish,
			       isa_names[isa_best]);
	return LS_OK;
}
