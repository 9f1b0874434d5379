/*
 * Collectives: for all roots and sizes, also when buffers go in parts; a node that is gone
 * is an error and not a hang.
 */
#include <stddef.h>
#include <stdint.h>

#include "comm/collectives.h"
#include "unit/comm/thread_nodes.h"
#include "unit/test_main.h"

enum { SEED = 20250311, SLOTS = 128, PART = 1 << 20 };

static const size_t sizes[] = { 0, 1, 1000, PART, PART + 1 };
static const size_t large = 6 * PART + 12345;

static void fill(unsigned char *buffer, size_t bytes, int key)
{
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = (unsigned char)(key * 37 + (int)(i % 251) + (int)(i >> 18));
}

static int is_filled(const unsigned char *buffer, size_t bytes, int key)
{
	for (size_t i = 0; i < bytes; i++) {
		if (buffer[i] != (unsigned char)(key * 37 + (int)(i % 251) + (int)(i >> 18)))
			return 0;
	}
	return 1;
}

static void check_broadcast(nodes_member *m, size_t bytes)
{
	unsigned char *buffer = malloc(bytes + 1);
	for (int root = 0; root < m->nodes->size; root++) {
		memset(buffer, 0, bytes + 1);
		if (m->rank == root)
			fill(buffer, bytes, root);
		NODES_CHECK(m, ls_comm_broadcast(m->comm, root, buffer, bytes, "settings") == LS_OK);
		NODES_CHECK(m, is_filled(buffer, bytes, root) && buffer[bytes] == 0);
	}
	free(buffer);
}

static void check_all(nodes_member *m, const unsigned char *all, size_t bytes)
{
	for (int node = 0; node < m->nodes->size; node++)
		NODES_CHECK(m, is_filled(all + (size_t)node * bytes, bytes, node + 5));
}

static void check_gather(nodes_member *m, size_t bytes)
{
	size_t whole = (size_t)m->nodes->size * bytes;
	unsigned char *mine = malloc(bytes + 1), *all = malloc(whole + 1);
	fill(mine, bytes, m->rank + 5);
	for (int root = 0; root < m->nodes->size; root++) {
		memset(all, 0, whole + 1);
		NODES_CHECK(m, ls_comm_gather(m->comm, root, mine, bytes, m->rank == root ? all : NULL, "results") ==
				       LS_OK);
		if (m->rank == root)
			check_all(m, all, bytes);
	}
	memset(all, 0, whole + 1);
	NODES_CHECK(m, ls_comm_allgather(m->comm, mine, bytes, all, "results") == LS_OK);
	check_all(m, all, bytes);
	free(mine);
	free(all);
}

/* Round the nodes, and from the last one to the first. */
static void check_move(nodes_member *m, size_t bytes)
{
	int size = m->nodes->size;
	unsigned char *source = malloc(bytes + 1), *target = malloc(bytes + 1);
	fill(source, bytes, m->rank);
	for (int from = 0; from < size; from++) {
		int to = (from * 3 + 1) % size;
		memset(target, 0, bytes + 1);
		NODES_CHECK(m, ls_comm_sendrecv(m->comm, from, to, source, target, bytes, "a shard") == LS_OK);
		NODES_CHECK(m, m->rank != to || is_filled(target, bytes, from));
		NODES_CHECK(m, m->rank == to || bytes == 0 || target[bytes - 1] == 0);
	}
	free(source);
	free(target);
}

static void collect_all(nodes_member *m)
{
	int many = m->nodes->size > 3; /* fewer bytes then */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) - 2 * (size_t)many; i++) {
		check_broadcast(m, sizes[i]);
		check_gather(m, sizes[i]);
		check_move(m, sizes[i]);
	}
}

static void everybody_gets_everything(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	for (int size = 1; size <= NODES_MAX; size++) {
		nodes c = { .size = size, .slots = SLOTS, .timeout = 15, .seed = SEED, .play = collect_all };
		assert_int_equal(nodes_run(&c, members), 0);
	}
}

