/*
 * The public all-reduce against the tree written out: same bits for any number of ranks (threads here) and any
 * assignment; and what goes wrong is an error on every rank, never a hang.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "exchange/allreduce/allreduce.h"
#include "support/transport_threads.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { SEED = 20261117, RANKS_MOST = 7, CONTRIBUTIONS_MOST = 40, CALLS = 3, TRIALS = 120 };

static uint32_t draw(uint64_t stream, uint64_t i, uint32_t below)
{
	uint32_t words[4];
	ls_rng_words(ls_rng_make(SEED, LS_RNG_TEST, stream), 7, i, words);
	return ls_rng_below(words[0], below);
}

/* ---- one sum ----------------------------------------------------------------------------------------------------- */

typedef struct problem {
	int ranks;
	int64_t contributions;
	size_t floats;
	int holder[CONTRIBUTIONS_MOST];
	float *values[CONTRIBUTIONS_MOST];
	int in_place;
	double timeout;
	int absent; /* this rank does not take part; -1: all do */
	void (*spoil)(struct problem *problem, int rank, ls_contribution *mine, int64_t *count, int64_t *contributions,
		      size_t *floats); /* NULL: all is right */
	float *out[RANKS_MOST];
	ls_status status[RANKS_MOST][CALLS];
	char message[RANKS_MOST][CALLS][512];
	double seconds[RANKS_MOST];
} problem;

/* Numbers of very different size, so that every order of adding them has bits of its own; now and then none at all. */
static float value_at(uint64_t stream, size_t k, int has_specials)
{
	static const float special[] = { NAN, INFINITY, -INFINITY, -0.0f };
	uint32_t size = draw(stream, 2 * k, 60), bits = draw(stream, 2 * k + 1, 1u << 24);
	if (has_specials && size == 0)
		return special[bits % 4];
	return ldexpf((float)bits - (float)(1u << 23), (int)size - 40);
}

static void make_problem(problem *p, int ranks, int64_t contributions, size_t floats, uint64_t trial)
{
	*p = (problem){ .ranks = ranks, .contributions = contributions, .floats = floats, .timeout = 20, .absent = -1 };
	for (int64_t i = 0; i < contributions; i++) {
		p->values[i] = malloc((floats + 1) * sizeof(float));
		assert_non_null(p->values[i]);
		for (size_t k = 0; k < floats; k++)
			p->values[i][k] = value_at(trial * 1000 + (uint64_t)i, k, trial % 3 == 0);
	}
	for (int r = 0; r < ranks; r++) {
		p->out[r] = malloc((floats + 1) * sizeof(float));
		assert_non_null(p->out[r]);
	}
}

static void free_problem(problem *p)
{
	for (int64_t i = 0; i < p->contributions; i++)
		free(p->values[i]);
	for (int r = 0; r < p->ranks; r++)
		free(p->out[r]);
}

/* Runs, turns, or anything; a rank may have none. */
static void assign(problem *p, int how, uint64_t trial)
{
	for (int64_t i = 0; i < p->contributions; i++)
		p->holder[i] = how == 0   ? (int)(i * p->ranks / p->contributions)
			       : how == 1 ? (int)(i % p->ranks)
					  : (int)draw(900 + trial, (uint64_t)i, (uint32_t)p->ranks);
}

/* The formula: the sum of [first, first + 2^level), cut at the end. */
static float tree(const problem *p, int64_t first, int level, size_t k)
{
	if (level == 0)
		return p->values[first][k];
	int64_t middle = first + (INT64_C(1) << (level - 1));
	float left = tree(p, first, level - 1, k);
	return middle < p->contributions ? left + tree(p, middle, level - 1, k) : left;
}

