#include "backends/host_teams.h"

#include <stdlib.h>

static void pin_thread(void *context, int rank)
{
	const ls_host_teams_seat *seat = context;
	ls_pin_self(seat->pin, seat->device, rank);
}

static ls_status make_teams(ls_host_teams *t, ls_pin_mode pin)
{
	t->team = calloc((size_t)t->devices, sizeof(*t->team));
	t->seat = calloc((size_t)t->devices, sizeof(*t->seat));
	if (!t->team || !t->seat)
		return ls_fail(LS_EMEMORY, "no memory for %d devices", t->devices);
	LS_TRY(ls_pin_plan_init(&t->pin, t->devices, t->threads, pin));
	for (int i = 0; i < t->devices; i++) {
		t->seat[i] = (ls_host_teams_seat){ .pin = &t->pin, .device = i };
		LS_TRY(ls_team_new_with(&t->team[i], &(ls_team_options){ .threads = t->threads,
									 .crowd = t->devices * t->threads,
									 .begin = pin_thread,
									 .context = &t->seat[i] }));
	}
	return LS_OK;
}

ls_status ls_host_teams_new(ls_host_teams **out, const ls_devices_options *options)
{
	ls_host_teams *t = calloc(1, sizeof(*t));

	if (!t)
		return ls_fail(LS_EMEMORY, "no memory for %d devices", options->count);
	*t = (ls_host_teams){ .devices = options->count, .threads = options->threads };
	ls_status status = make_teams(t, options->pin);
	if (status != LS_OK) {
		ls_host_teams_free(t);
		return status;
	}
	*out = t;
	return LS_OK;
}

void ls_host_teams_free(ls_host_teams *t)
{
	for (int i = 0; t->team && i < t->devices; i++)
		ls_team_free(t->team[i]);
	ls_pin_plan_release(&t->pin);
	free(t->seat);
	free(t->team);
	free(t);
}

void ls_host_teams_bind(void *teams, int device)
{
	const ls_host_teams *t = teams;
	ls_pin_self(&t->pin, device, 0);
}

void ls_host_teams_run(void *teams, int device, ls_team_work work, void *context)
{
	const ls_host_teams *t = teams;
	ls_team_run(t->team[device], work, context);
}

void ls_host_teams_describe(const void *teams, char *text, size_t size)
{
	const ls_host_teams *t = teams;
	ls_pin_describe(&t->pin, text, size);
}
