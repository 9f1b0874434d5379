/*
 * courier.c - the thread, and what others may ask of it.
 *
 * The thread goes round: take in what was posted, start what may be started, see what has arrived, do a piece of work,
 * tell the others that it lives. When a round brought nothing it naps. How long is a matter of cost: MPI over TCP moves
 * data only while it is asked, but asking without a pause takes the core that computes.
 */
#include "exchange/courier.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "exchange/courier_state.h"

/*
 * Naps while letters are under way: short just after something happened, for more is likely to come, and doubled until
 * the long one. Asked every 500 us, with several letters under way, MPI carries the full 1 Gbit/s at a tenth of a core.
 */
#define NAP_SHORT 50e-6
#define NAP_LONG 500e-6

/* Heartbeats: often enough that a few may be late within the timeout. */
#define BEAT_MOST 0.25
#define BEATS_A_TIMEOUT 8
/* This many beats without running, and the node was stopped. */
#define BEATS_AWAY 4

/* At the end, of the timeout and in seconds: for outgoing letters under way, and for the goodbye. */
#define DRAIN 0.5
#define DRAIN_MOST 5.0
#define GOODBYE_MOST 1.0

enum { LS_TAG_HOST = LS_TAG_ALIVE + 1, POLLED = 64 };

/* The courier whose thread this is, if any: it need not wake itself. */
static _Thread_local const ls_courier *this_thread;

static double least(double a, double b)
{
	return a < b ? a : b;
}

static void read_clock(ls_courier *courier)
{
	double clock = ls_clock_seconds(), gone = clock - courier->clock;
	if (gone > BEATS_AWAY * courier->beat)
		courier->away += gone - courier->beat;
	courier->clock = clock;
	courier->now = clock - courier->away;
}

static void take_inbox(ls_courier *courier)
{
	pthread_mutex_lock(&courier->lock);
	ls_letter *letter = courier->inbox.first;
	ls_letter_list_init(&courier->inbox);
	pthread_mutex_unlock(&courier->lock);
	courier->restless = 0;
	while (letter) {
		ls_letter *next = letter->next;
		ls_courier_queue(courier, letter);
		letter = next;
	}
}

static ls_status take_done(ls_courier *courier, int *busy)
{
	int slots[POLLED], count = 0;
	LS_TRY(courier->transport->ops->poll(courier->transport, slots, POLLED, &count));
	for (int i = 0; i < count; i++) {
		if (slots[i] < LS_SLOTS_A_PEER * courier->size) {
			LS_TRY(ls_courier_alive_done(courier, slots[i]));
			continue;
		}
		ls_letter *letter = ls_courier_take_letter(courier, slots[i]);
		if (letter->check)
			LS_TRY(letter->check(letter->context, letter));
		if (letter->done)
			letter->done(letter->context, letter);
		*busy = 1;
	}
	return LS_OK;
}

static int do_work(ls_courier *courier)
{
	int busy = 0;
	pthread_mutex_lock(&courier->work_lock);
	if (courier->work)
		busy = courier->work(courier->work_context);
	pthread_mutex_unlock(&courier->work_lock);
	return busy;
}

static void nap(ls_courier *courier)
{
	double to_beat = courier->next_beat - courier->now;
	if (courier->letters > 0) {
		courier->transport->ops->nap(courier->transport, least(courier->nap, to_beat));
		courier->nap = least(2 * courier->nap, NAP_LONG);
	} else {
		courier->transport->ops->nap(courier->transport, to_beat);
	}
}

static ls_status go_round(ls_courier *courier)
{
	int busy = 0;
	read_clock(courier);
	take_inbox(courier);
	LS_TRY(ls_courier_start_letters(courier, &busy));
	LS_TRY(take_done(courier, &busy));
	busy |= do_work(courier);
	LS_TRY(ls_courier_beat(courier));
	if (busy || courier->restless)
		courier->nap = NAP_SHORT;
	else if (courier->next_beat > courier->now)
		nap(courier);
	return LS_OK;
}

static int is_stopped(ls_courier *courier)
{
	pthread_mutex_lock(&courier->lock);
	int stop = courier->stop;
	pthread_mutex_unlock(&courier->lock);
	return stop;
}

