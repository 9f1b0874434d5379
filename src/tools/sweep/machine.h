/*
 * machine.h - the machine that measures, for results.json.
 */
#ifndef LS_TOOLS_SWEEP_MACHINE_H
#define LS_TOOLS_SWEEP_MACHINE_H

#include "tools/results/results.h"

/* Host, processor, cores, memory and version. */
void ls_sweep_machine(ls_results_machine *out);

/* Properties that take a second or two to measure, by `program` probe --quick: kernels, MPI, speed of a core. Unknown
 * ones are left unchanged. LS_EINTERRUPTED: stopped. */
ls_status ls_sweep_machine_probe(ls_results_machine *out, const char *program);

/* Cores that this process may use. */
int ls_sweep_cores(void);

#endif
