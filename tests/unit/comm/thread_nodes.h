/*
 * thread_nodes.h - nodes that are threads, each with a communication thread, for tests.
 *
 * Assertions of cmocka belong to the main thread: nodes count what is wrong, and nodes_run() returns the count.
 */
#ifndef LS_TESTS_NODES_H
#define LS_TESTS_NODES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "comm/comm.h"
#include "support/transport_threads.h"

enum { NODES_MAX = 7, NODES_PATIENCE = 20 /* s: longer, and a test has failed */ };

typedef struct nodes_member nodes_member;

typedef struct nodes {
	int size, slots;
	double timeout;
	size_t window;
	unsigned long long seed;
	void (*play)(nodes_member *member); /* by each node, in a thread of its own */
	void *context;
	/* Something between communication thread and transport, if wanted. */
	ls_transport *(*wrap)(struct nodes *nodes, ls_transport *transport);
	int absent;         /* this node never shows up; 0: all do (node 0 always does) */
	_Atomic(int) freed; /* communication threads that are */
	double began;       /* set by nodes_run() before any node starts */
} nodes;

struct nodes_member {
	nodes *nodes;
	int rank;
	ls_transport *transport;
	ls_comm *comm;
	ls_status born;     /* of ls_comm_new() */
	char message[2048]; /* of that, or what play() leaves */
	const char *reason; /* given to ls_comm_free() */
	ls_status end;      /* ... which returned this */
	char end_message[2048];
	int wrong;
	_Atomic(int) arrived; /* messages, for nodes_await() */
	double lived;         /* seconds from the beginning until play() returned */
	double gone;          /* ... and until ls_comm_free() did */
};

#define NODES_CHECK(member, condition)                                                                                 \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "node %d: %s:%d: %s\n", (member)->rank, __FILE__, __LINE__, #condition);       \
			(member)->wrong++;                                                                             \
		}                                                                                                      \
	} while (0)

static inline void nodes_sleep(double seconds)
{
	time_t whole = (time_t)seconds;
	nanosleep(&(struct timespec){ .tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9) }, NULL);
}

/* `done` of messages whose context is the member. */
static inline void nodes_arrived(void *context, ls_message *message)
{
	nodes_member *member = context;
	(void)message;
	atomic_fetch_add(&member->arrived, 1);
}

/* Until `count` messages have arrived, or the communication thread has failed; whether they have. */
static inline int nodes_await(nodes_member *member, int count)
{
	double end = ls_clock_seconds() + NODES_PATIENCE;
	while (atomic_load(&member->arrived) < count && !ls_comm_has_failed(member->comm) && ls_clock_seconds() < end)
		nodes_sleep(0.0005);
	return atomic_load(&member->arrived) >= count;
}

/* Until the communication thread has failed; its status, its message in member->message. */
static inline ls_status nodes_await_failure(nodes_member *member)
{
	double end = ls_clock_seconds() + NODES_PATIENCE;
	while (!ls_comm_has_failed(member->comm) && ls_clock_seconds() < end)
		nodes_sleep(0.001);
	ls_status status = ls_comm_status(member->comm);
	snprintf(member->message, sizeof(member->message), "%s", status ? ls_last_error() : "");
	return status;
}

static inline void *nodes_live(void *argument)
{
	nodes_member *m = argument;
	ls_comm_options options = { .transport = m->transport,
				    .timeout = m->nodes->timeout,
				    .window = m->nodes->window };
	m->born = ls_comm_new(&m->comm, &options);
	if (m->born)
		snprintf(m->message, sizeof(m->message), "%s", ls_last_error());
	else
		m->nodes->play(m);
	m->lived = ls_clock_seconds() - m->nodes->began;
	if (m->comm)
		m->end = ls_comm_free(m->comm, m->reason);
	if (m->end)
		snprintf(m->end_message, sizeof(m->end_message), "%s", ls_last_error());
	m->gone = ls_clock_seconds() - m->nodes->began;
	atomic_fetch_add(&m->nodes->freed, 1);
	return NULL;
}

/* All nodes live and end; returns how much was wrong. members[size] are the caller's, for what they leave. */
static inline int nodes_run(nodes *c, nodes_member *members)
{
	ls_transport *transports[NODES_MAX];
	pthread_t threads[NODES_MAX];
	int wrong = 0;
	memset(members, 0, (size_t)c->size * sizeof(*members));
	if (ls_threads_transports(transports, c->size, c->slots, c->seed))
		return 1;
	for (int rank = 0; rank < c->size; rank++) {
		members[rank].nodes = c;
		members[rank].rank = rank;
		members[rank].transport = c->wrap ? c->wrap(c, transports[rank]) : transports[rank];
	}
	c->began = ls_clock_seconds();
	for (int rank = 0; rank < c->size; rank++) {
		if (rank == 0 || rank != c->absent)
			pthread_create(&threads[rank], NULL, nodes_live, &members[rank]);
	}
	for (int rank = 0; rank < c->size; rank++) {
		if (rank == 0 || rank != c->absent)
			pthread_join(threads[rank], NULL);
		else
			members[rank].transport->ops->free(members[rank].transport);
		wrong += members[rank].wrong;
	}
	return wrong;
}

#endif
