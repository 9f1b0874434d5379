/*
 * Nodes that stop, never come, fail or finish: every other node ends right after the timeout, not before, with a
 * message that names the node, its host and what was waited for, and one node speaks.
 */
#include <stddef.h>
#include <stdint.h>

#include "comm/collectives.h"
#include "comm/comm_state.h"
#include "comm/init.h"
#include "unit/comm/thread_nodes.h"
#include "unit/exchange/lost_end.h"
#include "unit/test_main.h"

enum { SEED = 20250319, SLOTS = 128 };

static char host[LS_HOST_NAME]; /* of this machine */

static int read_host(void **state)
{
	(void)state;
	return gethostname(host, sizeof(host) - 1);
}

/* "node 1 (lm6)<rest>" begins the message. */
static int begins(const char *message, int node, const char *rest)
{
	char expected[512];
	snprintf(expected, sizeof(expected), "node %d (%s)%s", node, host, rest);
	return strncmp(message, expected, strlen(expected)) == 0;
}

static ls_message bucket_17(nodes_member *m, int outgoing, int peer, int *value)
{
	return (ls_message){ .peer = peer,
			     .tag = 5,
			     .outgoing = outgoing,
			     .buffer = value,
			     .bytes = sizeof(*value),
			     .what = "reduce-scatter of bucket",
			     .number = 17,
			     .done = nodes_arrived,
			     .context = m };
}

typedef struct stop {
	int who;   /* stops */
	int waits; /* waits for a message from it; -1: none does */
	int hurry;
	_Atomic(int) ended; /* nodes that have noticed */
	_Atomic(int) speakers, wakes;
} stop;

static int be_stopped(void *context)
{
	stop *s = context;
	for (int i = 0; atomic_load(&s->ended) == 0 && i < NODES_PATIENCE * 100; i++)
		nodes_sleep(0.01);
	nodes_sleep(0.2); /* the news has gone round */
	return 0;
}

static void count_wake(void *context)
{
	atomic_fetch_add(&((stop *)context)->wakes, 1);
}

/* Who comes late is woken at once. */
static void check_wakes(nodes_member *m)
{
	stop late = { .who = 0 };
	ls_comm_on_failure(m->comm, count_wake, &late);
	NODES_CHECK(m, atomic_load(&late.wakes) == 1);
}

static void see_one_stop(nodes_member *m)
{
	stop *s = m->nodes->context;
	int value = 0;
	ls_message message = bucket_17(m, 0, s->who, &value);
	NODES_CHECK(m, ls_comm_barrier(m->comm, "the start") == LS_OK);
	if (m->rank == s->who) {
		ls_comm_set_work(m->comm, be_stopped, s);
		be_stopped(s);
		m->reason = "it has been stopped"; /* the others are gone: there is no node to wait for */
		return;
	}
	if (m->rank == s->waits)
		ls_comm_post(m->comm, &message);
	ls_comm_on_failure(m->comm, count_wake, s);
	NODES_CHECK(m, !ls_comm_is_speaker(m->comm));
	if (s->hurry)
		ls_comm_hurry(m->comm);
	NODES_CHECK(m, nodes_await_failure(m) == LS_EPEER);
	NODES_CHECK(m, atomic_load(&m->arrived) == 0);
	atomic_fetch_add(&s->speakers, ls_comm_is_speaker(m->comm));
	check_wakes(m);
	atomic_fetch_add(&s->ended, 1);
	m->reason = m->message; /* as a program would */
}

typedef struct stop_case {
	int size;
	double timeout; /* no node ends before, unless it was asked to end */
	double limit;   /* all nodes have ended: the timeout, and seconds more for a busy machine */
	stop stop;
	int wrong;
} stop_case;

