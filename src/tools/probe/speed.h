/*
 * speed.h - arithmetic and memory bandwidth of the cores of this node.
 */
#ifndef LS_TOOLS_PROBE_SPEED_H
#define LS_TOOLS_PROBE_SPEED_H

#include <lockstep/probe.h>

/* Fills in cores, arithmetic and memory bandwidth. Each of the six figures takes about `seconds`; each core uses
 * `bytes` of memory. */
ls_status ls_speed_measure(ls_probe_node *node, double seconds, int repeat, size_t bytes);

#endif
