/* Workers without a common step: the same sums in any order of arrival, and no worker further ahead than allowed. */
#include "unit/exchange/trial_nodes.h"
#include "unit/test_main.h"

/* The servers' shards together are the serial run's parameters, but for the order of additions. */
static void check_served(const trial *t, const node *nodes)
{
	ls_partition plan;
	assert_int_equal(ls_partition_init(&plan, t->reachable, t->statistics, t->block, t->bucket, t->servers), LS_OK);
	for (int b = 0; b < plan.buckets - 1; b++)
		for (int o = 0; o < t->servers; o++) {
			size_t begin, end;
			ls_partition_shard(&plan, b, o, &begin, &end);
			for (; begin < end && begin < t->reachable; begin++) {
				float got = nodes[t->nodes - t->servers + o].params[begin];
				if (!(got - t->params[begin] < 1e-3f && t->params[begin] - got < 1e-3f)) {
					describe(t);
					fail_msg("ps-async: parameter %zu is %g, expected %g", begin, (double)got,
						 (double)t->params[begin]);
				}
			}
		}
	ls_partition_release(&plan);
}

/* Sums that do not depend on parameters have the same result in any order of arrival; no worker runs further ahead than
 * allowed. */
static void test_stale(void **state)
{
	static trial t;
	int ran_ahead = 0;

	(void)state;
	for (uint64_t i = 0; i < 30; i++) {
		if (i % 2 == 0)
			draw_trial(&t, first_seed() + 3000 + i);
		else
			draw_sparse(&t, first_seed() + 3000 + i);
		t.nans = 0;
		t.nodes = 2 + (int)(i % 4);
		t.servers = t.nodes > 3 ? 1 + (int)(i % 2) : 1;
		for (int n = 0; n < t.nodes; n++)
			t.devices[n] = n < t.nodes - t.servers ? 1 + (int)((i + (uint64_t)n) % 3) : 0;
		uint64_t rng = i;
		t.microbatches[2] = 1; /* most workers have none: their zeros count as a step */
		for (int s = 0; s < STEPS; s++)
			assign(&t, &rng, s);
		t.strategy = &ls_strategy_ps_async;
		t.stale = 1 + (int)(i % 3);
		t.clipped = t.phased = 0;
		t.codec = i % 3 == 0 ? &ls_codec_sparse_bf16 : &ls_codec_sparse_fp32;
		serial_run(&t);
		node *nodes = run_trial(&t);
		for (int n = 0; n < t.nodes; n++)
			assert_int_equal(nodes[n].status, LS_OK);
		/* One more than allowed may show: a step counts as done before its worker has begun the next. */
		if (atomic_load(&t.most_ahead) > t.stale + 1) {
			describe(&t);
			fail_msg("a worker was %d steps ahead, allowed are %d", atomic_load(&t.most_ahead), t.stale);
		}
		ran_ahead += atomic_load(&t.most_ahead) > 0;
		check_served(&t, nodes);
		free(nodes);
	}
	assert_true(ran_ahead > 0);
}

TEST_MAIN(test_stale)
