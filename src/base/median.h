/*
 * median.h - numbers in order, and the one in the middle.
 */
#ifndef LS_BASE_MEDIAN_H
#define LS_BASE_MEDIAN_H

#include <stddef.h>

void ls_sort_numbers(double *values, size_t count); /* ascending; in place and without allocating */
double ls_median(double *values, size_t count);     /* sorts its argument; 0 for none */

#endif
