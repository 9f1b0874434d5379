#include "data/images/budget.h"

#include <pthread.h>
#include <stdint.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t taken;            /* bytes */
static uint64_t asked, allowed; /* those that have asked, and that were let in: in the same order */

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The threads that decode are not in a process that is forked. */
static void begin_anew(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	taken = 0;
	asked = allowed = 0;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, begin_anew);
}

static int fits(size_t bytes)
{
	return taken == 0 || (taken <= LS_DECODING_BYTES_MAX && bytes <= LS_DECODING_BYTES_MAX - taken);
}

void ls_decoding_begin(size_t bytes)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	uint64_t turn = asked++;
	while (turn != allowed || !fits(bytes))
		pthread_cond_wait(&changed, &lock);
	allowed++;
	taken += bytes;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

void ls_decoding_end(size_t bytes)
{
	if (bytes == 0)
		return;
	pthread_mutex_lock(&lock);
	taken -= bytes < taken ? bytes : taken;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}
