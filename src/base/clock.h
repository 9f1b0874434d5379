/*
 * clock.h - time for reports. Nothing that is trained may depend on it.
 */
#ifndef LS_BASE_CLOCK_H
#define LS_BASE_CLOCK_H

double ls_clock_seconds(void); /* monotonic */
double ls_clock_wall(void);    /* since 1970 */
double ls_clock_thread(void);  /* processor time of the calling thread: waiting, and turns of others, do not count */

#endif
