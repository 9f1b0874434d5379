/*
 * teams.h - the threads of a node's devices: a team for each, and drivers (one thread a device) that take the
 * teams through their work side by side.
 *
 *     ls_team_run(crew.drivers, drive, job);        drive() runs ls_team_run(crew.team[rank], ...) for its device
 *
 * The caller is driver 0. The other threads are pinned as they start; the caller is when it says so, for threads it
 * starts are pinned with it.
 */
#ifndef LS_BACKENDS_CPU_TEAMS_H
#define LS_BACKENDS_CPU_TEAMS_H

#include "base/pin.h"
#include "base/team.h"

typedef struct ls_teams_seat {
	const ls_pin_plan *pin;
	int device;
} ls_teams_seat;

typedef struct ls_teams {
	int devices, threads; /* of a device */
	ls_pin_plan *pin;     /* does not move when the crew does: threads know it */
	ls_team *drivers;     /* (devices) */
	ls_team **team;       /* (devices) */
	ls_teams_seat *seat;  /* (devices) */
} ls_teams;

/* `teams` is zeros; without devices it stays so. Released also after a failure. */
ls_status ls_teams_init(ls_teams *teams, int devices, int threads, ls_pin_mode pin);
void ls_teams_release(ls_teams *teams);

/* The calling thread becomes driver 0, on its core; or nobody in particular again. */
void ls_teams_join(const ls_teams *teams);
void ls_teams_leave(const ls_teams *teams);

#endif
