#include "tools/serve/connections.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

struct ls_connection {
	int fd;
	ls_connection_state state;
	double since; /* when it was opened or last answered */
	ls_connection *before, *next;
};

void ls_connections_init(ls_connections *all)
{
	*all = (ls_connections){ .first = NULL };
	pthread_mutex_init(&all->lock, NULL);
}

void ls_connections_release(ls_connections *all)
{
	pthread_mutex_destroy(&all->lock);
}

int64_t ls_connections_count(ls_connections *all)
{
	pthread_mutex_lock(&all->lock);
	int64_t count = all->count;
	pthread_mutex_unlock(&all->lock);
	return count;
}

ls_connection *ls_connections_open(ls_connections *all, int fd)
{
	ls_connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = fd;
	c->since = ls_clock_seconds();
	pthread_mutex_lock(&all->lock);
	c->next = all->first;
	if (c->next)
		c->next->before = c;
	all->first = c;
	all->count++;
	pthread_mutex_unlock(&all->lock);
	return c;
}

void ls_connections_close(ls_connections *all, ls_connection *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&all->lock);
	if (c->before)
		c->before->next = c->next;
	else
		all->first = c->next;
	if (c->next)
		c->next->before = c->before;
	all->count--;
	pthread_mutex_unlock(&all->lock);
	free(c);
}

void ls_connections_set(ls_connections *all, ls_connection *c, ls_connection_state state)
{
	if (!c)
		return;
	pthread_mutex_lock(&all->lock);
	c->state = state;
	if (state != LS_CONNECTION_BUSY) /* a new request may begin, or its body */
		c->since = ls_clock_seconds();
	pthread_mutex_unlock(&all->lock);
}

/* A client that sends a byte now and then is never idle: what counts is a complete request. */
int64_t ls_connections_shut_idle(ls_connections *all, double timeout, const char *last_words, int64_t *answered)
{
	double now = ls_clock_seconds();
	int64_t shut = 0;

	pthread_mutex_lock(&all->lock);
	for (ls_connection *c = all->first; c; c = c->next)
		if (c->state != LS_CONNECTION_BUSY && now - c->since > timeout) {
			if (c->state == LS_CONNECTION_READING)
				*answered +=
					send(c->fd, last_words, strlen(last_words), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
			shutdown(c->fd, SHUT_RDWR);
			c->since = now;
			shut++;
		}
	pthread_mutex_unlock(&all->lock);
	return shut;
}
