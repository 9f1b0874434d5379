/*
 * Any bytes as a forecast: refused with a message that names it, or whole.
 */
#include <math.h>

#include "fuzz/common.h"
#include "tools/forecast/forecast.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_forecast forecast;
	if (ls_forecast_parse(&forecast, data, size, "fuzz") != LS_OK) {
		fuzz_require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
		return 0;
	}
	fuzz_require(forecast.count > 0 && forecast.batch > 0 && forecast.model[0] != '\0');
	for (size_t i = 0; i < forecast.count; i++)
		fuzz_require(forecast.row[i].nodes > 0 && isfinite(forecast.row[i].samples_per_s) &&
			     forecast.row[i].samples_per_s >= 0);
	ls_forecast_release(&forecast);
	return 0;
}
