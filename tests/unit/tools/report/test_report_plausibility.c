/*
 * Figures that are too good: the limits by ideal speedup and bandwidth, and the messages about figures above them.
 */
#include "tools/report/plausibility.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* `part` NULL: not flagged. */
static void expect_flag(const ls_claim *claim, const char *part)
{
	ls_page page = LS_PAGE_INIT;
	const char *note = ls_claim_check(&page, claim);
	if (!part ? note != NULL : !note || !strstr(note, part))
		fail_msg("expected '%s', got '%s'", part ? part : "nothing", note ? note : "nothing");
	ls_page_release(&page);
}

static void test_bytes(void **state)
{
	ls_claim claim = { .nodes = 4, .gradient_bytes = 100, .strategy = "allreduce", .wire = "fp32" };
	(void)state;
	assert_true(ls_wire_bytes(&claim) == 150);
	claim.wire = "bf16";
	assert_true(ls_wire_bytes(&claim) == 75);
	claim.nodes = 1;
	assert_true(ls_wire_bytes(&claim) == 0);
	/* three workers: a server takes three gradients, two servers one and a half each */
	claim = (ls_claim){ .nodes = 3, .servers = 1, .gradient_bytes = 100, .strategy = "ps", .wire = "fp32" };
	assert_true(ls_wire_bytes(&claim) == 300);
	claim.servers = 2;
	assert_true(ls_wire_bytes(&claim) == 150);
	/* more servers than workers: a worker is the busiest */
	claim.nodes = 1;
	assert_true(ls_wire_bytes(&claim) == 100);
}

static void test_speedups(void **state)
{
	(void)state;
	expect_flag(&(ls_claim){ .speedup = 7.9, .nodes = 1, .devices = 8 }, NULL);
	expect_flag(&(ls_claim){ .speedup = 8.1, .nodes = 1, .devices = 8 }, NULL); /* within the tolerance */
	expect_flag(&(ls_claim){ .speedup = 8.2, .nodes = 1, .devices = 8 }, "8.20 on 8 devices is above ideal");
	expect_flag(&(ls_claim){ .speedup = 8.2, .nodes = 1, .devices = 8 }, "slow one-device baseline");
	expect_flag(&(ls_claim){ .speedup = 2.1, .devices = 2, .reason = "the moon" }, "likely the moon");
}

/* BERT-base over 1 Gbps: 440 MB each way between two nodes take 3.5 s. */
static void test_wire(void **state)
{
	ls_claim bert = { .speedup = 1.5,
			  .nodes = 2,
			  .devices = 8,
			  .step_s = 0.7,
			  .gradient_bytes = 4.4e8,
			  .strategy = "allreduce",
			  .wire = "fp32",
			  .link = "1gbit" };
	(void)state;
	expect_flag(&bert,
		    "impossible: the gradients, 440.0 MB each way per step, would need 5.03 Gbit/s of a 1gbit link");
	bert.step_s = 3.6;
	expect_flag(&bert, NULL);
	bert.step_s = 2;
	bert.wire = "bf16";
	expect_flag(&bert, "zeros left out or bf16");
	bert.moved_bytes = 2e8;
	expect_flag(&bert, "bf16 made them less: 200.0 MB");
	bert.moved_bytes = 4e8;
	expect_flag(&bert, "more than the 1gbit link carries");
	bert.link = "";
	expect_flag(&bert, NULL);
	bert.link = "1gbit";
	bert.nodes = 1;
	expect_flag(&bert, NULL);
}

static void test_both(void **state)
{
	ls_claim claim = {
		.speedup = 9, .nodes = 2, .devices = 2, .step_s = 0.01, .gradient_bytes = 1e8, .link = "1gbit"
	};
	(void)state;
	expect_flag(&claim, "above ideal");
	expect_flag(&claim, "Also, impossible");
}

/* For our own points the baseline gives the likely reason. */
static void test_point(void **state)
{
	ls_page page = LS_PAGE_INIT;
	ls_results results = { .machine = { .gflop_per_s_core = 100 } };
	ls_point base = { .state = LS_POINT_DONE,
			  .job = { .nodes = 1, .devices = 1 },
			  .repeat_count = 3,
			  .samples_per_s = 10,
			  .samples_per_s_min = 9.9,
			  .samples_per_s_max = 10,
			  .gflop_per_s = 20 };
	ls_point point = { .state = LS_POINT_DONE, .job = { .nodes = 1, .devices = 2 }, .samples_per_s = 25 };
	(void)state;
	assert_non_null(strstr(ls_point_check(&page, &results, &point, &base), "20 % of the core's matrix product"));
	base.samples_per_s_min = 8;
	point.samples_per_s = 24;
	assert_non_null(strstr(ls_point_check(&page, &results, &point, &base), "its repeats differ by 20 %"));
	point.samples_per_s = 34.1; /* more than 20 % off can explain */
	assert_non_null(strstr(ls_point_check(&page, &results, &point, &base), "20 % of the core's matrix product"));
	base.gflop_per_s = 90;
	assert_non_null(
		strstr(ls_point_check(&page, &results, &point, &base), "more cache with more devices, or cores"));
	assert_null(strstr(ls_point_check(&page, &results, &point, &base), "repeats"));
	point.state = LS_POINT_FAILED;
	assert_null(ls_point_check(&page, &results, &point, &base));
	ls_page_release(&page);
}

TEST_MAIN(test_bytes, test_speedups, test_wire, test_both, test_point)
