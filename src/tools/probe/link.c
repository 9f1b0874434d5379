/*
 * link.c - bulk one way, the other way and both ways, timed by node 0's clock.
 *
 * A transfer begins with a small message from node 0 and ends with one from the peer, sent once it has received
 * everything. The time is that of the bytes plus one round trip, which was measured before and is subtracted.
 */
#include "tools/probe/link.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/median.h"
#include "base/memory.h"
#include "comm/collectives.h"

enum { TAG = LS_TAG_COLLECT + 1, LOOK_NS = 50 * 1000 * 1000, PINGS = 51, REPEATS_MAX = 99 };

/* A message is as large as a bucket of training, or smaller on slow links. */
#define MESSAGE_MOST ((size_t)2 << 20)
#define MESSAGE_LEAST ((size_t)16 << 10)

/* Lets the caller wait until `missing` messages are done. */
typedef struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	int missing;
} waiter;

static void message_done(void *context, ls_message *message)
{
	waiter *w = context;
	(void)message;
	pthread_mutex_lock(&w->lock);
	w->missing--;
	pthread_cond_signal(&w->arrived);
	pthread_mutex_unlock(&w->lock);
}

static void waiter_init(waiter *w, int missing)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->arrived, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&w->lock, NULL);
	w->missing = missing;
}

static void waiter_destroy(waiter *w)
{
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->arrived);
}

/* Until all are done, or the communication thread has failed and no longer touches them. */
static ls_status waiter_wait(waiter *w, ls_comm *comm)
{
	pthread_mutex_lock(&w->lock);
	while (w->missing > 0 && !ls_comm_has_failed(comm)) {
		struct timespec look;
		clock_gettime(CLOCK_MONOTONIC, &look);
		look.tv_nsec += LOOK_NS;
		look.tv_sec += look.tv_nsec / 1000000000;
		look.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&w->arrived, &w->lock, &look);
	}
	int missing = w->missing;
	pthread_mutex_unlock(&w->lock);
	return missing > 0 ? ls_comm_status(comm) : LS_OK;
}

/* One end of a link. */
typedef struct link_end {
	ls_comm *comm;
	int peer, first; /* node at the other end; whether this is node 0 */
	char *out, *in;
	size_t message;    /* bytes per message */
	double round_trip; /* seconds, median */
	double quickest;   /* seconds, minimum */
} link_end;

/* Sent by node 0: what the peer is to do. */
typedef struct order {
	int64_t out, in; /* messages sent and received by node 0 */
	int64_t bytes;   /* per message */
} order;

static ls_status send_small(link_end *l, int from_first, void *text, size_t bytes)
{
	int mine = ls_comm_rank(l->comm);
	int from = from_first == l->first ? mine : l->peer, to = from == mine ? l->peer : mine;
	return ls_comm_sendrecv(l->comm, from, to, text, text, bytes, "probe of a link");
}

static void fill_message(ls_message *message, waiter *w, int peer, int outgoing, void *buffer, size_t bytes)
{
	*message = (ls_message){ .peer = peer,
				 .tag = TAG,
				 .outgoing = outgoing,
				 .buffer = buffer,
				 .bytes = bytes,
				 .what = "probe of a link",
				 .number = -1,
				 .done = message_done,
				 .context = w };
}

/* Send `out` messages and receive `in` messages at the same time. */
static ls_status send_both_ways(link_end *l, int64_t out, int64_t in)
{
	ls_message messages[2 * LS_LINK_MESSAGES];
	waiter w;
	int count = 0;

	waiter_init(&w, (int)(out + in));
	for (int64_t i = 0; i < in; i++)
		fill_message(&messages[count++], &w, l->peer, 0, l->in + (size_t)i * l->message, l->message);
	for (int64_t i = 0; i < out; i++)
		fill_message(&messages[count++], &w, l->peer, 1, l->out + (size_t)i * l->message, l->message);
	ls_comm_post_all(l->comm, messages, (size_t)count);
	ls_status status = waiter_wait(&w, l->comm);
	waiter_destroy(&w);
	return status;
}

/* Node 0's seconds for one transfer, without the round trip of the small messages around it. The shortest round trip is
 * subtracted, because both communication threads are awake by then. */
static ls_status transfer(link_end *l, order o, double *seconds)
{
	char end[8] = { 0 };
	double start = ls_clock_seconds();

	LS_TRY(send_small(l, 1, &o, sizeof(o)));
	l->message = (size_t)o.bytes;
	LS_TRY(l->first ? send_both_ways(l, o.out, o.in) : send_both_ways(l, o.in, o.out));
	LS_TRY(send_small(l, 0, end, sizeof(end)));
	double taken = ls_clock_seconds() - start;
	*seconds = taken > 2 * l->quickest ? taken - l->quickest : taken / 2;
	return LS_OK;
}

