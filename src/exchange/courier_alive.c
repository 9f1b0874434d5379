/*
 * courier_alive.c - who is alive, and what is said when somebody is not.
 *
 * Every node sends every other a small note a few times a second; anything that arrives from a peer shows that it
 * lives. A node that goes says goodbye in such a note: it has finished, or why it ends, or what it found out about
 * another node, so that all nodes end with the same cause although only some of them wait for the culprit. A node that
 * hears of a failure fails, and says goodbye in turn: so the first one knows that its news has arrived. A node that has
 * finished stays, and is sent heartbeats, until all have said goodbye: one of them may be writing a checkpoint, and
 * must not lose its launcher meanwhile, or it may have died.
 *
 * A peer that is silent is asked beside MPI, too (beacon.h). Its answer shows that it lives and the link is back, so
 * MPI has something to come: for that it is given time, though not without end.
 *
 * Time is the courier's own: what this node spent stopped or suspended is nobody else's silence.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "exchange/courier_state.h"

/* Beats without a word, and a peer is asked by the beacon. */
#define BEATS_UNTIL_ASKED 4
/* Times the silence that is allowed: how much later than over MPI a peer may answer the beacon and count as alive. TCP
 * sends again at the latest when as much time has passed as the link was cut, takes that for the time of a round trip,
 * and waits for two of those before it repeats what else was lost: 4.25 times the cut in all. */
#define BEACON_MOST 4
/* Of the timeout: how long the other nodes are given to take the news, at most so many seconds. */
#define NEWS 0.06
#define NEWS_MOST 0.5
/* Once asked to end, wait no longer for a silent node. */
#define SILENCE_HURRIED 3.0
/* A goodbye may overtake letters that were sent before it. */
#define LEFT_GRACE 0.5
#define FAREWELL_NAP 0.001

static double silence_limit(const ls_courier *courier)
{
	double limit = courier->timeout;
	return atomic_load(&courier->hurry) && limit > SILENCE_HURRIED ? SILENCE_HURRIED : limit;
}

double ls_courier_last_sign(const ls_courier *courier, int peer)
{
	const ls_courier_peer *p = &courier->peers[peer];
	double most = p->heard + BEACON_MOST * silence_limit(courier);
	double seen = p->seen < most ? p->seen : most;
	return seen > p->heard ? seen : p->heard;
}

/* Too long is cut. */
__attribute__((format(printf, 1, 2))) static ls_words say(const char *format, ...)
{
	ls_words w;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(w.text, sizeof w.text, format, arguments);
	va_end(arguments);
	return w;
}

static ls_words name_of(const ls_courier *courier, int node)
{
	const char *host = courier->peers[node].host;
	return host[0] ? say("node %d (%s)", node, host) : say("node %d", node);
}

/* What `who` was about when the peer was lost. */
static ls_words affair(const ls_courier *courier, int peer, const char *who)
{
	const ls_letter *l = ls_courier_oldest(courier, peer);
	if (!l)
		return say("nothing was under way between it and %s", who);
	ls_words number = l->number < 0 ? say("%s", "") : say(" %lld", (long long)l->number);
	const char *what = l->what ? l->what : "a letter";
	if (l->outgoing == 2)
		return say("%s was waiting for %s%s of all nodes", who, what, number.text);
	if (l->outgoing)
		return say("%s was sending %s%s to it", who, what, number.text);
	return say("%s was waiting for %s%s from it", who, what, number.text);
}

/* "node 1 (lm6) <event>; this node was waiting for push of bucket 17 from it" */
static ls_status blame(ls_courier *courier, int peer, const char *event)
{
	ls_words name = name_of(courier, peer), self = name_of(courier, courier->rank);
	ls_words here = affair(courier, peer, "this node"), there = affair(courier, peer, self.text);
	courier->culprit = peer;
	courier->relay = say("%s %s; %s", name.text, event, there.text);
	return ls_fail(LS_EPEER, "%s %s; %s", name.text, event, here.text);
}