static int has_posts(ls_courier *courier)
{
	pthread_mutex_lock(&courier->lock);
	int posts = courier->inbox.first != NULL;
	pthread_mutex_unlock(&courier->lock);
	return posts;
}

/* This node has finished, and waits until all have, for as long as they live. An error where one of them has not. */
static ls_status await_others(ls_courier *courier)
{
	int others = 1;
	while (others) {
		read_clock(courier);
		LS_TRY(ls_courier_stay(courier, &others));
	}
	return ls_courier_outcome(courier);
}

/* This node goes, and nothing is wrong: what it has posted is delivered first. Or it goes for the reason given. */
static ls_status depart(ls_courier *courier)
{
	double end = ls_clock_seconds() + least(DRAIN * courier->timeout, DRAIN_MOST);
	ls_note note = { .kind = courier->reason[0] ? LS_NOTE_ENDED : LS_NOTE_FINISHED, .culprit = courier->rank };
	while (!courier->reason[0] && (courier->outgoing_left > 0 || has_posts(courier)) && ls_clock_seconds() < end)
		LS_TRY(go_round(courier));
	snprintf(note.text, sizeof note.text, "%s", courier->reason);
	ls_courier_farewell(courier, &note, least(courier->timeout / 4, GOODBYE_MOST));
	if (!courier->reason[0])
		return await_others(courier);
	ls_courier_abandon(courier);
	return LS_OK;
}

static void await_stop(ls_courier *courier)
{
	pthread_mutex_lock(&courier->lock);
	while (!courier->stop)
		pthread_cond_wait(&courier->changed, &courier->lock);
	pthread_mutex_unlock(&courier->lock);
}

static void *live(void *argument)
{
	ls_courier *courier = argument;
	this_thread = courier;
	courier->clock = ls_clock_seconds();
	read_clock(courier);
	ls_status status = ls_courier_begin_hearing(courier);
	while (!status && !is_stopped(courier))
		status = go_round(courier);
	if (!status)
		status = depart(courier);
	if (status) {
		ls_courier_fail(courier, status);
		await_stop(courier);
	}
	return NULL;
}

static void host_arrived(void *context, ls_letter *letter)
{
	ls_courier *courier = context;
	ls_courier_peer *p = &courier->peers[letter->peer];
	if (!letter->outgoing) {
		snprintf(p->host, sizeof p->host, "%.*s", LS_HOST_NAME - 1, p->heard_host.host);
		p->card = p->heard_host.card;
	}
	pthread_mutex_lock(&courier->lock);
	courier->names_missing--;
	pthread_cond_broadcast(&courier->changed);
	pthread_mutex_unlock(&courier->lock);
}

static void post_hosts(ls_courier *courier)
{
	const char *name = courier->peers[courier->rank].host;
	for (int peer = 0; peer < courier->size; peer++) {
		ls_courier_peer *p = &courier->peers[peer];
		if (peer == courier->rank)
			continue;
		snprintf(p->told_host.host, sizeof p->told_host.host, "%s", name);
		p->told_host.card = ls_beacon_own_card(courier->beacon);
		for (int outgoing = 0; outgoing < 2; outgoing++) {
			p->host_letters[outgoing] =
				(ls_letter){ .peer = peer,
					     .tag = LS_TAG_HOST,
					     .outgoing = outgoing,
					     .buffer = outgoing ? &p->told_host : &p->heard_host,
					     .bytes = sizeof p->told_host,
					     .what = outgoing ? "the name of this host" : "the name of its host",
					     .number = -1,
					     .done = host_arrived,
					     .context = courier };
		}
		ls_courier_post_all(courier, p->host_letters, 2);
	}
}

static ls_status meet(ls_courier *courier)
{
	post_hosts(courier);
	pthread_mutex_lock(&courier->lock);
	while (courier->names_missing > 0 && !atomic_load(&courier->failed))
		pthread_cond_wait(&courier->changed, &courier->lock);
	pthread_mutex_unlock(&courier->lock);
	return ls_courier_status(courier);
}

