/*
 * comm.h - the thread of a node that carries its messages.
 *
 * A message is a buffer to send to a peer or to fill from one. Any thread may post messages; the communication thread
 * starts those it may, most urgent first, keeps a window of bytes under way to each peer so that an urgent message does
 * not queue behind many others, and calls `done` when one has arrived. In between it does the node's background work,
 * and tracks which nodes are alive.
 *
 * Invariants
 *  1. Only the communication thread touches the transport.
 *  2. Messages belong to the poster, which leaves them and their buffers alone until `done`, or until the communication
 *     thread has failed or is freed: neither is touched after that. Nothing is allocated after ls_comm_new().
 *  3. Messages between two nodes with the same tag are started in the order they were posted. (One that is more urgent
 *     than an earlier one with its tag waits for that one's turn.)
 *  4. A peer that nothing has been heard of for `timeout` (over the transport for 5 of them, where it answers beside
 *     it: see beacon.h), that reports its failure, or that ends while messages from or to it are pending, makes the
 *     communication thread fail: the status and message name node, host and operation; the other nodes are informed;
 *     no further `done` is called; waiting threads are woken. All that within a second after `timeout`.
 *  5. Messages wait for free slots of the transport, each kind for its own: heartbeats, incoming and outgoing
 *     messages and each peer's outgoing ones never wait for each other. Incoming ones are started in the order they
 *     were posted, so the transport must have room for all that are posted at once (ls_comm_slots()): else they
 *     may be waiting for messages whose senders wait for those behind them. The exchange cuts its buckets by that.
 */
#ifndef LS_COMM_COMM_H
#define LS_COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "comm/transport.h"

typedef struct ls_comm ls_comm;
typedef struct ls_message ls_message;

struct ls_message {
	int peer;
	int tag;
	int outgoing; /* 1: send the buffer, 0: fill it, 2: sum it over all nodes (transport's own) */
	void *buffer;
	size_t bytes;
	int shorter;      /* incoming: it may have fewer bytes than that */
	size_t arrived;   /* then: how many it has */
	int64_t urgency;  /* outgoing: least first */
	const char *what; /* in errors: "reduce-scatter of bucket" */
	int64_t number;   /* ... 17; negative: none */
	/* On the communication thread: whether what has arrived is what it should be, or the communication thread
	 * fails; may be NULL. */
	ls_status (*check)(void *context, const ls_message *message);
	void (*done)(void *context, ls_message *message); /* on the communication thread */
	void *context;
	/* the communication thread's */
	ls_message *next;
	double posted, started;
	int slot;
};

/* Tags below this are the exchange's. */
#define LS_TAG_COLLECT 0x4000 /* collectives.h */
#define LS_TAG_ALIVE 0x7000   /* and above: the communication thread's own */

#define LS_HOST_NAME 64

typedef struct ls_comm_options {
	ls_transport *transport; /* taken over: freed with the communication thread, also when ls_comm_new() fails */
	double timeout;          /* seconds */
	int beacon;              /* ask silent nodes beside the transport, too: see beacon.h */
	double speaker_s;        /* seconds that a node which leaves the report to another one gives it to print */
	size_t window;           /* bytes under way to a peer; 0: by its rate, see window.h */
	/* Background work on the communication thread: do a little, return whether there was any. May be NULL. */
	int (*work)(void *context);
	void *context;
} ls_comm_options;

/* Returns when the nodes have exchanged the names of their hosts; a missing node is an error after `timeout`. */
ls_status ls_comm_new(ls_comm **out, const ls_comm_options *options);

/* Slots that a transport of `size` nodes needs for `incoming` messages at once; and how many a communication thread can
 * await at once. */
int ls_comm_slots(int size, int incoming);
int ls_comm_incoming(const ls_comm *comm);

/* Announce to the others that this node leaves; waits a moment for outgoing messages under way, then until every other
 * node has finished or failed, or one is silent for `timeout`. Returns LS_EPEER, with the reason as the message, where
 * one has failed or is silent or does not reach the transport's end: the process must then exit with a status other
 * than zero (transport.h). What had made the communication thread fail before is returned as well. With `failed`, its
 * message is passed on as the reason the others end, nobody is waited for, and the status is LS_OK. */
ls_status ls_comm_free(ls_comm *comm, const char *failed);

int ls_comm_rank(const ls_comm *comm);
int ls_comm_size(const ls_comm *comm);
const char *ls_comm_host(const ls_comm *comm, int node); /* "node 2 (lm6)"'s lm6 */

/* After it returns the old work is not being done any more. Not to be called by work(). */
void ls_comm_set_work(ls_comm *comm, int (*work)(void *context), void *context);

void ls_comm_post(ls_comm *comm, ls_message *message);
void ls_comm_post_all(ls_comm *comm, ls_message *messages, size_t count); /* one wake-up */
void ls_comm_wake(ls_comm *comm);                                         /* there is background work */

/* LS_OK while all is well, else what ended it; the message becomes this thread's. */
ls_status ls_comm_status(ls_comm *comm);
int ls_comm_has_failed(const ls_comm *comm); /* cheap */

/* Whether this node is the one that reports what ended the run, once the communication thread has failed: the
 * lowest-numbered that seems to be alive, unless the failing node reports it itself. */
int ls_comm_is_speaker(const ls_comm *comm);
double ls_comm_speaker_seconds(const ls_comm *comm); /* as given */

/* What was reported to the other nodes, once it has failed: the message of ls_comm_status(), but without "this node".
 */
const char *ls_comm_relayed(const ls_comm *comm);

/* Called (by any thread) once when the communication thread fails, to wake threads that wait for messages; at once if
 * it has. Several contexts may be registered; a NULL `wake` takes the context out again. */
void ls_comm_on_failure(ls_comm *comm, void (*wake)(void *context), void *context);

/* Messages that have arrived, here and there, since the beginning. Without heartbeats. */
typedef struct ls_traffic {
	uint64_t bytes_sent, bytes_received, messages_sent, messages_received;
} ls_traffic;
ls_traffic ls_comm_traffic(const ls_comm *comm, int peer);

/* This node was asked to end: silence of others is judged sooner, for it may be why. */
void ls_comm_hurry(ls_comm *comm);

#endif
