/*
 * pin.h - bind every thread of every device to its own core.
 *
 *     ls_pin_plan plan;
 *     LS_TRY(ls_pin_plan_init(&plan, devices, threads, LS_PIN_AUTO));
 *     ls_pin_self(&plan, device, thread);       on each thread, before it touches its memory
 *     ls_pin_plan_release(&plan);               after the threads ended
 *
 * A pinned thread finds its caches as it left them and its memory on the near side of the machine. But two jobs that
 * pin to the same cores slow each other down while others are idle, so `auto` pins only a process that uses all the
 * cores it may use, or on a machine of several NUMA domains more than half of them.
 *
 * A thread inherits the binding of the one that starts it. Start threads that belong to no device (readers,
 * communication) before ls_pin_self(), or let them call ls_pin_self() with device -1.
 */
#ifndef LS_BASE_PIN_H
#define LS_BASE_PIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/cores.h"

typedef enum ls_pin_mode {
	LS_PIN_AUTO, /* where devices * threads are all cores, or over half of the cores of several domains */
	LS_PIN_ON,   /* always; round robin when there are fewer cores */
	LS_PIN_OFF
} ls_pin_mode;

typedef struct ls_pin_plan {
	int devices, threads;
	int cores;       /* ls_pin_cores() */
	ls_cores places; /* cores to bind to; none: no thread is bound */
} ls_pin_plan;

/* Cores this process may use, at least 1: those with a processor in its affinity mask, and no more than its control
 * groups grant time for. The same before and after threads are bound by a plan. */
int ls_pin_cores(void);

/* NUMA domains of these cores, at least 1; 1 where hwloc cannot tell. */
int ls_pin_domains(void);

/* Devices and threads per device for `microbatches` per step on cores in NUMA domains. `threads` is the number asked
 * for, 0: any. With fewer micro-batches than domains: a device for each, and all cores. Otherwise at least as many
 * devices as domains, and none is cut in two by a border, unless that leaves so many cores idle that a step would take
 * half as long again. */
void ls_pin_default(const ls_cores *cores, int64_t microbatches, int *devices, int *threads);

/* The same on the cores of this process; domains do not count where the control groups grant time for fewer cores than
 * there are. With one domain there is a device per micro-batch while there are cores. */
void ls_pin_default_here(int64_t microbatches, int *devices, int *threads);

ls_status ls_pin_plan_init(ls_pin_plan *out, int devices, int threads, ls_pin_mode mode);

/* Let the calling thread run on any core again; other bound threads stay bound. */
void ls_pin_plan_release(ls_pin_plan *plan);

/* Bind the calling thread to the core of a device's thread, or with device -1 let it run on any core. Does nothing in a
 * plan that does not pin. Failure is only a warning: results do not depend on pinning. */
void ls_pin_self(const ls_pin_plan *plan, int device, int thread);

/* The number of the first processor of that thread's core, or -1 when it is not bound. */
int ls_pin_core(const ls_pin_plan *plan, int device, int thread);

/* "devices 0-1 on cores 0-1", "devices 0-1 on cores 0-7, 4 each", "devices 0-3 on cores 0-1, shared", "not pinned".
 * A core is numbered by its first processor. */
void ls_pin_describe(const ls_pin_plan *plan, char *text, size_t size);

#endif
