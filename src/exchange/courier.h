/*
 * courier.h - the thread of a node that carries its letters.
 *
 * A letter is a buffer to send to a peer or to fill from one. Anybody may post letters; the courier starts those it
 * may, most urgent first, keeps a window of bytes under way to each peer so that an urgent letter does not queue behind
 * many others, and calls `done` when one has arrived. In between it does the node's background work, and it knows who
 * is alive.
 *
 * Invariants
 *  1. Only the courier's thread touches the transport.
 *  2. Letters belong to the poster, who leaves them and their buffers alone until `done`, or until the courier has
 *     failed or is freed: neither is touched after that. Nothing is allocated after ls_courier_new().
 *  3. Letters between two nodes with the same tag are started in the order they were posted. (One that is more urgent
 *     than an earlier one with its tag waits for that one's turn.)
 *  4. A peer that nothing has been heard of for `timeout` (over the transport for 5 of them, where it answers beside
 *     it: see beacon.h), that says it is failing, or that ends while letters of or
 *     for it are left, makes the courier fail: the status and message say which node, host and operation; the other
 *     nodes are told; no further `done` is called; whoever waits is woken. All that within a second after `timeout`.
 *  5. Letters wait for free slots of the transport, each kind for its own: heartbeats, incoming and outgoing
 *     letters and each peer's outgoing ones never wait for each other. Incoming ones are started in the order they
 *     were posted, so the transport must have room for all that are posted at once (ls_courier_slots()): else they
 *     may be waiting for letters whose senders wait for those behind them. The exchange cuts its buckets by that.
 */
#ifndef LS_EXCHANGE_COURIER_H
#define LS_EXCHANGE_COURIER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exchange/transport.h"

typedef struct ls_courier ls_courier;
typedef struct ls_letter ls_letter;

struct ls_letter {
	int peer;
	int tag;
	int outgoing; /* 1: send the buffer, 0: fill it, 2: sum it over all nodes (transport's own) */
	void *buffer;
	size_t bytes;
	int shorter;      /* incoming: it may have fewer bytes than that */
	size_t arrived;   /* then: how many it has */
	int64_t urgency;  /* outgoing: least first */
	const char *what; /* in errors: "push of bucket" */
	int64_t number;   /* ... 17; negative: none */
	/* On the courier's thread: whether what has arrived is what it should be, or the courier fails; may be NULL. */
	ls_status (*check)(void *context, const ls_letter *letter);
	void (*done)(void *context, ls_letter *letter); /* on the courier's thread */
	void *context;
	/* the courier's */
	ls_letter *next;
	double posted, started;
	int slot;
};

/* Tags below this are the exchange's. */
#define LS_TAG_COLLECT 0x4000 /* collect.h */
#define LS_TAG_ALIVE 0x7000   /* and above: the courier's own */

#define LS_HOST_NAME 64

typedef struct ls_courier_options {
	ls_transport *transport; /* taken over: freed with the courier, and when there comes to be none */
	double timeout;          /* seconds */
	int beacon;              /* ask silent nodes beside the transport, too: see beacon.h */
	size_t window;           /* bytes under way to a peer; 0: by its rate, see window.h */
	/* Background work on the courier's thread: do a little, return whether there was any. May be NULL. */
	int (*work)(void *context);
	void *context;
} ls_courier_options;

/* Returns when all nodes have told their hosts' names; a node that does not show up is an error after `timeout`. */
ls_status ls_courier_new(ls_courier **out, const ls_courier_options *options);

/* Slots a transport of `size` nodes needs for so many incoming letters at once; and how many a courier has room for. */
int ls_courier_slots(int size, int incoming);
int ls_courier_incoming(const ls_courier *courier);

/* Tell the others that this node goes; waits a moment for outgoing letters under way, then until every other node has
 * finished or failed, or one is silent for `timeout`. Returns LS_EPEER, with the reason as the message, where one has
 * failed or is silent or does not reach the transport's end: the process must then exit with a status other than zero
 * (transport.h). What had made the courier fail before is returned as well. With `failed`, its message is passed on as
 * the reason the others end, nobody is waited for, and the status is LS_OK. */
ls_status ls_courier_free(ls_courier *courier, const char *failed);

int ls_courier_rank(const ls_courier *courier);
int ls_courier_size(const ls_courier *courier);
const char *ls_courier_host(const ls_courier *courier, int node); /* "node 2 (lm6)"'s lm6 */

/* After it returns the old work is not being done any more. Not to be called by work(). */
void ls_courier_set_work(ls_courier *courier, int (*work)(void *context), void *context);

void ls_courier_post(ls_courier *courier, ls_letter *letter);
void ls_courier_post_all(ls_courier *courier, ls_letter *letters, size_t count); /* one wake-up */
void ls_courier_wake(ls_courier *courier);                                       /* there is background work */

/* LS_OK while all is well, else what ended it; the message becomes this thread's. */
ls_status ls_courier_status(ls_courier *courier);
int ls_courier_has_failed(const ls_courier *courier); /* cheap */

/* Whether this node is the one to tell the terminal what ended the run, once the courier has failed: the
 * lowest-numbered that seems to be alive, unless the failing node speaks for itself. */
int ls_courier_is_speaker(const ls_courier *courier);

/* Called (by any thread) once when the courier fails, to wake those who wait for letters; at once if it has. Several
 * contexts may be registered; a NULL `wake` takes the context out again. */
void ls_courier_on_failure(ls_courier *courier, void (*wake)(void *context), void *context);

/* Letters that have arrived, here and there, since the beginning. Without heartbeats. */
typedef struct ls_traffic {
	uint64_t bytes_sent, bytes_received, letters_sent, letters_received;
} ls_traffic;
ls_traffic ls_courier_traffic(const ls_courier *courier, int peer);

/* This node was asked to end: silence of others is judged sooner, for it may be why. */
void ls_courier_hurry(ls_courier *courier);

#endif
