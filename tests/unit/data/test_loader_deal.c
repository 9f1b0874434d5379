/*
 * Loaders that are dealt their leaves: together they deliver what one loader does, however the leaves are dealt.
 */
#include "unit/data/plain_set.h"

#include <pthread.h>
#include <semaphore.h>

#include "data/loader.h"

enum { LOADERS = 5, CASES = 120 };

/* A stream of random numbers for one case, [0, n). */
typedef struct dice {
	ls_rng rng;
	uint64_t thrown;
} dice;

static uint32_t throw_dice(dice *d, uint32_t n)
{
	uint32_t words[4];
	ls_rng_words(d->rng, 0, d->thrown++, words);
	return words[0] % n;
}

static uint64_t seed_of_run(void)
{
	const char *text = getenv("LS_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
	print_message("# LS_TEST_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static void expect_same(const ls_leaf *a, const ls_leaf *b)
{
	assert_int_equal(a->epoch, b->epoch);
	assert_int_equal(a->step, b->step);
	assert_int_equal(a->leaf, b->leaf);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->step_samples, b->step_samples);
	assert_int_equal(a->last_in_step, b->last_in_step);
	assert_int_equal(a->last_in_epoch, b->last_in_epoch);
	assert_memory_equal(a->samples, b->samples, (size_t)a->count * sizeof(uint64_t));
	assert_memory_equal(a->images, b->images, (size_t)a->count * sizeof(float));
	assert_memory_equal(a->labels, b->labels, (size_t)a->count * sizeof(int32_t));
}

/* One step's dealing: the i-th run of leaves, [cut[i], cut[i + 1]), goes to loader who[i]. */
typedef struct dealing {
	int64_t cut[LOADERS + 1];
	int who[LOADERS];
} dealing;

static dealing deal_at_random(dice *d, int loaders, int64_t leaves)
{
	dealing deal = { .cut[0] = 0 };
	for (int i = 0; i < loaders; i++) {
		int64_t left = leaves - deal.cut[i];
		deal.cut[i + 1] = i + 1 == loaders ? leaves : deal.cut[i] + throw_dice(d, (uint32_t)left + 1);
		int other = (int)throw_dice(d, (uint32_t)i + 1);
		deal.who[i] = deal.who[other];
		deal.who[other] = i;
	}
	return deal;
}

static void deal_to(ls_loader **loaders, int count, const dealing *deal)
{
	for (int i = 0; i < count; i++)
		assert_ok(ls_loader_deal(loaders[deal->who[i]], deal->cut[i], deal->cut[i + 1] - deal->cut[i]));
}

/* The leaves of a step, each from the loader it was dealt to, are those of the loader that has all. */
static void take_and_compare(ls_loader *whole, ls_loader **loaders, int count, const dealing *deal)
{
	for (int i = 0; i < count; i++)
		for (int64_t k = deal->cut[i]; k < deal->cut[i + 1]; k++) {
			const ls_leaf *expected, *leaf;
			assert_ok(ls_loader_next(whole, &expected));
			assert_ok(ls_loader_next(loaders[deal->who[i]], &leaf));
			assert_int_equal(leaf->leaf, k);
			expect_same(expected, leaf);
		}
}

static ls_loader_options random_options(dice *d, uint64_t n)
{
	ls_loader_options o = { .seed = throw_dice(d, 1000),
				.shuffle = (int)throw_dice(d, 2),
				.leaf = 1 + throw_dice(d, 6),
				.global_batch = 1 + throw_dice(d, 40),
				.ahead = (int)throw_dice(d, 4),
				.threads = (int)throw_dice(d, 4),
				.start_epoch = throw_dice(d, 3) };
	o.start_step = throw_dice(d, (uint32_t)ls_loader_steps(n, o.global_batch) + 1);
	return o;
}

static void one_random_case(dice *d)
{
	uint64_t n = 1 + throw_dice(d, 120);
	int count = 1 + (int)throw_dice(d, LOADERS), ahead = 1 + (int)throw_dice(d, LS_LOADER_DEALS);
	ls_dataset *set = make_set(&fine, n);
	ls_loader_options o = random_options(d, n);
	ls_loader *whole, *loaders[LOADERS];
	dealing deals[LS_LOADER_DEALS];
	assert_ok(ls_loader_new(&whole, set, &o));
	o.dealt = 1;
	for (int i = 0; i < count; i++)
		assert_ok(ls_loader_new(&loaders[i], set, &o));

	uint64_t steps = ls_loader_steps(n, o.global_batch), dealt = o.start_step;
	for (uint64_t step = o.start_step; step < 3 * steps + 1;
	     step++) { /* three epoch ends and the tails before them */
		for (; dealt < step + (uint64_t)ahead; dealt++) {
			ls_step_shape shape;
			ls_loader_step_at(n, o.global_batch, o.leaf, dealt % steps, &shape);
			deals[dealt % LS_LOADER_DEALS] = deal_at_random(d, count, shape.leaves);
			deal_to(loaders, count, &deals[dealt % LS_LOADER_DEALS]);
		}
		take_and_compare(whole, loaders, count, &deals[step % LS_LOADER_DEALS]);
	}
	for (int i = 0; i < count; i++)
		ls_loader_free(loaders[i]);
	ls_loader_free(whole);
	ls_dataset_free(set);
}

static void any_dealing_delivers_every_leaf_once(void **state)
{
	(void)state;
	uint64_t seed = seed_of_run();
	for (uint64_t i = 0; i < CASES; i++) {
		dice d = { .rng = ls_rng_make(seed, LS_RNG_TEST, i) };
		one_random_case(&d);
	}
}

static void shapes_add_up_to_an_epoch(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 60; n++)
		for (int64_t batch = 1; batch < 25; batch++) {
			uint64_t samples = 0, steps = ls_loader_steps(n, batch);
			for (uint64_t step = 0; step < steps; step++) {
				ls_step_shape shape;
				ls_loader_step_at(n, batch, 4, step, &shape);
				samples += (uint64_t)shape.samples;
				assert_int_equal(shape.leaves, (shape.samples + 3) / 4);
				assert_int_equal(shape.last_in_epoch, step + 1 == steps);
				assert_true(shape.samples == batch || shape.last_in_epoch);
			}
			assert_int_equal(samples, n);
		}
}

static void what_is_not_dealt_is_refused(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 23); /* steps of 3, 3 and 1 leaves */
	ls_loader *loader;
	const ls_leaf *leaf = NULL;
	ls_loader_options o = { .leaf = 4, .global_batch = 10, .dealt = 1 };
	assert_ok(ls_loader_new(&loader, set, &o));
	assert_fails(ls_loader_next(loader, &leaf), LS_EINVALID, "deal it a step first");
	assert_fails(ls_loader_deal(loader, 1, 3), LS_EINVALID, "step 0 has 3 leaves");
	assert_fails(ls_loader_deal(loader, -1, 1), LS_EINVALID, "from leaf -1");
	assert_fails(ls_loader_deal(loader, 0, -1), LS_EINVALID, "-1 leaves");
	assert_fails(ls_loader_deal(loader, INT64_MAX, INT64_MAX), LS_EINVALID, "step 0");
	assert_ok(ls_loader_deal(loader, 3, 0)); /* a refusal deals nothing: this is still step 0 */
	assert_fails(ls_loader_next(loader, &leaf), LS_EINVALID, "deal it a step first");
	assert_ok(ls_loader_deal(loader, 2, 1));
	assert_ok(ls_loader_next(loader, &leaf));
	assert_int_equal(leaf->step, 1);
	assert_int_equal(leaf->leaf, 2);
	assert_int_equal(leaf->count, 2);
	assert_fails(ls_loader_deal(loader, 0, 2), LS_EINVALID, "step 2 has 1 leaves");
	ls_loader_free(loader);
	o.dealt = 0;
	assert_ok(ls_loader_new(&loader, set, &o));
	assert_fails(ls_loader_deal(loader, 0, 1), LS_EINVALID, "delivers all");
	ls_loader_free(loader);
	ls_dataset_free(set);
}

