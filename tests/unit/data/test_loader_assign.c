/*
 * Loaders that are assigned their micro-batches: together they deliver what one loader does, however the micro-batches
 * are assigned.
 */
#include "unit/data/plain_set.h"

#include <pthread.h>
#include <semaphore.h>

#include "data/loader.h"
#include "unit/test_main.h"

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

static void expect_same(const ls_microbatch *a, const ls_microbatch *b)
{
	assert_int_equal(a->epoch, b->epoch);
	assert_int_equal(a->step, b->step);
	assert_int_equal(a->microbatch, b->microbatch);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->step_samples, b->step_samples);
	assert_int_equal(a->last_in_step, b->last_in_step);
	assert_int_equal(a->last_in_epoch, b->last_in_epoch);
	assert_memory_equal(a->samples, b->samples, (size_t)a->count * sizeof(uint64_t));
	assert_memory_equal(a->images, b->images, (size_t)a->count * sizeof(float));
	assert_memory_equal(a->labels, b->labels, (size_t)a->count * sizeof(int32_t));
}

/* One step's assignment: the i-th run of micro-batches, [cut[i], cut[i + 1]), goes to loader who[i]. */
typedef struct assignment {
	int64_t cut[LOADERS + 1];
	int who[LOADERS];
} assignment;

static assignment assign_at_random(dice *d, int loaders, int64_t microbatches)
{
	assignment assign = { .cut[0] = 0 };
	for (int i = 0; i < loaders; i++) {
		int64_t left = microbatches - assign.cut[i];
		assign.cut[i + 1] = i + 1 == loaders ? microbatches : assign.cut[i] + throw_dice(d, (uint32_t)left + 1);
		int other = (int)throw_dice(d, (uint32_t)i + 1);
		assign.who[i] = assign.who[other];
		assign.who[other] = i;
	}
	return assign;
}

static void assign_to(ls_loader **loaders, int count, const assignment *assign)
{
	for (int i = 0; i < count; i++)
		assert_ok(
			ls_loader_assign(loaders[assign->who[i]], assign->cut[i], assign->cut[i + 1] - assign->cut[i]));
}

/* The micro-batches of a step, each from the loader it was assigned to, are those of the loader that has all. */
static void take_and_compare(ls_loader *whole, ls_loader **loaders, int count, const assignment *assign)
{
	for (int i = 0; i < count; i++)
		for (int64_t k = assign->cut[i]; k < assign->cut[i + 1]; k++) {
			const ls_microbatch *expected, *microbatch;
			assert_ok(ls_loader_next(whole, &expected));
			assert_ok(ls_loader_next(loaders[assign->who[i]], &microbatch));
			assert_int_equal(microbatch->microbatch, k);
			expect_same(expected, microbatch);
		}
}

static ls_loader_options random_options(dice *d, uint64_t n)
{
	ls_loader_options o = { .seed = throw_dice(d, 1000),
				.shuffle = (int)throw_dice(d, 2),
				.microbatch = 1 + throw_dice(d, 6),
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
	int count = 1 + (int)throw_dice(d, LOADERS), ahead = 1 + (int)throw_dice(d, LS_LOADER_ASSIGNS);
	ls_dataset *set = make_set(&fine, n);
	ls_loader_options o = random_options(d, n);
	ls_loader *whole, *loaders[LOADERS];
	assignment assigns[LS_LOADER_ASSIGNS];
	assert_ok(ls_loader_new(&whole, set, &o));
	o.assigned = 1;
	for (int i = 0; i < count; i++)
		assert_ok(ls_loader_new(&loaders[i], set, &o));

	uint64_t steps = ls_loader_steps(n, o.global_batch), assigned = o.start_step;
	for (uint64_t step = o.start_step; step < 3 * steps + 1;
	     step++) { /* three epoch ends and the tails before them */
		for (; assigned < step + (uint64_t)ahead; assigned++) {
			ls_step_shape shape;
			ls_loader_step_at(n, o.global_batch, o.microbatch, assigned % steps, &shape);
			assigns[assigned % LS_LOADER_ASSIGNS] = assign_at_random(d, count, shape.microbatches);
			assign_to(loaders, count, &assigns[assigned % LS_LOADER_ASSIGNS]);
		}
		take_and_compare(whole, loaders, count, &assigns[step % LS_LOADER_ASSIGNS]);
	}
	for (int i = 0; i < count; i++)
		ls_loader_free(loaders[i]);
	ls_loader_free(whole);
	ls_dataset_free(set);
}

static void any_assignment_delivers_every_microbatch_once(void **state)
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
				assert_int_equal(shape.microbatches, (shape.samples + 3) / 4);
				assert_int_equal(shape.last_in_epoch, step + 1 == steps);
				assert_true(shape.samples == batch || shape.last_in_epoch);
			}
			assert_int_equal(samples, n);
		}
}