static void check_end(stop_case *c, nodes_member *m)
{
	if (m->rank == c->stop.who)
		return;
	fprintf(stderr, "# node %d after %.2f s: %s\n", m->rank, m->lived, m->message);
	NODES_CHECK(m, begins(m->message, c->stop.who, " has not responded for "));
	NODES_CHECK(m, m->lived < c->limit);
	NODES_CHECK(m, c->stop.hurry || m->lived >= c->timeout);
	NODES_CHECK(m, c->stop.waits < 0 || strstr(m->message, "was waiting for reduce-scatter of bucket 17 from it"));
	c->wrong += m->wrong;
}

static void *one_stops(void *argument)
{
	stop_case *c = argument;
	nodes_member members[NODES_MAX];
	nodes all = { .size = c->size, .slots = SLOTS, .timeout = c->timeout, .seed = SEED };
	all.play = see_one_stop;
	all.context = &c->stop;
	c->wrong = nodes_run(&all, members);
	for (int rank = 0; rank < c->size; rank++)
		check_end(c, &members[rank]);
	c->wrong += atomic_load(&c->stop.speakers) != 1 || atomic_load(&c->stop.wakes) != c->size - 1;
	return NULL;
}

/* The last one, the first one, and one when the others are in a hurry: which do not wait
 * for the timeout. At the same time, for they mostly wait. */
static void a_stopped_node_is_named(void **state)
{
	(void)state;
	stop_case cases[] = {
		{ .size = 4, .timeout = 3, .limit = 9, .stop = { .who = 3, .waits = 1 } },
		{ .size = 3, .timeout = 3, .limit = 9, .stop = { .who = 0, .waits = -1 } },
		{ .size = 2, .timeout = 40, .limit = 15, .stop = { .who = 1, .waits = 0, .hurry = 1 } },
	};
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, one_stops, &cases[i]), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cases[i].wrong, 0);
}

/* Seconds. As much is left of the timeout for a busy machine to go on in. */
#define PAUSE 3.0
#define PAUSE_TIMEOUT 6.0

static int be_stopped_for_a_while(void *context)
{
	_Atomic(int) *once = context;
	if (!atomic_exchange(once, 1))
		nodes_sleep(PAUSE);
	return 0;
}

static void see_one_pause(nodes_member *m)
{
	_Atomic(int) *once = m->nodes->context;
	NODES_CHECK(m, ls_comm_barrier(m->comm, "the start") == LS_OK);
	if (m->rank == 1)
		ls_comm_set_work(m->comm, be_stopped_for_a_while, once);
	for (int i = 0; m->rank == 1 && !atomic_load(once) && i < NODES_PATIENCE * 100; i++)
		nodes_sleep(0.01);
	NODES_CHECK(m, ls_comm_barrier(m->comm, "the end") == LS_OK);
}

/* Silence of less than the timeout ends no node. */
static void a_node_that_goes_on_in_time_is_not_given_up(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	_Atomic(int) once = 0;
	nodes c = { .size = 3, .slots = SLOTS, .timeout = PAUSE_TIMEOUT, .seed = SEED, .play = see_one_pause };
	c.context = (void *)&once;
	assert_int_equal(nodes_run(&c, members), 0);
	for (int rank = 0; rank < 3; rank++)
		assert_true(members[rank].lived >= PAUSE);
}

static _Atomic(int) has_met; /* nodes know each other: a note before that is another failure */

static void *hear_it(void *argument)
{
	nodes_member *m = argument;
	ls_comm_options options = { .transport = m->transport, .timeout = 15 };
	m->born = ls_comm_new(&m->comm, &options);
	atomic_store(&has_met, 1);
	if (m->born)
		return NULL;
	NODES_CHECK(m, nodes_await_failure(m) == LS_EPEER);
	NODES_CHECK(m, !ls_comm_is_speaker(m->comm));
	ls_comm_free(m->comm, m->message);
	return NULL;
}