static ls_status ping(link_end *l)
{
	double taken[PINGS];
	char text[8] = { 0 };

	for (int i = 0; i < PINGS; i++) {
		double start = ls_clock_seconds();
		LS_TRY(send_small(l, 1, text, sizeof(text)));
		LS_TRY(send_small(l, 0, text, sizeof(text)));
		taken[i] = ls_clock_seconds() - start;
	}
	l->quickest = taken[0];
	for (int i = 1; i < PINGS; i++)
		l->quickest = taken[i] < l->quickest ? taken[i] : l->quickest;
	l->round_trip = ls_median(taken, PINGS);
	return LS_OK;
}

static ls_status repeat(link_end *l, order o, int count, double *gbit_per_s)
{
	double taken[REPEATS_MAX];
	for (int i = 0; i < count; i++)
		LS_TRY(transfer(l, o, &taken[i]));
	*gbit_per_s = (double)(o.out > 0 ? o.out : o.in) * (double)o.bytes * 8 / 1e9 / ls_median(taken, (size_t)count);
	return LS_OK;
}

/* Message size that keeps the link busy for about the wanted time. The peer takes the size that node 0 sends. */
static size_t choose_message(double seconds, size_t sent, const ls_link_options *o)
{
	double bytes = (double)sent / seconds * o->seconds / LS_LINK_MESSAGES;
	size_t most = o->bytes / LS_LINK_MESSAGES < MESSAGE_MOST ? o->bytes / LS_LINK_MESSAGES : MESSAGE_MOST;

	if (bytes > (double)most)
		return most > MESSAGE_LEAST ? most : MESSAGE_LEAST;
	return bytes > (double)MESSAGE_LEAST ? (size_t)bytes : MESSAGE_LEAST;
}

static ls_status measure(link_end *l, const ls_link_options *o, ls_probe_link *out)
{
	order all = { .out = LS_LINK_MESSAGES, .in = LS_LINK_MESSAGES, .bytes = (int64_t)MESSAGE_LEAST };
	int count = o->repeat < REPEATS_MAX ? o->repeat : REPEATS_MAX;
	double first = 0;

	LS_TRY(ping(l)); /* warm-up, not counted */
	LS_TRY(ping(l));
	LS_TRY(transfer(l, all, &first));
	LS_TRY(transfer(l, all, &first));
	all.bytes = (int64_t)choose_message(first, LS_LINK_MESSAGES * MESSAGE_LEAST, o);
	LS_TRY(transfer(l, all, &first)); /* warm-up: touches memory, opens TCP windows */
	out->round_trip_us = l->round_trip * 1e6;
	LS_TRY(repeat(l, (order){ .out = LS_LINK_MESSAGES, .bytes = all.bytes }, count, &out->to_gbit_per_s));
	LS_TRY(repeat(l, (order){ .in = LS_LINK_MESSAGES, .bytes = all.bytes }, count, &out->from_gbit_per_s));
	return repeat(l, all, count, &out->both_gbit_per_s);
}

ls_status ls_link_measure(ls_comm *comm, int peer, const ls_link_options *options, ls_probe_link *out)
{
	int rank = ls_comm_rank(comm);
	link_end l = { .comm = comm, .peer = rank == 0 ? peer : 0, .first = rank == 0 };
	size_t bytes = LS_LINK_MESSAGES * MESSAGE_MOST;
	void *sent = NULL, *received = NULL;
	ls_probe_link seen = { 0 };

	ls_status status = ls_buffer_new(&sent, bytes, "bytes to send");
	if (status == LS_OK)
		status = ls_buffer_new(&received, bytes, "bytes to receive");
	if (status == LS_OK) {
		l.out = sent;
		l.in = received;
		memset(sent, 1, bytes);
		status = measure(&l, options, &seen);
	}
	ls_buffer_free(received, bytes);
	ls_buffer_free(sent, bytes);
	if (status == LS_OK && l.first)
		*out = seen;
	return status;
}

ls_status ls_link_sum(ls_comm *comm, float *values, size_t count, double *seconds)
{
	ls_message message;
	waiter w;

	LS_TRY(ls_comm_barrier(comm, "beginning of a library's sum"));
	waiter_init(&w, 1);
	fill_message(&message, &w, 0, 2, values, count * sizeof(float));
	message.what = "the library's own sum";
	double start = ls_clock_seconds();
	ls_comm_post(comm, &message);
	ls_status status = waiter_wait(&w, comm);
	*seconds = ls_clock_seconds() - start;
	waiter_destroy(&w);
	return status;
}