static void so_many_steps_can_be_dealt_ahead(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 1000);
	ls_loader *loader;
	const ls_leaf *leaf;
	ls_loader_options o = { .leaf = 1, .global_batch = 2, .dealt = 1 };
	assert_ok(ls_loader_new(&loader, set, &o));
	for (int i = 0; i < 100; i++)
		assert_ok(ls_loader_deal(loader, 0, 0)); /* steps without work take no place */
	for (int i = 0; i < LS_LOADER_DEALS; i++)
		assert_ok(ls_loader_deal(loader, 0, 2));
	for (int i = 0; i < 2; i++) {
		assert_fails(ls_loader_deal(loader, 0, 1), LS_EINVALID, "8 steps are dealt");
		assert_ok(ls_loader_next(loader, &leaf));
		assert_int_equal(leaf->step, 100);
	}
	assert_ok(ls_loader_deal(loader, 1, 1)); /* step 100 is delivered */
	for (int i = 0; i < 2 * (LS_LOADER_DEALS - 1) + 1; i++)
		assert_ok(ls_loader_next(loader, &leaf));
	assert_int_equal(leaf->step, 108);
	assert_int_equal(leaf->leaf, 1);
	ls_loader_free(loader);
	ls_dataset_free(set);
}

static void a_single_pass_ends_when_all_is_dealt(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 23);
	ls_loader *loader;
	const ls_leaf *leaf;
	ls_loader_options o = { .leaf = 4, .global_batch = 10, .dealt = 1, .single_pass = 1, .start_step = 1 };
	assert_ok(ls_loader_new(&loader, set, &o));
	assert_ok(ls_loader_deal(loader, 0, 1));
	assert_ok(ls_loader_next(loader, &leaf));
	assert_int_equal(leaf->step, 1);
	assert_fails(ls_loader_next(loader, &leaf), LS_EINVALID, "deal it a step first");
	assert_ok(ls_loader_deal(loader, 0, 0));
	for (int i = 0; i < 3; i++) {
		assert_ok(ls_loader_next(loader, &leaf));
		assert_null(leaf);
	}
	assert_fails(ls_loader_deal(loader, 0, 0), LS_EINVALID, "single pass is dealt");
	ls_loader_free(loader);
	ls_dataset_free(set);
}

