/*
 * machine.h - what this process runs on, for run.json.
 */
#ifndef LS_METRICS_MACHINE_H
#define LS_METRICS_MACHINE_H

#include <jansson.h>

/* {"hostname", "kernel", "architecture", "cpu", "cores", "threads", "cache_bytes": {"L1": ...}, "memory_bytes"}; what
 * cannot be found out is null. A new reference; NULL when out of memory. */
json_t *ls_machine_describe(void);

#endif
