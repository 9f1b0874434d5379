/*
 * liveness.c - which nodes are alive, and what is reported when one is not.
 *
 * Every node sends every other a small note several times per second; anything that arrives from a peer shows that it
 * lives. A node that leaves says goodbye in such a note: that it has finished, or why it ends, or what it found out
 * about another node, so that all nodes end with the same cause although only some of them wait for the culprit. A node
 * that is informed of a failure fails, and says goodbye in turn, which acknowledges the message. A node that has
 * finished stays, and is sent heartbeats, until all have said goodbye: one of them may be writing a checkpoint, and
 * must not lose its launcher meanwhile, or it may have died.
 *
 * A peer that is silent is asked beside MPI, too (beacon.h). Its answer shows that it lives and the link is back, so
 * MPI has something to come: for that it is given time, though not without end.
 *
 * Time is the communication thread's own: time that this node spent stopped or suspended does not count as silence of
 * others.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "comm/comm_state.h"

/* After this many heartbeat intervals of silence a peer is asked by the beacon. */
#define BEATS_UNTIL_ASKED 4
/* Times the silence that is allowed: how much later than over MPI a peer may answer the beacon and count as alive. TCP
 * sends again at the latest when as much time has passed as the link was cut, takes that for the time of a round trip,
 * and waits for two of those before it repeats what else was lost: 4.25 times the cut in all. */
#define BEACON_MOST 4
/* How long the other nodes are given to acknowledge a failure: this part of the timeout, at most NEWS_MOST seconds. */
#define NEWS 0.06
#define NEWS_MOST 0.5
/* Once asked to end, wait no longer for a silent node. */
#define SILENCE_HURRIED 3.0
/* A goodbye may overtake messages that were sent before it. */
#define LEFT_GRACE 0.5
#define FAREWELL_NAP 0.001

static double silence_limit(const ls_comm *comm)
{
	double limit = comm->timeout;
	return atomic_load(&comm->hurry) && limit > SILENCE_HURRIED ? SILENCE_HURRIED : limit;
}

double ls_comm_last_sign(const ls_comm *comm, int peer)
{
	const ls_comm_peer *p = &comm->peers[peer];
	double most = p->heard + BEACON_MOST * silence_limit(comm);
	double seen = p->seen < most ? p->seen : most;
	return seen > p->heard ? seen : p->heard;
}

/* Too long is cut. */
__attribute__((format(printf, 1, 2))) static ls_comm_text format_text(const char *format, ...)
{
	ls_comm_text w;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(w.text, sizeof(w.text), format, arguments);
	va_end(arguments);
	return w;
}

static ls_comm_text name_of(const ls_comm *comm, int node)
{
	const char *host = comm->peers[node].host;
	return host[0] ? format_text("node %d (%s)", node, host) : format_text("node %d", node);
}

/* What `who` was waiting for when the peer was lost. */
static ls_comm_text pending_with(const ls_comm *comm, int peer, const char *who)
{
	const ls_message *l = ls_comm_oldest(comm, peer);
	if (!l)
		return format_text("nothing was under way between it and %s", who);
	ls_comm_text number = l->number < 0 ? format_text("%s", "") : format_text(" %lld", (long long)l->number);
	const char *what = l->what ? l->what : "a message";
	if (l->outgoing == 2)
		return format_text("%s was waiting for %s%s of all nodes", who, what, number.text);
	if (l->outgoing)
		return format_text("%s was sending %s%s to it", who, what, number.text);
	return format_text("%s was waiting for %s%s from it", who, what, number.text);
}

/* "node 1 (lm6) <event>; this node was waiting for reduce-scatter of bucket 17 from it" */
static ls_status blame(ls_comm *comm, int peer, const char *event)
{
	ls_comm_text name = name_of(comm, peer), self = name_of(comm, comm->rank);
	ls_comm_text here = pending_with(comm, peer, "this node"), there = pending_with(comm, peer, self.text);
	comm->culprit = peer;
	comm->relay = format_text("%s %s; %s", name.text, event, there.text);
	return ls_fail(LS_EPEER, "%s %s; %s", name.text, event, here.text);
}

