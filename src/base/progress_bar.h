/*
 * progress_bar.h - progress of a download or a long write, on stderr if that is a terminal.
 *
 *     train-images-idx3-ubyte |########------------|  4.1/9.9 MB  2.3 MB/s  0:03 left
 */
#ifndef LS_BASE_PROGRESS_BAR_H
#define LS_BASE_PROGRESS_BAR_H

#include <stdint.h>

typedef struct ls_progress_bar {
	const char *title, *unit;
	double scale;          /* displayed units = count / scale */
	uint64_t first, total; /* first: done before the start, not counted in the rate; total 0: not known */
	double start, shown;
	int on;
} ls_progress_bar;

void ls_progress_bar_begin(ls_progress_bar *meter, const char *title, const char *unit, double scale, uint64_t first,
			   uint64_t total, int quiet);
void ls_progress_bar_update(ls_progress_bar *meter, uint64_t done); /* draws at most ten times per second */
void ls_progress_bar_end(ls_progress_bar *meter);                   /* clears the line */

#endif