static float expected(const problem *p, size_t k)
{
	int level = 0;
	while (INT64_C(1) << level < p->contributions)
		level++;
	return tree(p, 0, level, k);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

typedef struct member {
	problem *problem;
	ls_transport *transport;
	int rank;
	pthread_t thread;
} member;

static int64_t take(const problem *p, int rank, ls_contribution *mine)
{
	int64_t count = 0;
	for (int64_t i = p->contributions - 1; i >= 0; i--) /* in another order than that of the sum */
		if (p->holder[i] == rank)
			mine[count++] = (ls_contribution){ .index = i, .values = p->values[i] };
	return count;
}

static void *play(void *context)
{
	member *m = context;
	problem *p = m->problem;
	ls_allreduce *reduce = NULL;
	double began = ls_clock_seconds();

	if (m->rank == p->absent) {
		struct timespec rest = { .tv_nsec = 900 * 1000 * 1000 };
		nanosleep(&rest, NULL);
		m->transport->ops->free(m->transport);
		return NULL;
	}
	for (int call = 0; call < CALLS; call++)
		p->status[m->rank][call] = LS_EIO;
	if (ls_allreduce_over(&reduce, m->transport, p->timeout) != LS_OK)
		return NULL;
	for (int call = 0; call < CALLS; call++) {
		ls_contribution mine[CONTRIBUTIONS_MOST + 1];
		int64_t count = take(p, m->rank, mine), contributions = p->contributions;
		size_t floats = p->floats;
		float *out = p->in_place && count > 0 && call == CALLS - 1 ? (float *)mine[0].values : p->out[m->rank];
		if (p->spoil && call == 1)
			p->spoil(p, m->rank, mine, &count, &contributions, &floats);
		p->status[m->rank][call] = ls_allreduce_sum(reduce, mine, count, contributions, out, floats);
		if (p->status[m->rank][call] != LS_OK)
			snprintf(p->message[m->rank][call], sizeof(p->message[0][0]), "%s", ls_last_error());
		if (out != p->out[m->rank])
			memcpy(p->out[m->rank], out, floats * sizeof(float));
	}
	if (ls_allreduce_rank(reduce) != m->rank || ls_allreduce_ranks(reduce) != p->ranks)
		p->status[m->rank][0] = LS_EIO;
	p->seconds[m->rank] = ls_clock_seconds() - began;
	ls_allreduce_free(reduce);
	return NULL;
}

static void run(problem *p, unsigned long long seed)
{
	ls_transport *transports[RANKS_MOST];
	member members[RANKS_MOST];

	assert_ok(ls_threads_transports(transports, p->ranks, LS_ALLREDUCE_SLOTS * p->ranks, seed));
	for (int r = 0; r < p->ranks; r++) {
		members[r] = (member){ .problem = p, .transport = transports[r], .rank = r };
		assert_int_equal(pthread_create(&members[r].thread, NULL, play, &members[r]), 0);
	}
	for (int r = 0; r < p->ranks; r++)
		pthread_join(members[r].thread, NULL);
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static void check_bits(const problem *p, const float *sums, uint64_t trial)
{
	for (int r = 0; r < p->ranks; r++) {
		for (int call = 0; call < CALLS; call++)
			if (p->status[r][call] != LS_OK)
				fail_msg("seed %d, trial %d: rank %d: %s", SEED, (int)trial, r, p->message[r][call]);
		for (size_t k = 0; k < p->floats; k++) {
			float got = p->out[r][k];
			if (memcmp(&got, &sums[k], sizeof(got)) != 0 && !(isnan(got) && isnan(sums[k])))
				fail_msg("seed %d, trial %d: %lld contributions on rank %d of %d: float %zu of %zu is "
					 "%a, "
					 "expected %a",
					 SEED, (int)trial, (long long)p->contributions, r, p->ranks, k, p->floats,
					 (double)got, (double)sums[k]);
		}
	}
}

static void same_bits_on_any_ranks(void **state)
{
	(void)state;
	for (uint64_t trial = 0; trial < TRIALS; trial++) {
		int ranks = 1 + (int)draw(1, trial, RANKS_MOST), how = (int)(trial % 3);
		int64_t contributions = 1 + draw(2, trial, CONTRIBUTIONS_MOST);
		size_t floats = trial % 10 == 0 ? 0 : 1 + draw(3, trial, trial % 7 == 0 ? 6000 : 70);
		problem p;
		make_problem(&p, ranks, contributions, floats, trial);
		assign(&p, how, trial);
		float *sums = calloc(floats + 1, sizeof(float));
		assert_non_null(sums);
		for (size_t k = 0; k < floats; k++)
			sums[k] = expected(&p, k);
		p.in_place = trial % 2;
		run(&p, trial);
		check_bits(&p, sums, trial);
		free(sums);
		free_problem(&p);
	}
}

/* The numbers above tell orders apart: adding from left to right is something else. */
static void orders_differ(void **state)
{
	problem p;
	int differ = 0;
	(void)state;
	make_problem(&p, 1, 11, 100, 1);
	for (size_t k = 0; k < p.floats; k++) {
		float sum = 0;
		for (int64_t i = 0; i < p.contributions; i++)
			sum += p.values[i][k];
		differ += sum != expected(&p, k);
	}
	assert_true(differ > 10);
	free_problem(&p);
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

#define SPOIL(name)                                                                                                    \
	static void name(problem *p, int rank, ls_contribution *mine, int64_t *count, int64_t *contributions,          \
			 size_t *floats)
SPOIL(other_length)
{
	(void)p, (void)mine, (void)count, (void)contributions;
	*floats -= rank == 1;
}
SPOIL(other_number)
{
	(void)p, (void)mine, (void)count, (void)floats;
	*contributions += rank == 2;
}
SPOIL(one_missing)
{
	(void)p, (void)mine, (void)contributions, (void)floats;
	*count -= rank == 1;
}
SPOIL(one_twice)
{
	(void)p, (void)count, (void)contributions, (void)floats;
	if (rank == 1)
		mine[0].index = 0;
}
SPOIL(out_of_range)
{
	(void)p, (void)count, (void)floats;
	if (rank == 1)
		mine[0].index = *contributions;
}
SPOIL(no_values)
{
	(void)p, (void)count, (void)contributions, (void)floats;
	if (rank == 1)
		mine[1].values = NULL;
}
SPOIL(none_at_all)
{
	(void)p, (void)mine, (void)rank, (void)floats;
	*contributions = *count = 0;
}

/* All ranks fail in the second call, and the third is right again. */
static void mistakes_are_everybodys(void **state)
{
	static const struct {
		void (*spoil)(problem *, int, ls_contribution *, int64_t *, int64_t *, size_t *);
		const char *of_rank_1, *of_others;
	} rows[] = {
		{ other_length, "rank 0 sums 50 floats and rank 1 49", "rank 0 sums 50 floats and rank 1 49" },
		{ other_number, "rank 0 sums 9 contributions and rank 2 10",
		  "rank 0 sums 9 contributions and rank 2 10" },
		{ one_missing, "all ranks together give 8 contributions of 9", "give 8 contributions of 9" },
		{ one_twice, "contribution 0 is given twice, by ranks 0 and 1", "is given twice, by ranks 0 and 1" },
		{ out_of_range, "index 9 of contribution 0 is not in 0..8",
		  "the arguments of rank 1 are not acceptable" },
		{ no_values, "the values of contribution", "the arguments of rank 1 are not acceptable" },
		{ none_at_all, "0 contributions; there must be 1", "0 contributions; there must be 1" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		problem p;
		make_problem(&p, 3, 9, 50, 1);
		assign(&p, 0, 0);
		p.spoil = rows[i].spoil;
		run(&p, i);
		for (int r = 0; r < 3; r++) {
			const char *wanted = r == 1 ? rows[i].of_rank_1 : rows[i].of_others;
			assert_int_equal(p.status[r][0], LS_OK);
			assert_true(p.status[r][1] == LS_EINVALID || p.status[r][1] == LS_EMISMATCH);
			if (!strstr(p.message[r][1], wanted))
				fail_msg("rank %d: '%s', expected '%s'", r, p.message[r][1], wanted);
			assert_int_equal(p.status[r][2], LS_OK);
		}
		free_problem(&p);
	}
}

static void a_rank_that_does_not_come(void **state)
{
	problem p;
	(void)state;
	make_problem(&p, 4, 9, 50, 1);
	assign(&p, 0, 0);
	p.absent = 2;
	p.timeout = 0.3;
	run(&p, 1);
	for (int r = 0; r < 4; r++) {
		if (r == 2)
			continue;
		assert_int_equal(p.status[r][0], LS_EPEER);
		if (!strstr(p.message[r][0], "rank 2 did not take part in the first exchange within 0.3 s"))
			fail_msg("rank %d: %s", r, p.message[r][0]);
		assert_int_equal(p.status[r][1], LS_EPEER); /* at once */
		assert_true(p.seconds[r] > 0.25 && p.seconds[r] < 5);
	}
	free_problem(&p);
}

/* ---- a program without MPI --------------------------------------------------------------------------------------- */

static void alone(void **state)
{
	ls_allreduce *reduce = NULL;
	ls_allreduce_options options = LS_ALLREDUCE_OPTIONS_INIT;
	float a[3] = { 1, 2, 3 }, b[3] = { 10, 20, 30 };
	ls_contribution mine[] = { { 1, b }, { 0, a } };
	(void)state;
	assert_ok(ls_allreduce_new(&reduce, NULL));
	assert_int_equal(ls_allreduce_ranks(reduce), 1);
	assert_ok(ls_allreduce_sum(reduce, mine, 2, 2, b, 3));
	assert_true(b[0] == 11 && b[1] == 22 && b[2] == 33);
	assert_fails(ls_allreduce_sum(reduce, mine, 2, 3, b, 3), LS_EMISMATCH, "give 2 contributions of 3");
	assert_fails(ls_allreduce_sum(reduce, mine, 3, 2, b, 3), LS_EINVALID, "this rank gives 3 of 2");
	assert_fails(ls_allreduce_sum(reduce, mine, 2, 2, NULL, 3), LS_EINVALID, "`out` is NULL");
	assert_fails(ls_allreduce_sum(reduce, mine, 2, 2, b, SIZE_MAX / 8), LS_EINVALID, "too large");
	ls_allreduce_free(reduce);
	ls_allreduce_free(reduce);
	ls_allreduce_free(NULL);
	assert_fails(ls_allreduce_sum(reduce, mine, 2, 2, b, 3), LS_EINVALID, "the all-reduce was freed");
	assert_fails(ls_allreduce_sum(NULL, mine, 2, 2, b, 3), LS_EINVALID, "the all-reduce is NULL");
	assert_int_equal(ls_allreduce_rank(reduce) + ls_allreduce_ranks(reduce), -2);
	options.size = 0;
	assert_fails(ls_allreduce_new(&reduce, &options), LS_EINVALID, "LS_ALLREDUCE_OPTIONS_INIT");
	options = (ls_allreduce_options)LS_ALLREDUCE_OPTIONS_INIT;
	options.timeout = -1;
	assert_fails(ls_allreduce_new(&reduce, &options), LS_EINVALID, "options.timeout");
	options.timeout = 1;
	options.communicator = 12345;
	assert_int_not_equal(ls_allreduce_new(&reduce, &options), LS_OK);
}

TEST_MAIN(same_bits_on_any_ranks, orders_differ, mistakes_are_everybodys, a_rank_that_does_not_come, alone)
