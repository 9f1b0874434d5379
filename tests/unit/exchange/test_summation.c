/*
 * How many gradients and partial sums the assignment of a step's micro-batches takes: by brute force, and against the
 * bound for any contiguous runs, which must hold and must be reached.
 */
#include <stddef.h>
#include <stdint.h>

#include "exchange/assigner.h"
#include "exchange/summation.h"
#include "unit/test_main.h"

enum { MICROBATCHES = 40 };

static ls_summation_buffers buffers_of(int64_t microbatches, int nodes, int node, int devices, const int *node_of,
				       const int *device_of)
{
	ls_summation sum;
	assert_int_equal(ls_summation_init(&sum, microbatches, nodes, node, devices, 0), LS_OK);
	ls_summation_assign(&sum, 0, microbatches, node_of, device_of);
	ls_summation_buffers most_of = ls_summation_buffers_of(&sum);
	ls_summation_release(&sum);
	return most_of;
}

/* Node 0 computes [first, last), node 1 everything else. */
static ls_summation_buffers buffers_of_run(int64_t microbatches, int64_t first, int64_t last)
{
	int node_of[MICROBATCHES], device_of[MICROBATCHES] = { 0 };
	for (int64_t i = 0; i < microbatches; i++)
		node_of[i] = i < first || i >= last;
	return buffers_of(microbatches, 2, 0, 1, node_of, device_of);
}

static void any_run_fits(void **state)
{
	ls_summation_buffers most = { 0 }; /* of runs of this length or less */

	(void)state;
	for (int64_t run = 1; run <= MICROBATCHES; run++) {
		ls_summation_buffers any = ls_summation_buffers_any(run, 1, 1);
		for (int64_t microbatches = run; microbatches <= MICROBATCHES; microbatches++)
			for (int64_t first = 0; first + run <= microbatches; first++)
				most = ls_summation_buffers_max(most, buffers_of_run(microbatches, first, first + run));
		assert_in_range(most.stores, 1, any.stores);
		assert_in_range(most.outputs, 1, any.outputs);
		if (run <= MICROBATCHES / 3) { /* there is a place for the worst one */
			assert_int_equal(most.stores, any.stores);
			assert_int_equal(most.outputs, any.outputs);
		}
	}
}

/* Two nodes whose cut may be anywhere, with devices that share evenly. */
static void any_shares_fit(void **state)
{
	(void)state;
	for (int64_t microbatches = 2; microbatches <= MICROBATCHES; microbatches++)
		for (int devices = 1; devices <= 3; devices++)
			for (int64_t cut = 1; cut < microbatches; cut++) {
				int node_of[MICROBATCHES], device_of[MICROBATCHES] = { 0 };
				int64_t device_cut[4];
				ls_assign_devices(0, cut, devices, device_cut);
				for (int64_t i = 0; i < microbatches; i++)
					node_of[i] = i >= cut;
				for (int d = 0; d < devices; d++)
					for (int64_t i = device_cut[d]; i < device_cut[d + 1]; i++)
						device_of[i] = d;
				ls_summation_buffers any = ls_summation_buffers_any(microbatches, 2, devices);
				ls_summation_buffers most_of =
					buffers_of(microbatches, 2, 0, devices, node_of, device_of);
				assert_in_range(most_of.stores, 1, any.stores);
				assert_in_range(most_of.outputs, 1, any.outputs);
				assert_in_range(most_of.others, 1, any.others);
			}
}

/* One gradient per device where each computes one micro-batch; logarithmically many where one computes all. */
static void known_sizes(void **state)
{
	int node_of[MICROBATCHES] = { 0 }, device_of[MICROBATCHES] = { 0 };

	(void)state;
	for (int64_t microbatches = 1, stores = 1; microbatches <= MICROBATCHES; microbatches *= 2, stores++) {
		ls_summation_buffers most_of = buffers_of(microbatches, 1, 0, 1, node_of, device_of);
		assert_int_equal(most_of.stores, stores);
		assert_int_equal(most_of.outputs, 1);
		assert_int_equal(most_of.others, 0);
	}
	for (int i = 0; i < MICROBATCHES; i++)
		device_of[i] = i;
	assert_int_equal(buffers_of(MICROBATCHES, 1, 0, MICROBATCHES, node_of, device_of).stores, 1);
	assert_int_equal(ls_summation_buffers_any(MICROBATCHES, 1, MICROBATCHES).stores, 1);
	assert_int_equal(ls_summation_buffers_any(64, 1, 64).stores, 1);
	assert_int_equal(ls_summation_buffers_any(64, 2, 0).stores, 0); /* a server */
}

TEST_MAIN(any_run_fits, any_shares_fit, known_sizes)
