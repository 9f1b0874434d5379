/*
 * kinds.h - the optimizers, one constant each; optimizer.c makes the table of them.
 */
#ifndef LS_OPTIM_KINDS_H
#define LS_OPTIM_KINDS_H

#include "optim/optimizer.h"

extern const ls_optimizer_kind ls_optimizer_sgd, ls_optimizer_adam, ls_optimizer_adamw, ls_optimizer_lamb;

#endif
