/*
 * setup_memory.h - the memory plan of a set-up: what its trainer, evaluators, loaders, checkpoints and snapshots will
 * take. Between setup.c and setup_memory.c.
 */
#ifndef LS_RUN_SETUP_MEMORY_H
#define LS_RUN_SETUP_MEMORY_H

#include "run/memory_plan.h"
#include "run/setup.h"

/* By setup.c: the options of what it makes, so that what is planned is what is made. Evaluators without threads, which
 * the trainer has. */
ls_node_trainer_options ls_setup_step_options(ls_setup *setup, const ls_settings_batches *batches);
ls_evaluator_options ls_setup_test_options(const ls_setup *setup);
ls_evaluator_options ls_setup_probe_options(const ls_setup *setup);

/* By setup.c: refuses micro-batches of one sample where a layer normalises over the micro-batch. */
ls_status ls_setup_check_norms(const ls_setup *setup, const ls_settings_batches *batches);

/* Some checkpoint comes before the last step: then training goes on while it is written. */
int ls_setup_saves_on_the_way(const ls_setup *setup);

/* Prints the plan with options->plan_memory. LS_EMEMORY, with advice, where the machine has too little. */
ls_status ls_setup_plan_memory(ls_setup *setup, ls_memory_plan *plan);

#endif
