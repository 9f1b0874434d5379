/*
 * devices.h - the devices of a node, each with a driver: the host thread that takes it through its micro-batches.
 *
 *     ls_devices *devices;
 *     LS_TRY(ls_devices_open(&devices, backend, &options));
 *     ls_devices_run(devices, 2, drive, job);      drive(job, 0) and drive(job, 1), side by side
 *     ls_devices_leave(devices);                   the caller is no driver any more
 *     ls_devices_close(devices);
 *
 * The caller of ls_devices_run() drives device 0, the other drivers are threads of their own.
 */
#ifndef LS_BACKENDS_DEVICES_H
#define LS_BACKENDS_DEVICES_H

#include <sys/types.h>

#include "backends/backend.h"

typedef struct ls_devices {
	const ls_backend *backend;
	void *self;         /* the backend's */
	int count, threads; /* host threads of each */
	ls_team *drivers;   /* (count) */
	int is_bound;       /* the thread that calls ls_devices_run(), to device 0 */
	pid_t process;      /* that has the threads; 0: there are none but the caller's */
} ls_devices;

/* Whether this process was forked after they were opened: their threads are not in it, and a run would wait for them
 * for ever. What programs call asks this first; closing them is right. */
int ls_devices_are_lost(const ls_devices *devices);

typedef void (*ls_drive)(void *context, int device);

ls_status ls_devices_open(ls_devices **out, const ls_backend *backend, const ls_devices_options *options);
void ls_devices_close(ls_devices *devices); /* harmless on NULL */

/* Every driver of the first `count` devices calls `drive`; returns when all are done. To be called by the same thread
 * each time. It stays bound to device 0: threads it starts would inherit that. */
void ls_devices_run(ls_devices *devices, int count, ls_drive drive, void *context);
void ls_devices_leave(ls_devices *devices);

/* By its driver: all host threads of the device run `work`. */
void ls_devices_host_run(ls_devices *devices, int device, ls_team_work work, void *context);

ls_status ls_devices_load(ls_devices *devices, int device, const ls_graph *graph, const ls_load_options *options,
			  ls_executor **out);
void ls_executor_free(ls_executor *executor); /* harmless on NULL */

/* "devices 0-1 on cores 0-1"; "" where the backend has no description. */
void ls_devices_describe(const ls_devices *devices, char *text, size_t size);

#endif
