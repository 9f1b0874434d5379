/*
 * crew.h - nodes that are threads, each with a courier, for tests.
 *
 * Assertions of cmocka belong to the main thread: members count what is wrong, and crew_run() tells.
 */
#ifndef LS_TESTS_CREW_H
#define LS_TESTS_CREW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "exchange/courier.h"

enum { CREW_MAX = 7, CREW_PATIENCE = 20 /* s: longer, and a test has failed */ };

typedef struct crew_member crew_member;

typedef struct crew {
	int size, slots;
	double timeout;
	size_t window;
	unsigned long long seed;
	void (*play)(crew_member *member); /* by each node, in a thread of its own */
	void *context;
	/* Something between courier and transport, if wanted. */
	ls_transport *(*wrap)(struct crew *crew, ls_transport *transport);
	int absent;         /* this node never shows up; 0: all do (node 0 always does) */
	_Atomic(int) freed; /* couriers that are */
	double began; /* set by crew_run() before any node starts: what one node hears from another is never early */
} crew;

struct crew_member {
	crew *crew;
	int rank;
	ls_transport *transport;
	ls_courier *courier;
	ls_status born;     /* of ls_courier_new() */
	char message[2048]; /* of that, or what play() leaves */
	const char *reason; /* given to ls_courier_free() */
	ls_status end;      /* ... which returned this */
	char end_message[2048];
	int wrong;
	_Atomic(int) arrived; /* letters, for crew_await() */
	double lived;         /* seconds from the crew's beginning until play() returned */
	double gone;          /* ... and until ls_courier_free() did */
};

#define CREW_CHECK(member, condition)                                                                                  \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "node %d: %s:%d: %s\n", (member)->rank, __FILE__, __LINE__, #condition);       \
			(member)->wrong++;                                                                             \
		}                                                                                                      \
	} while (0)

static inline void crew_sleep(double seconds)
{
	time_t whole = (time_t)seconds;
	nanosleep(&(struct timespec){ .tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9) }, NULL);
}

/* `done` of letters whose context is the member. */
static inline void crew_arrived(void *context, ls_letter *letter)
{
	crew_member *member = context;
	(void)letter;
	atomic_fetch_add(&member->arrived, 1);
}

/* Until so many letters have arrived, or the courier has failed; whether they have. */
static inline int crew_await(crew_member *member, int count)
{
	double end = ls_clock_seconds() + CREW_PATIENCE;
	while (atomic_load(&member->arrived) < count && !ls_courier_has_failed(member->courier) &&
	       ls_clock_seconds() < end)
		crew_sleep(0.0005);
	return atomic_load(&member->arrived) >= count;
}

/* Until the courier has failed; its status, its message in member->message. */
static inline ls_status crew_await_failure(crew_member *member)
{
	double end = ls_clock_seconds() + CREW_PATIENCE;
	while (!ls_courier_has_failed(member->courier) && ls_clock_seconds() < end)
		crew_sleep(0.001);
	ls_status status = ls_courier_status(member->courier);
	snprintf(member->message, sizeof member->message, "%s", status ? ls_last_error() : "");
	return status;
}

static inline void *crew_live(void *argument)
{
	crew_member *m = argument;
	ls_courier_options options = { .transport = m->transport,
				       .timeout = m->crew->timeout,
				       .window = m->crew->window };
	m->born = ls_courier_new(&m->courier, &options);
	if (m->born)
		snprintf(m->message, sizeof m->message, "%s", ls_last_error());
	else
		m->crew->play(m);
	m->lived = ls_clock_seconds() - m->crew->began;
	if (m->courier)
		m->end = ls_courier_free(m->courier, m->reason);
	if (m->end)
		snprintf(m->end_message, sizeof m->end_message, "%s", ls_last_error());
	m->gone = ls_clock_seconds() - m->crew->began;
	atomic_fetch_add(&m->crew->freed, 1);
	return NULL;
}

/* All nodes live and end; returns how much was wrong. members[size] are the caller's, for what they leave. */
static inline int crew_run(crew *c, crew_member *members)
{
	ls_transport *transports[CREW_MAX];
	pthread_t threads[CREW_MAX];
	int wrong = 0;
	memset(members, 0, (size_t)c->size * sizeof *members);
	if (ls_threads_transports(transports, c->size, c->slots, c->seed))
		return 1;
	for (int rank = 0; rank < c->size; rank++) {
		members[rank].crew = c;
		members[rank].rank = rank;
		members[rank].transport = c->wrap ? c->wrap(c, transports[rank]) : transports[rank];
	}
	c->began = ls_clock_seconds();
	for (int rank = 0; rank < c->size; rank++) {
		if (rank == 0 || rank != c->absent)
			pthread_create(&threads[rank], NULL, crew_live, &members[rank]);
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