/* What a node that was stopped finds when it goes on. The other node is played by hand. */
static void a_node_learns_that_it_was_given_up(void **state)
{
	(void)state;
	ls_transport *t[2];
	pthread_t thread;
	ls_introduction names[2] = { { .host = "elsewhere" } };
	ls_note note = { .kind = LS_NOTE_RELAYED, .culprit = 0, .text = "node 0 (here) has not responded for 9 s" };
	nodes_member m = { .rank = 0 };
	assert_int_equal(ls_threads_transports(t, 2, SLOTS, SEED), LS_OK);
	m.transport = t[0];
	assert_int_equal(t[1]->ops->send(t[1], 0, 0, LS_TAG_ALIVE + 1, &names[0], sizeof(names[0])), LS_OK);
	assert_int_equal(t[1]->ops->receive(t[1], 1, 0, LS_TAG_ALIVE + 1, &names[1], sizeof(names[1]), NULL), LS_OK);
	atomic_store(&has_met, 0);
	assert_int_equal(pthread_create(&thread, NULL, hear_it, &m), 0);
	for (int i = 0; !atomic_load(&has_met) && i < NODES_PATIENCE * 100; i++)
		nodes_sleep(0.01);
	assert_int_equal(t[1]->ops->send(t[1], 2, 0, LS_TAG_ALIVE, &note, sizeof(note)), LS_OK);
	pthread_join(thread, NULL);
	t[1]->ops->free(t[1]);
	assert_string_equal(names[1].host, host);
	assert_int_equal(m.born | m.wrong, 0);
	assert_string_equal(m.message, "the other nodes declared this one dead: "
				       "node 0 (here) has not responded for 9 s");
}

static void nothing(nodes_member *m)
{
	(void)m;
}

static void a_node_that_never_comes_is_named(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 3, .slots = SLOTS, .timeout = 2, .seed = SEED, .play = nothing, .absent = 2 };
	assert_int_equal(nodes_run(&c, members), 0);
	for (int rank = 0; rank < 2; rank++) {
		assert_int_equal(members[rank].born, LS_EPEER);
		assert_null(members[rank].comm);
		if (strncmp(members[rank].message, "node 2 has not responded for ", 29) != 0 ||
		    !strstr(members[rank].message, "was waiting for the name of its host from it"))
			fail_msg("node %d: %s", rank, members[rank].message);
		assert_in_range((int)(1000 * members[rank].lived), 2000, 8000);
	}
}

static void one_fails(nodes_member *m)
{
	if (m->rank == 1) {
		nodes_sleep(0.05);
		m->reason = "the disk is full";
		return;
	}
	NODES_CHECK(m, nodes_await_failure(m) == LS_EPEER);
	NODES_CHECK(m, begins(m->message, 1, " ended: the disk is full"));
	NODES_CHECK(m, !strchr(m->message, ';'));
	NODES_CHECK(m, !ls_comm_is_speaker(m->comm));
	m->reason = m->message;
}

static void a_node_says_why_it_ends(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = NODES_MAX, .slots = SLOTS, .timeout = 60, .seed = SEED, .play = one_fails };
	assert_int_equal(nodes_run(&c, members), 0);
	for (int rank = 0; rank < NODES_MAX; rank++)
		assert_true(members[rank].lived < NODES_PATIENCE); /* not by silence */
}

#define FINISHED_TIMEOUT 3.0

/* Node 2 has finished; the others go on for longer than the timeout, until node 0 wants something of it. */
static void one_finishes(nodes_member *m)
{
	int value = m->rank, got = -1;
	ls_message last = bucket_17(m, 0, 2, &got);
	if (m->rank == 2)
		return;
	nodes_sleep(FINISHED_TIMEOUT + 0.5);
	NODES_CHECK(m, ls_comm_status(m->comm) == LS_OK);
	NODES_CHECK(m, ls_comm_sendrecv(m->comm, 1, 0, &value, &got, sizeof(value), "a message") == LS_OK);
	NODES_CHECK(m, m->rank != 0 || got == 1);
	if (m->rank == 0)
		ls_comm_post(m->comm, &last);
	NODES_CHECK(m, nodes_await_failure(m) == LS_EPEER);
	NODES_CHECK(m, begins(m->message, 2, " has ended; "));
	NODES_CHECK(m, strstr(m->message, "was waiting for reduce-scatter of bucket 17 from it"));
	NODES_CHECK(m, (strstr(m->message, "; this node was") != NULL) == (m->rank == 0));
	NODES_CHECK(m, ls_comm_is_speaker(m->comm) == (m->rank == 0));
}