typedef struct taker {
	ls_loader *loader;
	sem_t dealt, room;
	int wrong;
} taker;

enum { TAKEN_STEPS = 300 };

static void *take_steps(void *argument)
{
	taker *t = argument;
	for (uint64_t step = 0; step < TAKEN_STEPS; step++) {
		sem_wait(&t->dealt);
		for (int64_t k = 1; k < 3; k++) {
			const ls_leaf *leaf = NULL;
			ls_status status = ls_loader_next(t->loader, &leaf);
			t->wrong += status || leaf->epoch * 10 + leaf->step != step || leaf->leaf != k;
		}
		sem_post(&t->room);
	}
	return NULL;
}

/* One thread deals while another takes: under ThreadSanitizer this shows that they may. */
static void dealing_while_taking(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 60);
	taker t = { .wrong = 0 };
	pthread_t thread;
	ls_loader_options o = { .leaf = 2, .global_batch = 6, .dealt = 1, .threads = 2, .ahead = 3 };
	assert_ok(ls_loader_new(&t.loader, set, &o));
	sem_init(&t.dealt, 0, 0);
	sem_init(&t.room, 0, LS_LOADER_DEALS);
	assert_int_equal(pthread_create(&thread, NULL, take_steps, &t), 0);
	ls_status status = LS_OK;
	for (int step = 0; step < TAKEN_STEPS; step++) {
		sem_wait(&t.room);
		status = status ? status : ls_loader_deal(t.loader, 1, 2);
		sem_post(&t.dealt);
	}
	pthread_join(thread, NULL);
	assert_ok(status);
	assert_int_equal(t.wrong, 0);
	sem_destroy(&t.room);
	sem_destroy(&t.dealt);
	ls_loader_free(t.loader);
	ls_dataset_free(set);
}

/* Readers that wait for a step, or are in the middle of one, go home. */
static void free_at_any_time(void **state)
{
	(void)state;
	plain_set slow = { .bad = UINT64_MAX, .nap = 200 };
	ls_dataset *set = make_set(&slow, 1000);
	for (int steps = 0; steps < 4; steps++)
		for (int threads = 1; threads <= 3; threads++) {
			ls_loader *loader;
			ls_loader_options o = { .leaf = 3, .global_batch = 30, .threads = threads, .dealt = 1 };
			assert_ok(ls_loader_new(&loader, set, &o));
			for (int i = 0; i < steps; i++)
				assert_ok(ls_loader_deal(loader, i, 2));
			ls_loader_free(loader);
		}
	ls_dataset_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_dealing_delivers_every_leaf_once),
		cmocka_unit_test(shapes_add_up_to_an_epoch),
		cmocka_unit_test(what_is_not_dealt_is_refused),
		cmocka_unit_test(so_many_steps_can_be_dealt_ahead),
		cmocka_unit_test(a_single_pass_ends_when_all_is_dealt),
		cmocka_unit_test(dealing_while_taking),
		cmocka_unit_test(free_at_any_time),
	};
	return cmocka_run_group_tests_name("loader_deal", tests, NULL, NULL);
}
