/*
 * pin.c - which core each thread runs on.
 *
 * Cores are listed so that neighbours share caches and memory. With enough cores, device d of D starts at core
 * d * cores / D and takes the next T: a device's threads are neighbours, and devices are spread over caches and memory
 * channels. Where that would cut a device in two by a border between NUMA domains and need not, devices are shared out
 * to the domains first, and spread inside each. With too few cores, threads are assigned round robin.
 *
 * Invariant: while any plan binds threads, `process.mask` holds what the process could use before: a bound thread that
 * asks the scheduler sees its own core only.
 */
#include "base/pin.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static struct {
	pthread_mutex_t lock;
	int plans;          /* that bind threads */
	ls_processors mask; /* of the process, while there are any */
	ls_processors counted;
	int cores, quota; /* of `counted`, so that a team in every device costs no files read for each */
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void process_mask(ls_processors *out)
{
	if (process.plans)
		*out = process.mask;
	else
		ls_cores_allowed(out);
}

/* What this process may use: its processors, their number of cores, and the number of cores it is granted time for. */
static void process_look(ls_processors *mask, int *cores, int *quota)
{
	pthread_mutex_lock(&process.lock);
	process_mask(mask);
	if (memcmp(mask, &process.counted, sizeof(*mask)) != 0) {
		process.cores = ls_cores_count("", mask);
		process.quota = ls_cores_quota("");
		process.counted = *mask;
	}
	*cores = process.cores;
	*quota = process.quota;
	pthread_mutex_unlock(&process.lock);
}

int ls_pin_cores(void)
{
	ls_processors mask;
	int cores, quota;
	process_look(&mask, &cores, &quota);
	return cores < quota ? cores : quota;
}

int ls_pin_domains(void)
{
	ls_processors mask;
	ls_cores list;
	int cores, quota, domains = 1;

	process_look(&mask, &cores, &quota);
	if (ls_cores_list(&list, &mask) == LS_OK) {
		domains = list.domains;
		ls_cores_release(&list);
	}
	return domains;
}

/* auto: a run that uses all cores; and on several domains more than half of them, as the default's devices do where none
 * is cut by a border (two such runs would not fit beside each other anyway). A time quota over many cores is not the
 * same as a few whole cores: with a quota below the core count, auto leaves placement to the scheduler. */
static int wants_binding(const ls_pin_plan *plan, ls_pin_mode mode, int cores, int quota)
{
	long long used = (long long)plan->devices * plan->threads;

	if (mode != LS_PIN_AUTO)
		return mode == LS_PIN_ON;
	return quota >= cores && used <= cores && (used == cores || (2 * used > cores && ls_pin_domains() > 1));
}

static void process_bound(const ls_processors *mask)
{
	pthread_mutex_lock(&process.lock);
	if (process.plans++ == 0)
		process.mask = *mask;
	pthread_mutex_unlock(&process.lock);
}

ls_status ls_pin_plan_init(ls_pin_plan *out, int devices, int threads, ls_pin_mode mode)
{
	if (devices < 1 || threads < 1)
		return ls_fail(LS_EINVALID, "cannot place %d devices of %d threads: both must be at least 1", devices,
			       threads);
	ls_pin_plan plan = { .devices = devices, .threads = threads };
	ls_processors mask;
	int cores, quota;
	process_look(&mask, &cores, &quota);
	plan.cores = cores < quota ? cores : quota;
	if (wants_binding(&plan, mode, cores, quota)) {
		ls_status status = ls_cores_list(&plan.places, &mask);
		if (status && mode == LS_PIN_ON)
			return status;
		if (!status)
			process_bound(&mask);
	}
	*out = plan;
	return LS_OK;
}

static int bind_self(const ls_processors *where)
{
	return pthread_setaffinity_np(pthread_self(), sizeof(where->words), (const cpu_set_t *)where->words);
}

static int unbind_self(void)
{
	pthread_mutex_lock(&process.lock);
	int error = process.plans ? bind_self(&process.mask) : 0;
	pthread_mutex_unlock(&process.lock);
	return error;
}

void ls_pin_plan_release(ls_pin_plan *plan)
{
	if (plan->places.count) {
		unbind_self();
		pthread_mutex_lock(&process.lock);
		process.plans--;
		pthread_mutex_unlock(&process.lock);
	}
	ls_cores_release(&plan->places);
	*plan = (ls_pin_plan){ 0 };
}

/* Domain k of K has the devices from k*D/K, rounded up, to before those of domain k + 1: the first domains have
 * more. */
static int first_device(const ls_cores *c, int devices, int domain)
{
	return (int)(((long long)domain * devices + c->domains - 1) / c->domains);
}

/* The most threads with which the devices of every domain fit its cores; 0: there are too many devices. */
static int threads_that_fit(const ls_cores *c, int devices)
{
	int threads = c->count;
	for (int k = 0; k < c->domains; k++) {
		int here = first_device(c, devices, k + 1) - first_device(c, devices, k);
		int fit = here > 0 ? (c->first[k + 1] - c->first[k]) / here : c->count;
		threads = fit < threads ? fit : threads;
	}
	return threads;
}

