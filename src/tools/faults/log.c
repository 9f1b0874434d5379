#include "tools/faults/log.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static double number(const json_t *object, const char *name)
{
	double value = json_number_value(json_object_get(object, name));
	return value > 0 ? value : 0;
}

/* The time of the line is nodes.latest. */
static void add_step(ls_fault_log *log, ls_fault_stretch *s, int64_t step)
{
	s->records++;
	if (s->records == log->warmup || (s->records == 1 && log->warmup == 0)) {
		s->from_s = log->nodes.latest;
		s->from_step = step;
	}
	s->to_s = log->nodes.latest;
	s->to_step = step;
}

static ls_status take_line(void *context, const ls_metrics_line *line, const json_t *object)
{
	ls_fault_log *log = context;
	size_t before = log->nodes.count;

	LS_TRY(ls_memberships_take(&log->nodes, line, object));
	if (log->nodes.count > before) {
		LS_TRY(ls_array_grow(&log->stretches, &log->room, log->nodes.count, sizeof(*log->stretches)));
		log->stretches[before] = (ls_fault_stretch){ 0 };
	}
	ls_fault_stretch *s = log->nodes.count > 0 ? &log->stretches[log->nodes.count - 1] : NULL;
	if (s && !strcmp(line->kind, "step"))
		add_step(log, s, line->step);
	if (s && !strcmp(line->kind, "snapshot")) {
		s->snapshot_every = number(object, "every");
		s->snapshot_s = number(object, "cost_s");
	}
	if (line->fingerprint[0] != '\0') {
		log->fingerprint = strtoull(line->fingerprint, NULL, 16);
		log->fingerprint_step = line->step;
	}
	return LS_OK;
}

ls_status ls_fault_log_read(ls_fault_log *log, const char *text, size_t bytes, const char *label)
{
	return ls_metrics_log_read(text, bytes, label, take_line, log);
}

void ls_fault_log_release(ls_fault_log *log)
{
	ls_memberships_release(&log->nodes);
	free(log->stretches);
	*log = (ls_fault_log){ 0 };
}
