/*
 * ranks_transport PART [SEED]: one node's side of a test of the MPI transport. Nodes agree on the traffic by the seed
 * alone. Exits 0 when this node saw what it should; otherwise says what it saw. t6000-transport.sh runs it.
 *
 *   traffic   messages of random lengths, tags and peers arrive whole and in order
 *   sum       sums under way together, each right on every node
 *   nap       wake() ends a nap
 *   large     a message that MPI 3 cannot count
 *   short, long   the last node sends another length than the first expects: the first must fail
 *   farewell  a last message whose send was never polled is delivered, and all end well
 *   vanish    the last node ends without a word, the first gives up: nothing may hang
 */
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "cluster/launched.h"
#include "comm/transport.h"

enum { SLOTS = 12, MESSAGES = 600, LONGEST = 200000, FAILED = 3, PATIENCE_S = 60 };

static ls_transport *transport;

static void check_at(int line, int fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "ranks_transport.c:%d: node %d: %s; last error: %s\n", line, transport ? transport->rank : -1,
		what, ls_last_error());
	_exit(FAILED);
}
#define CHECK(condition) check_at(__LINE__, (condition), #condition)

/* A generator of the test's own: the same numbers on every node. */
static uint64_t state;
static uint64_t next_random(void)
{
	state += 0x9E3779B97F4A7C15u;
	uint64_t z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

typedef struct message {
	int from, to, tag;
	size_t bytes;
} message;

static size_t random_length(void)
{
	uint64_t kind = next_random() % 8;
	return kind == 0 ? 0 : (size_t)(next_random() % (kind < 6 ? 2000 : LONGEST));
}

static void make_messages(message *messages, int size)
{
	static const int tags[] = { 0, 0x4001, 0x7fff };
	for (int i = 0; i < MESSAGES; i++) {
		int from = (int)(next_random() % (uint64_t)size), to = (int)(next_random() % (uint64_t)size);
		messages[i] = (message){ from, to, tags[next_random() % 3], random_length() };
	}
}

static unsigned char byte_of(int number, size_t place)
{
	return (unsigned char)((unsigned)number * 131u + (unsigned)place * 7u + (unsigned)(place >> 9));
}

static void fill(unsigned char *buffer, int number, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = byte_of(number, i);
}

static int is_filled(const unsigned char *buffer, int number, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (buffer[i] != byte_of(number, i))
			return 0;
	return 1;
}

/* Slots below SLOTS / 2 send, the others receive: so the oldest unfinished message is always under way on
 * both of its sides, and the traffic cannot lock up. */
typedef struct traffic {
	message messages[MESSAGES];
	int next[2]; /* to look at for sending, for receiving */
	int in_slot[SLOTS];
	size_t arrived[SLOTS]; /* every other message is received as one that may be shorter */
	int finished;
	unsigned char *buffers[SLOTS];
} traffic;

static void start(traffic *t, int slot, int sends)
{
	int me = transport->rank;
	int *next = &t->next[sends];
	while (*next < MESSAGES && (sends ? t->messages[*next].from : t->messages[*next].to) != me)
		++*next;
	if (*next == MESSAGES)
		return;
	const message *m = &t->messages[*next];
	if (sends)
		fill(t->buffers[slot], *next, m->bytes);
	else
		memset(t->buffers[slot], 0xEE, m->bytes);
	int exact = *next % 2;
	t->arrived[slot] = sends || exact ? m->bytes : LONGEST + 1;
	CHECK(!(sends ? transport->ops->send(transport, slot, m->to, m->tag, t->buffers[slot], m->bytes)
		      : transport->ops->receive(transport, slot, m->from, m->tag, t->buffers[slot],
						exact ? m->bytes : LONGEST, exact ? NULL : &t->arrived[slot])));
	t->in_slot[slot] = (*next)++;
}

static void finish(traffic *t, int slot)
{
	int number = t->in_slot[slot];
	CHECK(number >= 0);
	CHECK(is_filled(t->buffers[slot], number, t->messages[number].bytes));
	CHECK(t->arrived[slot] == t->messages[number].bytes);
	t->in_slot[slot] = -1;
	t->finished++;
}

static int expected_count(const traffic *t)
{
	int count = 0;
	for (int i = 0; i < MESSAGES; i++)
		count += (t->messages[i].from == transport->rank) + (t->messages[i].to == transport->rank);
	return count;
}

static void poll_some(traffic *t)
{
	int slots[SLOTS], count = -1, most = 1 + t->finished % 3;
	CHECK(!transport->ops->poll(transport, slots, most, &count));
	CHECK(count >= 0 && count <= most);
	for (int i = 0; i < count; i++)
		finish(t, slots[i]);
}

static int run_traffic(void)
{
	static traffic t;
	make_messages(t.messages, transport->size);
	for (int slot = 0; slot < SLOTS; slot++) {
		t.in_slot[slot] = -1;
		t.buffers[slot] = malloc(LONGEST);
		CHECK(t.buffers[slot] != NULL);
	}
	int expected = expected_count(&t);
	double begin = ls_clock_seconds();
	while (t.finished < expected) {
		CHECK(ls_clock_seconds() - begin < PATIENCE_S);
		for (int slot = 0; slot < SLOTS; slot++)
			if (t.in_slot[slot] < 0)
				start(&t, slot, slot < SLOTS / 2);
		poll_some(&t);
	}
	for (int slot = 0; slot < SLOTS; slot++)
		free(t.buffers[slot]);
	return 0;
}

/* Poll until `wanted` slots are done; LS_OK, or what poll() failed with. */
static ls_status await(int wanted)
{
	double begin = ls_clock_seconds();
	while (wanted > 0) {
		int slots[SLOTS], count;
		CHECK(ls_clock_seconds() - begin < PATIENCE_S);
		LS_TRY(transport->ops->poll(transport, slots, SLOTS, &count));
		wanted -= count;
		transport->ops->nap(transport, 1e-4);
	}
	return LS_OK;
}

static int run_sum(void)
{
	enum { COUNT = 100003, SUMS = 3 };
	static float values[SUMS][COUNT];
	for (int s = 0; s < SUMS; s++)
		for (int i = 0; i < COUNT; i++)
			values[s][i] = (float)((transport->rank + 1) * (s + 1) + i % 100);
	for (int s = 0; s < SUMS; s++)
		CHECK(!transport->ops->sum(transport, s, values[s], s == 1 ? 0 : COUNT));
	CHECK(await(SUMS) == LS_OK);
	int n = transport->size;
	for (int s = 0; s < SUMS; s += 2)
		for (int i = 0; i < COUNT; i++)
			CHECK(values[s][i] == (float)((s + 1) * n * (n + 1) / 2 + n * (i % 100)));
	CHECK(values[1][7] == (float)((transport->rank + 1) * 2 + 7));
	return 0;
}

static void *wake_soon(void *unused)
{
	usleep(50000);
	transport->ops->wake(transport);
	return unused;
}

static double nap_length(double seconds)
{
	double begin = ls_clock_seconds();
	transport->ops->nap(transport, seconds);
	return ls_clock_seconds() - begin;
}

static int run_nap(void)
{
	pthread_t waker;
	double length = nap_length(0.03);
	CHECK(length >= 0.0299 && length < 5);
	CHECK(!pthread_create(&waker, NULL, wake_soon, NULL));
	length = nap_length(30);
	CHECK(length >= 0.04 && length < 10);
	pthread_join(waker, NULL);
	transport->ops->wake(transport);
	CHECK(nap_length(30) < 10); /* rung before it lay down */
	CHECK(nap_length(0.03) >= 0.0299);
	CHECK(nap_length(-1) < 5);
	return 0;
}

/* Address space of any size on little memory: the same pages over and over. */
static unsigned char *repeated(size_t bytes, size_t period)
{
	int file = memfd_create("repeated", MFD_CLOEXEC);
	CHECK(file >= 0 && !ftruncate(file, (off_t)period));
	unsigned char *place = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(place != MAP_FAILED);
	for (size_t at = 0; at < bytes; at += period)
		CHECK(mmap(place + at, period, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED);
	close(file);
	return place;
}

/* Nodes in a ring, each sends 2 GiB and a bit to the next one. All rounds over the pages are alike, so every part of
 * the message leaves them as the sender's. */
static int run_large(void)
{
	const size_t period = (size_t)32 << 20, bytes = ((size_t)1 << 31) + 12345;
	unsigned char *out = repeated(bytes + period - 12345, period), *in = repeated(bytes + period - 12345, period);
	int me = transport->rank, n = transport->size;
	fill(out, me, period);
	CHECK(!transport->ops->receive(transport, 0, (me + n - 1) % n, 5, in, bytes, NULL));
	CHECK(!transport->ops->send(transport, 1, (me + 1) % n, 5, out, bytes));
	CHECK(await(2) == LS_OK);
	CHECK(is_filled(in, (me + n - 1) % n, period));
	return 0;
}

/* The last node sends too little or too much; the first one notices. */
static int run_mismatch(size_t sent, const char *part)
{
	static char buffer[4096];
	int last = transport->size - 1;
	if (transport->rank == last)
		CHECK(!transport->ops->send(transport, 0, 0, 1, buffer, sent));
	else if (transport->rank)
		return 0;
	else
		CHECK(!transport->ops->receive(transport, 1, last, 1, buffer, 1000, NULL));
	if (transport->rank == last)
		return await(1) == LS_OK ? 0 : FAILED;
	CHECK(await(1) != LS_OK);
	fprintf(stderr, "%s: %s\n", part, ls_last_error());
	return 5;
}

/* Every node sends a message to the next one and leaves, with receives pending that will never be matched. */
static int run_farewell(void)
{
	static char word[64], heard[64], never[8];
	int me = transport->rank, n = transport->size;
	CHECK(!transport->ops->receive(transport, 0, (me + n - 1) % n, 1, heard, sizeof(heard), NULL));
	CHECK(!transport->ops->receive(transport, 1, (me + n - 1) % n, 2, never, sizeof(never), NULL));
	CHECK(!transport->ops->send(transport, 2, (me + 1) % n, 1, word, sizeof(word)));
	CHECK(await(2) == LS_OK);
	CHECK(!transport->ops->send(transport, 2, (me + 1) % n, 9, word, sizeof(word)));
	return 0;
}

static int run_vanish(void)
{
	static char buffer[1 << 20];
	int last = transport->size - 1;
	if (transport->rank == last)
		_exit(6);
	if (transport->rank == 0) {
		CHECK(!transport->ops->receive(transport, 0, last, 1, buffer, sizeof(buffer), NULL));
		transport->ops->nap(transport, 0.2);
	}
	transport->ops->abandon(transport);
	return 5;
}

/* The last node does not come to the end for a long time: the others go without it, and wait to be ended. */
static int run_linger(void)
{
	transport->patience = 2;
	if (transport->rank == transport->size - 1) {
		usleep(15 * 1000 * 1000);
		transport->ops->abandon(transport);
		return 5;
	}
	double begin = ls_clock_seconds();
	CHECK(transport->ops->free(transport) == LS_EPEER);
	transport = NULL;
	double took = ls_clock_seconds() - begin;
	fprintf(stderr, "%s\n", ls_last_error());
	printf("%s\n", took >= 2 && took < 12 ? "goes" : "too early or too late");
	fflush(stdout);
	usleep(PATIENCE_S * 1000 * 1000);
	return 6;
}

static int run_part(const char *part)
{
	if (!strcmp(part, "traffic"))
		return run_traffic();
	if (!strcmp(part, "sum"))
		return run_sum();
	if (!strcmp(part, "nap"))
		return run_nap();
	if (!strcmp(part, "large"))
		return run_large();
	if (!strcmp(part, "short"))
		return run_mismatch(999, part);
	if (!strcmp(part, "long"))
		return run_mismatch(1001, part);
	if (!strcmp(part, "farewell"))
		return run_farewell();
	if (!strcmp(part, "vanish"))
		return run_vanish();
	if (!strcmp(part, "linger"))
		return run_linger();
	fprintf(stderr, "unknown part '%s'\n", part);
	return 2;
}

int main(int argc, char **argv)
{
	state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	if (ls_mpi_transport(&transport, SLOTS)) {
		fprintf(stderr, "no transport: %s\n", ls_last_error());
		return 4;
	}
	CHECK(transport->size == ls_mpi_launched());
	CHECK(transport->rank >= 0 && transport->rank < transport->size && transport->slots == SLOTS);
	int code = run_part(argc > 1 ? argv[1] : "");
	if (code == 0 && transport->rank == 0)
		printf("%d nodes\n", transport->size);
	if (transport && transport->ops->free(transport) != LS_OK)
		fprintf(stderr, "the end: %s\n", ls_last_error());
	return code;
}
