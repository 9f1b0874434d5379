#include "backends/cpu/teams.h"

#include <stdlib.h>

static void pin_driver(void *context, int rank)
{
	ls_pin_self(context, rank, 0);
}

static void pin_member(void *context, int rank)
{
	const ls_teams_seat *seat = context;
	ls_pin_self(seat->pin, seat->device, rank);
}

static ls_status make_team(ls_teams *c, int device)
{
	ls_team_options options = { .threads = c->threads,
				    .crowd = c->devices * c->threads,
				    .begin = pin_member,
				    .context = &c->seat[device] };
	c->seat[device] = (ls_teams_seat){ .pin = c->pin, .device = device };
	return ls_team_new_with(&c->team[device], &options);
}

ls_status ls_teams_init(ls_teams *c, int devices, int threads, ls_pin_mode pin)
{
	ls_team_options drivers = { .threads = devices, .crowd = devices * threads, .begin = pin_driver };

	if (devices == 0)
		return LS_OK;
	c->devices = devices;
	c->threads = threads;
	c->team = calloc((size_t)devices, sizeof(*c->team));
	c->seat = calloc((size_t)devices, sizeof(*c->seat));
	drivers.context = c->pin = calloc(1, sizeof(*c->pin));
	if (!c->team || !c->seat || !c->pin)
		return ls_fail(LS_EMEMORY, "no memory for %d devices", devices);
	LS_TRY(ls_pin_plan_init(c->pin, devices, threads, pin));
	LS_TRY(ls_team_new_with(&c->drivers, &drivers));
	for (int i = 0; i < devices; i++)
		LS_TRY(make_team(c, i));
	return LS_OK;
}

void ls_teams_release(ls_teams *c)
{
	for (int i = 0; c->team && i < c->devices; i++)
		ls_team_free(c->team[i]);
	ls_team_free(c->drivers);
	if (c->pin)
		ls_pin_plan_release(c->pin);
	free(c->pin);
	free(c->seat);
	free(c->team);
	*c = (ls_teams){ 0 };
}

void ls_teams_join(const ls_teams *c)
{
	if (c->pin)
		ls_pin_self(c->pin, 0, 0);
}

void ls_teams_leave(const ls_teams *c)
{
	if (c->pin)
		ls_pin_self(c->pin, -1, 0);
}
