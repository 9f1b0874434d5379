/*
 * What faults cost, from timelines whose figures can be worked out by hand.
 */
#include <math.h>
#include <string.h>

#include "tools/faults/figures.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

#define START(step, time, more)                                                                                        \
	"{\"kind\": \"start\", \"step\": " #step ", \"time\": " #time                                                  \
	", \"nodes\": 2, \"batch\": 10, \"samples\": 1000, \"hosts\": \"a:1,b:1\"" more "}\n"
#define FAULT(node, seconds) ", \"fault_node\": " #node ", \"fault_s\": " #seconds
#define STEP(step, time) "{\"kind\": \"step\", \"step\": " #step ", \"time\": " #time ", \"loss\": 1}\n"
#define SNAPSHOT(step, time, every, cost)                                                                              \
	"{\"kind\": \"snapshot\", \"step\": " #step ", \"time\": " #time ", \"every\": " #every ", \"cost_s\": " #cost \
	"}\n"
#define STOP(time, outcome) "{\"kind\": \"stop\", \"step\": 0, \"time\": " #time ", \"outcome\": \"" outcome "\"}\n"
#define LOST(time, host)                                                                                               \
	"{\"kind\": \"host\", \"step\": 0, \"time\": " #time ", \"host\": \"" host "\", \"event\": \"lost\"}\n"

static ls_status figures(const char *text, int64_t warmup, ls_fault_bench_result *out)
{
	ls_fault_log log = { .warmup = warmup };

	assert_ok(ls_fault_log_read(&log, text, strlen(text), "metrics.jsonl"));
	ls_status status = ls_fault_figures(&log, out);
	ls_fault_log_release(&log);
	return status;
}

static int near(double a, double b)
{
	return fabs(a - b) < 1e-6 * fabs(b);
}

/* Steps of 1 s; the first of a start takes 2 s. Node 1 is killed at 1006.5 and node 0 at 1015; both times the last
 * step is computed again. */
static const char two_faults[] =
	START(0, 1000, FAULT(1, 6.5)) STEP(1, 1002) STEP(2, 1003) STEP(3, 1004) SNAPSHOT(3, 1004, 4, 0.1)
		STOP(1006.6, "lost") LOST(1006.6, "b") START(3, 1008, FAULT(0, 7) ", \"steps_again\": 2") STEP(4, 1010)
			STEP(5, 1011) STEP(6, 1012) STEP(7, 1013) SNAPSHOT(7, 1013, 6, 0.3) STOP(1015.2, "lost")
				LOST(1015.2, "a") START(7, 1016, ", \"steps_again\": 1")
					STEP(8, 1018) "{\"kind\": \"checkpoint\", \"step\": 8, \"time\": 1019, "
						      "\"fingerprint\": \"00000000000000ff\"}\n";

static void test_two_faults(void **state)
{
	ls_fault_bench_result r;

	(void)state;
	assert_ok(figures(two_faults, 1, &r));
	assert_int_equal(r.nodes, 2);
	assert_int_equal(r.batch, 10);
	assert_int_equal(r.faults, 2);
	assert_int_equal(r.overtaken, 0);
	assert_int_equal(r.interruptions, 0);
	assert_int_equal(r.steps, 7);
	assert_int_equal(r.steps_again, 3);
	assert_true(r.seconds == 16);
	assert_true(near(r.samples_per_s, 70.0 / 16));
	assert_true(near(r.undisturbed, 10)); /* steps 2, 3 and 5, 6, 7 in 2 s and 3 s */
	assert_true(near(r.step_s, 1));
	assert_true(near(r.work_kept, 7.0 / 16));
	assert_true(near(r.recovery_median, 3.25) && near(r.recovery_worst, 3.5)); /* 1010 - 1006.5, 1018 - 1015 */
	assert_true(near(r.recovery_mean, 3.25) && near(r.restart_s, 2.25));
	assert_true(near(r.snapshot_every, 5) && near(r.snapshot_s, 0.2));
	assert_int_equal(r.fingerprint, 255);
	assert_int_equal(r.fingerprint_step, 8);
}

