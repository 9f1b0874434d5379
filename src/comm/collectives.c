/*
 * collectives.c - broadcast, gather, allgather, sendrecv and barrier over messages.
 *
 * All messages have one tag: calls are made in the same order by all nodes and messages between two nodes arrive in
 * order, so messages of different calls cannot be confused. They go behind whatever of the last step is still to be
 * sent: a peer may need that to finish its step, and takes nothing collected before.
 *
 * Cost for N nodes and M bytes, on links that carry a byte in b seconds and a message in a:
 *
 *     broadcast, up to a part      ceil(log2 N) (a + M b)           a binomial tree
 *     broadcast, larger            M b + (N - 2) part b             a chain: every node takes all and passes all on,
 *                                                                   parts one behind the other
 *     gather                       a + (N - 1) M b                  straight to the root, large ones in parts
 *     allgather                    gather to node 0, broadcast of N M bytes
 *     barrier                      an allgather of nothing
 */
#include "comm/collectives.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* Large enough that a message's own cost does not matter, small beside what makes a broadcast worth a pipeline. */
#define PART ((size_t)1 << 20)

enum {
	DEPTH = 4,     /* parts under way at once to or from a neighbour */
	CHILDREN = 31, /* of a node in the tree: more than log2 of any number of nodes */
	GATHERED = 16, /* messages of different nodes under way to the root */
	LOOK_MS = 50   /* how often to look whether the communication thread has failed */
};

/* Where the caller waits for its messages. */
typedef struct desk {
	ls_comm *comm;
	const char *what;
	pthread_mutex_t lock;
	pthread_cond_t arrived;
} desk;

typedef struct parcel {
	ls_message message; /* first: `done` is given it */
	int done;
} parcel;

static void desk_open(desk *d, ls_comm *comm, const char *what)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&d->arrived, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_mutex_init(&d->lock, NULL);
	d->comm = comm;
	d->what = what;
}

static void desk_close(desk *d)
{
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->arrived);
}

static void parcel_arrived(void *context, ls_message *message)
{
	desk *d = context;
	pthread_mutex_lock(&d->lock);
	((parcel *)message)->done = 1;
	pthread_cond_signal(&d->arrived);
	pthread_mutex_unlock(&d->lock);
}

static void parcel_post(desk *d, parcel *p, int outgoing, int peer, void *buffer, size_t bytes)
{
	*p = (parcel){ .message = { .peer = peer,
				    .tag = LS_TAG_COLLECT,
				    .outgoing = outgoing,
				    .buffer = buffer,
				    .bytes = bytes,
				    .urgency = INT64_MAX,
				    .what = d->what,
				    .number = -1,
				    .done = parcel_arrived,
				    .context = d } };
	ls_comm_post(d->comm, &p->message);
}

static struct timespec next_look(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += LOOK_MS * 1000000L;
	if (t.tv_nsec >= 1000000000L) {
		t.tv_nsec -= 1000000000L;
		t.tv_sec++;
	}
	return t;
}

/* Once the communication thread has failed it leaves messages and buffers alone, so they may go with the caller's
 * stack. */
static ls_status parcel_await(desk *d, const parcel *p)
{
	pthread_mutex_lock(&d->lock);
	while (!p->done && !ls_comm_has_failed(d->comm)) {
		struct timespec look = next_look();
		pthread_cond_timedwait(&d->arrived, &d->lock, &look);
	}
	int done = p->done;
	pthread_mutex_unlock(&d->lock);
	return done ? LS_OK : ls_comm_status(d->comm);
}

/* The node that a node receives from, and those it passes the data on to. */
typedef struct route {
	int parent; /* -1: the root's */
	int children, child[CHILDREN];
} route;

/* Nodes are counted from the root. Node p's parent is p without its lowest bit, its children add a bit below that. */
static route tree_route(int place, int size, int root)
{
	int lowest = place & -place;
	route r = { .parent = place ? (place - lowest + root) % size : -1 };
	for (int bit = 1; bit < size && (!place || bit < lowest); bit *= 2) {
		if (place + bit < size)
			r.child[r.children++] = (place + bit + root) % size;
	}
	return r;
}

static route chain_route(int place, int size, int root)
{
	route r = { .parent = place ? (place - 1 + root) % size : -1 };
	if (place + 1 < size)
		r.child[r.children++] = (place + 1 + root) % size;
	return r;
}

typedef struct pipeline {
	desk *desk;
	route route;
	char *buffer;
	size_t bytes, parts;
	parcel in[DEPTH], out[DEPTH][CHILDREN]; /* part k's are [k % DEPTH] */
} pipeline;

static size_t part_bytes(const pipeline *p, size_t k)
{
	return k + 1 < p->parts ? PART : p->bytes - k * PART;
}

static void take_part(pipeline *p, size_t k)
{
	if (p->route.parent >= 0 && k < p->parts)
		parcel_post(p->desk, &p->in[k % DEPTH], 0, p->route.parent, p->buffer + k * PART, part_bytes(p, k));
}

static void pass_part(pipeline *p, size_t k)
{
	for (int i = 0; i < p->route.children; i++)
		parcel_post(p->desk, &p->out[k % DEPTH][i], 1, p->route.child[i], p->buffer + k * PART,
			    part_bytes(p, k));
}

static ls_status await_passed(pipeline *p, size_t k)
{
	for (int i = 0; i < p->route.children; i++)
		LS_TRY(parcel_await(p->desk, &p->out[k % DEPTH][i]));
	return LS_OK;
}