/* A chain moves every byte once into every node but the root, and once out of every node but the last. */
static void broadcast_large(nodes_member *m)
{
	int size = m->nodes->size, next = (m->rank + 1) % size;
	unsigned char *buffer = calloc(1, large);
	if (m->rank == 1)
		fill(buffer, large, 1);
	NODES_CHECK(m, ls_comm_broadcast(m->comm, 1, buffer, large, "weights") == LS_OK);
	NODES_CHECK(m, is_filled(buffer, large, 1));
	ls_traffic t = ls_comm_traffic(m->comm, next);
	NODES_CHECK(m, t.bytes_sent == (m->rank != 0 ? large : 0));
	NODES_CHECK(m, ls_comm_sendrecv(m->comm, 0, size - 1, buffer, buffer, large, "weights") == LS_OK);
	NODES_CHECK(m, is_filled(buffer, large, 1));
	free(buffer);
}

static void large_buffers_go_along_a_chain(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 4, .slots = SLOTS, .timeout = 15, .seed = SEED, .play = broadcast_large };
	assert_int_equal(nodes_run(&c, members), 0);
}

static _Atomic(int) came;

static void come_late(nodes_member *m)
{
	for (int round = 1; round <= 20; round++) {
		if (m->rank == round % m->nodes->size)
			nodes_sleep(0.002);
		atomic_fetch_add(&came, 1);
		NODES_CHECK(m, ls_comm_barrier(m->comm, "the start") == LS_OK);
		NODES_CHECK(m, atomic_load(&came) >= round * m->nodes->size);
	}
}

static void nobody_goes_on_alone(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	for (int size = 2; size <= NODES_MAX; size += 5) {
		nodes c = { .size = size, .slots = SLOTS, .timeout = 15, .seed = SEED, .play = come_late };
		atomic_store(&came, 0);
		assert_int_equal(nodes_run(&c, members), 0);
	}
}

/* Buffers on the stack of a call that fails: they must not be touched afterwards. */
static void wait_in_vain(nodes_member *m)
{
	if (m->rank == 2) {
		m->reason = "the disk is full";
		return;
	}
	char mine[300] = "here", all[1200];
	ls_status status = LS_OK;
	for (int i = 0; !status && i < 1000000; i++)
		status = ls_comm_allgather(m->comm, mine, sizeof(mine), all, "results of an evaluation");
	snprintf(m->message, sizeof(m->message), "%s", ls_last_error());
	NODES_CHECK(m, status == LS_EPEER);
}

static void a_node_that_is_gone_is_an_error(void **state)
{
	(void)state;
	nodes_member members[NODES_MAX];
	nodes c = { .size = 4, .slots = SLOTS, .timeout = 60, .seed = SEED, .play = wait_in_vain };
	assert_int_equal(nodes_run(&c, members), 0);
	for (int rank = 0; rank < 4; rank++) {
		assert_true(rank == 2 || strstr(members[rank].message, ") ended: the disk is full"));
		assert_true(members[rank].lived < NODES_PATIENCE);
	}
}

static void one_node_alone_copies(void **state)
{
	(void)state;
	int mine = 7, all = 0, moved = 0;
	assert_int_equal(ls_comm_broadcast(NULL, 0, &mine, sizeof(mine), "x"), LS_OK);
	assert_int_equal(ls_comm_gather(NULL, 0, &mine, sizeof(mine), &all, "x"), LS_OK);
	assert_int_equal(all, 7);
	all = 0;
	assert_int_equal(ls_comm_allgather(NULL, &mine, sizeof(mine), &all, "x"), LS_OK);
	assert_int_equal(all, 7);
	assert_int_equal(ls_comm_sendrecv(NULL, 0, 0, &mine, &moved, sizeof(mine), "x"), LS_OK);
	assert_int_equal(moved, 7);
	assert_int_equal(ls_comm_barrier(NULL, "x"), LS_OK);
}

TEST_MAIN(everybody_gets_everything, large_buffers_go_along_a_chain, nobody_goes_on_alone,
	  a_node_that_is_gone_is_an_error, one_node_alone_copies)
