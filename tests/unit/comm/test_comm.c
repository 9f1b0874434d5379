/*
 * The communication thread: messages arrive whole and in order whatever their urgency, within the window, most urgent
 * first; work is done in between; sums; idle communication threads sleep. What happens when nodes fail is in
 * test_comm_failures.c.
 */
#include <stddef.h>
#include <stdint.h>

#include "unit/comm/thread_nodes.h"
#include "unit/test_main.h"

enum { SEED = 20250307, TAGS = 3, MESSAGES = 25, BYTES_MAX = 60000 };

/* Random traffic: message k of (from, to, tag) has a length and bytes that both sides can compute. */
static uint64_t draw(int from, int to, int tag, int k)
{
	return ls_mix64(SEED + ((((uint64_t)from * 8 + (unsigned)to) * 8 + (unsigned)tag) << 20) + (unsigned)k);
}

static size_t message_bytes(int from, int to, int tag, int k)
{
	uint64_t d = draw(from, to, tag, k);
	return d % 3 == 0 ? (size_t)(d >> 8) % 40 : (size_t)(d >> 8) % BYTES_MAX;
}

static unsigned char message_byte(uint64_t d, size_t i)
{
	return (unsigned char)((d >> (i % 57)) + i / 57);
}

/* Message k of a stream between this node and a peer; `random`: any urgency. */
static void message_make(nodes_member *m, ls_message *message, int outgoing, int peer, int tag, int k, int random)
{
	int from = outgoing ? m->rank : peer, to = outgoing ? peer : m->rank;
	uint64_t d = draw(from, to, tag, k);
	*message = (ls_message){ .peer = peer,
				 .tag = tag,
				 .outgoing = outgoing,
				 .bytes = message_bytes(from, to, tag, k),
				 .urgency = random ? (int64_t)(d >> 40) % 10 - 5 : 0,
				 .what = "message",
				 .number = k,
				 .done = nodes_arrived,
				 .context = m };
	message->buffer = calloc(1, message->bytes + 1);
	for (size_t i = 0; outgoing && i < message->bytes; i++)
		((unsigned char *)message->buffer)[i] = message_byte(d, i);
}

static int message_is_wrong(const nodes_member *m, const ls_message *l)
{
	uint64_t d = draw(l->peer, m->rank, l->tag, (int)l->number);
	for (size_t i = 0; !l->outgoing && i < l->bytes; i++) {
		if (((const unsigned char *)l->buffer)[i] != message_byte(d, i))
			return 1;
	}
	return l->started < l->posted;
}

static void check_traffic(nodes_member *m, const ls_message *messages, int count)
{
	uint64_t bytes[2][NODES_MAX] = { { 0 } }, number[2][NODES_MAX] = { { 0 } };
	for (int i = 0; i < count; i++) {
		bytes[messages[i].outgoing][messages[i].peer] += messages[i].bytes;
		number[messages[i].outgoing][messages[i].peer]++;
	}
	for (int peer = 0; peer < m->nodes->size; peer++) {
		ls_traffic t = ls_comm_traffic(m->comm, peer);
		NODES_CHECK(m, t.bytes_sent == bytes[1][peer] && t.messages_sent == number[1][peer]);
		NODES_CHECK(m, t.bytes_received == bytes[0][peer] && t.messages_received == number[0][peer]);
	}
}

/* All messages between all nodes. With random urgencies all are posted at once; else in order, stream by stream. */
static void talk(nodes_member *m)
{
	int size = m->nodes->size, random = m->nodes->context != NULL, count = 0;
	ls_message *messages = calloc((size_t)(2 * size * TAGS * MESSAGES), sizeof(*messages));
	for (int k = 0; k < MESSAGES; k++) {
		for (int tag = 0; tag < TAGS; tag++) {
			for (int peer = 0; peer < size; peer++) {
				if (peer == m->rank)
					continue;
				message_make(m, &messages[count++], 0, peer, tag, k, random);
				message_make(m, &messages[count++], 1, peer, tag, k, random);
			}
		}
	}
	ls_comm_post_all(m->comm, messages, (size_t)count / 2);
	for (int i = count / 2; i < count; i++)
		ls_comm_post(m->comm, &messages[i]);
	NODES_CHECK(m, nodes_await(m, count));
	NODES_CHECK(m, ls_comm_status(m->comm) == LS_OK);
	int wrong = 0;
	for (int i = 0; i < count; i++)
		wrong += message_is_wrong(m, &messages[i]);
	NODES_CHECK(m, wrong == 0);
	check_traffic(m, messages, count);
	for (int i = 0; i < count; i++)
		free(messages[i].buffer);
	free(messages);
}

