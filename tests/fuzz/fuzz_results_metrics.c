/*
 * Any bytes as metrics.jsonl: refused with a message that names the line, or lines whose numbers are in their ranges;
 * and starts of nodes that follow one another.
 */
#include <math.h>

#include "fuzz/common.h"
#include "tools/results/memberships.h"

typedef struct reading {
	ls_point point;
	ls_memberships nodes;
} reading;

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
	reading *r = context;
	LS_TRY(ls_memberships_take(&r->nodes, line, object));
	LS_TRY(ls_point_add_rate(&r->point, (ls_point_rate){ line->step, line->samples_per_s, line->loss }));
	return ls_point_add_epoch(&r->point, line);
}

/* Whatever clocks say, time does not go back. */
static void check_nodes(const ls_memberships *m)
{
	char name[8];
	for (size_t i = 0; i < m->count; i++) {
		const ls_start *s = &m->starts[i];
		fuzz_require(s->begin >= 0 && s->end >= s->begin && (i == 0 || s->begin >= m->starts[i - 1].end));
		fuzz_require(s->again >= 0 && s->nodes >= 0 && s->last_step >= s->step);
		for (const char *at = s->hosts; (at = ls_memberships_host(at, name, sizeof(name)));)
			fuzz_require(memchr(name, '\0', sizeof(name)) != NULL);
	}
	for (size_t i = 0; i < m->event_count; i++)
		fuzz_require(m->events[i].at >= 0 && m->events[i].host[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	reading r = { 0 };
	if (ls_metrics_log_read((const char *)data, size, "fuzz", take, &r) != LS_OK)
		fuzz_require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
	for (size_t i = 1; i < r.point.epoch_count; i++)
		fuzz_require(r.point.epochs[i].epoch != r.point.epochs[i - 1].epoch);
	check_nodes(&r.nodes);
	ls_memberships_release(&r.nodes);
	ls_point_release(&r.point);
	return 0;
}
