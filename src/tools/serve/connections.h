/*
 * connections.h - the open connections of a server: how many there are, and which have been idle for too long. All
 * functions may be called from several threads.
 */
#ifndef LS_TOOLS_SERVE_CONNECTIONS_H
#define LS_TOOLS_SERVE_CONNECTIONS_H

#include <pthread.h>
#include <stdint.h>

typedef struct ls_connection ls_connection;

typedef struct ls_connections {
	pthread_mutex_t lock; /* guards the fields below */
	ls_connection *first;
	int64_t count;
} ls_connections;

void ls_connections_init(ls_connections *connections);
void ls_connections_release(ls_connections *connections); /* all are closed by then */
int64_t ls_connections_count(ls_connections *connections);

/* From accept to close; the socket stays the caller's, and open in between. NULL if out of memory; all functions accept
 * NULL. */
ls_connection *ls_connections_open(ls_connections *connections, int fd);
void ls_connections_close(ls_connections *connections, ls_connection *connection);

typedef enum ls_connection_state {
	LS_CONNECTION_IDLE,    /* no head of a request is complete */
	LS_CONNECTION_READING, /* a body is awaited, and no byte of an answer was sent */
	LS_CONNECTION_BUSY     /* its request is complete, or an answer is being sent */
} ls_connection_state;
void ls_connections_set(ls_connections *connections, ls_connection *connection, ls_connection_state state);

/* Shut down the sockets of connections that were opened or last answered `timeout` seconds ago and are not busy;
 * returns how many. Those that wait for a body are sent `last_words` before, as far as that is possible without
 * waiting: *answered of them. */
int64_t ls_connections_shut_idle(ls_connections *connections, double timeout, const char *last_words,
				 int64_t *answered);

#endif
