/*
 * Guesses at the next tokens: where they are from, how many, and when there are none.
 */
#include "predict/lookup.h"

#include "unit/test_main.h"

enum { MANY = 31 };

static ls_lookup begin(int64_t most)
{
	ls_lookup l;
	ls_lookup_begin(&l, most);
	return l;
}

static void what_followed_before(void **state)
{
	const int32_t text[] = { 7, 1, 2, 3, 4, 5, 9, 1, 2, 3 };
	int32_t guesses[MANY];
	ls_lookup l = begin(2);

	(void)state;
	assert_int_equal(ls_lookup_guess(&l, text, 10, 100, guesses), 2);
	assert_int_equal(guesses[0], 4);
	assert_int_equal(guesses[1], 5);
}

/* 1 2 was there twice: after 8 as now, and later, after another token. */
static void the_longest_match_counts(void **state)
{
	const int32_t text[] = { 8, 1, 2, 30, 9, 1, 2, 40, 8, 1, 2 };
	const int32_t alike[] = { 1, 2, 30, 9, 1, 2, 40, 8, 1, 2 };
	int32_t guess;
	ls_lookup l = begin(1);

	(void)state;
	assert_int_equal(ls_lookup_guess(&l, text, 11, 1, &guess), 1);
	assert_int_equal(guess, 30);
	assert_int_equal(ls_lookup_guess(&l, alike, 10, 1, &guess), 1); /* of two of the same length the later one */
	assert_int_equal(guess, 40);
}

static void a_repetition_goes_on(void **state)
{
	const int32_t text[] = { 5, 6, 7, 5, 6, 7, 5, 6 };
	const int32_t next[] = { 7, 5, 6 };
	int32_t guesses[MANY];
	ls_lookup l = begin(MANY);

	(void)state;
	assert_int_equal(ls_lookup_guess(&l, text, 8, 100, guesses), 3);
	assert_memory_equal(guesses, next, sizeof(next));
	for (int i = 0; i < 3; i++) {
		int count = ls_lookup_guess(&l, text, 8, 100, guesses);
		ls_lookup_learn(&l, count, count);
	}
	assert_int_equal(ls_lookup_guess(&l, text, 8, 100, guesses), MANY);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(guesses[i], next[i % 3]);
}

static void nothing_to_guess_from(void **state)
{
	const int32_t fresh[] = { 1, 2, 3, 4, 5 }, single[] = { 2, 1, 3, 1 }, text[] = { 1, 2, 3, 1, 2 };
	int32_t guesses[MANY];
	ls_lookup l = begin(MANY), off = begin(0);

	(void)state;
	for (int length = 0; length <= 5; length++)
		assert_int_equal(ls_lookup_guess(&l, fresh, length, 100, guesses), 0);
	assert_int_equal(ls_lookup_guess(&l, single, 4, 100, guesses), 0); /* one token says too little */
	assert_int_equal(ls_lookup_guess(&l, text, 5, 0, guesses), 0);
	assert_int_equal(ls_lookup_guess(&off, text, 5, 100, guesses), 0);
	assert_int_equal(ls_lookup_guess(&l, text, 5, 2, guesses), 2);
}

static void wrong_guesses_become_rare(void **state)
{
	const int32_t text[] = { 1, 2, 3, 1, 2 };
	int32_t guesses[MANY];
	ls_lookup l = begin(MANY);
	int made = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		int count = ls_lookup_guess(&l, text, 5, 100, guesses);
		made += count;
		if (count > 0)
			ls_lookup_learn(&l, count, 0);
	}
	assert_in_range(made, 10, 40);
	while (ls_lookup_guess(&l, text, 5, 100, guesses) == 0)
		;
	ls_lookup_learn(&l, 1, 1); /* a right one makes them frequent again */
	assert_int_equal(ls_lookup_guess(&l, text, 5, 100, guesses), 3);
}

TEST_MAIN(what_followed_before, the_longest_match_counts, a_repetition_goes_on, nothing_to_guess_from,
	  wrong_guesses_become_rare)
