/*
 * link.c - bulk one way, the other way and both ways, timed by node 0's clock.
 *
 * A transfer begins with a word from node 0 and ends with one from the peer, which has then received everything; so the
 * time is that of the bytes plus one round trip, which was measured before and is taken off.
 */
#include "tools/probe/link.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "comm/collectives.h"
#include "metrics/rate.h"

enum { TAG = LS_TAG_COLLECT + 1, LOOK_NS = 50 * 1000 * 1000, PINGS = 51, REPEATS_MAX = 99 };

/* A message is as large as a bucket of training, or smaller on slow links. */
#define MESSAGE_MOST ((size_t)2 << 20)
#define MESSAGE_LEAST ((size_t)16 << 10)

/* Where the caller waits for messages. */
typedef struct desk {
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	int missing;
} desk;

static void message_done(void *context, ls_message *message)
{
	desk *d = context;
	(void)message;
	pthread_mutex_lock(&d->lock);
	d->missing--;
	pthread_cond_signal(&d->arrived);
	pthread_mutex_unlock(&d->lock);
}

static void desk_open(desk *d, int missing)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&d->arrived, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&d->lock, NULL);
	d->missing = missing;
}

static void desk_close(desk *d)
{
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->arrived);
}

/* Until all have arrived, or the communication thread has failed and leaves them alone. */
static ls_status desk_wait(desk *d, ls_comm *comm)
{
	pthread_mutex_lock(&d->lock);
	while (d->missing > 0 && !ls_comm_has_failed(comm)) {
		struct timespec look;
		clock_gettime(CLOCK_MONOTONIC, &look);
		look.tv_nsec += LOOK_NS;
		look.tv_sec += look.tv_nsec / 1000000000;
		look.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&d->arrived, &d->lock, &look);
	}
	int missing = d->missing;
	pthread_mutex_unlock(&d->lock);
	return missing > 0 ? ls_comm_status(comm) : LS_OK;
}

/* Both ends of a link, as each of them sees it. */
typedef struct line {
	ls_comm *comm;
	int peer, first; /* the other end; whether this is node 0 */
	char *out, *in;
	size_t message;    /* bytes of one */
	double round_trip; /* seconds: the usual one, */
	double quickest;   /* and the shortest */
} line;

/* What node 0 tells the peer to do. */
typedef struct order {
	int64_t out, in; /* messages, as node 0 sees it */
	int64_t bytes;   /* of a message */
} order;

static ls_status word(line *l, int from_first, void *text, size_t bytes)
{
	int mine = ls_comm_rank(l->comm);
	int from = from_first == l->first ? mine : l->peer, to = from == mine ? l->peer : mine;
	return ls_comm_sendrecv(l->comm, from, to, text, text, bytes, "probe of a link");
}

static void address(ls_message *message, desk *d, int peer, int outgoing, void *buffer, size_t bytes)
{
	*message = (ls_message){ .peer = peer,
				 .tag = TAG,
				 .outgoing = outgoing,
				 .buffer = buffer,
				 .bytes = bytes,
				 .what = "probe of a link",
				 .number = -1,
				 .done = message_done,
				 .context = d };
}

/* So many messages each way at once. */
static ls_status swap(line *l, int64_t out, int64_t in)
{
	ls_message messages[2 * LS_LINK_MESSAGES];
	desk d;
	int count = 0;

	desk_open(&d, (int)(out + in));
	for (int64_t i = 0; i < in; i++)
		address(&messages[count++], &d, l->peer, 0, l->in + (size_t)i * l->message, l->message);
	for (int64_t i = 0; i < out; i++)
		address(&messages[count++], &d, l->peer, 1, l->out + (size_t)i * l->message, l->message);
	ls_comm_post_all(l->comm, messages, (size_t)count);
	ls_status status = desk_wait(&d, l->comm);
	desk_close(&d);
	return status;
}

/* Node 0's seconds for one transfer, without the round trip of the words around it: a quick one, for both communication
 * threads are wide awake. */
