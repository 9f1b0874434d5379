/*
 * columns.h - how the columns of a table become numbers, where the weights decide it.
 *
 * Weights work on a table whose columns are standardised and coded as those they were trained on. So a run that starts
 * from weights (--init), one that is resumed, an evaluation and a prediction take theirs; only a run from scratch has
 * those of its data. They are kept in the metadata of the weights ("columns"), as is the task ("task").
 */
#ifndef LS_TRAINED_COLUMNS_H
#define LS_TRAINED_COLUMNS_H

#include <lockstep/train.h>

#include "comm/comm.h"

/* Of a file of weights: both from its metadata. *columns is malloc'd; NULL: it was not trained on a table. */
ls_status ls_columns_of_weights(const char *file, char **columns, ls_task *task);

/* Of the run that options resume or the weights that they start from, found by the first node and known to all; NULL:
 * there are none, and when the files cannot be read, which is reported when they are loaded. */
ls_status ls_columns_find(char **out, const ls_train_options *options, ls_comm *comm, int is_first);

#endif