static ls_status blame_silence(ls_comm *comm, int peer)
{
	double silence = comm->now - comm->peers[peer].heard;
	ls_comm_text event = format_text("has not responded for %.*f s", silence < 10, silence);
	return blame(comm, peer, event.text);
}

/* The peer itself gives the reason. */
static ls_status blame_ended(ls_comm *comm, int peer, const char *text)
{
	ls_comm_text name = name_of(comm, peer);
	comm->culprit = peer;
	comm->by_itself = 1;
	comm->relay = format_text("%s ended: %s", name.text, text);
	return ls_fail(LS_EPEER, "%s", comm->relay.text);
}

static ls_status blame_relayed(ls_comm *comm, int reporter, const ls_note *note)
{
	int known = note->culprit >= 0 && note->culprit < comm->size;
	comm->culprit = known ? note->culprit : reporter;
	comm->by_itself = note->by_itself;
	comm->declared_dead = comm->culprit == comm->rank;
	comm->relay = format_text("%s", note->text);
	if (comm->declared_dead)
		return ls_fail(LS_EPEER, "the other nodes declared this one dead: %s", note->text);
	return ls_fail(LS_EPEER, "%s", note->text);
}

static int slot_of(int peer, int which)
{
	return peer * LS_SLOTS_PER_PEER + which;
}

static ls_status expect_note(ls_comm *comm, int peer)
{
	ls_transport *t = comm->transport;
	ls_note *note = &comm->peers[peer].note_in;
	return t->ops->receive(t, slot_of(peer, LS_SLOT_NOTE_IN), peer, LS_TAG_ALIVE, note, sizeof(*note), NULL);
}

ls_status ls_comm_begin_notes(ls_comm *comm)
{
	for (int peer = 0; peer < comm->size; peer++) {
		comm->peers[peer].heard = comm->now;
		if (peer != comm->rank)
			LS_TRY(expect_note(comm, peer));
	}
	return LS_OK;
}

/* The peer may have said goodbye with its last note; whether it has. */
static int note_goodbye(ls_comm *comm, int peer)
{
	ls_comm_peer *p = &comm->peers[peer];
	if (p->note_in.kind == LS_NOTE_ALIVE)
		return 0;
	p->left = p->note_in.kind == LS_NOTE_FINISHED ? LS_FINISHES : LS_FAILS;
	p->left_at = comm->now;
	if (!p->host[0])
		snprintf(p->host, sizeof(p->host), "%.*s", LS_HOST_NAME - 1, p->note_in.host);
	return 1;
}

/* The peer has said goodbye, and not because it has finished. */
static ls_status blame_failing(ls_comm *comm, int peer)
{
	const ls_note *note = &comm->peers[peer].note_in;
	return note->kind == LS_NOTE_ENDED ? blame_ended(comm, peer, note->text) : blame_relayed(comm, peer, note);
}

static ls_status take_note(ls_comm *comm, int peer)
{
	ls_note *note = &comm->peers[peer].note_in;
	note->text[LS_NOTE_TEXT - 1] = '\0';
	comm->peers[peer].heard = comm->now;
	if (!note_goodbye(comm, peer))
		return expect_note(comm, peer);
	if (note->kind == LS_NOTE_FINISHED)
		return LS_OK;
	return blame_failing(comm, peer);
}

ls_status ls_comm_alive_done(ls_comm *comm, int slot)
{
	int peer = slot / LS_SLOTS_PER_PEER;
	switch (slot % LS_SLOTS_PER_PEER) {
	case LS_SLOT_NOTE_IN:
		return take_note(comm, peer);
	case LS_SLOT_NOTE_OUT:
		comm->peers[peer].sending = 0;
		break;
	default:
		comm->peers[peer].goodbye = 2;
	}
	return LS_OK;
}

static ls_status send_heartbeat(ls_comm *comm, int peer)
{
	ls_transport *t = comm->transport;
	ls_comm_peer *p = &comm->peers[peer];
	p->sent = (ls_note){ .kind = LS_NOTE_ALIVE };
	p->sending = 1;
	return t->ops->send(t, slot_of(peer, LS_SLOT_NOTE_OUT), peer, LS_TAG_ALIVE, &p->sent, sizeof(p->sent));
}