static ls_status transfer(line *l, order o, double *seconds)
{
	char end[8] = { 0 };
	double start = ls_clock_seconds();

	LS_TRY(word(l, 1, &o, sizeof(o)));
	l->message = (size_t)o.bytes;
	LS_TRY(l->first ? swap(l, o.out, o.in) : swap(l, o.in, o.out));
	LS_TRY(word(l, 0, end, sizeof(end)));
	double taken = ls_clock_seconds() - start;
	*seconds = taken > 2 * l->quickest ? taken - l->quickest : taken / 2;
	return LS_OK;
}

static ls_status ping(line *l)
{
	double taken[PINGS];
	char text[8] = { 0 };

	for (int i = 0; i < PINGS; i++) {
		double start = ls_clock_seconds();
		LS_TRY(word(l, 1, text, sizeof(text)));
		LS_TRY(word(l, 0, text, sizeof(text)));
		taken[i] = ls_clock_seconds() - start;
	}
	l->quickest = taken[0];
	for (int i = 1; i < PINGS; i++)
		l->quickest = taken[i] < l->quickest ? taken[i] : l->quickest;
	l->round_trip = ls_median(taken, PINGS);
	return LS_OK;
}

static ls_status repeat(line *l, order o, int count, double *gbit_per_s)
{
	double taken[REPEATS_MAX];
	for (int i = 0; i < count; i++)
		LS_TRY(transfer(l, o, &taken[i]));
	*gbit_per_s = (double)(o.out > 0 ? o.out : o.in) * (double)o.bytes * 8 / 1e9 / ls_median(taken, (size_t)count);
	return LS_OK;
}

/* Messages that keep the link busy for about as long as wanted. The peer goes by what it is told. */
static size_t choose_message(double seconds, size_t sent, const ls_link_options *o)
{
	double bytes = (double)sent / seconds * o->seconds / LS_LINK_MESSAGES;
	size_t most = o->bytes / LS_LINK_MESSAGES < MESSAGE_MOST ? o->bytes / LS_LINK_MESSAGES : MESSAGE_MOST;

	if (bytes > (double)most)
		return most > MESSAGE_LEAST ? most : MESSAGE_LEAST;
	return bytes > (double)MESSAGE_LEAST ? (size_t)bytes : MESSAGE_LEAST;
}

static ls_status measure(line *l, const ls_link_options *o, ls_probe_link *out)
{
	order all = { .out = LS_LINK_MESSAGES, .in = LS_LINK_MESSAGES, .bytes = (int64_t)MESSAGE_LEAST };
	int count = o->repeat < REPEATS_MAX ? o->repeat : REPEATS_MAX;
	double first = 0;

	LS_TRY(ping(l)); /* wakes the link up, and is forgotten */
	LS_TRY(ping(l));
	LS_TRY(transfer(l, all, &first));
	LS_TRY(transfer(l, all, &first));
	all.bytes = (int64_t)choose_message(first, LS_LINK_MESSAGES * MESSAGE_LEAST, o);
	LS_TRY(transfer(l, all, &first)); /* memory touched, connections at speed */
	out->round_trip_us = l->round_trip * 1e6;
	LS_TRY(repeat(l, (order){ .out = LS_LINK_MESSAGES, .bytes = all.bytes }, count, &out->to_gbit_per_s));
	LS_TRY(repeat(l, (order){ .in = LS_LINK_MESSAGES, .bytes = all.bytes }, count, &out->from_gbit_per_s));
	return repeat(l, all, count, &out->both_gbit_per_s);
}

ls_status ls_link_measure(ls_comm *comm, int peer, const ls_link_options *options, ls_probe_link *out)
{
	int rank = ls_comm_rank(comm);
	line l = { .comm = comm, .peer = rank == 0 ? peer : 0, .first = rank == 0 };
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
	desk d;

	LS_TRY(ls_comm_barrier(comm, "beginning of a library's sum"));
	desk_open(&d, 1);
	address(&message, &d, 0, 2, values, count * sizeof(float));
	message.what = "the library's own sum";
	double start = ls_clock_seconds();
	ls_comm_post(comm, &message);
	ls_status status = desk_wait(&d, comm);
	*seconds = ls_clock_seconds() - start;
	desk_close(&d);
	return status;
}