static ls_status blame_silence(ls_courier *courier, int peer)
{
	double silence = courier->now - courier->peers[peer].heard;
	ls_words event = say("has not responded for %.*f s", silence < 10, silence);
	return blame(courier, peer, event.text);
}

/* The peer says itself why it ends. */
static ls_status blame_ended(ls_courier *courier, int peer, const char *text)
{
	ls_words name = name_of(courier, peer);
	courier->culprit = peer;
	courier->by_itself = 1;
	courier->relay = say("%s ended: %s", name.text, text);
	return ls_fail(LS_EPEER, "%s", courier->relay.text);
}

static ls_status blame_relayed(ls_courier *courier, int teller, const ls_note *note)
{
	int known = note->culprit >= 0 && note->culprit < courier->size;
	courier->culprit = known ? note->culprit : teller;
	courier->by_itself = note->by_itself;
	courier->given_up = courier->culprit == courier->rank;
	courier->relay = say("%s", note->text);
	if (courier->given_up)
		return ls_fail(LS_EPEER, "the other nodes declared this one dead: %s", note->text);
	return ls_fail(LS_EPEER, "%s", note->text);
}

static int slot_of(int peer, int which)
{
	return peer * LS_SLOTS_A_PEER + which;
}

static ls_status hear_next(ls_courier *courier, int peer)
{
	ls_transport *t = courier->transport;
	ls_note *note = &courier->peers[peer].hearing;
	return t->ops->receive(t, slot_of(peer, LS_SLOT_HEAR), peer, LS_TAG_ALIVE, note, sizeof *note, NULL);
}

ls_status ls_courier_begin_hearing(ls_courier *courier)
{
	for (int peer = 0; peer < courier->size; peer++) {
		courier->peers[peer].heard = courier->now;
		if (peer != courier->rank)
			LS_TRY(hear_next(courier, peer));
	}
	return LS_OK;
}

/* The peer may have said goodbye with its last note; whether it has. */
static int see_off(ls_courier *courier, int peer)
{
	ls_courier_peer *p = &courier->peers[peer];
	if (p->hearing.kind == LS_NOTE_ALIVE)
		return 0;
	p->left = p->hearing.kind == LS_NOTE_FINISHED ? LS_FINISHES : LS_FAILS;
	p->left_at = courier->now;
	return 1;
}

/* The peer has said goodbye, and not because it has finished. */
static ls_status blame_failing(ls_courier *courier, int peer)
{
	const ls_note *note = &courier->peers[peer].hearing;
	return note->kind == LS_NOTE_ENDED ? blame_ended(courier, peer, note->text)
					   : blame_relayed(courier, peer, note);
}

static ls_status hear(ls_courier *courier, int peer)
{
	ls_note *note = &courier->peers[peer].hearing;
	note->text[LS_NOTE_TEXT - 1] = '\0';
	courier->peers[peer].heard = courier->now;
	if (!see_off(courier, peer))
		return hear_next(courier, peer);
	if (note->kind == LS_NOTE_FINISHED)
		return LS_OK;
	return blame_failing(courier, peer);
}

ls_status ls_courier_alive_done(ls_courier *courier, int slot)
{
	int peer = slot / LS_SLOTS_A_PEER;
	switch (slot % LS_SLOTS_A_PEER) {
	case LS_SLOT_HEAR:
		return hear(courier, peer);
	case LS_SLOT_TELL:
		courier->peers[peer].telling = 0;
		break;
	default:
		courier->peers[peer].goodbye = 2;
	}
	return LS_OK;
}

static ls_status tell(ls_courier *courier, int peer)
{
	ls_transport *t = courier->transport;
	ls_courier_peer *p = &courier->peers[peer];
	p->told = (ls_note){ .kind = LS_NOTE_ALIVE };
	p->telling = 1;
	return t->ops->send(t, slot_of(peer, LS_SLOT_TELL), peer, LS_TAG_ALIVE, &p->told, sizeof p->told);
}

