/*
 * Any bytes as metrics.jsonl: refused with a message that names the line, or lines whose numbers are in their ranges.
 */
#include <math.h>

#include "fuzz/common.h"
#include "tools/results/metrics_log.h"

static int in_range(double value, double least, double most)
{
	return isnan(value) || (value >= least && value <= most);
}

static ls_status take(void *context, const ls_metrics_line *line, const json_t *object)
{
	fuzz_require(json_is_object(object) && memchr(line->kind, '\0', sizeof(line->kind)));
	fuzz_require(line->step >= 0 && line->epoch >= 0);
	fuzz_require(in_range(line->loss, -1e30, 1e30) && in_range(line->accuracy, 0, 1));
	fuzz_require(in_range(line->seconds, 0, 1e9) && in_range(line->samples_per_s, 0, 1e15));
	fuzz_require(in_range(line->wait_s, 0, 1e9) && in_range(line->exposed_s, 0, 1e9));
	LS_TRY(ls_point_add_rate(context, (ls_point_rate){ line->step, line->samples_per_s, line->loss }));
	return ls_point_add_epoch(context, line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_point point = { 0 };
	if (ls_metrics_log_read((const char *)data, size, "fuzz", take, &point) != LS_OK)
		fuzz_require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
	for (size_t i = 1; i < point.epoch_count; i++)
		fuzz_require(point.epochs[i].epoch != point.epochs[i - 1].epoch);
	ls_point_release(&point);
	return 0;
}