static void a_node_that_has_finished_is_not_missed(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 3, .slots = SLOTS, .timeout = FINISHED_TIMEOUT, .seed = SEED, .play = one_finishes };
	assert_int_equal(nodes_run(&c, members), 0);
	assert_true(members[2].gone < NODES_PATIENCE); /* it hears how the others end */
	assert_int_equal(members[2].end, LS_EPEER);
	assert_non_null(strstr(members[2].end_message, "was waiting for reduce-scatter of bucket 17 from it"));
}

/* Node 0 is busy for longer than the timeout, but alive; the others have finished. */
static void be_busy(nodes_member *m)
{
	if (m->rank == 0)
		nodes_sleep(FINISHED_TIMEOUT + 0.5);
}

static void a_node_that_has_finished_waits_for_those_that_live(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 3, .slots = SLOTS, .timeout = FINISHED_TIMEOUT, .seed = SEED, .play = be_busy };
	assert_int_equal(nodes_run(&c, members), 0);
	for (int rank = 0; rank < 3; rank++) {
		assert_true(members[rank].gone >= FINISHED_TIMEOUT + 0.5 && members[rank].gone < 4 * FINISHED_TIMEOUT);
		assert_int_equal(members[rank].end, LS_OK);
	}
}

static int be_stopped_until_others_go(void *context)
{
	nodes *c = context;
	for (int i = 0; atomic_load(&c->freed) < c->size - 1 && i < NODES_PATIENCE * 100; i++)
		nodes_sleep(0.01);
	return 0;
}

/* Node 0 stops: the others, which have finished, wait for the timeout and go. */
static void stop_at_the_end(nodes_member *m)
{
	NODES_CHECK(m, ls_comm_barrier(m->comm, "the start") == LS_OK);
	if (m->rank == 0) {
		ls_comm_set_work(m->comm, be_stopped_until_others_go, m->nodes);
		be_stopped_until_others_go(m->nodes);
	}
}

static void a_node_that_has_finished_does_not_wait_for_the_dead(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 3, .slots = SLOTS, .timeout = 2, .seed = SEED, .play = stop_at_the_end };
	assert_int_equal(nodes_run(&c, members), 0);
	for (int rank = 1; rank < 3; rank++) {
		assert_in_range((int)(1000 * members[rank].gone), 2000, 1000 * NODES_PATIENCE / 2);
		assert_int_equal(members[rank].end, LS_EPEER); /* its process must not exit as if all were well */
		assert_true(begins(members[rank].end_message, 0, " has not responded for "));
	}
}

/* Node 1 fails when the others have finished; node 0 ends as commands do. */
static void one_fails_at_the_end(nodes_member *m)
{
	if (m->rank == 1) {
		nodes_sleep(0.5);
		m->reason = "the disk is full";
	} else if (m->rank == 0) {
		NODES_CHECK(m, ls_comm_finalize(m->comm, LS_OK, 0) == LS_EPEER);
		snprintf(m->message, sizeof(m->message), "%s", ls_last_error());
		m->comm = NULL;
	}
}

