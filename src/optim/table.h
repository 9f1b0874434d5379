/*
 * table.h - the list of optimizers: one line here and one file, optimizers/NAME.c, which defines its row (optimizer.h).
 *
 * The files of optimizers/ are compiled once per instruction set, so each holds all of its optimizer: what it computes
 * once per call, its loop over elements and its row. table.c makes the table of rows from this list.
 */
#ifndef LS_OPTIM_TABLE_H
#define LS_OPTIM_TABLE_H

#include "base/isa.h"
#include "optim/optimizer.h"

/* In the order in which help and docs/optimizers.md list them. */
#define LS_OPTIMIZERS(ROW)                                                                                             \
	ROW(sgd)                                                                                                       \
	ROW(adam)                                                                                                      \
	ROW(adamw)                                                                                                     \
	ROW(lamb)                                                                                                      \
	ROW(lion)                                                                                                      \
	/* one line per optimizer, above this one */

/* How optimizers/NAME.c spells its row: `const ls_optimizer_kind LS_OPTIMIZER(NAME) = { ... };` */
#define LS_OPTIMIZER(name) LS_ISA_SYMBOL(ls_optimizer_##name)

#endif
