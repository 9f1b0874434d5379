/*
 * comm.c - the communication thread and its interface.
 *
 * The thread's loop: take in what was posted, start what may be started, handle what has arrived, do a unit of
 * background work, send heartbeats. When a pass found nothing to do it naps. How long is a matter of cost: MPI over TCP
 * moves data only while it is polled, but polling without a pause takes the core that computes.
 */
#include "comm/comm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "comm/comm_state.h"

/*
 * Naps while messages are under way: short just after something happened, for more is likely to come, and doubled until
 * the long one. Asked every 500 us, with several messages under way, MPI carries the full 1 Gbit/s at a tenth of a
 * core.
 */
#define NAP_SHORT 50e-6
#define NAP_LONG 500e-6

/* Heartbeats: often enough that a few may be late within the timeout. */
#define BEAT_MOST 0.25
#define BEATS_PER_TIMEOUT 8
/* This many beats without running, and the node was stopped. */
#define BEATS_AWAY 4

/* At the end, of the timeout and in seconds: for outgoing messages under way, and for the goodbye. */
#define DRAIN 0.5
#define DRAIN_MOST 5.0
#define GOODBYE_MOST 1.0

enum { LS_TAG_HOST = LS_TAG_ALIVE + 1, POLLED = 64 };

/* The communication thread that the calling thread is, if any: it need not wake itself. */
static _Thread_local const ls_comm *this_thread;

static double least(double a, double b)
{
	return a < b ? a : b;
}

static void read_clock(ls_comm *comm)
{
	double clock = ls_clock_seconds(), gone = clock - comm->clock;
	if (gone > BEATS_AWAY * comm->beat)
		comm->away += gone - comm->beat;
	comm->clock = clock;
	comm->now = clock - comm->away;
}

static void take_inbox(ls_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	ls_message *message = comm->inbox.first;
	ls_message_list_init(&comm->inbox);
	pthread_mutex_unlock(&comm->lock);
	comm->restless = 0;
	while (message) {
		ls_message *next = message->next;
		ls_comm_queue(comm, message);
		message = next;
	}
}

static ls_status take_done(ls_comm *comm, int *busy)
{
	int slots[POLLED], count = 0;
	LS_TRY(comm->transport->ops->poll(comm->transport, slots, POLLED, &count));
	for (int i = 0; i < count; i++) {
		if (slots[i] < LS_SLOTS_PER_PEER * comm->size) {
			LS_TRY(ls_comm_alive_done(comm, slots[i]));
			continue;
		}
		ls_message *message = ls_comm_take_message(comm, slots[i]);
		if (message->check)
			LS_TRY(message->check(message->context, message));
		if (message->done)
			message->done(message->context, message);
		*busy = 1;
	}
	return LS_OK;
}

static int do_work(ls_comm *comm)
{
	int busy = 0;
	pthread_mutex_lock(&comm->work_lock);
	if (comm->work)
		busy = comm->work(comm->work_context);
	pthread_mutex_unlock(&comm->work_lock);
	return busy;
}

static void nap(ls_comm *comm)
{
	double to_beat = comm->next_beat - comm->now;
	if (comm->messages > 0) {
		comm->transport->ops->nap(comm->transport, least(comm->nap, to_beat));
		comm->nap = least(2 * comm->nap, NAP_LONG);
	} else {
		comm->transport->ops->nap(comm->transport, to_beat);
	}
}

static ls_status run_once(ls_comm *comm)
{
	int busy = 0;
	read_clock(comm);
	take_inbox(comm);
	LS_TRY(ls_comm_start_messages(comm, &busy));
	LS_TRY(take_done(comm, &busy));
	busy |= do_work(comm);
	LS_TRY(ls_comm_beat(comm));
	if (busy || comm->restless)
		comm->nap = NAP_SHORT;
	else if (comm->next_beat > comm->now)
		nap(comm);
	return LS_OK;
}

static int is_stopped(ls_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	int stop = comm->stop;
	pthread_mutex_unlock(&comm->lock);
	return stop;
}

