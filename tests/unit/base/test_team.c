/*
 * Teams: every member runs, barriers separate phases, every unit is taken once. Run under ThreadSanitizer, this is the
 * proof that a barrier orders memory.
 */
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/pin.h"
#include "base/team.h"
#include "unit/test_main.h"

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
		ledger *book = calloc(1, sizeof(*book));
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
		ledger *book = calloc(1, sizeof(*book));
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

enum { BEGINNERS = 4 };

typedef struct beginning {
	ls_pin_plan plan;
	int begun[BEGINNERS], wrong[BEGINNERS]; /* plain ints, each written by its own member */
	pthread_t self[BEGINNERS];
} beginning;

static void begin(void *context, int rank)
{
	beginning *b = context;
	b->begun[rank]++;
	b->self[rank] = pthread_self();
	ls_pin_self(&b->plan, 0, rank);
}

/* Members other than the caller have begun, once, on the thread that works, and are bound to their core. */
static void look_around(void *context, ls_member member)
{
	beginning *b = context;
	ls_processors mine;
	ls_cores_allowed(&mine);
	int others_core = ls_pin_core(&b->plan, 0, (member.rank + 1) % BEGINNERS);
	int own = others_core == ls_pin_core(&b->plan, 0, member.rank);
	if (member.rank == 0)
		b->wrong[0] += b->begun[0] != 0;
	else
		b->wrong[member.rank] += b->begun[member.rank] != 1 ||
					 !pthread_equal(b->self[member.rank], pthread_self()) ||
					 (!own && ls_processors_has(&mine, others_core));
}

static void threads_begin_before_they_work(void **state)
{
	(void)state;
	for (int round = 0; round < 50; round++) {
		beginning b = { .begun = { 0 } };
		ls_team *team = NULL;
		assert_int_equal(ls_pin_plan_init(&b.plan, 1, BEGINNERS, LS_PIN_ON), LS_OK);
		ls_team_options options = { .threads = BEGINNERS, .begin = begin, .context = &b };
		assert_int_equal(ls_team_new_with(&team, &options), LS_OK);
		for (int run = 0; run < 3; run++)
			ls_team_run(team, look_around, &b);
		ls_team_free(team);
		for (int rank = 0; rank < BEGINNERS; rank++)
			assert_int_equal(b.wrong[rank], 0);
		ls_pin_plan_release(&b.plan);
	}
}

static void note_signals(void *context, ls_member member)
{
	sigset_t *masks = context;
	pthread_sigmask(SIG_SETMASK, NULL, &masks[member.rank]);
}

static void signals_are_left_to_the_caller(void **state)
{
	(void)state;
	sigset_t masks[2], none, before;
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, &before);
	ls_team *team = team_of(2);
	ls_team_run(team, note_signals, masks);
	ls_team_free(team);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	static const int asked[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM };
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		assert_int_equal(sigismember(&masks[0], asked[i]), 0);
		assert_int_equal(sigismember(&masks[1], asked[i]), 1);
	}
	assert_int_equal(sigismember(&masks[1], SIGSEGV), 0); /* faults are the thread's own */
}

static double processor_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum { WAITS = 15 };

/* Member 0 waits for member 1, which sleeps: what that costs member 0 in processor time. */
static void wait_for_sleeper(void *context, ls_member member)
{
	double *cost = context, from = processor_seconds();
	for (int i = 0; i < WAITS; i++) {
		if (member.rank == 1)
			usleep(8000);
		ls_team_barrier(member);
	}
	if (member.rank == 0)
		*cost = (processor_seconds() - from) / WAITS;
}

/* Two threads may have a core each, but with 10000 in the process spinning takes the time of those who have work. */
static void a_crowd_spins_little(void **state)
{
	(void)state;
	double alone = 0, crowded = 1;
	ls_team *team = team_of(2);
	ls_team_run(team, wait_for_sleeper, &alone);
	ls_team_free(team);
	assert_int_equal(ls_team_new_with(&team, &(ls_team_options){ .threads = 2, .crowd = 10000 }), LS_OK);
	for (int i = 0; i < 20 && crowded >= 400e-6; i++) {
		double cost;
		ls_team_run(team, wait_for_sleeper, &cost);
		crowded = cost < crowded ? cost : crowded; /* the least: a busy machine makes some dearer */
	}
	ls_team_free(team);
	print_message("# a wait costs %.0f us alone, %.0f us in a crowd\n", 1e6 * alone, 1e6 * crowded);
	assert_true(crowded < 400e-6);
}

TEST_MAIN(every_member_runs_once, barriers_order_memory, every_unit_is_taken_once, a_run_starts_counting_anew,
	  sleepers_wake, ranges_cover, impossible_sizes_are_refused, threads_begin_before_they_work,
	  signals_are_left_to_the_caller, a_crowd_spins_little)
