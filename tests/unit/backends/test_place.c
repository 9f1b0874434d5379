/*
 * Placement of buffers: those that live at the same time do not overlap, and little is wasted.
 */
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/place.h"
#include "base/clock.h"
#include "base/rng.h"
#include "unit/backends/place_reference.h"
#include "unit/test_main.h"

enum { SEED = 20240619, COUNT = 300 };

static size_t rounded(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

static void check_placement(const ls_span *spans, size_t count, size_t total)
{
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(spans[i].offset % 64, 0);
		assert_true(spans[i].bytes == 0 || spans[i].offset + spans[i].bytes <= total);
		for (size_t j = 0; j < i; j++) {
			const ls_span *a = &spans[i], *b = &spans[j];
			int meet = a->from <= b->to && b->from <= a->to;
			int overlap = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
			if (meet && overlap && a->bytes > 0 && b->bytes > 0)
				fail_msg("seed %d: spans %zu [%d, %d] and %zu [%d, %d] overlap", SEED, i, a->from,
					 a->to, j, b->from, b->to);
		}
	}
}

/* The largest sum of bytes at any moment, moment by moment. */
static size_t peak(const ls_span *spans, size_t count, int moments)
{
	size_t most = 0;
	for (int t = 0; t < moments; t++) {
		size_t alive = 0;
		for (size_t i = 0; i < count; i++)
			if (spans[i].from <= t && t <= spans[i].to)
				alive += rounded(spans[i].bytes);
		most = alive > most ? alive : most;
	}
	return most;
}

static uint32_t drawn(uint64_t round, uint64_t k, uint32_t below)
{
	uint32_t words[4];
	ls_rng_words(ls_rng_make(SEED, LS_RNG_TEST, 3), round, k, words);
	return ls_rng_below(words[0], below);
}

static void check_spans(const char *what, ls_span *spans, size_t count, int moments, double limit)
{
	size_t total = 0, bound = 0;
	assert_int_equal(ls_place_bound(spans, count, &bound), LS_OK);
	assert_int_equal(ls_place(spans, count, &total), LS_OK);
	check_placement(spans, count, total);
	assert_int_equal(reference_differs(spans, count), count);
	assert_int_equal(bound, peak(spans, count, moments));
	assert_true(total >= bound);
	double ratio = (double)total / (double)bound;
	print_message("# seed %d: %s: %.3f of the bound\n", SEED, what, ratio);
	if (!(ratio < limit))
		fail_msg("%s takes %.3f of the bound", what, ratio);
}

static void test_random(void **state)
{
	static ls_span spans[COUNT];
	(void)state;
	for (uint64_t round = 0; round < 8; round++) {
		for (uint64_t i = 0; i < COUNT; i++) {
			int from = (int)drawn(round, 4 * i, 200), length = (int)drawn(round, 4 * i + 1, 40);
			uint32_t bytes = drawn(round, 4 * i + 2, 100000);
			spans[i] = (ls_span){
				.bytes = i % 17 == 0 ? 0 : bytes, .from = from, .to = from + length, .offset = 12345
			};
		}
		check_spans("random spans", spans, COUNT, 256, 1.3);
	}
}

/* What a network is: values that live from forward to backward, gradients that live a moment, maps that shrink. */
static void make_network(ls_span *spans, int nodes)
{
	for (int i = 0; i < nodes; i++) {
		size_t bytes = (size_t)(1 << 20) >> (5 * i / nodes);
		int back = 2 * nodes - i, skip = i % 6 == 0 ? 3 : 1;
		spans[3 * i] = (ls_span){ .bytes = bytes, .from = i, .to = back };
		spans[3 * i + 1] = (ls_span){ .bytes = bytes, .from = back - skip, .to = back };
		spans[3 * i + 2] = (ls_span){ .bytes = i % 2 ? 0 : bytes / 4, .from = back, .to = back };
	}
}

static void test_network(void **state)
{
	enum { NODES = 60, MANY = 400 };
	static ls_span spans[3 * MANY];
	(void)state;
	make_network(spans, NODES);
	check_spans("a network", spans, 3 * NODES, 2 * NODES + 1, 1.1);
	make_network(spans, MANY);
	check_spans("a deeper one", spans, 3 * MANY, 2 * MANY + 1, 1.1);
}

/* A thousand layers of a transformer. In count^2 steps this would take minutes. */
static void test_deep(void **state)
{
	enum { NODES = 20000 };
	ls_span *spans = calloc((size_t)3 * NODES, sizeof(*spans));
	size_t total = 0, bound = 0;
	(void)state;
	assert_non_null(spans);
	make_network(spans, NODES);
	double start = ls_clock_thread();
	assert_int_equal(ls_place_bound(spans, (size_t)3 * NODES, &bound), LS_OK);
	assert_int_equal(ls_place(spans, (size_t)3 * NODES, &total), LS_OK);
	double seconds = ls_clock_thread() - start;
	print_message("# %d spans placed in %.2f s\n", 3 * NODES, seconds);
	assert_true(seconds < 20);
	assert_true(total >= bound && (double)total < 1.1 * (double)bound);
	free(spans);
}

static void test_edges(void **state)
{
	ls_span none[1], zero = { .bytes = 0, .from = 0, .to = 9 }, one = { .bytes = 100, .from = 3, .to = 3 };
	ls_span apart[2] = { { .bytes = 640, .from = 0, .to = 1 }, { .bytes = 640, .from = 2, .to = 3 } };
	ls_span touching[2] = { { .bytes = 640, .from = 0, .to = 2 }, { .bytes = 640, .from = 2, .to = 3 } };
	size_t total = 1, bound = 1;
	(void)state;
	assert_int_equal(ls_place(none, 0, &total), LS_OK);
	assert_int_equal(total, 0);
	assert_int_equal(ls_place(&zero, 1, &total), LS_OK);
	assert_int_equal(total, 0);
	assert_int_equal(ls_place(&one, 1, &total), LS_OK);
	assert_int_equal(total, 128);
	assert_int_equal(ls_place(apart, 2, &total), LS_OK);
	assert_int_equal(total, 640);
	assert_int_equal(ls_place(touching, 2, &total), LS_OK);
	assert_int_equal(total, 1280);
	assert_int_equal(ls_place_bound(touching, 2, &bound), LS_OK);
	assert_int_equal(bound, 1280);
	assert_int_equal(ls_place_bound(none, 0, &bound), LS_OK);
	assert_int_equal(bound, 0);
}

TEST_MAIN(test_random, test_network, test_deep, test_edges)
