#include "tools/report/form.h"

#include <string.h>

#include "base/log.h"
#include "tools/report/text.h"

static const ls_form forms[] = {
	{ "throughput", ls_form_throughput }, { "epochs", ls_form_epochs },     { "walltime", ls_form_walltime },
	{ "strategies", ls_form_strategies }, { "accuracy", ls_form_accuracy },
};

const ls_form *ls_form_of(const ls_results *results)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (!strcmp(forms[i].name, results->table))
			return &forms[i];
	for (size_t i = 0; i < results->point_count; i++)
		if (results->points[i].epoch_count > 0 || results->points[i].rate_count > 0)
			return &forms[1];
	return &forms[0];
}

/* Nominal link rates of the sweep; "-": one node, or unlimited. */
static const char *links_of(ls_page *page, const ls_results *results)
{
	const char *text = "-";
	for (size_t i = 0; i < results->point_count; i++) {
		const char *rate = results->points[i].job.rate;
		int seen = rate[0] == '\0';
		for (size_t k = 0; k < i && !seen; k++)
			seen = !strcmp(results->points[k].job.rate, rate);
		if (!seen)
			text = strcmp(text, "-") ? ls_page_text(page, "%s, %s", text, rate)
						 : ls_page_text(page, "%s", rate);
	}
	return text;
}

static const char *or_dash(const char *text)
{
	return text[0] ? text : "-";
}

static int was_shown(const ls_results_machine *machines, size_t at)
{
	const ls_results_machine *m = &machines[at];
	for (size_t i = 0; i < at; i++)
		if (!strcmp(machines[i].host, m->host) && !strcmp(machines[i].cpu, m->cpu) &&
		    !strcmp(machines[i].lockstep, m->lockstep) && !strcmp(machines[i].isa, m->isa) &&
		    !strcmp(machines[i].kernels, m->kernels))
			return 1;
	return 0;
}

static void add_machine(const ls_study *study, ls_grid *grid, const ls_results_machine *m)
{
	char bytes[LS_NUMBER_TEXT];
	ls_grid_add(grid, "%s", or_dash(m->host));
	ls_grid_add(grid, "%s", or_dash(m->cpu));
	ls_grid_whole(grid, m->cores);
	ls_grid_number(grid, m->gflop_per_s_core);
	ls_grid_add(grid, "%s", m->memory_bytes > 0 ? ls_bytes_text(bytes, (double)m->memory_bytes) : "-");
	ls_grid_add(grid, "%s", links_of(study->page, study->results));
}

static void add_versions(ls_grid *grid, const ls_results_machine *m, const char *name)
{
	ls_grid_add(grid, "%s", name);
	ls_grid_add(grid, "%s", or_dash(m->lockstep));
	ls_grid_add(grid, "%s", or_dash(m->kernels));
	ls_grid_add(grid, "%s", or_dash(m->isa));
	ls_grid_add(grid, "%s", or_dash(m->mpi));
	ls_grid_add(grid, "%s", or_dash(m->system));
}

void ls_form_testbed(const ls_study *study, const ls_results_machine *machines, size_t count)
{
	static const char *const machine_heads[] = {
		"Host", "CPU", "Cores", "GFLOP/s per core", "Memory", "Link rate"
	};
	static const char *const version_heads[] = { "", "Lockstep", "Kernels", "ISA", "MPI", "System" };

	ls_page_heading(study->page, 3, "Test bed");
	ls_grid *grid = ls_page_table(study->page, 6, machine_heads);
	if (grid)
		grid->text_columns = 2;
	for (size_t i = 0; i < count; i++)
		if (!was_shown(machines, i))
			add_machine(study, grid, &machines[i]);
	grid = ls_page_table(study->page, 6, version_heads);
	if (grid)
		grid->text_columns = 6;
	for (size_t i = 0; i < count; i++)
		if (!was_shown(machines, i))
			add_versions(grid, &machines[i], count > 1 ? machines[i].host : "Version");
}