static void messages_arrive_whole_and_in_order(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	print_message("seed %d\n", SEED);
	for (int size = 1; size <= NODES_MAX; size += size < 3 ? 1 : 2) {
		int random = 1;
		nodes c = { .size = size, .timeout = 15, .window = 100000, .seed = SEED, .play = talk };
		c.slots = ls_comm_slots(size, size * TAGS * MESSAGES);
		c.context = &random;
		assert_int_equal(nodes_run(&c, members), 0);
	}
}

/* Where nothing overtakes, the fewest slots suffice. */
static void few_slots_suffice_in_order(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	for (int size = 2; size <= 5; size += 3) {
		nodes c = { .size = size, .timeout = 15, .seed = SEED, .play = talk, .slots = 5 * size + 4 };
		assert_int_equal(nodes_run(&c, members), 0);
	}
}

/*
 * A transport that watches what the communication thread of node 0 starts: the messages of the exchange's tags, their
 * order, and how many bytes are under way to a peer.
 */
enum { WATCHED = 256 };

typedef struct watch {
	ls_transport base;
	ls_transport *inner;
	size_t bytes[WATCHED]; /* by slot */
	int peer[WATCHED];
	size_t under_way[NODES_MAX], most[NODES_MAX];
	int tags[WATCHED], sent; /* in the order they were started */
	_Atomic(int) polls;
} watch;

static watch *watched; /* node 0's */

static ls_status watch_send(ls_transport *t, int slot, int peer, int tag, const void *buffer, size_t bytes)
{
	watch *w = (watch *)t;
	if (tag < LS_TAG_COLLECT && w->sent < WATCHED) {
		w->tags[w->sent++] = tag;
		w->bytes[slot] = bytes;
		w->peer[slot] = peer;
		w->under_way[peer] += bytes;
		if (w->under_way[peer] > w->most[peer])
			w->most[peer] = w->under_way[peer];
	}
	return w->inner->ops->send(w->inner, slot, peer, tag, buffer, bytes);
}

static ls_status watch_receive(ls_transport *t, int slot, int peer, int tag, void *buffer, size_t bytes,
			       size_t *arrived)
{
	watch *w = (watch *)t;
	return w->inner->ops->receive(w->inner, slot, peer, tag, buffer, bytes, arrived);
}

static ls_status watch_poll(ls_transport *t, int *slots, int most, int *count)
{
	watch *w = (watch *)t;
	ls_status status = w->inner->ops->poll(w->inner, slots, most, count);
	atomic_fetch_add(&w->polls, 1);
	for (int i = 0; !status && i < *count; i++) {
		w->under_way[w->peer[slots[i]]] -= w->bytes[slots[i]];
		w->bytes[slots[i]] = 0;
	}
	return status;
}

static void watch_nap(ls_transport *t, double seconds)
{
	((watch *)t)->inner->ops->nap(((watch *)t)->inner, seconds);
}

static void watch_wake(ls_transport *t)
{
	((watch *)t)->inner->ops->wake(((watch *)t)->inner);
}

static ls_status watch_free(ls_transport *t)
{
	return ((watch *)t)->inner->ops->free(((watch *)t)->inner);
}

/* Without sums. */
static const ls_transport_ops watch_ops = { .name = "watched",
					    .send = watch_send,
					    .receive = watch_receive,
					    .poll = watch_poll,
					    .nap = watch_nap,
					    .wake = watch_wake,
					    .free = watch_free };

static ls_transport *watch_node_0(nodes *c, ls_transport *t)
{
	(void)c;
	if (t->rank != 0)
		return t;
	watched = calloc(1, sizeof(*watched));
	watched->base = *t;
	watched->base.ops = &watch_ops;
	watched->inner = t;
	return &watched->base;
}

enum { QUEUED = 40, QUEUED_BYTES = 1000, QUEUED_WINDOW = 3500 };

