/*
 * speed.h - how fast the cores of this node compute and reach memory.
 */
#ifndef LS_TOOLS_PROBE_SPEED_H
#define LS_TOOLS_PROBE_SPEED_H

#include <lockstep/probe.h>

/* Fills in cores, arithmetic and memory. About `seconds` go into each of its six figures; each core goes over
 * `bytes` of memory. */
ls_status ls_speed_measure(ls_probe_node *node, double seconds, int repeat, size_t bytes);

#endif
