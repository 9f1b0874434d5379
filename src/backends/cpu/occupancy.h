/*
 * occupancy.h - which addresses of one block of memory are taken, and when.
 *
 * A binary tree over the moments. A node of the tree is an interval of time, with two sets of addresses:
 *
 *   through   taken during the whole interval by something that is not there during the whole parent interval
 *   within    taken at some moment of the interval, the above included
 *
 * What is taken at some moment from `from` to `to` is then `within` of the few parts that this interval is made of, and
 * `through` of the parts above them: 4 log2(moments) sets, in which runs that touch are one. Buffers of a network lie
 * side by side, so the sets stay short, and taking a place or finding one costs about log(moments).
 */
#ifndef LS_BACKENDS_CPU_OCCUPANCY_H
#define LS_BACKENDS_CPU_OCCUPANCY_H

#include <stddef.h>

#include "base/status.h"

typedef struct ls_occupancy ls_occupancy;

/* Moments are 0 to moments - 1; nothing is taken. */
ls_status ls_occupancy_new(ls_occupancy **out, int moments);
void ls_occupancy_free(ls_occupancy *occupancy); /* harmless on NULL */

/* The lowest address from which on `bytes` are free at all moments from `from` to `to`, both included. */
size_t ls_occupancy_lowest(const ls_occupancy *occupancy, int from, int to, size_t bytes);

/* Mark them as taken. */
ls_status ls_occupancy_take(ls_occupancy *occupancy, int from, int to, size_t begin, size_t bytes);

#endif
