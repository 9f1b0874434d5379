/*
 * Teams: everybody runs, barriers separate, every unit is taken once. Run under ThreadSanitizer, this is the proof that
 * a barrier orders memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/team.h"

static ls_team *team_of(int threads)
{
	ls_team *team = NULL;
	assert_int_equal(ls_team_new(&team, threads), LS_OK);
	assert_int_equal(ls_team_size(team), threads);
	return team;
}

static void count_member(void *context, ls_member member)
{
	int *seen = context; /* (size): plain ints, each written by its own member */
	assert_true(member.rank >= 0 && member.rank < member.size);
	seen[member.rank]++;
}

static void every_member_runs_once(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 5; threads++) {
		ls_team *team = team_of(threads);
		int seen[5] = { 0 };
		for (int run = 1; run <= 200; run++) {
			ls_team_run(team, count_member, seen);
			for (int rank = 0; rank < threads; rank++)
				assert_int_equal(seen[rank], run);
		}
		ls_team_free(team);
	}
}

enum { PHASES = 300, UNITS = 17 };

typedef struct ledger {
	int value[8]; /* plain: only barriers order them */
	int wrong[8];
	_Atomic(int) taken[PHASES][UNITS];
} ledger;

/* In each phase every member writes its own entry; behind the barrier it reads its neighbour's. */
static void write_then_read(void *context, ls_member member)
{
	ledger *book = context;
	for (int phase = 0; phase < PHASES; phase++) {
		book->value[member.rank] = phase;
		ls_team_barrier(member);
		book->wrong[member.rank] += book->value[(member.rank + 1) % member.size] != phase;
		ls_team_barrier(member);
	}
}

static void barriers_order_memory(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 4; threads++) {
		ls_team *team = team_of(threads);
		ledger *book = calloc(1, sizeof *book);
		assert_non_null(book);
		ls_team_run(team, write_then_read, book);
		for (int rank = 0; rank < threads; rank++)
			assert_int_equal(book->wrong[rank], 0);
		free(book);
		ls_team_free(team);
	}
}

static void take_units(void *context, ls_member member)
{
	ledger *book = context;
	for (int phase = 0; phase < PHASES; phase++) {
		for (int64_t unit; (unit = ls_team_next(member, UNITS)) >= 0;)
			atomic_fetch_add(&book->taken[phase][unit], 1);
		assert_int_equal(ls_team_next(member, UNITS), -1);
		ls_team_barrier(member);
	}
}

static void every_unit_is_taken_once(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 4; threads++) {
		ls_team *team = team_of(threads);
		ledger *book = calloc(1, sizeof *book);
		assert_non_null(book);
		for (int run = 1; run <= 3; run++) {
			ls_team_run(team, take_units, book);
			for (int phase = 0; phase < PHASES; phase++)
				for (int unit = 0; unit < UNITS; unit++)
					assert_int_equal(atomic_load(&book->taken[phase][unit]), run);
		}
		free(book);
		ls_team_free(team);
	}
}

static void take_some(void *context, ls_member member)
{
	(void)member;
	_Atomic(int64_t) *first = context;
	int64_t unit = ls_team_next(member, 100);
	if (unit == 0)
		atomic_fetch_add(first, 1);
}

/* A run that leaves units untaken must not leave them to the next one. */
static void a_run_starts_counting_anew(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 3; threads++) {
		ls_team *team = team_of(threads);
		_Atomic(int64_t) first = 0;
		for (int run = 0; run < 50; run++)
			ls_team_run(team, take_some, &first);
		assert_int_equal(atomic_load(&first), 50);
		ls_team_free(team);
	}
}

static void dawdle(void *context, ls_member member)
{
	int *seen = context;
	if (member.rank == member.size - 1)
		usleep(30000); /* long past the spinning: the others sleep */
	ls_team_barrier(member);
	if (member.rank == 0)
		usleep(30000);
	ls_team_barrier(member);
	seen[member.rank]++;
}

static void sleepers_wake(void **state)
{
	(void)state;
	ls_team *team = team_of(3);
	int seen[3] = { 0 };
	ls_team_run(team, dawdle, seen);
	usleep(30000); /* members sleep between runs, too */
	ls_team_run(team, dawdle, seen);
	for (int rank = 0; rank < 3; rank++)
		assert_int_equal(seen[rank], 2);
	ls_team_free(team);
}

static void ranges_cover(void **state)
{
	(void)state;
	for (int size = 1; size < 9; size++)
		for (int64_t count = 0; count < 40; count++) {
			int64_t at = 0;
			for (int rank = 0; rank < size; rank++) {
				int64_t begin, end;
				ls_team_range((ls_member){ NULL, rank, size }, count, &begin, &end);
				assert_int_equal(begin, at);
				assert_true(end - begin <= count / size + 1);
				at = end;
			}
			assert_int_equal(at, count);
		}
}

static void impossible_sizes_are_refused(void **state)
{
	(void)state;
	ls_team *team = NULL;
	assert_int_equal(ls_team_new(&team, 0), LS_EINVALID);
	assert_int_equal(ls_team_new(&team, -3), LS_EINVALID);
	assert_int_equal(ls_team_new(&team, 1000000), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "1000000"));
	assert_null(team);
	ls_team_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_member_runs_once),
		cmocka_unit_test(barriers_order_memory),
		cmocka_unit_test(every_unit_is_taken_once),
		cmocka_unit_test(a_run_starts_counting_anew),
		cmocka_unit_test(sleepers_wake),
		cmocka_unit_test(ranges_cover),
		cmocka_unit_test(impossible_sizes_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