static int place_of(const ls_pin_plan *plan, int device, int thread)
{
	const ls_cores *c = &plan->places;
	long long places = c->count, place = (long long)device * plan->threads + thread;
	int k = 0;

	if ((long long)plan->devices * plan->threads > places)
		return (int)(place % places);
	if (plan->threads > threads_that_fit(c, plan->devices))
		return (int)(device * places / plan->devices) + thread;
	while (device >= first_device(c, plan->devices, k + 1))
		k++;
	long long cores = c->first[k + 1] - c->first[k], first = first_device(c, plan->devices, k);
	return c->first[k] + (int)((device - first) * cores / (first_device(c, plan->devices, k + 1) - first)) + thread;
}

/* Time of a step in micro-batches of one thread: what the device with most of them takes. A device that is cut waits
 * for caches and memory of another domain (docs/decisions/0042). */
static double step_time(const ls_cores *c, int64_t microbatches, int devices, int threads)
{
	static const double cut = 1.5;
	int64_t rounds = (microbatches + devices - 1) / devices;
	return (double)rounds / threads * (threads > threads_that_fit(c, devices) ? cut : 1);
}

/* Devices divide the work without waiting for each other, threads do not: fewer devices must gain a tenth. */
void ls_pin_default(const ls_cores *c, int64_t microbatches, int *devices, int *threads)
{
	static const double gain = 0.9;
	const int given = *threads;
	int64_t most = c->count / (given > 0 ? given : 1);
	double best = 0;

	most = most > microbatches ? microbatches : most;
	*devices = most < 1 ? 1 : (int)most;
	*threads = given > 0 ? given : c->count / *devices;
	if (c->domains < 2 || most < c->domains)
		return;
	for (int d = (int)most; d >= c->domains; d--) {
		int whole = given > 0 ? given : c->count / d, fit = given > 0 ? given : threads_that_fit(c, d);
		int wide = fit < 1 || step_time(c, microbatches, d, whole) < step_time(c, microbatches, d, fit);
		double time = step_time(c, microbatches, d, wide ? whole : fit);
		if (best == 0 || time < gain * best) {
			best = time;
			*devices = d;
			*threads = wide ? whole : fit;
		}
	}
}

void ls_pin_default_here(int64_t microbatches, int *devices, int *threads)
{
	ls_processors mask;
	ls_cores list = { 0 };
	int cores, quota;

	process_look(&mask, &cores, &quota);
	if (quota >= cores && cores > 1 && ls_cores_list(&list, &mask) == LS_OK && list.count == cores) {
		ls_pin_default(&list, microbatches, devices, threads);
	} else {
		const ls_cores flat = { .count = cores < quota ? cores : quota, .domains = 1 };
		ls_pin_default(&flat, microbatches, devices, threads);
	}
	ls_cores_release(&list);
}

int ls_pin_core(const ls_pin_plan *plan, int device, int thread)
{
	if (!plan->places.count || device < 0)
		return -1;
	return ls_processors_next(&plan->places.core[place_of(plan, device, thread)], 0);
}

void ls_pin_self(const ls_pin_plan *plan, int device, int thread)
{
	if (!plan->places.count)
		return;
	int error = device < 0 ? unbind_self() : bind_self(&plan->places.core[place_of(plan, device, thread)]);
	if (error)
		ls_log_warning("cannot bind thread %d of device %d to core %d: %s", thread, device,
			       ls_pin_core(plan, device, thread), strerror(error));
}

/* Append text, cut to the space left. */
__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
}

/* "0-3,8" */
static void append_ranges(char *text, size_t size, const ls_processors *set)
{
	const char *comma = "";
	for (int first = -1, last; (first = ls_processors_next(set, first + 1)) >= 0; first = last) {
		for (last = first; last + 1 < LS_PROCESSORS && ls_processors_has(set, last + 1);)
			last++;
		append(text, size, "%s%d", comma, first);
		if (last > first)
			append(text, size, "-%d", last);
		comma = ",";
	}
}

void ls_pin_describe(const ls_pin_plan *plan, char *text, size_t size)
{
	ls_processors used = { { 0 } };
	if (size == 0)
		return;
	snprintf(text, size, "not pinned");
	if (!plan->places.count)
		return;
	for (int device = 0; device < plan->devices; device++)
		for (int thread = 0; thread < plan->threads; thread++)
			ls_processors_add(&used, ls_pin_core(plan, device, thread));
	int first = ls_processors_next(&used, 0), many = ls_processors_next(&used, first + 1) >= 0;
	snprintf(text, size, plan->devices > 1 ? "devices 0-%d on " : "device %d on ", plan->devices - 1);
	append(text, size, many ? "cores " : "core ");
	append_ranges(text, size, &used);
	if ((long long)plan->devices * plan->threads > plan->places.count)
		append(text, size, ", shared");
	else if (plan->devices > 1 && plan->threads > 1)
		append(text, size, ", %d each", plan->threads);
}
