#include "base/background.h"

#include <string.h>

#include "base/thread.h"

static void *attend(void *argument)
{
	ls_background *b = argument;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		while (!b->work && !b->ends)
			pthread_cond_wait(&b->changed, &b->lock);
		if (!b->work)
			break;
		pthread_mutex_unlock(&b->lock);
		b->work(b->context);
		pthread_mutex_lock(&b->lock);
		b->work = NULL;
		pthread_cond_broadcast(&b->changed);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

ls_status ls_background_begin(ls_background *b, const char *what)
{
	*b = (ls_background){ .ends = 0 };
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	int error = ls_thread_start(&b->thread, attend, b);
	if (!error) {
		b->is_running = 1;
		return LS_OK;
	}
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	return ls_fail(LS_EMEMORY, "cannot start a thread for %s: %s", what, strerror(error));
}

void ls_background_do(ls_background *b, void (*work)(void *context), void *context)
{
	pthread_mutex_lock(&b->lock);
	while (b->work)
		pthread_cond_wait(&b->changed, &b->lock);
	b->work = work;
	b->context = context;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

int ls_background_is_busy(ls_background *b)
{
	if (!b->is_running)
		return 0;
	pthread_mutex_lock(&b->lock);
	int busy = b->work != NULL;
	pthread_mutex_unlock(&b->lock);
	return busy;
}

void ls_background_wait(ls_background *b)
{
	if (!b->is_running)
		return;
	pthread_mutex_lock(&b->lock);
	while (b->work)
		pthread_cond_wait(&b->changed, &b->lock);
	pthread_mutex_unlock(&b->lock);
}

void ls_background_end(ls_background *b)
{
	if (!b->is_running)
		return;
	pthread_mutex_lock(&b->lock);
	b->ends = 1;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	b->is_running = 0;
}