/* Who waits for nothing of the peer gives those who do half a beat to say what they wait for. */
static ls_status judge_silence(ls_courier *courier, int peer)
{
	double over = courier->now - ls_courier_last_sign(courier, peer) - silence_limit(courier);
	if (over <= 0 || (over < courier->beat / 2 && !ls_courier_oldest(courier, peer)))
		return LS_OK;
	return blame_silence(courier, peer);
}

static ls_status judge_leaving(ls_courier *courier, int peer)
{
	if (courier->now - courier->peers[peer].left_at > LEFT_GRACE && ls_courier_oldest(courier, peer))
		return blame(courier, peer, "has ended");
	return LS_OK;
}

static const ls_beacon_card *card_of(void *context, int peer)
{
	return &((ls_courier *)context)->peers[peer].card;
}

int ls_courier_is_elsewhere(const ls_courier *courier, int peer)
{
	const char *host = courier->peers[peer].host;
	return host[0] && strcmp(host, courier->peers[courier->rank].host) != 0;
}

static void use_beacon(ls_courier *courier)
{
	int peer;
	while ((peer = ls_beacon_hear(courier->beacon, card_of, courier, courier->size)) >= 0)
		courier->peers[peer].seen = courier->now;
	for (peer = 0; peer < courier->size; peer++) {
		const ls_courier_peer *p = &courier->peers[peer];
		if (peer != courier->rank && !p->left && ls_courier_is_elsewhere(courier, peer) &&
		    courier->now - p->heard > BEATS_UNTIL_ASKED * courier->beat)
			ls_beacon_ask(courier->beacon, card_of(courier, peer));
	}
}

ls_status ls_courier_beat(ls_courier *courier)
{
	int due = courier->now >= courier->next_beat;
	if (due) {
		courier->next_beat = courier->now + courier->beat;
		use_beacon(courier);
	}
	for (int peer = 0; peer < courier->size; peer++) {
		ls_courier_peer *p = &courier->peers[peer];
		if (peer == courier->rank)
			continue;
		if (!p->left)
			LS_TRY(judge_silence(courier, peer));
		else if (due)
			LS_TRY(judge_leaving(courier, peer));
		if (due && p->left != LS_FAILS && !p->telling)
			LS_TRY(tell(courier, peer));
	}
	return LS_OK;
}

/* So long that it may be gone. */
static int is_silent(const ls_courier *courier, int peer)
{
	return courier->now - ls_courier_last_sign(courier, peer) > silence_limit(courier) / 2;
}

static int seems_gone(const ls_courier *courier, int peer)
{
	const ls_courier_peer *p = &courier->peers[peer];
	return p->left == LS_FINISHES || (!p->left && is_silent(courier, peer));
}

static void say_goodbye(ls_courier *courier, int peer, const ls_note *note)
{
	ls_transport *t = courier->transport;
	ls_courier_peer *p = &courier->peers[peer];
	if (peer == courier->rank || p->goodbye)
		return;
	p->goodbye_note = *note;
	if (t->ops->send(t, slot_of(peer, LS_SLOT_GOODBYE), peer, LS_TAG_ALIVE, &p->goodbye_note, sizeof *note) ==
	    LS_OK)
		p->goodbye = 1;
}

/* A peer that lives has not taken the goodbye. News of a failure are taken when they are answered: a small letter may
 * be done for the transport before it is on the wire. One that has finished does not answer. */
static int must_take(const ls_courier *courier, int peer, int answered)
{
	const ls_courier_peer *p = &courier->peers[peer];
	if (!p->goodbye || p->left == LS_FAILS)
		return 0;
	if (p->left == LS_FINISHES)
		return p->goodbye == 1;
	return (answered || p->goodbye == 1) && !is_silent(courier, peer);
}

static int is_awaited(const ls_courier *courier, int answered)
{
	for (int peer = 0; peer < courier->size; peer++) {
		if (must_take(courier, peer, answered))
			return 1;
	}
	return 0;
}

