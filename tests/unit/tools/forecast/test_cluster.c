/*
 * Cluster files: fields are read, errors name the line or field, and the output of a probe is a cluster, too.
 */
#include "tools/forecast/cluster.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HEAD "{\"format\": \"lockstep cluster\", \"version\": 2, "

static ls_status parse(ls_cluster *c, const char *text)
{
	return ls_cluster_parse(c, text, strlen(text), "c.json");
}

static void test_described(void **state)
{
	ls_cluster c;

	(void)state;
	assert_int_equal(parse(&c,
			       HEAD "\"spread\": 0.03, \"nodes\": [{\"name\": \"new\", \"count\": 12, \"devices\": 4, "
				    "\"gbit_per_s\": 10}, {\"speed\": 0.5}]}"),
			 LS_OK);
	assert_int_equal(c.kinds, 2);
	assert_int_equal(ls_cluster_nodes(&c), 13);
	assert_int_equal(ls_cluster_devices(&c), 49);
	assert_true(c.spread == 0.03 && c.kind[0].gbit_per_s == 10 && c.kind[1].speed == 0.5);
	assert_true(c.kind[1].gbit_per_s == LS_RATE_PAYLOAD && c.restart_s == 30);
	ls_cluster_release(&c);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "{", "c.json:1: not acceptable JSON" },
		{ "[]", "c.json: not a lockstep cluster" },
		{ "{\"format\": \"lockstep cluster\", \"version\": 3, \"nodes\": []}", "version is 3" },
		{ HEAD "\"nodes\": []}", "nodes is missing or not a list of 1 to" },
		{ HEAD "\"nodes\": 7}", "nodes is missing" },
		{ HEAD "\"nodes\": [{}, 5]}", "nodes[1] is not an object with fields" },
		{ HEAD "\"nodes\": [{\"count\": 0}]}", "nodes[0].count is 0" },
		{ HEAD "\"nodes\": [{}, {\"speed\": \"fast\"}]}", "nodes[1].speed is text, not a number" },
		{ HEAD "\"nodes\": [{\"devcies\": 4}]}",
		  "nodes[0].devcies is not a field of this file; did you mean devices?" },
		{ HEAD "\"spraed\": 0.1, \"nodes\": [{}]}",
		  "spraed is not a field of this file; did you mean spread?" },
		{ HEAD "\"spread\": 7, \"nodes\": [{}]}", "spread is 7, which is not between 0 and 1" },
		{ HEAD "\"nodes\": [{\"devices\": 0}]}", "so none computes" },
		{ "{\"between\": [], \"nodes\": [{\"host\": \"a\"}]}", "nodes[0].cores" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ls_cluster c;
		assert_int_equal(parse(&c, cases[i].text), LS_EFORMAT);
		if (strncmp(ls_last_error(), "c.json:", 7) != 0 || !strstr(ls_last_error(), cases[i].part))
			fail_msg("%s says: %s", cases[i].text, ls_last_error());
	}
}

#define PROBED(host, gflop, link)                                                                                      \
	"{\"host\": \"" host "\", \"cores\": 2, \"gflop_per_s_core\": " gflop                                          \
	", \"memory_core\": {\"copy_gb_per_s\": 12.5}, \"link\": " link "}"
#define LINK(to, both)                                                                                                 \
	"{\"to_gbit_per_s\": " to ", \"from_gbit_per_s\": 9, \"both_gbit_per_s\": " both ", \"round_trip_us\": 300}"

static void test_probed(void **state)
{
	ls_cluster c;

	(void)state;
	assert_int_equal(parse(&c, "{\"between\": [{\"gbit_per_s\": 0.85}], \"nodes\": [" PROBED(
					   "a", "100.0", "null") ", " PROBED("b", "50.0", LINK("0.9", "0.8")) "]}"),
			 LS_OK);
	assert_int_equal(c.kinds, 2);
	assert_string_equal(c.kind[1].name, "b");
	assert_true(c.kind[1].speed == 0.5 && c.kind[1].gbit_per_s == 0.9 && c.kind[1].both_gbit_per_s == 0.85);
	assert_true(c.kind[0].gbit_per_s == 0.9 && c.kind[0].latency_us == 150 && c.copy_gb_per_s == 12.5);
	ls_cluster_release(&c);
}

/* Devices per node are those of the probe; files of older probes have none, which means one device. */
static void test_probed_devices(void **state)
{
	ls_cluster c;

	(void)state;
	assert_int_equal(parse(&c, "{\"between\": [], \"nodes\": [{\"devices\": 4, \"host\": \"a\", \"cores\": 4, "
				   "\"gflop_per_s_core\": 9.0, \"memory_core\": {\"copy_gb_per_s\": 12.5}}, " PROBED(
					   "b", "50.0", LINK("0.9", "0.8")) "]}"),
			 LS_OK);
	assert_int_equal(c.kind[0].devices, 4);
	assert_int_equal(c.kind[1].devices, 1);
	ls_cluster_release(&c);
}

static void test_resize(void **state)
{
	ls_cluster c, d;

	(void)state;
	assert_int_equal(parse(&c, HEAD "\"nodes\": [{\"count\": 12}, {\"count\": 4, \"devices\": 2}]}"), LS_OK);
	for (int64_t nodes = 1; nodes < 300; nodes++) {
		assert_int_equal(ls_cluster_resize(&d, &c, nodes), LS_OK);
		assert_int_equal(ls_cluster_nodes(&d), nodes);
		assert_true(nodes < 2 || d.kinds == 2);
		ls_cluster_release(&d);
	}
	assert_int_equal(ls_cluster_resize(&d, &c, 32), LS_OK);
	assert_int_equal(d.kind[0].count, 24);
	ls_cluster_release(&d);
	ls_cluster_release(&c);
}

static void test_rates(void **state)
{
	static const char *const wrong[] = { "", "1", "gbit", "1 parsec", "-1gbit", "1gbits", "nangbit", "0mbit" };
	double rate = 0;
	char text[32];

	(void)state;
	assert_int_equal(ls_rate_parse("100mbit", &rate), LS_OK);
	assert_true(fabs(rate - 0.1) < 1e-12);
	assert_int_equal(ls_rate_parse("2.5Gbit/s", &rate), LS_OK);
	assert_true(rate == 2.5);
	assert_string_equal(ls_rate_text(text, sizeof(text), 0.1), "100mbit");
	assert_string_equal(ls_rate_text(text, sizeof(text), 40), "40gbit");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ls_rate_parse(wrong[i], &rate), LS_EINVALID);
}

TEST_MAIN(test_described, test_malformed, test_probed, test_probed_devices, test_resize, test_rates)
