#include "tools/sweep/quiet.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* CPU time of all cores since the machine started, in ticks of the kernel; zeros where it is not known. */
typedef struct ticks {
	double busy, idle, steal;
} ticks;

static ticks now(void)
{
	double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, steal = 0;
	FILE *file = fopen("/proc/stat", "r");

	if (!file)
		return (ticks){ 0 };
	int found = fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait, &irq,
			   &softirq, &steal);
	fclose(file);
	if (found < 7)
		return (ticks){ 0 };
	return (ticks){ .busy = user + nice + system + irq + softirq, .idle = idle + wait, .steal = steal };
}

static double total_of(ticks t)
{
	return t.busy + t.idle + t.steal;
}

/* Mean of the cores' clocks; 0: the kernel does not say. */
static double mean_mhz(void)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];
	double sum = 0, mhz;
	int count = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "cpu MHz : %lf", &mhz) == 1) {
			sum += mhz;
			count++;
		}
	if (file)
		fclose(file);
	return count > 0 ? sum / count : 0;
}

void ls_quiet_begin(ls_quiet *quiet)
{
	const struct timespec window = { .tv_nsec = 250 * 1000 * 1000 };
	ticks before = now();

	nanosleep(&window, NULL);
	ticks after = now();
	double cores = (double)sysconf(_SC_NPROCESSORS_ONLN), total = total_of(after) - total_of(before);
	*quiet = (ls_quiet){ .load = total > 0 ? cores * (after.busy - before.busy) / total : 0,
			     .total = total_of(after),
			     .steal = after.steal };
}

void ls_quiet_end(const ls_quiet *quiet, ls_point_launch *launch)
{
	ticks end = now();
	double total = total_of(end) - quiet->total;

	launch->load = quiet->load;
	launch->steal = total > 0 ? (end.steal - quiet->steal) / total : 0;
	launch->mhz = mean_mhz();
	launch->busy = ls_launch_is_busy(launch);
}
