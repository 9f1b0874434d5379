/*
 * Forecasts and runs: written values read back, and errors name file, line or field, and reason.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/forecast/forecast.h"
#include "tools/report/run_read.h"
#include "unit/test_main.h"

static const char forecast[] =
	"{\"format\": \"lockstep forecast\", \"version\": 2, \"model\": \"resnet18\", \"batch_per_device\": 128, "
	"\"rows\": ["
	"{\"nodes\": 2, \"devices\": 4, \"servers\": 0, \"strategy\": \"allreduce\", \"wire\": \"fp32\", \"rate\": "
	"\"1gbit\", \"bucket_bytes\": 1048576, \"step_ms\": 10.5, \"compute_ms\": 9, \"exposed_ms\": 1, "
	"\"samples_per_s\": 48761.9, \"efficiency\": 0.857, \"bottleneck\": \"wire\"}]}";

static const char run[] =
	"{\"lockstep\": \"0.1.0\", \"kernels\": \"xsmm\", \"isa\": \"avx2\", \"settings\": {\"model\": "
	"\"cnn\", \"data\": null, \"samples\": 2000, \"epochs\": 3, \"batch\": 128, \"global-batch\": "
	"1024, \"devices\": 2, \"threads\": 1, \"servers\": 0, \"placement\": \"allreduce\", \"wire\": "
	"\"fp32\"}, \"machine\": {\"hostname\": \"a\", \"cpu\": null, \"cores\": 2}}";

static const char metrics[] =
	"{\"kind\": \"step\", \"step\": 10, \"time\": 1, \"loss\": 1.5, \"samples_per_s\": 100, \"lr\": 0.1}\n"
	"{\"kind\": \"step\", \"step\": 20, \"time\": 2, \"loss\": null, \"samples_per_s\": 110, \"lr\": 0.1}\n"
	"{\"kind\": \"epoch\", \"step\": 20, \"time\": 2, \"loss\": 1.4, \"accuracy\": 0.5, \"seconds\": 4, \"epoch\": "
	"0}\n"
	"{\"kind\": \"test\", \"step\": 20, \"time\": 3, \"loss\": 1.3, \"accuracy\": 0.75, \"seconds\": 1, \"epoch\": "
	"0}\n"
	"{\"kind\": \"later\", \"step\": 20}\n"
	"{\"kind\": \"st";

typedef ls_status parse(const char *text, size_t bytes);

static ls_status parse_forecast(const char *text, size_t bytes)
{
	ls_forecast out;
	ls_status status = ls_forecast_parse(&out, text, bytes, "f.json");
	if (status == LS_OK)
		ls_forecast_release(&out);
	return status;
}

static ls_status parse_run(const char *text, size_t bytes)
{
	ls_point point = { 0 };
	ls_results_machine machine = { 0 };
	return ls_run_parse(&point, &machine, text, bytes, "f.json");
}

static ls_status parse_metrics(const char *text, size_t bytes)
{
	ls_point point = { 0 };
	ls_status status = ls_run_parse_metrics(&point, text, bytes, "f.json");
	ls_point_release(&point);
	return status;
}

static void expect_refusal(parse *read, const char *text, const char *from, const char *to, const char *part)
{
	const char *at = strstr(text, from);
	size_t size = strlen(text) + strlen(to) + 1;
	char *changed = calloc(1, size);
	assert_non_null(at);
	assert_non_null(changed);
	snprintf(changed, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	assert_int_equal(read(changed, strlen(changed)), LS_EFORMAT);
	if (strncmp(ls_last_error(), "f.json:", 7) != 0 || !strstr(ls_last_error(), part))
		fail_msg("'%s' instead of '%s' says: %s", to, from, ls_last_error());
	free(changed);
}

static void test_forecast(void **state)
{
	ls_forecast out;
	(void)state;
	assert_int_equal(ls_forecast_parse(&out, forecast, strlen(forecast), "f.json"), LS_OK);
	assert_string_equal(out.model, "resnet18");
	assert_int_equal(out.count, 1);
	assert_int_equal(out.row[0].devices, 4);
	assert_true(out.row[0].samples_per_s == 48761.9);
	assert_string_equal(out.row[0].bottleneck, "wire");
	ls_forecast_release(&out);
}

static void test_forecast_malformed(void **state)
{
	(void)state;
	expect_refusal(parse_forecast, forecast, "lockstep forecast", "weather", "not a lockstep forecast");
	expect_refusal(parse_forecast, forecast, "\"version\": 2", "\"version\": 3", "version is 3");
	expect_refusal(parse_forecast, forecast, "\"batch_per_device\": 128", "\"batch_per_device\": 0",
		       "batch_per_device is 0");
	expect_refusal(parse_forecast, forecast, "\"nodes\": 2", "\"nodes\": \"2\"",
		       "rows[0].nodes is text, not a whole number");
	expect_refusal(parse_forecast, forecast, "\"step_ms\": 10.5", "\"step_ms\": -1", "rows[0].step_ms is -1");
	expect_refusal(parse_forecast, forecast, "\"strategy\": \"allreduce\"", "\"strategy\": \"\"",
		       "rows[0].strategy");
	expect_refusal(parse_forecast, forecast, "\"rows\"", "\"columns\"", "rows is missing");
	expect_refusal(parse_forecast, forecast, "}]}", "}]", "f.json:1: not acceptable JSON");
}

static void test_run(void **state)
{
	ls_point point = { 0 };
	ls_results_machine machine = { 0 };
	(void)state;
	assert_int_equal(ls_run_parse(&point, &machine, run, strlen(run), "f.json"), LS_OK);
	assert_string_equal(point.job.model, "cnn");
	assert_string_equal(point.job.data, "");
	assert_int_equal(point.job.devices, 8);
	assert_int_equal(point.job.nodes, 4);
	assert_string_equal(point.job.shape, "2+2+2+2");
	assert_string_equal(point.job.strategy, "allreduce");
	assert_string_equal(machine.host, "a");
	assert_string_equal(machine.cpu, "");
	assert_string_equal(machine.isa, "avx2");
}

/* The strategy that a run with these settings, instead of "placement", is shown with, and its servers. */
static void expect_strategy(const char *settings, const char *strategy, int64_t servers)
{
	static const char stored[] = "\"servers\": 0, \"placement\": \"allreduce\"";
	const char *at = strstr(run, stored);
	ls_point point = { 0 };
	ls_results_machine machine = { 0 };
	char text[2 * sizeof(run)];
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - run), run, settings, at + strlen(stored));
	if (ls_run_parse(&point, &machine, text, strlen(text), "f.json") != LS_OK)
		fail_msg("%s: %s", settings, ls_last_error());
	assert_string_equal(point.job.strategy, strategy);
	assert_int_equal(point.job.servers, servers);
}

