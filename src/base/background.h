/*
 * background.h - a thread that does one piece of work at a time, beside the thread that gives it out.
 *
 *     ls_background_begin()    start the thread
 *     ls_background_do()       hand it work, once the work before is done
 *     ls_background_wait()     until that is done
 *     ls_background_end()      the same, and the thread is gone
 *
 * One thread calls these. What the work has written may be read after ls_background_is_busy() was 0 or a wait.
 */
#ifndef LS_BASE_BACKGROUND_H
#define LS_BASE_BACKGROUND_H

#include <pthread.h>

#include "base/status.h"

typedef struct ls_background {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	void (*work)(void *context); /* under way; NULL: none */
	void *context;
	int is_running, ends;
} ls_background;

/* `what` names the work in the error: "checkpoints". */
ls_status ls_background_begin(ls_background *background, const char *what);
void ls_background_do(ls_background *background, void (*work)(void *context), void *context);
int ls_background_is_busy(ls_background *background);
void ls_background_wait(ls_background *background);
void ls_background_end(ls_background *background); /* harmless when zeroed or never begun */

#endif