static int has_posts(ls_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	int posts = comm->inbox.first != NULL;
	pthread_mutex_unlock(&comm->lock);
	return posts;
}

/* This node has finished, and waits until all have, for as long as they live. An error where one of them has not. */
static ls_status await_others(ls_comm *comm)
{
	int others = 1;
	while (others) {
		read_clock(comm);
		LS_TRY(ls_comm_stay(comm, &others));
	}
	return ls_comm_outcome(comm);
}

/* This node goes, and nothing is wrong: what it has posted is delivered first. Or it goes for the reason given. */
static ls_status depart(ls_comm *comm)
{
	double end = ls_clock_seconds() + least(DRAIN * comm->timeout, DRAIN_MOST);
	ls_note note = { .kind = comm->reason[0] ? LS_NOTE_ENDED : LS_NOTE_FINISHED, .culprit = comm->rank };
	while (!comm->reason[0] && (comm->outgoing_left > 0 || has_posts(comm)) && ls_clock_seconds() < end)
		LS_TRY(run_once(comm));
	snprintf(note.text, sizeof(note.text), "%s", comm->reason);
	ls_comm_farewell(comm, &note, least(comm->timeout / 4, GOODBYE_MOST));
	if (!comm->reason[0])
		return await_others(comm);
	ls_comm_abandon(comm);
	return LS_OK;
}