static void a_node_that_has_finished_reports_one_that_fails(void **state)
{
	(void)state;
	char expected[512];
	nodes_member members[NODES_MAX];
	nodes c = { .size = 3, .slots = SLOTS, .timeout = 60, .seed = SEED, .play = one_fails_at_the_end };
	assert_int_equal(nodes_run(&c, members), 0);
	snprintf(expected, sizeof(expected),
		 "node 0 (%s) has completed its work, but node 1 (%s) ended: the disk is full", host, host);
	assert_string_equal(members[0].message, expected);
	assert_int_equal(members[1].end, LS_OK); /* it knows */
	assert_int_equal(members[2].end, LS_EPEER);
	assert_true(begins(members[2].end_message, 1, " ended: the disk is full"));
	assert_true(members[0].gone < NODES_PATIENCE && members[2].gone < NODES_PATIENCE); /* not by silence */
}

static ls_transport *lose_the_end_of_node_0(nodes *c, ls_transport *transport)
{
	(void)c;
	return transport->rank == 0 ? lose_the_end(transport) : transport;
}

static void the_end_of_the_transport_is_reported(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 2, .slots = SLOTS, .timeout = 15, .seed = SEED, .play = nothing };
	c.wrap = lose_the_end_of_node_0;
	assert_int_equal(nodes_run(&c, members), 0);
	assert_int_equal(members[0].end, LS_EPEER);
	assert_string_equal(members[0].end_message, LOST_END);
	assert_int_equal(members[1].end, LS_OK);
}

/* A transport that reports the goodbye of node 1 to node 0 before all messages. */
enum { HEARS_NODE_1 = LS_SLOTS_PER_PEER + LS_SLOT_NOTE_IN };
static ls_transport_ops prompt;
static const ls_note *note_of_node_1;

static ls_status remember_note(ls_transport *transport, int slot, int peer, int tag, void *buffer, size_t bytes,
			       size_t *arrived)
{
	if (slot == HEARS_NODE_1)
		note_of_node_1 = buffer;
	return prompt.receive(transport, slot, peer, tag, buffer, bytes, arrived);
}

static ls_status poll_goodbye_first(ls_transport *transport, int *slots, int most, int *count)
{
	static int held[SLOTS], holds, heard;
	int got = 0;

	LS_TRY(prompt.poll(transport, slots, most, &got));
	*count = 0;
	for (int i = 0; i < got; i++) {
		heard |= slots[i] == HEARS_NODE_1 && note_of_node_1->kind != LS_NOTE_ALIVE;
		if (slots[i] < transport->size * LS_SLOTS_PER_PEER)
			slots[(*count)++] = slots[i];
		else
			held[holds++] = slots[i];
	}
	for (; heard && holds > 0 && *count < most; holds--)
		slots[(*count)++] = held[holds - 1];
	return LS_OK;
}

static ls_transport *delay_introductions_to_node_0(nodes *c, ls_transport *transport)
{
	static ls_transport_ops ops;
	(void)c;
	if (transport->rank != 0)
		return transport;
	ops = prompt = *transport->ops;
	ops.receive = remember_note;
	ops.poll = poll_goodbye_first;
	transport->ops = &ops;
	return transport;
}

static void end_at_once(nodes_member *m)
{
	m->reason = "the disk is full";
}

/* A node may end before another one has its introduction: its host is named all the same. */
static void a_node_that_ends_at_once_is_named(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 2, .slots = SLOTS, .timeout = 60, .seed = SEED, .play = end_at_once };
	c.wrap = delay_introductions_to_node_0;
	assert_int_equal(nodes_run(&c, members), 0);
	assert_int_equal(members[0].born, LS_EPEER);
	assert_non_null(strstr(members[0].message, ") ended: the disk is full"));
}

