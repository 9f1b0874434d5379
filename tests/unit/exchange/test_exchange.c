/*
 * The contract, on random cases: however micro-batches are assigned to nodes and devices, whichever node owns which
 * shard, and however the threads and messages happen to run, every worker ends with the bits of a plain serial run;
 * with a bf16 wire or the library's own sum, near it.
 */
#include "unit/exchange/trial_nodes.h"
#include "unit/test_main.h"

static void test_same_bits(void **state)
{
	static trial t;
	uint64_t seed = first_seed();

	(void)state;
	print_message("seeds from %llu, %d cases\n", (unsigned long long)seed, trial_count());
	for (int i = 0; i < trial_count(); i++) {
		draw_trial(&t, seed + (uint64_t)i);
		serial_run(&t);
		check_same_bits(&t);
	}
}

static void test_bf16(void **state)
{
	static trial t;
	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		draw_trial(&t, first_seed() + 1000 + i);
		t.codec = &ls_codec_sparse_bf16;
		t.clipped = 0;
		serial_run(&t);
		check_near(&t, 0.01f, "bf16");
	}
}

static void test_library_sum(void **state)
{
	static trial t;
	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		draw_trial(&t, first_seed() + 2000 + i);
		t.strategy = &ls_strategy_mpi;
		while (t.servers > 0) { /* every node updates everything: there are none */
			t.servers--;
			t.devices[t.nodes - t.servers - 1] = 1;
		}
		serial_run(&t);
		check_near(&t, 1e-4f, "library sum");
	}
}

TEST_MAIN(test_same_bits, test_bf16, test_library_sum)
