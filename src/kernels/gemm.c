/*
 * gemm.c - choose the implementation of a small product: libxsmm's generated code or the portable kernel.
 *
 * libxsmm is column-major, we are row-major, so the operands swap: m = cols, n = rows, k = depth with A = w and B = x.
 * The transposed form asks for B transposed. Its batch-reduce entry points crash or slow down on AVX2 in Debian's 1.17,
 * so callers loop over plain products that accumulate.
 */
#include "kernels/gemm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/thread.h"
#include "kernels/simd.h"

#ifdef LS_HAVE_XSMM
#include <libxsmm.h>
#endif

static const char *backend_at(size_t i)
{
	static const char *const names[] = { "xsmm", "portable" };
	return i < 2 ? names[i] : NULL;
}

static int xsmm_usable(void)
{
#ifdef LS_HAVE_XSMM
	return ls_isa_get() == LS_ISA_AVX2 || ls_isa_get() == LS_ISA_AVX512;
#else
	return 0;
#endif
}

/* What LOCKSTEP_KERNELS asks for; NULL when it is unset or empty. */
static const char *backend_asked(void)
{
	const char *asked = getenv("LOCKSTEP_KERNELS");
	return asked && *asked != '\0' ? asked : NULL;
}

static int xsmm_wanted(void)
{
	const char *asked = backend_asked();
	return xsmm_usable() && (!asked || strcmp(asked, "portable") != 0);
}

const char *ls_gemm_backend(void)
{
	return backend_at(xsmm_wanted() ? 0 : 1);
}

ls_status ls_gemm_check(void)
{
	const char *asked = backend_asked();
	if (!asked || strcmp(asked, "portable") == 0)
		return LS_OK;
	if (strcmp(asked, "xsmm") != 0)
		return ls_fail_context(ls_name_unknown("kernel backend", asked, backend_at), "LOCKSTEP_KERNELS");
	if (!xsmm_usable())
		return ls_fail(LS_EUNSUPPORTED,
			       "LOCKSTEP_KERNELS=xsmm: libxsmm is not in this build or instruction set '%s' is too old "
			       "for it; use LOCKSTEP_KERNELS=portable",
			       ls_isa_name(ls_isa_get()));
	return LS_OK;
}

static void run_portable(const ls_gemm *gemm, const float *x, const float *w, float *y)
{
	ls_simd_get()->gemm(&gemm->shape, x, w, y);
}

#ifdef LS_HAVE_XSMM
static void run_jit(const ls_gemm *gemm, const float *x, const float *w, float *y)
{
	gemm->jit(w, x, y);
}

/* Addresses that libxsmm takes for its table of kernels, with some to spare. Where it cannot have them it crashes. */
#define XSMM_ADDRESSES ((uint64_t)16 << 20)

static atomic_int xsmm_started;

/* libxsmm generates for the processor it finds; hold it to the instruction set this run has agreed on. */
static void xsmm_start(void)
{
	libxsmm_init();
	atomic_store(&xsmm_started, 1);
	if (ls_isa_get() == LS_ISA_AVX2)
		libxsmm_set_target_archid(LIBXSMM_X86_AVX2);
}

static void start_once(void *unused)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)unused;
	pthread_once(&once, xsmm_start);
}

static ls_status check_addresses(void)
{
	ls_memory_limit limit = ls_memory_addresses();
	char name[64];

	if (atomic_load(&xsmm_started) || limit.left >= XSMM_ADDRESSES)
		return LS_OK;
	return ls_fail(LS_EMEMORY,
		       "libxsmm needs %d MB of address space, more than the limit leaves (%s): raise it, "
		       "or set LOCKSTEP_KERNELS=portable",
		       (int)(XSMM_ADDRESSES >> 20), ls_memory_limit_name(&limit, name, sizeof(name)));
}
#endif

ls_status ls_gemm_start(void)
{
#ifdef LS_HAVE_XSMM
	if (xsmm_wanted()) {
		LS_TRY(check_addresses());
		return ls_thread_call_deep(start_once, NULL);
	}
#endif
	return LS_OK;
}

#ifdef LS_HAVE_XSMM
/*
 * For a product this small libxsmm 1.17 splits a sum over several registers to keep its pipeline busy, so bits would
 * depend on how the result is cut. All other shapes sum in index order (tests/unit/kernels/test_gemm.c checks).
 */
static int sums_in_order(const ls_gemm_shape *s)
{
	return s->cols > 16 || (s->transposed ? s->depth : s->rows) >= 12;
}

/* libxsmm builds code in 128 kB on the stack: more than `ulimit -s` may leave. */
static void build_jit(void *context)
{
	ls_gemm *gemm = context;
	const ls_gemm_shape *s = &gemm->shape;
	const float one = 1, beta = s->accumulate ? 1 : 0;
	const int flags = s->transposed ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
	const int n = s->transposed ? s->depth : s->rows, k = s->transposed ? s->rows : s->depth;

	start_once(NULL);
	gemm->jit = libxsmm_smmdispatch(s->cols, n, k, &s->ldw, &s->ldx, &s->ldy, &one, &beta, &flags, NULL);
}
#endif

ls_status ls_gemm_make(ls_gemm *out, const ls_gemm_shape *shape)
{
	*out = (ls_gemm){ .shape = *shape, .run = run_portable };
#ifdef LS_HAVE_XSMM
	if (xsmm_wanted() && sums_in_order(shape)) {
		LS_TRY(check_addresses());
		LS_TRY(ls_thread_call_deep(build_jit, out));
		out->run = out->jit ? run_jit : run_portable;
	}
#endif
	return LS_OK;
}
