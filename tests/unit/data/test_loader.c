/*
 * The loader: every sample once per epoch, in an order that depends on nothing but seed and epoch.
 */
#include "unit/data/plain_set.h"

#include "data/loader.h"
#include "data/shuffle.h"
#include "unit/data/loader_variant.h"
#include "unit/test_main.h"

/* One epoch must be a cut of the permutation into steps and micro-batches, tails included. */
static void check_epoch(ls_loader *loader, const ls_loader_options *o, uint64_t n, uint64_t epoch)
{
	uint64_t place = 0, steps = ls_loader_steps(n, o->global_batch);
	for (uint64_t step = 0; step < steps; step++) {
		int64_t left = (int64_t)(n - place) < o->global_batch ? (int64_t)(n - place) : o->global_batch;
		int64_t whole = left, microbatch_index = 0;
		while (left) {
			const ls_microbatch *microbatch;
			int64_t count = left < o->microbatch ? left : o->microbatch;
			assert_ok(ls_loader_next(loader, &microbatch));
			assert_non_null(microbatch);
			assert_int_equal(microbatch->count, count);
			assert_int_equal(microbatch->epoch, epoch);
			assert_int_equal(microbatch->step, step);
			assert_int_equal(microbatch->microbatch, microbatch_index++);
			assert_int_equal(microbatch->step_samples, whole);
			left -= count;
			assert_int_equal(microbatch->last_in_step, left == 0);
			assert_int_equal(microbatch->last_in_epoch, left == 0 && step + 1 == steps);
			for (int64_t i = 0; i < count; i++, place++) {
				uint64_t expected = o->shuffle ? ls_permute(o->seed, epoch, n, place) : place;
				assert_int_equal(microbatch->samples[i], expected);
				assert_true(microbatch->images[i] == (float)expected);
				assert_int_equal(microbatch->labels[i], expected % 7);
			}
		}
	}
	assert_int_equal(place, n);
}

static void every_sample_once_an_epoch(void **state)
{
	(void)state;
	static const int64_t cases[][3] = { { 100, 10, 20 }, { 103, 10, 20 }, { 1, 5, 5 },   { 7, 3, 100 },
					    { 64, 64, 64 },  { 65, 64, 64 },  { 30, 7, 16 }, { 5, 100, 3 } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int variant = 0; variant < 4; variant++) {
			uint64_t n = (uint64_t)cases[i][0];
			ls_dataset *set = make_set(&fine, n);
			ls_loader *loader;
			ls_loader_options o = loader_variant(i, variant, cases[i]);
			assert_ok(ls_loader_new(&loader, set, &o));
			for (uint64_t epoch = 0; epoch < 3; epoch++)
				check_epoch(loader, &o, n, epoch);
			ls_loader_free(loader);
			ls_dataset_free(set);
		}
}

static void resume_delivers_the_rest(void **state)
{
	(void)state;
	const uint64_t n = 53;
	ls_dataset *set = make_set(&fine, n);
	ls_loader_options o = { .seed = 4, .shuffle = 1, .microbatch = 4, .global_batch = 10 };
	uint64_t steps = ls_loader_steps(n, o.global_batch);
	assert_int_equal(steps, 6);
	for (uint64_t epoch = 0; epoch < 2; epoch++)
		for (uint64_t step = 0; step <= steps; step++) {
			ls_loader *whole, *resumed;
			const ls_microbatch *a, *b;
			o.start_epoch = o.start_step = 0;
			assert_ok(ls_loader_new(&whole, set, &o));
			o.start_epoch = epoch, o.start_step = step;
			assert_ok(ls_loader_new(&resumed, set, &o));
			uint64_t from = epoch * steps + step;
			do
				assert_ok(ls_loader_next(whole, &a));
			while (a->epoch * steps + a->step < from);
			for (int k = 0; k < 40; k++) {
				assert_ok(ls_loader_next(resumed, &b));
				assert_int_equal(a->epoch, b->epoch);
				assert_int_equal(a->step, b->step);
				assert_int_equal(a->microbatch, b->microbatch);
				assert_int_equal(a->count, b->count);
				assert_memory_equal(a->samples, b->samples, (size_t)a->count * sizeof(uint64_t));
				assert_memory_equal(a->images, b->images, (size_t)a->count * sizeof(float));
				assert_ok(ls_loader_next(whole, &a));
			}
			ls_loader_free(resumed);
			ls_loader_free(whole);
		}
	ls_dataset_free(set);
}

