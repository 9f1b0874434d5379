/*
 * What the plan of a convolution follows from: which taps are reachable, multiply-adds, and whose
 * shape Winograd's algorithm takes.
 */
#include "unit/kernels/simd_check.h"

#include "kernels/conv.h"
#include "kernels/winograd.h"
#include "unit/test_main.h"

/* Slots number reachable taps first, each side in tap order; what is reachable is what some output position sees. */
static void test_slots(void **state)
{
	static const ls_conv_geometry g1 = {
		.in_h = 1, .in_w = 1, .out_h = 1, .out_w = 1, .kernel_h = 3, .kernel_w = 3, .stride = 1, .padding = 1
	};
	static const ls_conv_geometry g2 = {
		.in_h = 2, .in_w = 2, .out_h = 1, .out_w = 1, .kernel_h = 3, .kernel_w = 3, .stride = 2, .padding = 1
	};
	static const int16_t only_centre[9] = { 1, 2, 3, 4, 0, 5, 6, 7, 8 };
	static const int16_t lower_right[9] = { 4, 5, 6, 7, 0, 1, 8, 2, 3 };
	int16_t slot[9];
	(void)state;

	assert_int_equal(ls_conv_slots(&g1, slot), 1);
	assert_memory_equal(slot, only_centre, sizeof(slot));
	assert_int_equal(ls_conv_slots(&g2, slot), 4);
	assert_memory_equal(slot, lower_right, sizeof(slot));
}

/* Multiply-adds: 3x3 with padding 1 meets a 2x2 map 16 times of 36. */
static void test_macs(void **state)
{
	ls_conv_geometry g = { .in_c = 5,
			       .out_c = 7,
			       .in_h = 2,
			       .in_w = 2,
			       .out_h = 2,
			       .out_w = 2,
			       .kernel_h = 3,
			       .kernel_w = 3,
			       .stride = 1,
			       .padding = 1 };
	(void)state;
	assert_true(ls_conv_macs(&g, 0) == 5 * 7 * 16);
	assert_true(ls_conv_macs(&g, 1) == 5 * 7 * 36);
}

/* The choice is the shape's alone. */
static void test_algorithm(void **state)
{
	ls_conv_geometry g = { .in_c = 64,
			       .out_c = 64,
			       .in_h = 14,
			       .in_w = 14,
			       .out_h = 14,
			       .out_w = 14,
			       .kernel_h = 3,
			       .kernel_w = 3,
			       .stride = 1,
			       .padding = 1 };
	ls_conv_geometry small = g, wide = g, gathered = g;
	(void)state;

	small.in_h = small.in_w = small.out_h = small.out_w = 2;
	wide.kernel_w = 5;
	gathered.gathered = 1;
	assert_true(ls_conv_is_winograd(&g, LS_CONV_AUTO));
	assert_true(ls_conv_is_winograd(&g, LS_CONV_WINOGRAD));
	assert_false(ls_conv_is_winograd(&g, LS_CONV_DIRECT));
	assert_false(ls_conv_is_winograd(&small, LS_CONV_AUTO));
	assert_true(ls_conv_is_winograd(&small, LS_CONV_WINOGRAD));
	assert_false(ls_conv_is_winograd(&wide, LS_CONV_WINOGRAD));
	assert_false(ls_conv_is_winograd(&gathered, LS_CONV_WINOGRAD));
	small.in_h = small.in_w = small.out_h = small.out_w = 1; /* only its middle tap meets the map */
	assert_false(ls_conv_is_winograd(&small, LS_CONV_WINOGRAD));
	g.stride = 2;
	assert_false(ls_conv_is_winograd(&g, LS_CONV_WINOGRAD));
}

TEST_MAIN(test_slots, test_macs, test_algorithm)
