/*
 * forecast.h - read a forecast from JSON text.
 */
#ifndef LS_TOOLS_FORECAST_FORECAST_H
#define LS_TOOLS_FORECAST_FORECAST_H

#include <lockstep/plan.h>

/* `label` names the text in errors, which say field and reason. On failure the output is unchanged. */
ls_status ls_forecast_parse(ls_forecast *out, const void *text, size_t bytes, const char *label);

#endif
