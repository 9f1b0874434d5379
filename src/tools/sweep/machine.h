/*
 * machine.h - what measures, for results.json.
 */
#ifndef LS_TOOLS_SWEEP_MACHINE_H
#define LS_TOOLS_SWEEP_MACHINE_H

#include "tools/results/results.h"

/* Host, processor, cores, memory and version. */
void ls_sweep_machine(ls_results_machine *out);

/* What takes a second or two to find out, by `program` probe --quick: kernels, MPI, speed of a core. What cannot be
 * found out stays as it is. LS_EINTERRUPTED: stopped. */
ls_status ls_sweep_machine_probe(ls_results_machine *out, const char *program);

/* Cores that this process may use. */
int ls_sweep_cores(void);

#endif
