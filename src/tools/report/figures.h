/*
 * figures.h - the plots of a sweep or of runs.
 */
#ifndef LS_TOOLS_REPORT_FIGURES_H
#define LS_TOOLS_REPORT_FIGURES_H

#include "tools/report/study.h"
#include "tools/results/published.h"

/* Throughput and speedup against devices, with the ideal line; `published`: also draw published speedups; NULL: none.
 */
void ls_figures_scaling(const ls_study *study, const ls_published *published);
/* AllReduce, PS and ideal, where a model was measured with both. */
void ls_figures_strategies(const ls_study *study);
/* Loss, accuracy and rate over steps and epochs; of runs also what ls_figures_runs() draws. */
void ls_figures_curves(const ls_study *study);
/* Of the runs of a model, which have logs: loss and accuracy on test and training data,
 * perplexity, F1, errors of regression, learning rate. */
void ls_figures_runs(const ls_study *study, const char *model);
/* Test accuracy over time of jobs with a target, by seed. */
void ls_figures_target(const ls_study *study);
/* Time per step by part, for each point and each node; and the speeds of nodes. */
void ls_figures_time(const ls_study *study);

/* Whether both axes are logarithmic: from a factor of eight in devices on. Ideal is a straight line either way. */
int ls_figures_logarithmic(double fewest, double most);

#endif