static void await_stop(ls_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	while (!comm->stop)
		pthread_cond_wait(&comm->changed, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
}

static void *run_thread(void *argument)
{
	ls_comm *comm = argument;
	this_thread = comm;
	comm->clock = ls_clock_seconds();
	read_clock(comm);
	ls_status status = ls_comm_begin_notes(comm);
	while (!status && !is_stopped(comm))
		status = run_once(comm);
	if (!status)
		status = depart(comm);
	if (status) {
		ls_comm_fail(comm, status);
		await_stop(comm);
	}
	return NULL;
}

static void host_arrived(void *context, ls_message *message)
{
	ls_comm *comm = context;
	ls_comm_peer *p = &comm->peers[message->peer];
	if (!message->outgoing) {
		snprintf(p->host, sizeof(p->host), "%.*s", LS_HOST_NAME - 1, p->received_host.host);
		p->card = p->received_host.card;
	}
	pthread_mutex_lock(&comm->lock);
	comm->names_missing--;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
}

static void post_hosts(ls_comm *comm)
{
	const char *name = comm->peers[comm->rank].host;
	for (int peer = 0; peer < comm->size; peer++) {
		ls_comm_peer *p = &comm->peers[peer];
		if (peer == comm->rank)
			continue;
		snprintf(p->sent_host.host, sizeof(p->sent_host.host), "%s", name);
		p->sent_host.card = ls_beacon_own_card(comm->beacon);
		for (int outgoing = 0; outgoing < 2; outgoing++) {
			p->host_messages[outgoing] =
				(ls_message){ .peer = peer,
					      .tag = LS_TAG_HOST,
					      .outgoing = outgoing,
					      .buffer = outgoing ? &p->sent_host : &p->received_host,
					      .bytes = sizeof(p->sent_host),
					      .what = outgoing ? "the name of this host" : "the name of its host",
					      .number = -1,
					      .done = host_arrived,
					      .context = comm };
		}
		ls_comm_post_all(comm, p->host_messages, 2);
	}
}

static ls_status introduce(ls_comm *comm)
{
	post_hosts(comm);
	pthread_mutex_lock(&comm->lock);
	while (comm->names_missing > 0 && !atomic_load(&comm->failed))
		pthread_cond_wait(&comm->changed, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
	return ls_comm_status(comm);
}

static void release(ls_comm *comm)
{
	if (!comm)
		return;
	pthread_mutex_destroy(&comm->work_lock);
	pthread_mutex_destroy(&comm->wake_lock);
	pthread_cond_destroy(&comm->changed);
	pthread_mutex_destroy(&comm->lock);
	ls_beacon_free(comm->beacon);
	free(comm->slot_numbers);
	free(comm->under_way);
	free(comm->peers);
	free(comm);
}

static void set_options(ls_comm *comm, const ls_comm_options *options)
{
	comm->transport = options->transport;
	comm->rank = options->transport->rank;
	comm->size = options->transport->size;
	comm->timeout = options->timeout;
	comm->beat = least(BEAT_MOST, options->timeout / BEATS_PER_TIMEOUT);
	comm->window = options->window;
	comm->work = options->work;
	comm->work_context = options->context;
	comm->names_missing = 2 * (comm->size - 1);
	comm->culprit = -1;
	comm->nap = NAP_SHORT;
}

static ls_comm *comm_alloc(const ls_comm_options *options)
{
	size_t slots = (size_t)options->transport->slots;
	ls_comm *comm = calloc(1, sizeof(*comm));
	if (!comm)
		return NULL;
	pthread_mutex_init(&comm->lock, NULL);
	pthread_cond_init(&comm->changed, NULL);
	pthread_mutex_init(&comm->wake_lock, NULL);
	pthread_mutex_init(&comm->work_lock, NULL);
	set_options(comm, options);
	comm->peers = calloc((size_t)comm->size, sizeof(*comm->peers));
	comm->under_way = calloc(slots, sizeof(ls_message *));
	comm->slot_numbers = calloc(slots, sizeof(*comm->slot_numbers));
	if (!comm->peers || !comm->under_way || !comm->slot_numbers) {
		release(comm);
		return NULL;
	}
	ls_message_list_init(&comm->inbox);
	ls_message_list_init(&comm->incoming);
	ls_message_list_init(&comm->sums);
	ls_comm_divide_slots(comm);
	/* Before the thread starts, which compares it with other nodes' names. */
	gethostname(comm->peers[comm->rank].host, LS_HOST_NAME - 1);
	comm->speaker_s = options->speaker_s;
	if (options->beacon)
		comm->beacon = ls_beacon_new(comm->rank);
	return comm;
}

static ls_status check(const ls_comm_options *options)
{
	const ls_transport *t = options->transport;
	if (!(options->timeout > 0))
		return ls_fail(LS_EINVALID, "the timeout must be positive, not %g", options->timeout);
	if (t->slots < ls_comm_slots_least(t->size))
		return ls_fail(LS_EINVALID, "a transport between %d nodes with %d slots: at least %d are needed",
			       t->size, t->slots, ls_comm_slots_least(t->size));
	return LS_OK;
}

ls_status ls_comm_new(ls_comm **out, const ls_comm_options *options)
{
	ls_transport *transport = options->transport;
	ls_comm *comm = NULL;
	ls_status status = check(options);
	int error;
	if (status)
		goto fail;
	transport->patience = options->timeout;
	if (!(comm = comm_alloc(options))) {
		status = ls_fail(LS_EMEMORY, "not enough memory for messages between %d nodes", transport->size);
		goto fail;
	}
	if ((error = ls_thread_start(&comm->thread, run_thread, comm))) {
		status = ls_fail(LS_EMEMORY, "cannot start the thread that carries messages: %s", strerror(error));
		goto fail;
	}
	status = introduce(comm);
	if (status) {
		ls_comm_free(comm, NULL);
		return status;
	}
	*out = comm;
	return LS_OK;
fail:
	release(comm);
	if (transport->ops->abandon)
		transport->ops->abandon(transport); /* the others do not get to their end without this node */
	transport->ops->free(transport);
	return status;
}

ls_status ls_comm_free(ls_comm *comm, const char *failed)
{
	if (!comm)
		return LS_OK;
	ls_transport *transport = comm->transport;
	pthread_mutex_lock(&comm->lock);
	if (failed)
		snprintf(comm->reason, sizeof(comm->reason), "%s", failed[0] ? failed : "no reason given");
	comm->stop = 1;
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	transport->ops->wake(transport);
	pthread_join(comm->thread, NULL);
	/* First: its operations may use buffers of the communication thread. */
	ls_status status = transport->ops->free(transport);
	if (!failed && ls_comm_has_failed(comm))
		status = ls_comm_status(comm);
	release(comm);
	return status;
}

int ls_comm_rank(const ls_comm *comm)
{
	return comm->rank;
}

int ls_comm_size(const ls_comm *comm)
{
	return comm->size;
}

const char *ls_comm_host(const ls_comm *comm, int node)
{
	return comm->peers[node].host;
}

void ls_comm_set_work(ls_comm *comm, int (*work)(void *context), void *context)
{
	pthread_mutex_lock(&comm->work_lock);
	comm->work = work;
	comm->work_context = context;
	pthread_mutex_unlock(&comm->work_lock);
	ls_comm_wake(comm);
}

/* The inbox takes messages; returns whether it was empty. After a failure messages are dropped: their posters have been
 * woken. */
static int put_in(ls_comm *comm, ls_message *messages, size_t count)
{
	double now = ls_clock_seconds();
	pthread_mutex_lock(&comm->lock);
	int empty = !comm->inbox.first;
	for (size_t i = 0; i < count && !atomic_load(&comm->failed); i++) {
		assert(messages[i].outgoing == 2 || (messages[i].peer >= 0 && messages[i].peer < comm->size));
		messages[i].posted = now;
		ls_message_list_append(&comm->inbox, &messages[i]);
	}
	pthread_mutex_unlock(&comm->lock);
	return empty;
}

void ls_comm_post_all(ls_comm *comm, ls_message *messages, size_t count)
{
	if (count > 0 && put_in(comm, messages, count))
		ls_comm_wake(comm);
}

void ls_comm_post(ls_comm *comm, ls_message *message)
{
	ls_comm_post_all(comm, message, 1);
}

void ls_comm_wake(ls_comm *comm)
{
	if (this_thread == comm)
		comm->restless = 1;
	else
		comm->transport->ops->wake(comm->transport);
}

ls_status ls_comm_status(ls_comm *comm)
{
	if (!atomic_load(&comm->failed))
		return LS_OK;
	pthread_mutex_lock(&comm->lock);
	ls_status status = ls_fail(comm->status, "%s", comm->message);
	pthread_mutex_unlock(&comm->lock);
	return status;
}

int ls_comm_has_failed(const ls_comm *comm)
{
	return atomic_load_explicit(&comm->failed, memory_order_acquire);
}

const char *ls_comm_relayed(const ls_comm *comm)
{
	return comm->relay.text;
}

double ls_comm_speaker_seconds(const ls_comm *comm)
{
	return comm->speaker_s;
}

int ls_comm_is_speaker(const ls_comm *comm)
{
	return ls_comm_has_failed(comm) && atomic_load(&comm->speaker);
}

/* The entry with this context, or a free one. */
static ls_comm_wake_call *wake_call(ls_comm *comm, void *context)
{
	ls_comm_wake_call *vacant = NULL;
	for (int i = 0; i < LS_COMM_WAKES; i++) {
		ls_comm_wake_call *call = &comm->wakes[i];
		if (call->wake && call->context == context)
			return call;
		if (!call->wake && !vacant)
			vacant = call;
	}
	return vacant;
}

void ls_comm_on_failure(ls_comm *comm, void (*wake)(void *context), void *context)
{
	pthread_mutex_lock(&comm->wake_lock);
	ls_comm_wake_call *call = wake_call(comm, context);
	int late = wake && ls_comm_has_failed(comm);
	assert(call || !wake);
	if (call)
		*call = (ls_comm_wake_call){ .wake = late ? NULL : wake, .context = context };
	if (late)
		wake(context);
	pthread_mutex_unlock(&comm->wake_lock);
}

ls_traffic ls_comm_traffic(const ls_comm *comm, int peer)
{
	uint64_t value[4];
	for (int i = 0; i < 4; i++)
		value[i] = atomic_load_explicit(&comm->peers[peer].traffic[i], memory_order_relaxed);
	return (ls_traffic){ value[0], value[1], value[2], value[3] };
}

void ls_comm_hurry(ls_comm *comm)
{
	atomic_store(&comm->hurry, 1);
	ls_comm_wake(comm);
}
