/*
 * Who took part in an elastic run and when: starts, their ends, and hosts, also where clocks jump and lines are odd.
 */
#include <math.h>
#include <string.h>

#include "tools/results/memberships.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

static ls_status take(void *context, const ls_metrics_line *line, const json_t *object)
{
	return ls_memberships_take(context, line, object);
}

static void read_all(ls_memberships *m, const char *text)
{
	*m = (ls_memberships){ 0 };
	assert_ok(ls_metrics_log_read(text, strlen(text), "metrics.jsonl", take, m));
}

#define START(step, time, more) "{\"kind\": \"start\", \"step\": " #step ", \"time\": " #time more "}\n"
#define STEP(step, time) "{\"kind\": \"step\", \"step\": " #step ", \"time\": " #time ", \"loss\": 1}\n"
#define STOP(time, more) "{\"kind\": \"stop\", \"step\": 0, \"time\": " #time more "}\n"
#define HOST(time, more) "{\"kind\": \"host\", \"step\": 0, \"time\": " #time more "}\n"

static void test_starts(void **state)
{
	ls_memberships m;
	(void)state;
	read_all(&m,
		 START(0, 1000,
		       ", \"generation\": 1, \"nodes\": 2, \"devices\": 3, \"hosts\": \"a:2,b:1\", \"source\": \"new\"")
			 STEP(10, 1002) STOP(1005.5, ", \"outcome\": \"lost\", \"why\": \"node 1 (b) was ended\"")
				 HOST(1005.5, ", \"host\": \"b\", \"event\": \"lost\", \"why\": \"signal\"")
					 START(10, 1008, ", \"generation\": 2, \"nodes\": 1, \"steps_again\": 7")
						 STEP(11, 1009) STEP(12, 1010));
	assert_int_equal(m.count, 2);
	assert_true(m.starts[0].begin == 0 && m.starts[0].first_s == 2 && m.starts[0].end == 5.5);
	assert_int_equal(m.starts[0].last_step, 17); /* what was recorded of steps 11 to 17 was dropped */
	assert_int_equal(m.starts[0].devices, 3);
	assert_string_equal(m.starts[0].hosts, "a:2,b:1");
	assert_string_equal(m.starts[0].source, "new");
	assert_string_equal(m.starts[0].outcome, "lost");
	assert_string_equal(m.starts[0].why, "node 1 (b) was ended");
	assert_true(m.starts[1].begin == 8 && m.starts[1].first_s == 9 && m.starts[1].end == 10); /* it still trains */
	assert_int_equal(m.starts[1].again, 7);
	assert_true(m.starts[1].hosts == NULL && m.starts[1].outcome[0] == '\0');
	assert_int_equal(m.event_count, 1);
	assert_true(m.events[0].at == 5.5 && !strcmp(m.events[0].host, "b") && !strcmp(m.events[0].event, "lost"));
	ls_memberships_release(&m);
}

/* The clock of a host is an hour behind, or was set back: nothing ends before it begins. */
static void test_clocks_that_jump(void **state)
{
	ls_memberships m;
	(void)state;
	read_all(&m, START(0, 5000, "") STEP(1, 5010) STOP(1400, "") START(1, 1402, "") STEP(2, 5030) STOP(1, ""));
	assert_int_equal(m.count, 2);
	assert_true(m.starts[0].end == 10 && m.starts[1].begin == 10 && m.starts[1].end == 30);
	ls_memberships_release(&m);
}

static void test_odd_lines(void **state)
{
	ls_memberships m;
	(void)state;
	read_all(&m,
		 STOP(1, ", \"why\": 7") STEP(5, 2) START(0, 3, ", \"nodes\": -1, \"hosts\": 4, \"steps_again\": \"x\"")
			 START(2, 4, ", \"steps_again\": 1e300") HOST(5, "") HOST(6, ", \"host\": \"\""));
	assert_int_equal(m.count, 2); /* a start that has no end ends with its last line */
	assert_true(m.starts[0].end == 2 && m.starts[0].nodes == 0 && !m.starts[0].hosts && m.starts[1].again == 0);
	assert_true(isnan(m.starts[0].first_s));
	assert_int_equal(m.event_count, 0);
	ls_memberships_release(&m);
	read_all(&m, "");
	assert_int_equal(m.count, 0);
	ls_memberships_release(&m);
}

static void test_hosts(void **state)
{
	char name[4];
	const char *at = "a:2,long-name,c";
	(void)state;
	assert_non_null(at = ls_memberships_host(at, name, sizeof(name)));
	assert_string_equal(name, "a");
	assert_non_null(at = ls_memberships_host(at, name, sizeof(name)));
	assert_string_equal(name, "lon");
	assert_non_null(at = ls_memberships_host(at, name, sizeof(name)));
	assert_string_equal(name, "c");
	assert_null(ls_memberships_host(at, name, sizeof(name)));
	assert_null(ls_memberships_host(NULL, name, sizeof(name)));
}

TEST_MAIN(test_starts, test_clocks_that_jump, test_odd_lines, test_hosts)
