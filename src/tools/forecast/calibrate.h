/*
 * calibrate.h - link speeds scaled to match the exchange that a probe measured.
 *
 * A probe measures every link between two nodes, and an exchange of gradients among all of them. The simulation shares
 * links perfectly; real ones lose something where many nodes send at once, and most where all send to one. So the
 * exchange of the probe is simulated, too, and one factor on links and on the CPU time of messages makes it as long as
 * it was measured. No step of a training is needed for that.
 *
 * The probe sends everything at once, which floods queues more than training does, where gradients become ready one
 * after another: half of the factor, on a logarithmic scale, is used (docs/decisions/0028-calibrated-links.md).
 */
#ifndef LS_TOOLS_FORECAST_CALIBRATE_H
#define LS_TOOLS_FORECAST_CALIBRATE_H

#include "tools/forecast/cluster.h"

/* Speed of communication in training relative to what the links alone would give; 1 where the cluster has no
 * measured exchange. `servers`: of strategy ps, 0 without. Another wire or strategy than those measured gets
 * the factor of the nearest. */
ls_status ls_cluster_calibrate(const ls_cluster *cluster, int64_t servers, int bf16, double *factor);

/* The cluster with communication at that speed. */
void ls_cluster_scale_links(ls_cluster *cluster, double factor);

#endif