static void release(ls_courier *courier)
{
	if (!courier)
		return;
	pthread_mutex_destroy(&courier->work_lock);
	pthread_mutex_destroy(&courier->wake_lock);
	pthread_cond_destroy(&courier->changed);
	pthread_mutex_destroy(&courier->lock);
	ls_beacon_free(courier->beacon);
	free(courier->slot_numbers);
	free(courier->under_way);
	free(courier->peers);
	free(courier);
}

static void set_options(ls_courier *courier, const ls_courier_options *options)
{
	courier->transport = options->transport;
	courier->rank = options->transport->rank;
	courier->size = options->transport->size;
	courier->timeout = options->timeout;
	courier->beat = least(BEAT_MOST, options->timeout / BEATS_A_TIMEOUT);
	courier->window = options->window;
	courier->work = options->work;
	courier->work_context = options->context;
	courier->names_missing = 2 * (courier->size - 1);
	courier->culprit = -1;
	courier->nap = NAP_SHORT;
}

static ls_courier *courier_alloc(const ls_courier_options *options)
{
	size_t slots = (size_t)options->transport->slots;
	ls_courier *courier = calloc(1, sizeof *courier);
	if (!courier)
		return NULL;
	pthread_mutex_init(&courier->lock, NULL);
	pthread_cond_init(&courier->changed, NULL);
	pthread_mutex_init(&courier->wake_lock, NULL);
	pthread_mutex_init(&courier->work_lock, NULL);
	set_options(courier, options);
	courier->peers = calloc((size_t)courier->size, sizeof *courier->peers);
	courier->under_way = calloc(slots, sizeof(ls_letter *));
	courier->slot_numbers = calloc(slots, sizeof *courier->slot_numbers);
	if (!courier->peers || !courier->under_way || !courier->slot_numbers) {
		release(courier);
		return NULL;
	}
	ls_letter_list_init(&courier->inbox);
	ls_letter_list_init(&courier->incoming);
	ls_letter_list_init(&courier->sums);
	ls_courier_divide_slots(courier);
	/* Before the thread starts, which compares it with other nodes' names. */
	gethostname(courier->peers[courier->rank].host, LS_HOST_NAME - 1);
	if (options->beacon)
		courier->beacon = ls_beacon_new(courier->rank);
	return courier;
}

static ls_status check(const ls_courier_options *options)
{
	const ls_transport *t = options->transport;
	if (!(options->timeout > 0))
		return ls_fail(LS_EINVALID, "the timeout must be positive, not %g", options->timeout);
	if (t->slots < ls_courier_slots_least(t->size))
		return ls_fail(LS_EINVALID, "a transport between %d nodes with %d slots: at least %d are needed",
			       t->size, t->slots, ls_courier_slots_least(t->size));
	return LS_OK;
}

ls_status ls_courier_new(ls_courier **out, const ls_courier_options *options)
{
	ls_transport *transport = options->transport;
	ls_courier *courier = NULL;
	ls_status status = check(options);
	int error;
	if (status)
		goto fail;
	transport->patience = options->timeout;
	if (!(courier = courier_alloc(options))) {
		status = ls_fail(LS_EMEMORY, "not enough memory for letters between %d nodes", transport->size);
		goto fail;
	}
	if ((error = ls_thread_start(&courier->thread, live, courier))) {
		status = ls_fail(LS_EMEMORY, "cannot start the thread that carries letters: %s", strerror(error));
		goto fail;
	}
	status = meet(courier);
	if (status) {
		ls_courier_free(courier, NULL);
		return status;
	}
	*out = courier;
	return LS_OK;
fail:
	release(courier);
	if (transport->ops->abandon)
		transport->ops->abandon(transport); /* the others do not get to their end without this node */
	transport->ops->free(transport);
	return status;
}

ls_status ls_courier_free(ls_courier *courier, const char *failed)
{
	if (!courier)
		return LS_OK;
	ls_transport *transport = courier->transport;
	pthread_mutex_lock(&courier->lock);
	if (failed)
		snprintf(courier->reason, sizeof courier->reason, "%s", failed[0] ? failed : "no reason given");
	courier->stop = 1;
	pthread_cond_broadcast(&courier->changed);
	pthread_mutex_unlock(&courier->lock);
	transport->ops->wake(transport);
	pthread_join(courier->thread, NULL);
	/* First: its operations may use buffers of the courier. */
	ls_status status = transport->ops->free(transport);
	if (!failed && ls_courier_has_failed(courier))
		status = ls_courier_status(courier);
	release(courier);
	return status;
}

