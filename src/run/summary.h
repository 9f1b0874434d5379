/*
 * summary.h - three lines at the start of a run: what is trained on what, how, and where.
 */
#ifndef LS_RUN_SUMMARY_H
#define LS_RUN_SUMMARY_H

#include "run/setup.h"

/* On standard output, as the log that follows, by the first node alone. */
void ls_summary(const ls_setup *setup, uint64_t first_step);

#endif
