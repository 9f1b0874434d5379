/*
 * Any bytes as a profile: refused with a message that names them, or a profile whose every part may be used.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

static int is_time(double seconds)
{
	return isfinite(seconds) && seconds >= 0;
}

static int64_t check_layer(const ls_profile_layer *layer, int64_t reachable)
{
	int64_t lines = 0;
	require(layer->name[0] != '\0' && memchr(layer->name, 0, sizeof(layer->name)));
	require(is_time(layer->forward_s) && is_time(layer->backward_s));
	require(layer->ranges >= 0 && layer->ranges <= LS_PROFILE_RANGES);
	for (int k = 0; k < layer->ranges; k++) {
		const ls_profile_range *r = &layer->range[k];
		require(r->begin >= 0 && r->begin < r->end && r->end <= reachable);
		lines += (r->end - r->begin + LS_PROFILE_LINE - 1) / LS_PROFILE_LINE;
	}
	return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_profile p;
	uint64_t hash;
	int64_t lines = 0;

	if (ls_profile_parse(&p, data, size, "fuzz") != LS_OK) {
		require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
		return 0;
	}
	require(p.layers > 0 && p.batch > 0 && p.tiles > 0 && p.tiles <= p.batch);
	require(is_time(p.step_s) && is_time(p.loss_s) && is_time(p.update_s) && is_time(p.other_s) &&
		is_time(p.exchange_s));
	require(p.devices >= 1 && p.microbatches >= 1);
	for (size_t i = 0; i < p.layers; i++)
		lines += check_layer(&p.layer[i], p.reachable);
	require(lines == (p.reachable + LS_PROFILE_LINE - 1) / LS_PROFILE_LINE);
	require(ls_profile_hash(&p, &hash) == LS_OK);
	ls_profile_release(&p);
	return 0;
}