static void what_is_not_assigned_is_refused(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 23); /* steps of 3, 3 and 1 micro-batches */
	ls_loader *loader;
	const ls_microbatch *microbatch = NULL;
	ls_loader_options o = { .microbatch = 4, .global_batch = 10, .assigned = 1 };
	assert_ok(ls_loader_new(&loader, set, &o));
	assert_fails(ls_loader_next(loader, &microbatch), LS_EINVALID, "assign it a step first");
	assert_fails(ls_loader_assign(loader, 1, 3), LS_EINVALID, "step 0 has 3 micro-batches");
	assert_fails(ls_loader_assign(loader, -1, 1), LS_EINVALID, "from micro-batch -1");
	assert_fails(ls_loader_assign(loader, 0, -1), LS_EINVALID, "-1 micro-batches");
	assert_fails(ls_loader_assign(loader, INT64_MAX, INT64_MAX), LS_EINVALID, "step 0");
	assert_ok(ls_loader_assign(loader, 3, 0)); /* a refusal assigns nothing: this is still step 0 */
	assert_fails(ls_loader_next(loader, &microbatch), LS_EINVALID, "assign it a step first");
	assert_ok(ls_loader_assign(loader, 2, 1));
	assert_ok(ls_loader_next(loader, &microbatch));
	assert_int_equal(microbatch->step, 1);
	assert_int_equal(microbatch->microbatch, 2);
	assert_int_equal(microbatch->count, 2);
	assert_fails(ls_loader_assign(loader, 0, 2), LS_EINVALID, "step 2 has 1 micro-batches");
	ls_loader_free(loader);
	o.assigned = 0;
	assert_ok(ls_loader_new(&loader, set, &o));
	assert_fails(ls_loader_assign(loader, 0, 1), LS_EINVALID, "delivers all");
	ls_loader_free(loader);
	ls_dataset_free(set);
}

static void so_many_steps_can_be_assigned_ahead(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 1000);
	ls_loader *loader;
	const ls_microbatch *microbatch;
	ls_loader_options o = { .microbatch = 1, .global_batch = 2, .assigned = 1 };
	assert_ok(ls_loader_new(&loader, set, &o));
	for (int i = 0; i < 100; i++)
		assert_ok(ls_loader_assign(loader, 0, 0)); /* steps without work take no place */
	for (int i = 0; i < LS_LOADER_ASSIGNS; i++)
		assert_ok(ls_loader_assign(loader, 0, 2));
	for (int i = 0; i < 2; i++) {
		assert_fails(ls_loader_assign(loader, 0, 1), LS_EINVALID, "8 steps are assigned");
		assert_ok(ls_loader_next(loader, &microbatch));
		assert_int_equal(microbatch->step, 100);
	}
	assert_ok(ls_loader_assign(loader, 1, 1)); /* step 100 is delivered */
	for (int i = 0; i < 2 * (LS_LOADER_ASSIGNS - 1) + 1; i++)
		assert_ok(ls_loader_next(loader, &microbatch));
	assert_int_equal(microbatch->step, 108);
	assert_int_equal(microbatch->microbatch, 1);
	ls_loader_free(loader);
	ls_dataset_free(set);
}

