#include "tools/results/figure.h"

#include <string.h>

static const struct {
	const char *name, *meaning;
} kinds[LS_FIGURE_KINDS] = {
	[LS_FIGURE_MEASURED] = { "measured", "this machine did all of the work" },
	[LS_FIGURE_SIMULATED] = { "simulated",
				  "compute is simulated from a profile, because this machine has fewer cores "
				  "than devices; communication is real" },
	[LS_FIGURE_COMPUTED] = { "computed", "worked out from other figures, not run: a wall time from the rate of a "
					     "bench, without tests, start and end; a mean from published rows" },
	[LS_FIGURE_COMPUTED_SIMULATED] = { "computed (sim.)", "worked out from a rate with simulated compute" },
	[LS_FIGURE_PREDICTED] = { "predicted", "a forecast from a profile of one device and the links" },
	[LS_FIGURE_PUBLISHED] = { "published", "by others, on other machines" },
};

const char *ls_figure_name(ls_figure kind)
{
	return kinds[kind].name;
}

const char *ls_figure_meaning(ls_figure kind)
{
	return kinds[kind].meaning;
}

ls_figure ls_point_figure(const ls_point *point)
{
	return point->job.replay ? LS_FIGURE_SIMULATED : LS_FIGURE_MEASURED;
}

ls_figure ls_point_wall_figure(const ls_point *point)
{
	const ls_point_job *job = &point->job;

	if (strcmp(job->kind, "bench") != 0 || job->epochs == 0 || job->samples == 0)
		return ls_point_figure(point);
	return job->replay ? LS_FIGURE_COMPUTED_SIMULATED : LS_FIGURE_COMPUTED;
}
