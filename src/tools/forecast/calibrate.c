#include "tools/forecast/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/forecast/simulate.h"

/* Links change the simulated time in proportion, latency and sums do not: a few rounds are enough. */
enum { ROUNDS = 4, STATISTICS = 16 };

/* A factor outside means that the probe and the links say different things; neither is believed further. */
#define FACTOR_LEAST 0.25
#define FACTOR_MOST 2.0

/* The measured exchange that is most like the one asked for; NULL: none. */
static const ls_measured_exchange *nearest(const ls_cluster *c, int64_t servers, int bf16)
{
	const ls_measured_exchange *best = NULL;
	int best_score = -1;

	for (size_t i = 0; i < c->exchanges; i++) {
		const ls_measured_exchange *e = &c->exchange[i];
		int score = 4 * (e->servers == servers) + 2 * (e->servers == 0) + (e->bf16 == bf16);
		if (score > best_score) {
			best_score = score;
			best = e;
		}
	}
	return best;
}

/* A step that computes nothing: its gradient is ready at once, and its update is a copy. */
static ls_profile exchange_alone(const ls_cluster *c, const ls_measured_exchange *e, ls_profile_layer *layer)
{
	int64_t floats = (int64_t)(e->bytes / sizeof(float));

	*layer = (ls_profile_layer){ .name = "gradient", .ranges = 1, .range = { { 0, floats } } };
	return (ls_profile){ .batch = 1,
			     .tiles = 1,
			     .threads = 1,
			     .devices = 1,
			     .microbatches = 1,
			     .update_s = e->bytes / (c->copy_gb_per_s * 1e9),
			     .reachable = floats,
			     .extra = STATISTICS,
			     .layers = 1,
			     .layer = layer };
}

static ls_status simulate(const ls_cluster *c, const ls_measured_exchange *e, double factor, double *seconds)
{
	ls_profile_layer layer;
	ls_profile profile = exchange_alone(c, e, &layer);
	ls_cluster scaled;
	ls_scenario scenario;
	ls_simulated result;

	LS_TRY(ls_cluster_resize(&scaled, c, ls_cluster_nodes(c)));
	ls_cluster_scale_links(&scaled, factor);
	ls_scenario_options o = {
		.profile = &profile, .cluster = &scaled, .servers = e->servers, .bf16 = e->bf16, .microbatches = 1
	};
	ls_status status = ls_scenario_make(&scenario, &o);
	if (status == LS_OK) {
		status = ls_simulate(&scenario, &result);
		ls_scenario_release(&scenario);
	}
	ls_cluster_release(&scaled);
	if (status == LS_OK)
		*seconds = result.step_s;
	return status;
}

ls_status ls_cluster_calibrate(const ls_cluster *c, int64_t servers, int bf16, double *factor)
{
	const ls_measured_exchange *e = nearest(c, servers, bf16);
	double found = 1, seconds;

	for (int i = 0; e && i < ROUNDS; i++) {
		LS_TRY(simulate(c, e, found, &seconds));
		found = fmax(FACTOR_LEAST, fmin(FACTOR_MOST, found * seconds / e->seconds));
	}
	*factor = sqrt(found); /* calibrate.h: between the links alone and all of them at once */
	return LS_OK;
}

void ls_cluster_scale_links(ls_cluster *c, double factor)
{
	for (size_t k = 0; k < c->kinds; k++) {
		c->kind[k].gbit_per_s *= factor;
		c->kind[k].both_gbit_per_s *= factor;
	}
	c->net_ns_per_byte /= factor;
	c->message_us /= factor;
}
