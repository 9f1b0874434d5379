#include "backends/devices.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/float_rules.h"

static void bind(ls_devices *d, int device)
{
	if (d->backend->bind)
		d->backend->bind(d->self, device);
}

static void bind_driver(void *context, int rank)
{
	bind(context, rank);
}

static ls_status open_devices(ls_devices *d, const ls_devices_options *o)
{
	ls_team_options drivers = {
		.threads = o->count, .crowd = o->count * o->threads, .begin = bind_driver, .context = d
	};

	LS_TRY(d->backend->open(&d->self, o));
	return ls_team_new_with(&d->drivers, &drivers);
}

ls_status ls_devices_open(ls_devices **out, const ls_backend *backend, const ls_devices_options *options)
{
	ls_devices *d = calloc(1, sizeof(*d));

	if (!d)
		return ls_fail(LS_EMEMORY, "no memory for %d devices", options->count);
	*d = (ls_devices){ .backend = backend, .count = options->count, .threads = options->threads };
	d->process = options->count * options->threads > 1 ? getpid() : 0;
	ls_status status = open_devices(d, options);
	if (status != LS_OK) {
		ls_devices_close(d);
		return status;
	}
	*out = d;
	return LS_OK;
}

void ls_devices_close(ls_devices *d)
{
	if (!d)
		return;
	ls_team_free(d->drivers);
	if (d->self)
		d->backend->close(d->self);
	free(d);
}

int ls_devices_are_lost(const ls_devices *d)
{
	return d->process != 0 && d->process != getpid();
}

typedef struct drive_job {
	ls_drive drive;
	void *context;
	int count;
} drive_job;

static void run_driver(void *context, ls_member driver)
{
	const drive_job *job = context;
	if (driver.rank < job->count)
		job->drive(job->context, driver.rank);
}

void ls_devices_run(ls_devices *d, int count, ls_drive drive, void *context)
{
	drive_job job = { .drive = drive, .context = context, .count = count };

	if (!d->is_bound)
		bind(d, 0);
	d->is_bound = 1;
	uint64_t rules = ls_float_rules_set(); /* the caller's thread drives device 0 */
	if (count == 1)
		drive(context, 0);
	else
		ls_team_run(d->drivers, run_driver, &job);
	ls_float_rules_restore(rules);
}

void ls_devices_leave(ls_devices *d)
{
	if (d->is_bound)
		bind(d, -1);
	d->is_bound = 0;
}

void ls_devices_host_run(ls_devices *d, int device, ls_team_work work, void *context)
{
	if (d->backend->host_run)
		d->backend->host_run(d->self, device, work, context);
	else
		work(context, (ls_member){ .rank = 0, .size = 1 });
}

ls_status ls_devices_load(ls_devices *d, int device, const ls_graph *graph, const ls_load_options *options,
			  ls_executor **out)
{
	return d->backend->load(out, d->self, device, graph, options);
}

void ls_executor_free(ls_executor *executor)
{
	if (executor)
		executor->backend->unload(executor);
}

void ls_devices_describe(const ls_devices *d, char *text, size_t size)
{
	if (size > 0)
		text[0] = '\0';
	if (d->backend->describe)
		d->backend->describe(d->self, text, size);
}