static void single_pass_ends(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 23);
	ls_loader *loader;
	const ls_microbatch *microbatch;
	ls_loader_options o = { .microbatch = 5, .global_batch = 10, .single_pass = 1 };
	assert_ok(ls_loader_new(&loader, set, &o));
	check_epoch(loader, &o, 23, 0);
	for (int i = 0; i < 3; i++) {
		assert_ok(ls_loader_next(loader, &microbatch));
		assert_null(microbatch);
	}
	ls_loader_free(loader);
	o.start_step = 3; /* the epoch is over */
	assert_ok(ls_loader_new(&loader, set, &o));
	assert_ok(ls_loader_next(loader, &microbatch));
	assert_null(microbatch);
	ls_loader_free(loader);
	ls_dataset_free(set);
}

static void errors_come_in_their_place_and_stay(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 3; threads++) {
		plain_set self = { .bad = 31 };
		ls_dataset *set = make_set(&self, 100);
		ls_loader *loader;
		const ls_microbatch *microbatch = NULL;
		ls_loader_options o = { .microbatch = 10, .global_batch = 10, .threads = threads };
		assert_ok(ls_loader_new(&loader, set, &o));
		for (int i = 0; i < 3; i++)
			assert_ok(ls_loader_next(loader, &microbatch));
		assert_int_equal(microbatch->step, 2);
		for (int i = 0; i < 3; i++)
			assert_fails(ls_loader_next(loader, &microbatch), LS_EIO, "sample 31 cannot be read");
		ls_loader_free(loader);
		ls_dataset_free(set);
	}
}

/* Free at once, in the middle, with slow readers, with a micro-batch still borrowed: it must join and not hang. */
static void free_at_any_time(void **state)
{
	(void)state;
	plain_set slow = { .bad = UINT64_MAX, .nap = 200 };
	ls_dataset *set = make_set(&slow, 1000);
	for (int taken = 0; taken < 6; taken++)
		for (int threads = 1; threads <= 4; threads++) {
			ls_loader *loader;
			const ls_microbatch *microbatch;
			ls_loader_options o = {
				.shuffle = 1, .microbatch = 3, .global_batch = 30, .threads = threads, .ahead = 2
			};
			assert_ok(ls_loader_new(&loader, set, &o));
			for (int i = 0; i < taken; i++)
				assert_ok(ls_loader_next(loader, &microbatch));
			ls_loader_free(loader);
		}
	ls_loader_free(NULL);
	ls_dataset_free(set);
}

static void a_lent_microbatch_does_not_change(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 1000);
	ls_loader *loader;
	const ls_microbatch *microbatch;
	ls_loader_options o = { .microbatch = 8, .global_batch = 8, .ahead = 1, .threads = 2 };
	assert_ok(ls_loader_new(&loader, set, &o));
	for (uint64_t step = 0; step < 20; step++) {
		assert_ok(ls_loader_next(loader, &microbatch));
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL); /* time enough to overwrite it */
		for (int i = 0; i < 8; i++)
			assert_true(microbatch->images[i] == (float)(step * 8 + (uint64_t)i));
	}
	ls_loader_free(loader);
	ls_dataset_free(set);
}

static void impossible_options(void **state)
{
	(void)state;
	ls_dataset *set = make_set(&fine, 100);
	ls_loader *loader = NULL;
	ls_loader_options o = { .microbatch = 0, .global_batch = 10 };
	assert_fails(ls_loader_new(&loader, set, &o), LS_EINVALID, "micro-batch of 0");
	o = (ls_loader_options){ .microbatch = 1, .global_batch = -5 };
	assert_fails(ls_loader_new(&loader, set, &o), LS_EINVALID, "global batch of -5");
	o = (ls_loader_options){ .microbatch = 10, .global_batch = 10, .start_step = 11 };
	assert_fails(ls_loader_new(&loader, set, &o), LS_EINVALID, "an epoch of 'plain' has 10 steps");
	o = (ls_loader_options){ .microbatch = 10, .global_batch = 10, .threads = 1000 };
	assert_fails(ls_loader_new(&loader, set, &o), LS_EINVALID, "threads");
	assert_null(loader);
	/* a batch beyond all measure is one step of the whole dataset, and takes no more memory than that */
	o = (ls_loader_options){ .microbatch = INT64_MAX, .global_batch = INT64_MAX };
	assert_ok(ls_loader_new(&loader, set, &o));
	check_epoch(loader, &o, 100, 0);
	ls_loader_free(loader);
	ls_dataset_free(set);
}

TEST_MAIN(every_sample_once_an_epoch, resume_delivers_the_rest, single_pass_ends, errors_come_in_their_place_and_stay,
	  free_at_any_time, a_lent_microbatch_does_not_change, impossible_options)
