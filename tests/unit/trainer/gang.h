/*
 * gang.h - nodes that are threads of this process, each with a communication thread of its own: what tests of several
 * nodes share.
 *
 * A test's own struct of a node begins with a gang_node.
 */
#ifndef LS_TESTS_GANG_H
#define LS_TESTS_GANG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>

#include "base/team.h"
#include "comm/comm.h"
#include "comm/transport.h"
#include "support/transport_threads.h"

/* A gang has more threads than most machines have cores: who waits is to leave them to others. */
enum { GANG_MAX = 5, GANG_SLOTS = 4096, GANG_CROWD = 1000 };

typedef struct gang_node {
	ls_status (*live)(struct gang_node *self, ls_comm *comm); /* frees the communication thread */
	ls_transport *transport;                                  /* NULL: alone, without a communication thread */
	ls_transport *(*wrap)(ls_transport *transport);           /* something in its place; NULL: nothing */
	ls_status status;
	char message[512]; /* "" when all went well */
} gang_node;

static inline void *gang_live(void *argument)
{
	gang_node *n = argument;
	ls_comm_options carry = { .transport = n->transport, .timeout = 20 };
	ls_comm *comm = NULL;

	n->status = n->transport ? ls_comm_new(&comm, &carry) : LS_OK;
	if (n->status == LS_OK)
		n->status = n->live(n, comm);
	snprintf(n->message, sizeof(n->message), "%s", n->status != LS_OK ? ls_last_error() : "");
	return NULL;
}

/* `nodes`: an array of `count` structs of `bytes` each. Returns when all have ended. */
static inline void gang_run(void *nodes, size_t bytes, int count, ls_status (*live)(gang_node *self, ls_comm *comm))
{
	ls_transport *transports[GANG_MAX];
	pthread_t threads[GANG_MAX];

	assert_in_range(count, 1, GANG_MAX);
	assert_int_equal(ls_threads_transports(transports, count, GANG_SLOTS, 7), LS_OK);
	ls_team_expect_crowd(count > 1 ? GANG_CROWD : 0);
	for (int i = 0; i < count; i++) {
		gang_node *n = (gang_node *)((char *)nodes + (size_t)i * bytes);
		n->live = live;
		n->transport = n->wrap ? n->wrap(transports[i]) : transports[i];
		assert_int_equal(pthread_create(&threads[i], NULL, gang_live, n), 0);
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	ls_team_expect_crowd(0);
}

#endif