static ls_message plain_message(nodes_member *m, int outgoing, int peer, int tag, void *buffer, size_t bytes)
{
	return (ls_message){ .peer = peer,
			     .tag = tag,
			     .outgoing = outgoing,
			     .buffer = buffer,
			     .bytes = bytes,
			     .what = "reduce-scatter of bucket",
			     .number = 17,
			     .done = nodes_arrived,
			     .context = m };
}

/* Node 0 posts all at once, with urgencies in some other order: tags say where each should come. Its first message is
 * larger than the window. */
static void queue_up(nodes_member *m)
{
	static char buffers[2][QUEUED][2 * QUEUED_WINDOW];
	ls_message messages[QUEUED];
	for (int i = 0; i < QUEUED; i++) {
		int tag = (i * 27 + 13) % QUEUED;
		messages[i] = plain_message(m, m->rank == 0, 1 - m->rank, tag, buffers[m->rank][i], QUEUED_BYTES);
		messages[i].urgency = tag * 10 - 50;
		if (tag == 0)
			messages[i].bytes = 2 * QUEUED_WINDOW;
	}
	ls_comm_post_all(m->comm, messages, QUEUED);
	NODES_CHECK(m, nodes_await(m, QUEUED));
}

static void most_urgent_first_within_the_window(void **state)
{
	(void)state;
	nodes_member members[2];
	nodes c = { .size = 2, .slots = WATCHED, .timeout = 15, .window = QUEUED_WINDOW, .seed = SEED };
	c.play = queue_up;
	c.wrap = watch_node_0;
	int wrong = nodes_run(&c, members), sent = watched->sent;
	size_t most = watched->most[1];
	for (int i = 0; i < sent; i++)
		wrong += watched->tags[i] != i;
	free(watched);
	assert_int_equal(wrong, 0);
	assert_int_equal(sent, QUEUED);
	assert_int_equal(most, 2 * QUEUED_WINDOW);
}

/* Ordinary messages alone: three of 1000 bytes fit a window of 3500. The receiver comes late, so that it fills. */
static void fill_window(nodes_member *m)
{
	static char buffers[2][QUEUED][QUEUED_BYTES];
	ls_message messages[QUEUED];
	if (m->rank == 1)
		nodes_sleep(0.02);
	for (int i = 0; i < QUEUED; i++) {
		/* Tag 1 is urgent the later the more, and yet goes in order. */
		messages[i] = plain_message(m, m->rank == 0, 1 - m->rank, i % 2, buffers[m->rank][i], QUEUED_BYTES);
		messages[i].urgency = i % 2 ? -i : QUEUED;
		if (m->rank == 0)
			memset(buffers[0][i], i + 1, QUEUED_BYTES);
		ls_comm_post(m->comm, &messages[i]);
	}
	NODES_CHECK(m, nodes_await(m, QUEUED));
	for (int i = 0; m->rank == 1 && i < QUEUED; i++)
		NODES_CHECK(m, buffers[1][i][0] == i + 1 && buffers[1][i][QUEUED_BYTES - 1] == i + 1);
}

static void the_window_is_kept(void **state)
{
	(void)state;
	nodes_member members[2];
	nodes c = { .size = 2, .slots = WATCHED, .timeout = 15, .window = QUEUED_WINDOW, .seed = SEED };
	c.play = fill_window;
	c.wrap = watch_node_0;
	int wrong = nodes_run(&c, members);
	size_t most = watched->most[1];
	free(watched);
	assert_int_equal(wrong, 0);
	assert_int_equal(most, 3 * QUEUED_BYTES);
}

enum { LOOKS = 300, LOOKS_S = 8 };

/* Until node 0 has looked often enough for a message it waits for. Heartbeats alone would take four times as long. */
static void await_looks(nodes_member *m, _Atomic(int) *posted)
{
	double end = ls_clock_seconds() + NODES_PATIENCE;
	while (!atomic_load(posted) && ls_clock_seconds() < end)
		nodes_sleep(0.001);
	int before = atomic_load(posted) - 1;
	end = ls_clock_seconds() + LOOKS_S;
	while (atomic_load(&watched->polls) - before < LOOKS && ls_clock_seconds() < end)
		nodes_sleep(0.001);
	NODES_CHECK(m, before >= 0);
}