/* Letters are of no interest any more: only whether the goodbye has arrived, or its receiver goes, too. */
static ls_status take_farewells(ls_courier *courier)
{
	int slots[16], count = 0;
	LS_TRY(courier->transport->ops->poll(courier->transport, slots, 16, &count));
	for (int i = 0; i < count; i++) {
		int peer = slots[i] / LS_SLOTS_A_PEER, heard = slots[i] % LS_SLOTS_A_PEER == LS_SLOT_HEAR;
		if (peer < courier->size && !(heard && see_off(courier, peer)))
			LS_TRY(ls_courier_alive_done(courier, slots[i]));
	}
	if (count == 0)
		courier->transport->ops->nap(courier->transport, FAREWELL_NAP);
	return LS_OK;
}

void ls_courier_farewell(ls_courier *courier, const ls_note *note, double seconds)
{
	double end = ls_clock_seconds() + seconds;
	int answered = note->kind != LS_NOTE_FINISHED;
	for (int peer = 0; peer < courier->size; peer++)
		say_goodbye(courier, peer, note);
	while (is_awaited(courier, answered) && ls_clock_seconds() < end && take_farewells(courier) == LS_OK)
		;
}

/* Once this node has said goodbye: a moment of waiting for those that have not. */
ls_status ls_courier_stay(ls_courier *courier, int *others)
{
	*others = 0;
	LS_TRY(take_farewells(courier));
	if (courier->now >= courier->next_beat) {
		courier->next_beat = courier->now + courier->beat;
		use_beacon(courier);
	}
	for (int peer = 0; peer < courier->size; peer++) {
		if (peer == courier->rank || courier->peers[peer].left)
			continue;
		LS_TRY(judge_silence(courier, peer));
		++*others;
	}
	return LS_OK;
}

ls_status ls_courier_outcome(ls_courier *courier)
{
	for (int peer = 0; peer < courier->size; peer++) {
		if (courier->peers[peer].left == LS_FAILS)
			return blame_failing(courier, peer);
	}
	return LS_OK;
}

/* Buffers are left alone from here on. */
void ls_courier_abandon(ls_courier *courier)
{
	if (courier->transport->ops->abandon)
		courier->transport->ops->abandon(courier->transport);
}

static int speaks(const ls_courier *courier)
{
	if (courier->culprit == courier->rank)
		return !courier->given_up;
	if (courier->by_itself)
		return 0;
	for (int peer = 0; peer < courier->rank; peer++) {
		if (peer != courier->culprit && !seems_gone(courier, peer))
			return 0;
	}
	return 1;
}

static void call_wakes(ls_courier *courier)
{
	pthread_mutex_lock(&courier->wake_lock);
	for (int i = 0; i < LS_COURIER_WAKES; i++) {
		if (courier->wakes[i].wake)
			courier->wakes[i].wake(courier->wakes[i].context);
	}
	pthread_mutex_unlock(&courier->wake_lock);
}

/* The news goes out before anybody here knows, for then buffers are given back. */
void ls_courier_fail(ls_courier *courier, ls_status status)
{
	ls_note note = { .kind = LS_NOTE_RELAYED };
	char message[sizeof courier->message];
	snprintf(message, sizeof message, "%s", ls_last_error());
	if (courier->culprit < 0) {
		courier->culprit = courier->rank;
		note.kind = LS_NOTE_ENDED;
		courier->relay = say("%s", message);
	}
	note.culprit = courier->culprit;
	note.by_itself = courier->by_itself;
	memcpy(note.text, courier->relay.text, sizeof note.text);
	atomic_store(&courier->speaker, speaks(courier));
	double news = NEWS * courier->timeout;
	if (!courier->given_up)
		ls_courier_farewell(courier, &note, news < NEWS_MOST ? news : NEWS_MOST);
	ls_courier_abandon(courier);
	pthread_mutex_lock(&courier->lock);
	courier->status = status;
	memcpy(courier->message, message, sizeof message);
	atomic_store(&courier->failed, 1);
	pthread_cond_broadcast(&courier->changed);
	pthread_mutex_unlock(&courier->lock);
	call_wakes(courier);
}
