/* Several devices, and micro-batches assigned to them in any way: the bits of one device, and one end for all. */
#include "unit/test_main.h"
#include "unit/trainer/quadrants.h"

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Any number of devices and threads, any number of micro-batches, tails: the bits of one device. */
static void test_devices(void **state)
{
	(void)state;
	for (int64_t microbatches = 1; microbatches <= 9; microbatches++)
		for (int coupled = 0; coupled < 2; coupled++) {
			uint64_t first = 0;
			for (int devices = 1; devices <= 4; devices++)
				for (int threads = 1; threads <= 2; threads++) {
					ls_graph *g = make_graph(coupled);
					ls_node_trainer_options o = base_options(g, 5, microbatches);
					int64_t tail = microbatches % 3; /* 0: none */
					o.tails[0] = tail;
					o.devices = devices;
					o.threads = threads;
					o.clip_norm = microbatches % 4 == 2 ? 0.1 : 0;
					if (microbatches == 1 || microbatches == 6 ||
					    microbatches == 7) /* 6: with clipping */
						o.optimizer = "lamb", o.hyper.weight_decay = 0.01;
					uint64_t f = fingerprint_after(
						&o, 3, microbatches * 5 - (tail > 0 ? 5 - tail : 0), NULL);
					first = devices == 1 && threads == 1 ? f : first;
					if (f != first)
						fail_msg("%lld micro-batches, %s, %d devices of %d threads: %016llx, "
							 "not "
							 "%016llx",
							 (long long)microbatches, coupled ? "coupled" : "sliced",
							 devices, threads, (unsigned long long)f,
							 (unsigned long long)first);
					ls_graph_free(g);
				}
		}
}

/* Whoever computes which micro-batch: random dealings give the bits of the even one. */
static void test_assignment(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 12; round++) {
		uint32_t words[4];
		ls_rng_words(ls_rng_make(SEED, LS_RNG_TEST, 9), round, 0, words);
		int devices = 2 + (int)(words[0] % 3), microbatches = 2 + (int)(words[1] % 8),
		    node[MICROBATCHES_MAX] = { 0 };
		uint64_t fingerprint[2];
		for (int assigned = 0; assigned < 2; assigned++) {
			ls_graph *g = make_graph(1);
			ls_node_trainer_options o = base_options(g, 4, microbatches);
			ls_node_trainer *t = NULL;
			o.devices = assigned ? devices : 1;
			assert_ok(ls_node_trainer_new(&t, &o));
			assert_ok(ls_node_trainer_init(t));
			for (uint64_t s = 0; s < 3; s++) {
				batch b = make_batch(100 * s, 4 * microbatches);
				take_in_hand(t, &b, 4);
				/* runs in random order of devices, some of them empty */
				ls_rng_words(ls_rng_make(SEED, LS_RNG_TEST, 10), round, s, words);
				for (int i = 0; assigned && i < microbatches; i++)
					hand.device[i] =
						(int)((words[2] + words[3] % 3 * (uint32_t)i / 3) % (uint32_t)devices);
				qsort(hand.device, (size_t)microbatches, sizeof(int), compare_ints);
				ls_node_trainer_assignment assign = { .microbatches = microbatches,
								      .samples = b.count,
								      .node = node,
								      .device = hand.device };
				assert_ok(ls_node_trainer_step(t, &assign));
				free_batch(&b);
			}
			assert_ok(ls_node_trainer_fingerprint(t, &fingerprint[assigned]));
			ls_node_trainer_free(t);
			ls_graph_free(g);
		}
		if (fingerprint[0] != fingerprint[1])
			fail_msg("seed %d, round %llu: %d devices, %d micro-batches differ", SEED,
				 (unsigned long long)round, devices, microbatches);
	}
}

/* A micro-batch that cannot be read ends the step with its reason, on every number of devices, and nothing hangs. */
static void test_lost_microbatch(void **state)
{
	(void)state;
	for (int devices = 1; devices <= 3; devices++)
		for (int64_t lost = 0; lost < 4; lost++) {
			ls_graph *g = make_graph(1);
			ls_node_trainer_options o = base_options(g, 5, 4);
			ls_node_trainer *t = NULL;
			batch b = make_batch(0, 20);
			o.devices = devices;
			assert_ok(ls_node_trainer_new(&t, &o));
			assert_ok(ls_node_trainer_init(t));
			take_in_hand(t, &b, 5);
			hand.fails = lost;
			ls_node_trainer_assignment assign = { .microbatches = 4, .samples = 20 };
			assert_int_equal(ls_node_trainer_step(t, &assign), LS_EIO);
			assert_non_null(strstr(ls_last_error(), "is lost"));
			free_batch(&b);
			ls_node_trainer_free(t);
			ls_graph_free(g);
		}
}

TEST_MAIN(test_devices, test_assignment, test_lost_microbatch)
