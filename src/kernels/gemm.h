/*
 * gemm.h - the one building block: a small matrix product on row-major blocks.
 *
 *   plain:       y (rows, cols)  = x (rows, depth) . w (depth, cols)      [+ y when accumulate]
 *   transposed:  y (depth, cols) = x (rows, depth)^T . w (rows, cols)     [+ y when accumulate]
 *
 * ldx, ldw, ldy are row strides in floats. cols is a multiple of 16. The plain form serves forward and backward-data
 * (with transposed weights), the transposed form weight gradients. The sum over the inner dimension runs in index order
 * for every element, so the result does not depend on how rows are cut.
 *
 * Two backends stand behind it: libxsmm's JIT (x86-64) and portable C; LOCKSTEP_KERNELS=xsmm|portable chooses.
 */
#ifndef LS_KERNELS_GEMM_H
#define LS_KERNELS_GEMM_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls_gemm_shape {
	int rows, depth, cols;
	int ldx, ldw, ldy;
	int transposed, accumulate;
} ls_gemm_shape;

typedef struct ls_gemm {
	ls_gemm_shape shape;
	void (*run)(const struct ls_gemm *gemm, const float *x, const float *w, float *y);
	void (*jit)(const float *, const float *, float *, ...); /* libxsmm's function, else NULL */
} ls_gemm;

/* Prepare a product. May generate code: not for use inside a step. */
ls_status ls_gemm_make(ls_gemm *out, const ls_gemm_shape *shape);

static inline void ls_gemm_run(const ls_gemm *gemm, const float *x, const float *w, float *y)
{
	gemm->run(gemm, x, w, y);
}

/* "xsmm" or "portable"; ls_gemm_check() reports a LOCKSTEP_KERNELS that names neither, before any work starts. */
const char *ls_gemm_backend(void);
ls_status ls_gemm_check(void);

/* The backend takes what memory it needs of its own: now, not with the first product. */
ls_status ls_gemm_start(void);

#endif
