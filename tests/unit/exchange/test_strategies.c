/*
 * Every row of the table of strategies with every codec, with and without norm passes, on 2 and 3 nodes: where the row
 * and the codec keep the bits, every worker ends with those of a plain serial run; where they do not, all workers of a
 * synchronous strategy end with the same parameters, near the serial ones, and servers of the other with sums near
 * them.
 */
#include "unit/exchange/trial_nodes.h"
#include "unit/test_main.h"

/* A case of `nodes` nodes for the strategy; the last node is a server, where there are any. */
static void draw_case(trial *t, uint64_t seed, int nodes, const ls_strategy *strategy, const ls_codec *codec)
{
	uint64_t rng = seed;

	draw_sparse(t, seed);
	t->strategy = strategy;
	t->codec = codec;
	t->nans = 0;
	t->nodes = nodes;
	t->servers = strategy->info.has_servers;
	t->stale = strategy->synchronous ? 0 : 1;
	for (int n = 0; n < nodes; n++)
		t->devices[n] = n < nodes - t->servers ? 1 + n % 2 : 0;
	for (int s = 0; s < STEPS; s++)
		assign(t, &rng, s);
}

/* One worker's updates are the serial ones but for rounding; several workers' come in any order. */
static void check_servers(trial *t)
{
	node *nodes = run_trial(t);
	const node *server = &nodes[t->nodes - 1];

	for (int n = 0; n < t->nodes; n++)
		assert_int_equal(nodes[n].status, LS_OK);
	for (size_t i = 0; i < t->reachable; i++)
		if (!(fabsf(server->params[i] - t->params[i]) < 0.02f)) {
			describe(t);
			fail_msg("parameter %zu is %g, expected %g", i, (double)server->params[i],
				 (double)t->params[i]);
		}
	free(nodes);
}

static void check_case(trial *t)
{
	serial_run(t);
	if (t->strategy->info.keeps_bits && t->codec->exact)
		check_same_bits(t);
	else if (t->strategy->synchronous)
		check_near(t, 0.02f, "no exact sums");
	else
		check_servers(t);
}

static void every_combination(void **state)
{
	static trial t;
	int same = 0, cases = 0;
	uint64_t seed = first_seed() + 6000;

	(void)state;
	print_message("seeds from %llu\n", (unsigned long long)seed);
	for (size_t s = 0; ls_strategy_row(s); s++)
		for (size_t c = 0; ls_codec_at(c); c++)
			for (int passes = 0; passes <= 2; passes++)
				for (int nodes = 2; nodes <= 3; nodes++) {
					const ls_strategy *row = ls_strategy_row(s);
					if (passes > 0 && !row->synchronous)
						continue; /* there is no step to take norms of */
					draw_case(&t, seed + (uint64_t)cases++, nodes, row, ls_codec_at(c));
					t.clipped = passes > 0;
					t.phased = passes > 1;
					int is_same = row->info.keeps_bits && ls_codec_at(c)->exact;
					if (!is_same && row->synchronous)
						t.sparse = 0; /* the sign of a zero matters there: see bent() */
					check_case(&t);
					same += is_same;
				}
	assert_int_equal(same, 2 * 2 * 3 * 2); /* allreduce and ps; two exact codecs; passes; nodes */
	assert_int_equal(cases, (3 * 3 + 1) * 4 * 2);
}

static void rows_are_complete(void **state)
{
	const ls_strategy *row = NULL;
	const ls_codec *codec = NULL;

	(void)state;
	for (size_t i = 0; ls_strategy_row(i); i++) {
		assert_int_equal(ls_strategy_find(ls_strategy_row(i)->info.name, &row), LS_OK);
		assert_ptr_equal(row, ls_strategy_row(i));
		assert_non_null(row->info.summary);
		assert_true(row->arrange && row->begin && row->bucket_ready && row->do_own_work && row->send);
		assert_true(row->sum_block && row->shard_updated && row->source);
		assert_true(!row->info.keeps_bits || (row->synchronous && !row->in_order));
	}
	for (size_t i = 0; ls_codec_at(i); i++) {
		codec = ls_codec_at(i);
		assert_true(codec->name && codec->summary && codec->width > 0);
		assert_true(!codec->encode == !codec->decode && !codec->pack == !codec->unpack);
		assert_true(!codec->pack == !codec->check && !codec->encode_change == !codec->add_change);
	}
	assert_int_equal(ls_strategy_find("allreduc", &row), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "did you mean 'allreduce'?"));
	assert_int_equal(ls_wire_find("fp64", &codec), LS_EINVALID);
}

TEST_MAIN(every_combination, rows_are_complete)