int ls_courier_rank(const ls_courier *courier)
{
	return courier->rank;
}

int ls_courier_size(const ls_courier *courier)
{
	return courier->size;
}

const char *ls_courier_host(const ls_courier *courier, int node)
{
	return courier->peers[node].host;
}

void ls_courier_set_work(ls_courier *courier, int (*work)(void *context), void *context)
{
	pthread_mutex_lock(&courier->work_lock);
	courier->work = work;
	courier->work_context = context;
	pthread_mutex_unlock(&courier->work_lock);
	ls_courier_wake(courier);
}

/* The inbox takes letters; returns whether it was empty. After a failure they are nobody's: their posters know. */
static int put_in(ls_courier *courier, ls_letter *letters, size_t count)
{
	double now = ls_clock_seconds();
	pthread_mutex_lock(&courier->lock);
	int empty = !courier->inbox.first;
	for (size_t i = 0; i < count && !atomic_load(&courier->failed); i++) {
		assert(letters[i].outgoing == 2 || (letters[i].peer >= 0 && letters[i].peer < courier->size));
		letters[i].posted = now;
		ls_letter_list_append(&courier->inbox, &letters[i]);
	}
	pthread_mutex_unlock(&courier->lock);
	return empty;
}

void ls_courier_post_all(ls_courier *courier, ls_letter *letters, size_t count)
{
	if (count > 0 && put_in(courier, letters, count))
		ls_courier_wake(courier);
}

void ls_courier_post(ls_courier *courier, ls_letter *letter)
{
	ls_courier_post_all(courier, letter, 1);
}

void ls_courier_wake(ls_courier *courier)
{
	if (this_thread == courier)
		courier->restless = 1;
	else
		courier->transport->ops->wake(courier->transport);
}

ls_status ls_courier_status(ls_courier *courier)
{
	if (!atomic_load(&courier->failed))
		return LS_OK;
	pthread_mutex_lock(&courier->lock);
	ls_status status = ls_fail(courier->status, "%s", courier->message);
	pthread_mutex_unlock(&courier->lock);
	return status;
}

int ls_courier_has_failed(const ls_courier *courier)
{
	return atomic_load_explicit(&courier->failed, memory_order_acquire);
}

int ls_courier_is_speaker(const ls_courier *courier)
{
	return ls_courier_has_failed(courier) && atomic_load(&courier->speaker);
}

/* The entry with this context, or a free one. */
static ls_courier_wake_call *wake_call(ls_courier *courier, void *context)
{
	ls_courier_wake_call *vacant = NULL;
	for (int i = 0; i < LS_COURIER_WAKES; i++) {
		ls_courier_wake_call *call = &courier->wakes[i];
		if (call->wake && call->context == context)
			return call;
		if (!call->wake && !vacant)
			vacant = call;
	}
	return vacant;
}

void ls_courier_on_failure(ls_courier *courier, void (*wake)(void *context), void *context)
{
	pthread_mutex_lock(&courier->wake_lock);
	ls_courier_wake_call *call = wake_call(courier, context);
	int late = wake && ls_courier_has_failed(courier);
	assert(call || !wake);
	if (call)
		*call = (ls_courier_wake_call){ .wake = late ? NULL : wake, .context = context };
	if (late)
		wake(context);
	pthread_mutex_unlock(&courier->wake_lock);
}

ls_traffic ls_courier_traffic(const ls_courier *courier, int peer)
{
	uint64_t value[4];
	for (int i = 0; i < 4; i++)
		value[i] = atomic_load_explicit(&courier->peers[peer].traffic[i], memory_order_relaxed);
	return (ls_traffic){ value[0], value[1], value[2], value[3] };
}

void ls_courier_hurry(ls_courier *courier)
{
	atomic_store(&courier->hurry, 1);
	ls_courier_wake(courier);
}
