/*
 * isa.c - which instruction set this process uses.
 */
#include "base/isa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const char *const isa_names[LS_ISA_COUNT] = { "generic", "avx2", "avx512", "neon" };

static pthread_once_t looked = PTHREAD_ONCE_INIT, chose = PTHREAD_ONCE_INIT, asked_for_tiles = PTHREAD_ONCE_INIT;
static int isa_here[LS_ISA_COUNT]; /* this build and this processor have it */
static int amx_here;
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

#if defined(__x86_64__)

/* Registers that the operating system saves: bits 17 and 18 are the tiles' configuration and their data. */
static int saves_tiles(void)
{
	unsigned low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (low & 3u << 17) == 3u << 17;
}

/* A process has to ask for the tiles' data once; Linux before 5.16 does not know the question. */
static void ask_for_tiles(void)
{
	enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
	const unsigned has_xgetbv = 1u << 27, has_tiles = 1u << 24 | 1u << 22; /* AMX-TILE, AMX-BF16 */
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & has_xgetbv))
		return;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & has_tiles) != has_tiles)
		return;
#if defined(SYS_arch_prctl)
	amx_here = saves_tiles() && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#endif
}

#else

static void ask_for_tiles(void) {}

#endif

int ls_isa_has_amx(void)
{
	pthread_once(&asked_for_tiles, ask_for_tiles);
	return amx_here;
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
