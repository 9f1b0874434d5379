/*
 * Any bytes as run.json, read for a page: refused with a message that names it, or a job that can be drawn.
 */
#include "fuzz/common.h"
#include "tools/report/run_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_point point = { 0 };
	ls_results_machine machine = { 0 };
	if (ls_run_parse(&point, &machine, data, size, "fuzz") == LS_OK) {
		fuzz_require(point.job.nodes > 0 && point.job.devices > 0 && point.job.batch > 0);
		fuzz_require(point.job.devices % point.job.nodes == 0 && point.job.shape[0] != '\0');
	} else {
		fuzz_require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
	}
	ls_point_release(&point);
	return 0;
}
