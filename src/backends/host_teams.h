/*
 * host_teams.h - the host threads of a node's devices: a team for each, and the cores they are pinned to.
 *
 * The driver of a device is rank 0 of its team. The other threads are pinned as they start; a driver when it calls
 * bind().
 */
#ifndef LS_BACKENDS_HOST_TEAMS_H
#define LS_BACKENDS_HOST_TEAMS_H

#include "backends/backend.h"

typedef struct ls_host_teams_seat {
	const ls_pin_plan *pin;
	int device;
} ls_host_teams_seat;

typedef struct ls_host_teams {
	int devices, threads;     /* of a device */
	ls_pin_plan pin;          /* threads know its address */
	ls_team **team;           /* (devices) */
	ls_host_teams_seat *seat; /* (devices) */
} ls_host_teams;

ls_status ls_host_teams_new(ls_host_teams **out, const ls_devices_options *options);
void ls_host_teams_free(ls_host_teams *teams);

/* ls_backend.bind, .host_run and .describe of a backend whose devices are these. */
void ls_host_teams_bind(void *teams, int device);
void ls_host_teams_run(void *teams, int device, ls_team_work work, void *context);
void ls_host_teams_describe(const void *teams, char *text, size_t size);

#endif
