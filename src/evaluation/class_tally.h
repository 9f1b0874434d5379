/*
 * class_tally.h - how often each class occurs, is predicted and is right in an evaluation, on all nodes: what F1 and
 * top-5 accuracy follow from. Counts are whole numbers, so devices, threads and nodes do not matter.
 */
#ifndef LS_EVALUATION_CLASS_TALLY_H
#define LS_EVALUATION_CLASS_TALLY_H

#include "comm/comm.h"
#include "data/loader.h"

typedef struct ls_class_tally ls_class_tally;

/* For evaluations of `classes` logits per sample. */
ls_status ls_class_tally_new(ls_class_tally **out, int64_t classes);
void ls_class_tally_free(ls_class_tally *tally); /* harmless on NULL */

/* Before an evaluation; as its ls_evaluator_sink, where the tally is the context; and after it, by all nodes: then each
 * has the counts of all. */
void ls_class_tally_clear(ls_class_tally *tally);
void ls_class_tally_count(void *tally, const ls_microbatch *microbatch, const float *logits);
ls_status ls_class_tally_share(ls_class_tally *tally, ls_comm *comm);

/* The mean of the classes' F1; the share of samples whose class is among the 5 most probable. */
double ls_class_tally_f1(const ls_class_tally *tally);
double ls_class_tally_top5(const ls_class_tally *tally);

#endif
