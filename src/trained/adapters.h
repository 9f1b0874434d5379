/*
 * adapters.h - adapters (LoRA) added to the weights that they adapt.
 *
 *     y = x W + x A^T B^T = x (W + (B A)^T)        W (in, out), A (rank, in), B (out, rank)
 *
 * So a model without adapters computes the same, up to rounding. Sums are of doubles, in the order of the ranks, and
 * rounded once.
 */
#ifndef LS_TRAINED_ADAPTERS_H
#define LS_TRAINED_ADAPTERS_H

#include "checkpoint/tensors.h"

int ls_adapters_are_in(const ls_param_table *table);

/* Change the weights in `params`, a store of the table. LS_EUNSUPPORTED: an adapter is not of this form. */
ls_status ls_adapters_merge(const ls_param_table *table, float *params);

/* Take adapters off a list of tensors. */
void ls_adapters_leave_out(ls_ckpt_tensors *tensors);

#endif
