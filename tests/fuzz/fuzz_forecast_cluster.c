/*
 * Any bytes as a cluster: refused with a message that names them, or a cluster whose every part may be used.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/forecast/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_cluster c, half;

	if (ls_cluster_parse(&c, data, size, "fuzz") != LS_OK) {
		require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
		return 0;
	}
	require(ls_cluster_nodes(&c) > 0 && ls_cluster_devices(&c) > 0);
	for (size_t k = 0; k < c.kinds; k++) {
		require(c.kind[k].count > 0 && c.kind[k].speed > 0 && isfinite(c.kind[k].speed));
		require(c.kind[k].gbit_per_s > 0 && isfinite(c.kind[k].gbit_per_s));
	}
	require(ls_cluster_resize(&half, &c, ls_cluster_nodes(&c) / 2 + 1) == LS_OK);
	require(ls_cluster_nodes(&half) == ls_cluster_nodes(&c) / 2 + 1);
	ls_cluster_release(&half);
	ls_cluster_release(&c);
	return 0;
}