/* 1 / (1 + ((5 + 0.2)/2 + 2.25) / 8), and nothing of neighbours: one fault in (2.25 + 5) / 16, after which there is
 * nothing to lose. */
static void test_prediction(void **state)
{
	ls_fault_bench_result r;

	(void)state;
	assert_ok(figures(two_faults, 1, &r));
	ls_fault_predict(&r, 8);
	assert_true(fabs(r.predicted_work_kept - 1 / (1 + 4.85 / 8)) < 1e-3);
	assert_true(near(r.predicted_samples_per_s, r.predicted_work_kept * 10));
	r.snapshot_every = NAN;
	ls_fault_predict(&r, 8);
	assert_true(isnan(r.predicted_work_kept) && isnan(r.predicted_samples_per_s));
}

/* The second start is killed before it has a snapshot: its only step is dropped, and the first recovery not known. */
static void test_overtaken(void **state)
{
	ls_fault_bench_result r;

	(void)state;
	assert_ok(figures(START(0, 1000, FAULT(1, 6)) STEP(1, 1002) STEP(2, 1003) STOP(1006, "lost") LOST(1006, "b")
				  START(2, 1008, FAULT(1, 1)) STOP(1009, "lost") LOST(1009, "b")
					  START(2, 1011, ", \"steps_again\": 1") STEP(3, 1013),
			  0, &r));
	assert_int_equal(r.faults, 2);
	assert_int_equal(r.overtaken, 1);
	assert_int_equal(r.steps, 2);
	assert_true(near(r.recovery_median, 4) && near(r.recovery_worst, 4));
	assert_true(near(r.seconds, 11));
}

/* What ends a start is not always the fault: earlier, another node, other hosts, or nothing drawn. */
static void test_other_interruptions(void **state)
{
	static const char *const texts[] = {
		START(0, 1000, FAULT(1, 6)) STEP(1, 1001) STOP(1003, "lost") LOST(1003, "b") START(1, 1004, "")
			STEP(2, 1005),
		START(0, 1000, FAULT(1, 6)) STEP(1, 1001) STOP(1007, "lost") LOST(1007, "a") START(1, 1009, "")
			STEP(2, 1010),
		START(0, 1000, FAULT(1, 6)) STEP(1, 1001) STOP(1007, "regroup") START(1, 1009, "") STEP(2, 1010),
		START(0, 1000, "") STEP(1, 1001) STOP(1007, "lost") LOST(1007, "b") START(1, 1009, "") STEP(2, 1010),
	};
	ls_fault_bench_result r;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_ok(figures(texts[i], 0, &r));
		assert_int_equal(r.faults, 0);
		assert_int_equal(r.interruptions, 1);
		assert_true(isnan(r.recovery_median) && isnan(r.restart_s) && isnan(r.undisturbed));
	}
	assert_ok(figures(START(0, 1000, FAULT(1, 6)) STEP(1, 1001) STOP(1007, "lost") START(1, 1009, "") STEP(2, 1010),
			  0, &r)); /* nobody was named */
	assert_int_equal(r.faults, 1);
}

static void test_no_cycle(void **state)
{
	ls_fault_bench_result r;

	(void)state;
	assert_int_equal(figures("", 3, &r), LS_EINVALID);
	assert_int_equal(figures(START(0, 1000, "") STEP(1, 1001), 3, &r), LS_EINVALID);
}

/* Of 25 samples in batches of 10 an epoch has three steps, the last one with 5. */
static void test_samples(void **state)
{
	(void)state;
	assert_true(ls_fault_samples(2, 10, 25) == 20 && ls_fault_samples(3, 10, 25) == 25);
	assert_true(ls_fault_samples(7, 10, 25) == 60 && ls_fault_samples(4, 10, 0) == 40);
}

TEST_MAIN(test_two_faults, test_prediction, test_overtaken, test_other_interruptions, test_no_cycle, test_samples)
