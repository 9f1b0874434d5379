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
 *  2. Letters belong to the poster, who leaves them alone until `done`. Nothing is allocated after ls_courier_new().
 *  3. Letters between two nodes with the same tag are started in the order they were posted.
 *  4. A peer that nothing has been heard of for `timeout` seconds, or that says it is failing, makes the courier fail:
 *     the status and message say which node, host and operation; no further `done` is called; whoever waits is woken.
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
	int64_t urgency;                                /* outgoing: least first */
	const char *what;                               /* in errors: "push of bucket" */
	int64_t number;                                 /* ... 17 */
	void (*done)(void *context, ls_letter *letter); /* on the courier's thread */
	void *context;
	/* the courier's */
	ls_letter *next;
	double posted, started;
	int slot;
};

/* Tags below this are the exchange's. */
#define LS_TAG_COLLECT 0x4000 /* collect.h */
#define LS_TAG_ALIVE 0x7000

#define LS_HOST_NAME 64

typedef struct ls_courier_options {
	ls_transport *transport; /* taken over: freed with the courier */
	double timeout;          /* seconds */
	size_t window;           /* bytes under way to a peer; 0: the default */
	/* Background work on the courier's thread: do a little, return whether there was any. May be NULL. */
	int (*work)(void *context);
	void *context;
} ls_courier_options;

ls_status ls_courier_new(ls_courier **out, const ls_courier_options *options);

/* Tell the others that this node goes; waits for letters under way a moment. With `failed`, its message is passed on as
 * the reason the others end. */
void ls_courier_free(ls_courier *courier, const char *failed);

int ls_courier_rank(const ls_courier *courier);
int ls_courier_size(const ls_courier *courier);
const char *ls_courier_host(const ls_courier *courier, int node); /* "node 2 (lm6)"'s lm6 */

void ls_courier_set_work(ls_courier *courier, int (*work)(void *context), void *context);

void ls_courier_post(ls_courier *courier, ls_letter *letter);
void ls_courier_post_all(ls_courier *courier, ls_letter *letters, size_t count); /* one wake-up */
void ls_courier_wake(ls_courier *courier);                                       /* there is background work */

/* LS_OK while all is well, else what ended it; the message becomes this thread's. */
ls_status ls_courier_status(ls_courier *courier);
int ls_courier_has_failed(const ls_courier *courier); /* cheap */

/* Called (by any thread) once when the courier fails, to wake those who wait for letters. */
void ls_courier_on_failure(ls_courier *courier, void (*wake)(void *context), void *context);

/* This node was asked to end: silence of others is judged sooner, for it may be why. */
void ls_courier_hurry(ls_courier *courier);

#endif
