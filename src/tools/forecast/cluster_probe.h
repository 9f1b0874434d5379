/*
 * cluster_probe.h - the cluster that `lockstep probe --json` has measured.
 */
#ifndef LS_TOOLS_FORECAST_CLUSTER_PROBE_H
#define LS_TOOLS_FORECAST_CLUSTER_PROBE_H

#include "tools/forecast/cluster.h"
#include "json/fields.h"

/* Into a cluster that has its defaults; the caller releases it also on failure. */
ls_status ls_cluster_from_probe(ls_cluster *cluster, const json_t *root, const char *label);

#endif