/* An idle communication thread wakes for its heartbeats alone; one with a message under way looks every half
 * millisecond. */
static void rest(nodes_member *m)
{
	int value = 0;
	ls_message message = plain_message(m, m->rank == 1, 1 - m->rank, 0, &value, sizeof(value));
	_Atomic(int) *posted = m->nodes->context;
	if (m->rank == 1) {
		await_looks(m, posted);
		ls_comm_post(m->comm, &message);
		NODES_CHECK(m, nodes_await(m, 1));
		return;
	}
	nodes_sleep(0.1); /* names are exchanged */
	double begin = ls_clock_seconds();
	int before = atomic_load(&watched->polls);
	nodes_sleep(0.4);
	int polls = atomic_load(&watched->polls) - before;
	NODES_CHECK(m, polls < 100 * (ls_clock_seconds() - begin));
	begin = ls_clock_seconds();
	before = atomic_load(&watched->polls);
	ls_comm_post(m->comm, &message);
	atomic_store(posted, before + 1);
	NODES_CHECK(m, nodes_await(m, 1));
	polls = atomic_load(&watched->polls) - before;
	NODES_CHECK(m, polls >= LOOKS && polls < 2 * (ls_clock_seconds() - begin) / 500e-6 + 60);
}

static void idle_comms_sleep(void **state)
{
	(void)state;
	nodes_member members[2];
	nodes c = { .size = 2, .slots = WATCHED, .timeout = 15, .seed = SEED, .play = rest, .wrap = watch_node_0 };
	_Atomic(int) posted = 0;
	c.context = (void *)&posted;
	int wrong = nodes_run(&c, members);
	free(watched);
	assert_int_equal(wrong, 0);
}

static void add_up(nodes_member *m)
{
	float values[6][50];
	ls_message messages[6];
	int size = m->nodes->size;
	for (int k = 0; k < 6; k++) {
		for (int i = 0; i < 50; i++)
			values[k][i] = (float)(m->rank * 100 + k * 50 + i);
		messages[k] = plain_message(m, 2, -1, 0, values[k], sizeof(values[k]));
	}
	ls_comm_post_all(m->comm, messages, 6);
	NODES_CHECK(m, nodes_await(m, 6));
	for (int k = 0; k < 6; k++) {
		for (int i = 0; i < 50; i++)
			NODES_CHECK(m, values[k][i] == (float)(size * (size - 1) * 50 + size * (k * 50 + i)));
	}
}

static void sums_of_all_nodes(void **state)
{
	(void)state;
	nodes_member members[3];
	nodes c = { .size = 3, .slots = 64, .timeout = 15, .seed = SEED, .play = add_up };
	assert_int_equal(nodes_run(&c, members), 0);
}

static ls_status check_third(void *context, const ls_message *message)
{
	(void)context;
	return message->arrived == 30 ? ls_fail(LS_EMISMATCH, "a message of 30 bytes is not wanted") : LS_OK;
}

/* Messages of 10, 20 and 30 bytes where there could be 100; the third is not what the receiver wants. */
static void send_short_ones(nodes_member *m)
{
	char buffers[3][100] = { { 0 } };
	ls_message messages[3];
	for (int i = 0; i < 3; i++) {
		messages[i] = plain_message(m, m->rank == 0, 1 - m->rank, 0, buffers[i], 100);
		messages[i].shorter = m->rank == 1;
		messages[i].check = m->rank == 1 ? check_third : NULL;
		if (m->rank == 0)
			messages[i].bytes = 10 * (size_t)(i + 1);
	}
	ls_comm_post_all(m->comm, messages, 2);
	NODES_CHECK(m, nodes_await(m, 2));
	ls_traffic t = ls_comm_traffic(m->comm, 1 - m->rank);
	NODES_CHECK(m, (m->rank == 0 ? t.bytes_sent : t.bytes_received) == 30);
	NODES_CHECK(m, m->rank == 0 || (messages[0].arrived == 10 && messages[1].arrived == 20));
	ls_comm_post(m->comm, &messages[2]);
	NODES_CHECK(m, nodes_await_failure(m) == (m->rank == 1 ? LS_EMISMATCH : LS_EPEER));
	NODES_CHECK(m, strstr(m->message, "a message of 30 bytes is not wanted"));
	NODES_CHECK(m, m->rank == 0 || atomic_load(&m->arrived) == 2);
}

