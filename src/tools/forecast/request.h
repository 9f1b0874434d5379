/*
 * request.h - what a forecast is asked for: the profile, the cluster and the lists of the options, read and checked.
 */
#ifndef LS_TOOLS_FORECAST_REQUEST_H
#define LS_TOOLS_FORECAST_REQUEST_H

#include <lockstep/plan.h>

#include "backends/profile.h"
#include "tools/forecast/cluster.h"
#include "tools/forecast/list.h"

typedef struct ls_forecast_request {
	const ls_forecast_options *o;
	ls_profile profile;
	ls_cluster cluster;
	int described; /* by a file */
	ls_list nodes, rates, strategies, wires, buckets;
} ls_forecast_request;

/* Close it also where it could not be opened. */
ls_status ls_forecast_request_open(ls_forecast_request *out, const ls_forecast_options *options);
void ls_forecast_request_close(ls_forecast_request *request);

/* Links of this rate, where the request is for one: options.rate is nominal and the same for all nodes, while rates of
 * a cluster file are payload rates. */
ls_status ls_forecast_request_rate(const ls_forecast_request *request, ls_cluster *cluster, const char *rate);

/* forecast.c: fill in the predicted fields of a row that has its settings, on these nodes,
 * whose links are calibrated. */
ls_status ls_forecast_simulate(const ls_forecast_request *request, ls_cluster *cluster, ls_forecast_row *row);

#endif
