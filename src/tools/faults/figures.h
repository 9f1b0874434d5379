/*
 * figures.h - what faults cost, from the timeline of a run and its recorded steps.
 *
 * The measurement is made of whole cycles: from the moment a start begins to train to the moment the next one does.
 * Each has one time of training, one fault, one recovery, and the steps by which the next start is further. So no
 * part of a recovery is cut off at the end, and steps that are computed again count once, by themselves.
 *
 *     start i trains ...... killed ......... start i+1 trains
 *     t(i), step s(i)       t(i) + fault_s   t(i+1), step s(i+1)
 *
 *     samples/s = samples of steps s(first) to s(last) / (t(last) - t(first))
 *
 * A fault counts when the timeline agrees: the start was to lose that node, lost a node not before that time, and
 * where the supervisor knows which, it was that one.
 */
#ifndef LS_TOOLS_FAULTS_FIGURES_H
#define LS_TOOLS_FAULTS_FIGURES_H

#include <lockstep/faults.h>

#include "tools/faults/log.h"

/* Samples of the first `steps` steps: the last step of an epoch has what is left. */
double ls_fault_samples(double steps, double batch, double epoch);

/* All but the prediction. LS_EINVALID: there is no whole cycle. */
ls_status ls_fault_figures(const ls_fault_log *log, ls_fault_bench_result *out);

/* By the model of `lockstep plan`, from the measured figures, with a fault every `every` seconds. Undisturbed steps
 * have the cost of snapshots in them, so the model's loss by snapshots is not counted again. */
void ls_fault_predict(ls_fault_bench_result *result, double every);

#endif