static void a_single_pass_ends_when_all_is_assigned(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 23);
	ls_loader *loader;
	const ls_microbatch *microbatch;
	ls_loader_options o = { .microbatch = 4, .global_batch = 10, .assigned = 1, .single_pass = 1, .start_step = 1 };
	assert_ok(ls_loader_new(&loader, set, &o));
	assert_ok(ls_loader_assign(loader, 0, 1));
	assert_ok(ls_loader_next(loader, &microbatch));
	assert_int_equal(microbatch->step, 1);
	assert_fails(ls_loader_next(loader, &microbatch), LS_EINVALID, "assign it a step first");
	assert_ok(ls_loader_assign(loader, 0, 0));
	for (int i = 0; i < 3; i++) {
		assert_ok(ls_loader_next(loader, &microbatch));
		assert_null(microbatch);
	}
	assert_fails(ls_loader_assign(loader, 0, 0), LS_EINVALID, "single pass is assigned");
	ls_loader_free(loader);
	ls_dataset_free(set);
}

typedef struct taker {
	ls_loader *loader;
	sem_t assigned, room;
	int wrong;
} taker;

enum { TAKEN_STEPS = 300 };

static void *take_steps(void *argument)
{
	taker *t = argument;
	for (uint64_t step = 0; step < TAKEN_STEPS; step++) {
		sem_wait(&t->assigned);
		for (int64_t k = 1; k < 3; k++) {
			const ls_microbatch *microbatch = NULL;
			ls_status status = ls_loader_next(t->loader, &microbatch);
			t->wrong += status || microbatch->epoch * 10 + microbatch->step != step ||
				    microbatch->microbatch != k;
		}
		sem_post(&t->room);
	}
	return NULL;
}

/* One thread assigns while another takes: under ThreadSanitizer this shows that they may. */
static void assignment_while_taking(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 60);
	taker t = { .wrong = 0 };
	pthread_t thread;
	ls_loader_options o = { .microbatch = 2, .global_batch = 6, .assigned = 1, .threads = 2, .ahead = 3 };
	assert_ok(ls_loader_new(&t.loader, set, &o));
	sem_init(&t.assigned, 0, 0);
	sem_init(&t.room, 0, LS_LOADER_ASSIGNS);
	assert_int_equal(pthread_create(&thread, NULL, take_steps, &t), 0);
	ls_status status = LS_OK;
	for (int step = 0; step < TAKEN_STEPS; step++) {
		sem_wait(&t.room);
		status = status ? status : ls_loader_assign(t.loader, 1, 2);
		sem_post(&t.assigned);
	}
	pthread_join(thread, NULL);
	assert_ok(status);
	assert_int_equal(t.wrong, 0);
	sem_destroy(&t.room);
	sem_destroy(&t.assigned);
	ls_loader_free(t.loader);
	ls_dataset_free(set);
}

/* Readers that wait for a step, or are in the middle of one, exit. */
static void free_at_any_time(void **state)
{
	(void)state;
	plain_set slow = { .bad = UINT64_MAX, .nap = 200 };
	ls_dataset *set = make_set(&slow, 1000);
	for (int steps = 0; steps < 4; steps++)
		for (int threads = 1; threads <= 3; threads++) {
			ls_loader *loader;
			ls_loader_options o = {
				.microbatch = 3, .global_batch = 30, .threads = threads, .assigned = 1
			};
			assert_ok(ls_loader_new(&loader, set, &o));
			for (int i = 0; i < steps; i++)
				assert_ok(ls_loader_assign(loader, i, 2));
			ls_loader_free(loader);
		}
	ls_dataset_free(set);
}

TEST_MAIN(any_assignment_delivers_every_microbatch_once, shapes_add_up_to_an_epoch, what_is_not_assigned_is_refused,
	  so_many_steps_can_be_assigned_ahead, a_single_pass_ends_when_all_is_assigned, assignment_while_taking,
	  free_at_any_time)