static ls_status run_pipeline(pipeline *p)
{
	for (size_t k = 0; k < DEPTH; k++)
		take_part(p, k);
	for (size_t k = 0; k < p->parts; k++) {
		if (p->route.parent >= 0)
			LS_TRY(parcel_await(p->desk, &p->in[k % DEPTH]));
		take_part(p, k + DEPTH);
		if (k >= DEPTH)
			LS_TRY(await_passed(p, k - DEPTH));
		pass_part(p, k);
	}
	for (size_t k = p->parts > DEPTH ? p->parts - DEPTH : 0; k < p->parts; k++)
		LS_TRY(await_passed(p, k));
	return LS_OK;
}

static ls_status broadcast(desk *d, int root, void *buffer, size_t bytes)
{
	int size = ls_comm_size(d->comm), place = (ls_comm_rank(d->comm) - root + size) % size;
	pipeline p = { .desk = d, .buffer = buffer, .bytes = bytes, .parts = (bytes + PART - 1) / PART };
	p.route = p.parts > 1 ? chain_route(place, size, root) : tree_route(place, size, root);
	return run_pipeline(&p);
}

/* From one node to another, in parts. Called by these two. */
static ls_status move(desk *d, int from, int to, void *buffer, size_t bytes)
{
	pipeline p = { .desk = d, .buffer = buffer, .bytes = bytes, .parts = (bytes + PART - 1) / PART };
	p.route = (route){ .parent = from };
	if (ls_comm_rank(d->comm) == from)
		p.route = (route){ .parent = -1, .children = 1, .child = { to } };
	return run_pipeline(&p);
}

/* Messages of up to a part, a few at a time. */
static ls_status take_small(desk *d, size_t bytes, char *all)
{
	int size = ls_comm_size(d->comm), rank = ls_comm_rank(d->comm);
	parcel parcels[GATHERED];
	for (int i = 1; i < size + GATHERED; i++) {
		parcel *p = &parcels[i % GATHERED];
		int peer = (rank + i) % size;
		if (i > GATHERED && i - GATHERED < size)
			LS_TRY(parcel_await(d, p));
		if (i < size)
			parcel_post(d, p, 0, peer, all + (size_t)peer * bytes, bytes);
	}
	return LS_OK;
}

static ls_status take_large(desk *d, size_t bytes, char *all)
{
	int size = ls_comm_size(d->comm), rank = ls_comm_rank(d->comm);
	for (int i = 1; i < size; i++) {
		int peer = (rank + i) % size;
		LS_TRY(move(d, peer, rank, all + (size_t)peer * bytes, bytes));
	}
	return LS_OK;
}

static void copy(void *target, const void *source, size_t bytes)
{
	if (bytes && target != source)
		memmove(target, source, bytes);
}

static ls_status gather(desk *d, int root, const void *mine, size_t bytes, char *all)
{
	int rank = ls_comm_rank(d->comm);
	void *sent = (void *)(uintptr_t)mine; /* only read */
	if (rank == root) {
		copy(all + (size_t)rank * bytes, mine, bytes);
		return bytes > PART ? take_large(d, bytes, all) : take_small(d, bytes, all);
	}
	if (bytes > PART)
		return move(d, rank, root, sent, bytes);
	parcel p;
	parcel_post(d, &p, 1, root, sent, bytes);
	return parcel_await(d, &p);
}

static int is_alone(const ls_comm *comm)
{
	return !comm || ls_comm_size(comm) == 1;
}

ls_status ls_comm_broadcast(ls_comm *comm, int root, void *buffer, size_t bytes, const char *what)
{
	desk d;
	if (is_alone(comm))
		return LS_OK;
	desk_open(&d, comm, what);
	ls_status status = broadcast(&d, root, buffer, bytes);
	desk_close(&d);
	return status;
}

ls_status ls_comm_gather(ls_comm *comm, int root, const void *mine, size_t bytes, void *all, const char *what)
{
	desk d;
	if (is_alone(comm)) {
		copy(all, mine, bytes);
		return LS_OK;
	}
	desk_open(&d, comm, what);
	ls_status status = gather(&d, root, mine, bytes, all);
	desk_close(&d);
	return status;
}

ls_status ls_comm_allgather(ls_comm *comm, const void *mine, size_t bytes, void *all, const char *what)
{
	LS_TRY(ls_comm_gather(comm, 0, mine, bytes, all, what));
	size_t size = comm ? (size_t)ls_comm_size(comm) : 1;
	return ls_comm_broadcast(comm, 0, all, size * bytes, what);
}

ls_status ls_comm_sendrecv(ls_comm *comm, int from, int to, const void *source, void *target, size_t bytes,
			   const char *what)
{
	int rank = comm ? ls_comm_rank(comm) : from;
	if (rank != from && rank != to)
		return LS_OK;
	if (from == to) {
		copy(target, source, bytes);
		return LS_OK;
	}
	desk d;
	desk_open(&d, comm, what);
	ls_status status = move(&d, from, to, rank == from ? (void *)(uintptr_t)source : target, bytes);
	desk_close(&d);
	return status;
}

ls_status ls_comm_barrier(ls_comm *comm, const char *what)
{
	char here = 1;
	desk d;
	if (is_alone(comm))
		return LS_OK;
	desk_open(&d, comm, what);
	ls_status status = gather(&d, 0, &here, 0, &here);
	if (!status)
		status = broadcast(&d, 0, &here, 1);
	desk_close(&d);
	return status;
}