/* What is posted is delivered before the node goes. */
static void post_and_go(nodes_member *m)
{
	static int values[2][200];
	ls_message messages[200];
	for (int i = 0; i < 200; i++) {
		messages[i] = bucket_17(m, m->rank == 0, 1 - m->rank, &values[m->rank][i]);
		values[m->rank][i] = m->rank ? -1 : i;
	}
	if (m->rank == 1)
		nodes_sleep(0.05);
	ls_comm_post_all(m->comm, messages, 200);
	if (m->rank == 0) {
		ls_comm_free(m->comm, NULL);
		m->comm = NULL;
		return;
	}
	NODES_CHECK(m, nodes_await(m, 200));
	for (int i = 0; i < 200; i++)
		NODES_CHECK(m, values[1][i] == i);
}

static void messages_are_delivered_before_a_node_goes(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 2, .slots = SLOTS, .timeout = 15, .seed = SEED, .play = post_and_go };
	c.slots = ls_comm_slots(2, 200);
	assert_int_equal(nodes_run(&c, members), 0);
}

/* An error of the transport: the node it meets fails by itself and speaks, the others hear its reason. */
static void send_too_much(nodes_member *m)
{
	int value = 0;
	short half = 0;
	ls_message message = bucket_17(m, m->rank == 0, 1 - m->rank, &value);
	if (m->rank == 1) {
		message.buffer = &half;
		message.bytes = sizeof(half);
	}
	if (m->rank < 2)
		ls_comm_post(m->comm, &message);
	NODES_CHECK(m, nodes_await_failure(m) == (m->rank == 1 ? LS_EMISMATCH : LS_EPEER));
	NODES_CHECK(m, strstr(m->message, "node 0 sent 4 bytes with tag 0x5 to node 1, which expects 2"));
	NODES_CHECK(m, m->rank == 1 || begins(m->message, 1, " ended: "));
	NODES_CHECK(m, ls_comm_is_speaker(m->comm) == (m->rank == 1));
}

static void errors_of_the_transport_end_all(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 3, .slots = SLOTS, .timeout = 15, .seed = SEED, .play = send_too_much };
	assert_int_equal(nodes_run(&c, members), 0);
}

static void fail_and_post(nodes_member *m)
{
	int value = 0;
	stop s = { .who = 0 }, gone = { .who = 0 };
	if (m->rank == 1) {
		NODES_CHECK(m, ls_comm_barrier(m->comm, "the start") == LS_OK);
		m->reason = "";
		return;
	}
	ls_comm_on_failure(m->comm, count_wake, &s);
	ls_comm_on_failure(m->comm, count_wake, &gone);
	ls_comm_on_failure(m->comm, NULL, &gone); /* thinks better of it */
	NODES_CHECK(m, ls_comm_barrier(m->comm, "the start") == LS_OK);
	NODES_CHECK(m, nodes_await_failure(m) == LS_EPEER);
	NODES_CHECK(m, begins(m->message, 1, " ended: no reason given"));
	ls_message message = bucket_17(m, 1, 1, &value);
	ls_comm_post(m->comm, &message); /* allowed, without effect */
	nodes_sleep(0.05);
	NODES_CHECK(m, atomic_load(&s.wakes) == 1 && atomic_load(&gone.wakes) == 0);
	NODES_CHECK(m, atomic_load(&m->arrived) == 0);
}

static void who_waits_is_woken_once(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 2, .slots = SLOTS, .timeout = 15, .seed = SEED, .play = fail_and_post };
	assert_int_equal(nodes_run(&c, members), 0);
}

TEST_MAIN_GROUP(read_host, NULL, a_stopped_node_is_named, a_node_that_goes_on_in_time_is_not_given_up,
		a_node_learns_that_it_was_given_up, a_node_that_never_comes_is_named, a_node_says_why_it_ends,
		a_node_that_has_finished_is_not_missed, a_node_that_has_finished_waits_for_those_that_live,
		a_node_that_has_finished_does_not_wait_for_the_dead, a_node_that_has_finished_reports_one_that_fails,
		the_end_of_the_transport_is_reported, a_node_that_ends_at_once_is_named,
		messages_are_delivered_before_a_node_goes, errors_of_the_transport_end_all, who_waits_is_woken_once)