/* A node that waits for nothing from the peer gives those that do half a beat to report what they wait for. */
static ls_status judge_silence(ls_comm *comm, int peer)
{
	double over = comm->now - ls_comm_last_sign(comm, peer) - silence_limit(comm);
	if (over <= 0 || (over < comm->beat / 2 && !ls_comm_oldest(comm, peer)))
		return LS_OK;
	return blame_silence(comm, peer);
}

static ls_status judge_leaving(ls_comm *comm, int peer)
{
	if (comm->now - comm->peers[peer].left_at > LEFT_GRACE && ls_comm_oldest(comm, peer))
		return blame(comm, peer, "has ended");
	return LS_OK;
}

static const ls_beacon_card *card_of(void *context, int peer)
{
	return &((ls_comm *)context)->peers[peer].card;
}

int ls_comm_is_elsewhere(const ls_comm *comm, int peer)
{
	const char *host = comm->peers[peer].host;
	return host[0] && strcmp(host, comm->peers[comm->rank].host) != 0;
}

static void use_beacon(ls_comm *comm)
{
	int peer;
	while ((peer = ls_beacon_hear(comm->beacon, card_of, comm, comm->size)) >= 0)
		comm->peers[peer].seen = comm->now;
	for (peer = 0; peer < comm->size; peer++) {
		const ls_comm_peer *p = &comm->peers[peer];
		if (peer != comm->rank && !p->left && ls_comm_is_elsewhere(comm, peer) &&
		    comm->now - p->heard > BEATS_UNTIL_ASKED * comm->beat)
			ls_beacon_ask(comm->beacon, card_of(comm, peer));
	}
}

ls_status ls_comm_beat(ls_comm *comm)
{
	int due = comm->now >= comm->next_beat;
	if (due) {
		comm->next_beat = comm->now + comm->beat;
		use_beacon(comm);
	}
	for (int peer = 0; peer < comm->size; peer++) {
		ls_comm_peer *p = &comm->peers[peer];
		if (peer == comm->rank)
			continue;
		if (!p->left)
			LS_TRY(judge_silence(comm, peer));
		else if (due)
			LS_TRY(judge_leaving(comm, peer));
		if (due && p->left != LS_FAILS && !p->sending)
			LS_TRY(send_heartbeat(comm, peer));
	}
	return LS_OK;
}

/* Silent for so long that it may have died. */
static int is_silent(const ls_comm *comm, int peer)
{
	return comm->now - ls_comm_last_sign(comm, peer) > silence_limit(comm) / 2;
}

static int seems_gone(const ls_comm *comm, int peer)
{
	const ls_comm_peer *p = &comm->peers[peer];
	return p->left == LS_FINISHES || (!p->left && is_silent(comm, peer));
}

static void say_goodbye(ls_comm *comm, int peer, const ls_note *note)
{
	ls_transport *t = comm->transport;
	ls_comm_peer *p = &comm->peers[peer];
	if (peer == comm->rank || p->goodbye)
		return;
	p->goodbye_note = *note;
	memcpy(p->goodbye_note.host, comm->peers[comm->rank].host, sizeof(p->goodbye_note.host));
	if (t->ops->send(t, slot_of(peer, LS_SLOT_GOODBYE), peer, LS_TAG_ALIVE, &p->goodbye_note, sizeof(*note)) ==
	    LS_OK)
		p->goodbye = 1;
}

/* A peer that lives has not taken the goodbye. A failure is acknowledged by the peer's own goodbye: a small message may
 * be done for the transport before it is on the wire. One that has finished does not answer. */
static int must_take(const ls_comm *comm, int peer, int answered)
{
	const ls_comm_peer *p = &comm->peers[peer];
	if (!p->goodbye || p->left == LS_FAILS)
		return 0;
	if (p->left == LS_FINISHES)
		return p->goodbye == 1;
	return (answered || p->goodbye == 1) && !is_silent(comm, peer);
}

static int is_awaited(const ls_comm *comm, int answered)
{
	for (int peer = 0; peer < comm->size; peer++) {
		if (must_take(comm, peer, answered))
			return 1;
	}
	return 0;
}

