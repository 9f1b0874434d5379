/*
 * forecast.h - forecasts as text, for who reads more than one kind of file.
 */
#ifndef LS_TOOLS_FORECAST_FORECAST_H
#define LS_TOOLS_FORECAST_FORECAST_H

#include <lockstep/plan.h>

/* `label` names the text in errors, which say field and reason. The output is left alone on failure. */
ls_status ls_forecast_parse(ls_forecast *out, const void *text, size_t bytes, const char *label);

#endif
