/*
 * clock.c - seconds, for reports.
 */
#include "base/clock.h"

#include <time.h>

static double read_clock(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double ls_clock_seconds(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

double ls_clock_wall(void)
{
	return read_clock(CLOCK_REALTIME);
}

double ls_clock_thread(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
