/*
 * profile_sum.h - a profile adds up to the step that it was taken from.
 */
#ifndef UNIT_BACKENDS_PROFILE_SUM_H
#define UNIT_BACKENDS_PROFILE_SUM_H

#include "backends/profile.h"

/* What the parts of a profile come to. */
static inline double sum_of(const ls_profile *p)
{
	return (double)p->microbatches * (ls_profile_compute(p) + p->other_s) + p->update_s / (double)p->devices +
	       p->exchange_s;
}

#endif