/* Messages are of no interest any more: only whether the goodbye has arrived, or its receiver goes, too. */
static ls_status take_farewells(ls_comm *comm)
{
	int slots[16], count = 0;
	LS_TRY(comm->transport->ops->poll(comm->transport, slots, 16, &count));
	for (int i = 0; i < count; i++) {
		int peer = slots[i] / LS_SLOTS_PER_PEER, heard = slots[i] % LS_SLOTS_PER_PEER == LS_SLOT_NOTE_IN;
		if (peer < comm->size && !(heard && note_goodbye(comm, peer)))
			LS_TRY(ls_comm_alive_done(comm, slots[i]));
	}
	if (count == 0)
		comm->transport->ops->nap(comm->transport, FAREWELL_NAP);
	return LS_OK;
}

void ls_comm_farewell(ls_comm *comm, const ls_note *note, double seconds)
{
	double end = ls_clock_seconds() + seconds;
	int answered = note->kind != LS_NOTE_FINISHED;
	for (int peer = 0; peer < comm->size; peer++)
		say_goodbye(comm, peer, note);
	while (is_awaited(comm, answered) && ls_clock_seconds() < end && take_farewells(comm) == LS_OK)
		;
}

/* Once this node has said goodbye: a moment of waiting for those that have not. */
ls_status ls_comm_stay(ls_comm *comm, int *others)
{
	*others = 0;
	LS_TRY(take_farewells(comm));
	if (comm->now >= comm->next_beat) {
		comm->next_beat = comm->now + comm->beat;
		use_beacon(comm);
	}
	for (int peer = 0; peer < comm->size; peer++) {
		if (peer == comm->rank || comm->peers[peer].left)
			continue;
		LS_TRY(judge_silence(comm, peer));
		++*others;
	}
	return LS_OK;
}

ls_status ls_comm_outcome(ls_comm *comm)
{
	for (int peer = 0; peer < comm->size; peer++) {
		if (comm->peers[peer].left == LS_FAILS)
			return blame_failing(comm, peer);
	}
	return LS_OK;
}

/* Buffers are left alone from here on. */
void ls_comm_abandon(ls_comm *comm)
{
	if (comm->transport->ops->abandon)
		comm->transport->ops->abandon(comm->transport);
}

static int speaks(const ls_comm *comm)
{
	if (comm->culprit == comm->rank)
		return !comm->declared_dead;
	if (comm->by_itself)
		return 0;
	for (int peer = 0; peer < comm->rank; peer++) {
		if (peer != comm->culprit && !seems_gone(comm, peer))
			return 0;
	}
	return 1;
}

static void call_wakes(ls_comm *comm)
{
	pthread_mutex_lock(&comm->wake_lock);
	for (int i = 0; i < LS_COMM_WAKES; i++) {
		if (comm->wakes[i].wake)
			comm->wakes[i].wake(comm->wakes[i].context);
	}
	pthread_mutex_unlock(&comm->wake_lock);
}

/* The other nodes are informed before the threads of this one, which then release their buffers. */
void ls_comm_fail(ls_comm *comm, ls_status status)
{
	ls_note note = { .kind = LS_NOTE_RELAYED };
	char message[sizeof(comm->message)];
	snprintf(message, sizeof(message), "%s", ls_last_error());
	if (comm->culprit < 0) {
		comm->culprit = comm->rank;
		note.kind = LS_NOTE_ENDED;
		comm->relay = format_text("%s", message);
	}
	note.culprit = comm->culprit;
	note.by_itself = comm->by_itself;
	memcpy(note.text, comm->relay.text, sizeof(note.text));
	atomic_store(&comm->speaker, speaks(comm));
	double news = NEWS * comm->timeout;
	if (!comm->declared_dead)
		ls_comm_farewell(comm, &note, news < NEWS_MOST ? news : NEWS_MOST);
	ls_comm_abandon(comm);
	pthread_mutex_lock(&comm->lock);
	comm->status = status;
	memcpy(comm->message, message, sizeof(message));
	atomic_store(&comm->failed, 1);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	call_wakes(comm);
}
