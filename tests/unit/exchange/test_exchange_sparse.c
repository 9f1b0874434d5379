/* Gradients full of zeros travel packed, and come to the same bits: zeros of either sign, and what is no number. */
#include "unit/exchange/trial_nodes.h"
#include "unit/test_main.h"

static void test_sparse(void **state)
{
	static trial t;
	uint64_t seed = first_seed() + 4000, packed = 0, plain = 0;

	(void)state;
	print_message("seeds from %llu, %d cases\n", (unsigned long long)seed, trial_count() / 2);
	for (int i = 0; i < trial_count() / 2; i++) {
		draw_sparse(&t, seed + (uint64_t)i);
		serial_run(&t);
		uint64_t sent = check_same_bits(&t);
		if (i % 10 != 0)
			continue;
		t.codec = &ls_codec_fp32;
		packed += sent;
		plain += check_same_bits(&t);
	}
	print_message("%llu bytes, plain %llu\n", (unsigned long long)packed, (unsigned long long)plain);
	assert_true(packed < plain * 9 / 10);
}

/* bf16 has bits of its own: the same, packed or not. */
static void test_sparse_bf16(void **state)
{
	static trial t;
	(void)state;
	for (uint64_t i = 0; i < 60; i++) {
		draw_sparse(&t, first_seed() + 5000 + i);
		t.codec = &ls_codec_sparse_bf16;
		node *packed = run_trial(&t);
		t.codec = &ls_codec_bf16;
		node *plain = run_trial(&t);
		for (int n = 0; n < t.nodes - t.servers; n++) {
			assert_int_equal(packed[n].status, LS_OK);
			if (memcmp(packed[n].params, plain[n].params, t.reachable * sizeof(float)) != 0) {
				describe(&t);
				fail_msg("bf16: node %d differs when messages are packed", n);
			}
		}
		free(packed);
		free(plain);
	}
}

TEST_MAIN(test_sparse, test_sparse_bf16)
