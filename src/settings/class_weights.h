/*
 * class_weights.h - the factors of the loss per class that settings ask for: "auto", "none", or a list of numbers.
 */
#ifndef LS_SETTINGS_CLASS_WEIGHTS_H
#define LS_SETTINGS_CLASS_WEIGHTS_H

#include <lockstep/train.h>

#include "graph/graph.h"

/* The list that options.class_weights comes to on the training set, "0.5,2,1", malloc'd; NULL: none. "auto" weighs
 * classes inversely to how often they occur: samples / (classes * samples of the class), scikit-learn's "balanced"; a
 * class without samples has 1. */
ls_status ls_class_weights_resolve(char **out, const ls_train_options *options, const ls_dataset *train);

/* Give such a list to every cross-entropy of the graph's output; NULL and "none": nothing. */
ls_status ls_class_weights_set(ls_graph *graph, const char *list);

#endif