static void messages_may_be_shorter_and_are_checked(void **state)
{
	(void)state;
	nodes_member members[2];
	nodes c = { .size = 2, .slots = WATCHED, .timeout = 15, .seed = SEED, .play = send_short_ones };
	assert_int_equal(nodes_run(&c, members), 0);
}

static void add_up_without(nodes_member *m)
{
	float value = 1;
	ls_message message = plain_message(m, 2, -1, 0, &value, sizeof(value));
	ls_comm_post(m->comm, &message);
	ls_status status = nodes_await_failure(m);
	NODES_CHECK(m, status == (m->rank == 0 ? LS_EUNSUPPORTED : LS_EPEER));
	NODES_CHECK(m, strstr(m->message, "the transport 'watched' has no sums of its own"));
}

static void sums_need_a_transport_that_has_them(void **state)
{
	(void)state;
	nodes_member members[2];
	nodes c = { .size = 2, .slots = WATCHED, .timeout = 15, .seed = SEED };
	c.play = add_up_without;
	c.wrap = watch_node_0;
	int wrong = nodes_run(&c, members);
	free(watched);
	assert_int_equal(wrong, 0);
}

/* Work that is there when asked for: a number of units, each of which posts a message to the next node. */
typedef struct chores {
	nodes_member *member;
	_Atomic(int) left;
	int begun;
	int out[50], in[50];
	ls_message messages[50];
} chores;

static int do_chore(void *context)
{
	chores *c = context;
	nodes_member *m = c->member;
	if (atomic_load(&c->left) == 0)
		return 0;
	int k = c->begun++;
	c->out[k] = m->rank * 100 + k;
	c->messages[k] = plain_message(m, 1, (m->rank + 1) % m->nodes->size, 0, &c->out[k], sizeof(int));
	ls_comm_post(m->comm, &c->messages[k]);
	atomic_fetch_sub(&c->left, 1);
	return 1;
}

static void work_in_between(nodes_member *m)
{
	chores c = { .member = m };
	int before = (m->rank + m->nodes->size - 1) % m->nodes->size;
	ls_message in[50];
	ls_comm_set_work(m->comm, do_chore, &c);
	nodes_sleep(0.05);
	double begin = ls_clock_seconds();
	atomic_store(&c.left, 50);
	ls_comm_wake(m->comm);
	for (int k = 0; k < 50; k++) {
		in[k] = plain_message(m, 0, before, 0, &c.in[k], sizeof(int));
		ls_comm_post(m->comm, &in[k]);
	}
	NODES_CHECK(m, nodes_await(m, 100));
	NODES_CHECK(m, ls_clock_seconds() - begin < 8);
	ls_comm_set_work(m->comm, NULL, NULL);
	for (int k = 0; k < 50; k++)
		NODES_CHECK(m, c.in[k] == before * 100 + k);
}

static void work_is_done_in_between(void **state)
{
	(void)state;
	nodes_member members[3];
	nodes c = { .size = 3, .slots = 128, .timeout = 15, .seed = SEED, .play = work_in_between };
	assert_int_equal(nodes_run(&c, members), 0);
}

static void bad_options(void **state)
{
	(void)state;
	ls_transport *t[2];
	ls_comm *comm = NULL;
	assert_int_equal(ls_threads_transports(t, 2, 13, SEED), LS_OK);
	ls_comm_options options = { .transport = t[0], .timeout = 1 };
	assert_int_equal(ls_comm_new(&comm, &options), LS_EINVALID);
	assert_string_equal(ls_last_error(), "a transport between 2 nodes with 13 slots: at least 14 are needed");
	options = (ls_comm_options){ .transport = t[1], .timeout = 0 };
	assert_int_equal(ls_comm_new(&comm, &options), LS_EINVALID);
	assert_null(comm);
	ls_comm_free(NULL, NULL);
}

TEST_MAIN(messages_arrive_whole_and_in_order, few_slots_suffice_in_order, most_urgent_first_within_the_window,
	  the_window_is_kept, idle_comms_sleep, messages_may_be_shorter_and_are_checked, sums_of_all_nodes,
	  sums_need_a_transport_that_has_them, work_is_done_in_between, bad_options)
