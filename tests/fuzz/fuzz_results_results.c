/*
 * Any bytes as results: refused with a message that names them, or results that hold what their header promises.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/results/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_results r;

	if (ls_results_parse(&r, data, size, "fuzz") != LS_OK) {
		require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
		return 0;
	}
	for (size_t i = 0; i < r.point_count; i++) {
		const ls_point *p = &r.points[i];
		require(p->key[0] != '\0' && p->job.nodes >= 1 && p->job.devices >= 1);
		require(p->state != LS_POINT_DONE || p->samples_per_s > 0);
		require(p->samples_per_s_min <= p->samples_per_s && p->samples_per_s <= p->samples_per_s_max);
	}
	ls_results_release(&r);
	return 0;
}
