/*
 * simd.h - loops over a whole store that are not an optimizer's own, one table of functions per instruction set
 * (base/isa.h). All tables give the same bits. Pointers need no alignment.
 */
#ifndef LS_OPTIM_SIMD_H
#define LS_OPTIM_SIMD_H

#include <stddef.h>

#define LS_NORM_LANES 16

typedef struct ls_optim_simd {
	void (*multiply)(float factor, float *x, size_t count);
	/* average = average + weight * (x - average) */
	void (*average)(float weight, const float *x, float *average, size_t count);
	double (*sum_squares)(const float *x, size_t count); /* in LS_NORM_LANES lanes combined as a fixed tree */
} ls_optim_simd;

/* The table of the instruction set in use; and of a given ls_isa (tests), NULL when this build lacks it. */
const ls_optim_simd *ls_optim_simd_get(void);
const ls_optim_simd *ls_optim_simd_of(int isa);

#endif