static void test_run_strategies(void **state)
{
	(void)state;
	expect_strategy("\"servers\": 0, \"strategy\": \"allreduce\"", "allreduce", 0);
	expect_strategy("\"servers\": 0, \"strategy\": \"mpi\"", "mpi", 0);
	expect_strategy("\"servers\": 3, \"strategy\": \"ps\"", "ps", 3);
	expect_strategy("\"servers\": 2, \"strategy\": \"ps-async\", \"staleness\": 4", "ps-async", 2);
	expect_strategy("\"servers\": 0, \"strategy\": \"ps-async\"", "ps-async", 1); /* the default */
	expect_strategy("\"servers\": 0, \"strategy\": \"later\"", "later", 0);
	/* the first edition */
	expect_strategy("\"servers\": 1, \"placement\": \"ps\", \"staleness\": 0", "ps", 1);
	expect_strategy("\"servers\": 1, \"placement\": \"ps\", \"staleness\": 2", "ps-async", 1);
	expect_strategy("\"servers\": 0, \"placement\": \"allreduce\", \"exchange\": \"mpi\"", "mpi", 0);
	expect_strategy("\"servers\": 0, \"placement\": \"allreduce\", \"exchange\": \"lockstep\"", "allreduce", 0);
}

static void test_run_malformed(void **state)
{
	(void)state;
	expect_refusal(parse_run, run, "\"settings\"", "\"sittings\"", "settings.model is missing");
	expect_refusal(parse_run, run, "\"batch\": 128", "\"batch\": 0", "settings.batch is 0");
	expect_refusal(parse_run, run, "\"global-batch\": 1024", "\"global-batch\": 1.5", "settings.global-batch");
	expect_refusal(parse_run, run, "\"kernels\": \"xsmm\"", "\"kernels\": 7", "kernels is a number, not text");
	expect_refusal(parse_run, run, "{\"lock", "[{\"lock", "not acceptable JSON");
}

static void test_metrics(void **state)
{
	ls_point point = { 0 };
	(void)state;
	assert_int_equal(ls_run_parse_metrics(&point, metrics, strlen(metrics), "f.json"), LS_OK);
	assert_int_equal(point.rate_count, 2);
	assert_true(point.rates[0].loss == 1.5 && isnan(point.rates[1].loss) && point.rates[1].samples_per_s == 110);
	assert_int_equal(point.epoch_count, 1);
	assert_true(point.epochs[0].seconds == 4 && point.epochs[0].test_seconds == 1);
	assert_true(point.epochs[0].accuracy == 0.75 && point.epochs[0].test_loss == 1.3);
	ls_point_release(&point);
	assert_int_equal(ls_run_parse_metrics(&point, NULL, 0, "f.json"), LS_OK);
}

static void test_metrics_malformed(void **state)
{
	(void)state;
	expect_refusal(parse_metrics, metrics, "{\"kind\": \"epoch\"", "{\"kind\": \"epoch",
		       "f.json:3:1: not acceptable JSON");
	expect_refusal(parse_metrics, metrics, "\"step\": 10", "\"step\": -1", "f.json:1: step is -1");
	expect_refusal(parse_metrics, metrics, "\"samples_per_s\": 110", "\"samples_per_s\": \"x\"",
		       "f.json:2: samples_per_s");
	expect_refusal(parse_metrics, metrics, "\"accuracy\": 0.75", "\"accuracy\": 7", "f.json:4: accuracy is 7");
	expect_refusal(parse_metrics, metrics, ", \"epoch\": 0}", "}", "f.json:3: epoch is missing");
}

TEST_MAIN(test_forecast, test_forecast_malformed, test_run, test_run_malformed, test_run_strategies, test_metrics,
	  test_metrics_malformed)
