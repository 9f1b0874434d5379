/*
 * task.h - what a graph is for, which decides the loss of one that has none when it is finished.
 */
#ifndef LS_GRAPH_TASK_H
#define LS_GRAPH_TASK_H

#include <lockstep/data.h>
#include <lockstep/graph.h>

/* Before ls_graph_finish(). Classification unless it is set. */
void ls_graph_set_task(ls_graph *graph, ls_task task);

/* label_smoothing.c: targets (1 - smoothing) onehot(label) + smoothing / classes, in every
 * cross-entropy of whole samples. */
ls_status ls_graph_smooth_labels(ls_graph *graph, double smoothing);
/* Factors of the loss per class, (outputs), in every cross-entropy of what the graph predicts; copied. */
ls_status ls_graph_weigh_classes(ls_graph *graph, const float *weight);

#endif
