#include "tools/results/memberships.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static void copy(char *out, size_t size, const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	size_t length = text ? strlen(text) : 0;

	length = length < size ? length : size - 1;
	while (length > 0 && text[length] && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--; /* do not cut a character */
	if (length > 0)
		memcpy(out, text, length);
	out[length] = '\0';
}

static int64_t whole(const json_t *object, const char *name)
{
	double value = json_number_value(json_object_get(object, name));
	return value > 0 && value < 1e15 ? (int64_t)value : 0;
}

/* Seconds since the first line; the time of the line before where it has none, or an earlier one. */
static double time_of(ls_memberships *m, const json_t *object)
{
	double wall = json_number_value(json_object_get(object, "time"));

	if (wall > 0 && wall < 1e12 && !m->has_origin) {
		m->origin = wall;
		m->has_origin = 1;
	}
	if (wall > 0 && wall < 1e12 && wall - m->origin > m->latest)
		m->latest = wall - m->origin;
	return m->latest;
}

static ls_start *open_start(ls_memberships *m)
{
	return m->is_open ? &m->starts[m->count - 1] : NULL;
}

static ls_status add_start(ls_memberships *m, const ls_metrics_line *line, const json_t *object)
{
	const char *hosts = json_string_value(json_object_get(object, "hosts"));

	LS_TRY(ls_array_grow(&m->starts, &m->room, m->count + 1, sizeof(*m->starts)));
	ls_start *s = &m->starts[m->count];
	*s = (ls_start){ .begin = time_of(m, object),
			 .first_s = NAN,
			 .number = whole(object, "generation"),
			 .step = line->step,
			 .last_step = line->step,
			 .again = whole(object, "steps_again"),
			 .nodes = whole(object, "nodes"),
			 .devices = whole(object, "devices"),
			 .batch = whole(object, "batch"),
			 .samples = whole(object, "samples"),
			 .fault_node = json_object_get(object, "fault_node") ? whole(object, "fault_node") : -1,
			 .fault_s = json_number_value(json_object_get(object, "fault_s")),
			 .hosts = hosts ? strdup(hosts) : NULL };
	if (hosts && !s->hosts)
		return ls_fail(LS_EMEMORY, "no memory for the hosts of a run");
	if (m->count > 0 && s[-1].last_step < s->step + s->again) /* its lines of these steps were dropped */
		s[-1].last_step = s->step + s->again;
	s->end = s->begin;
	copy(s->source, sizeof(s->source), object, "source");
	m->count++;
	m->is_open = 1;
	return LS_OK;
}

static void end_start(ls_memberships *m, const json_t *object)
{
	ls_start *s = open_start(m);
	double now = time_of(m, object);

	m->is_open = 0;
	if (!s)
		return;
	s->end = now;
	copy(s->outcome, sizeof(s->outcome), object, "outcome");
	copy(s->why, sizeof(s->why), object, "why");
}

static ls_status add_event(ls_memberships *m, const json_t *object)
{
	LS_TRY(ls_array_grow(&m->events, &m->event_room, m->event_count + 1, sizeof(*m->events)));
	ls_host_event *e = &m->events[m->event_count];
	*e = (ls_host_event){ .at = time_of(m, object) };
	copy(e->host, sizeof(e->host), object, "host");
	copy(e->event, sizeof(e->event), object, "event");
	copy(e->why, sizeof(e->why), object, "why");
	m->event_count += e->host[0] != '\0';
	return LS_OK;
}

/* A line of a step, an epoch, a checkpoint: the start was still there. */
static void note_work(ls_memberships *m, const ls_metrics_line *line, const json_t *object)
{
	ls_start *s = open_start(m);

	if (!s)
		return;
	s->end = time_of(m, object);
	if (line->step > s->last_step)
		s->last_step = line->step;
	if (isnan(s->first_s) && !strcmp(line->kind, "step"))
		s->first_s = s->end;
}

ls_status ls_memberships_take(ls_memberships *m, const ls_metrics_line *line, const json_t *object)
{
	if (!strcmp(line->kind, "start"))
		return add_start(m, line, object);
	if (!strcmp(line->kind, "host"))
		return add_event(m, object);
	if (!strcmp(line->kind, "stop"))
		end_start(m, object);
	else
		note_work(m, line, object);
	return LS_OK;
}

void ls_memberships_release(ls_memberships *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->starts[i].hosts);
	free(m->starts);
	free(m->events);
	*m = (ls_memberships){ 0 };
}

const char *ls_memberships_host(const char *hosts, char *out, size_t size)
{
	if (!hosts || !*hosts)
		return NULL;
	size_t entry = strcspn(hosts, ","), name = strcspn(hosts, ":,");
	snprintf(out, size, "%.*s", (int)(name < size ? name : size - 1), hosts);
	return hosts + entry + (hosts[entry] == ',');
}
