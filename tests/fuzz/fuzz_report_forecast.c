/*
 * Any bytes as a forecast, and as the metrics of a run: refused with a message that names them, or whole.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forecast.h"
#include "report/run_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

static void try_forecast(const uint8_t *data, size_t size)
{
	ls_forecast forecast;
	if (ls_forecast_parse(&forecast, data, size, "fuzz") != LS_OK) {
		require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
		return;
	}
	require(forecast.count > 0 && forecast.batch > 0 && forecast.model[0] != '\0');
	for (size_t i = 0; i < forecast.count; i++)
		require(forecast.row[i].nodes > 0 && isfinite(forecast.row[i].samples_per_s) &&
			forecast.row[i].samples_per_s >= 0);
	ls_forecast_release(&forecast);
}

static void try_run(const uint8_t *data, size_t size)
{
	ls_point point = { 0 };
	ls_results_machine machine = { 0 };
	if (ls_run_parse(&point, &machine, data, size, "fuzz") == LS_OK)
		require(point.job.nodes > 0 && point.job.devices > 0 && point.job.batch > 0);
	else
		require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
	ls_point_release(&point);
}

static void try_metrics(const uint8_t *data, size_t size)
{
	ls_point point = { 0 };
	if (ls_run_parse_metrics(&point, (const char *)data, size, "fuzz") != LS_OK)
		require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
	for (size_t i = 0; i < point.rate_count; i++)
		require(point.rates[i].step >= 0 && isfinite(point.rates[i].samples_per_s));
	ls_point_release(&point);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_forecast(data, size);
	try_run(data, size);
	try_metrics(data, size);
	return 0;
}
