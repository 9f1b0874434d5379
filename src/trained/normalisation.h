/*
 * normalisation.h - the mean and deviation that images are normalised with, where the weights decide them.
 *
 * Weights work on images normalised as those they were trained on. So a resumed run keeps its constants, one that
 * starts from weights (--init) takes theirs, and an evaluation does, too; only a run from scratch has those of its
 * data. They are kept with the settings of a run ("mean": [0.1307], "deviation": [0.3081]) and in the metadata of its
 * weights. What was written before they were kept was normalised with MNIST's.
 */
#ifndef LS_TRAINED_NORMALISATION_H
#define LS_TRAINED_NORMALISATION_H

#include <lockstep/data.h>
#include <lockstep/train.h>

#include "comm/comm.h"

/* Of a file of weights, from its metadata; zero when somebody else wrote it and it does not say. */
ls_status ls_normalisation_of_weights(ls_normalisation *out, const char *file);

/* Of the run that options resume or the weights that they start from, found by the first node and known to all; zero
 * when there is none, and when the files cannot be read, which is reported when they are loaded. */
ls_status ls_normalisation_find(ls_normalisation *out, const ls_train_options *options, ls_comm *comm, int is_first);

#endif
