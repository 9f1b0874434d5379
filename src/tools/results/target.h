/*
 * target.h - time to accuracy: a job that trains until its test accuracy reaches a target, once per seed.
 *
 * Seeds differ by chance, so all of them are shown. The figure is the mean without the best and the worst, in the
 * manner of MLPerf's training rules: a seed that does not reach the target counts as the worst, and where more than one
 * does not, there is no figure.
 */
#ifndef LS_TOOLS_RESULTS_TARGET_H
#define LS_TOOLS_RESULTS_TARGET_H

#include "tools/results/results.h"

typedef struct ls_target_summary {
	size_t seeds, reached;
	double seconds, epochs; /* means; 0: more than one seed did not reach the target, or there are fewer than 3 */
} ls_target_summary;

/* Whether a launch is that of its seed: a later one that repeats it on a quieter machine takes its place. */
int ls_target_counts(const ls_point *point, size_t launch);

/* The best test accuracy of a launch; 0: it was not tested. */
double ls_target_best(const ls_point *point, size_t launch);

ls_status ls_target_summarize(const ls_point *point, ls_target_summary *out);

#endif
