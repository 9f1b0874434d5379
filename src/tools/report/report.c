/*
 * report.c - make a report: read the paths, build the page, write it.
 */
#include <lockstep/report.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/files.h"
#include "base/names.h"
#include "base/options.h"
#include "tools/report/figures.h"
#include "tools/report/form.h"
#include "tools/report/page.h"
#include "tools/report/sections.h"
#include "tools/report/sources.h"
#include "tools/results/differences.h"

enum { DIFFERENCES_MAX = 64 };

/* ---- sweeps ------------------------------------------------------------------------------------------------------ */

static void count_points(const ls_results *results, size_t counts[4])
{
	memset(counts, 0, 4 * sizeof(*counts));
	for (size_t i = 0; i < results->point_count; i++)
		counts[results->points[i].state]++;
}

/* " of bert-tiny" where all points have one model: the table's title may name another. */
static const char *of_model(ls_page *page, const ls_results *results)
{
	for (size_t i = 1; i < results->point_count; i++)
		if (strcmp(results->points[i].job.model, results->points[0].job.model) != 0)
			return "";
	return results->point_count > 0 ? ls_page_text(page, " of %s", results->points[0].job.model) : "";
}

static void introduce(ls_page *page, const ls_results *results)
{
	size_t counts[4];
	count_points(results, counts);
	const char *rest = "";
	static const char *const words[] = { "not run yet", "", "skipped", "failed" };
	for (int state = LS_POINT_PENDING; state <= LS_POINT_FAILED; state++)
		if (state != LS_POINT_DONE && counts[state] > 0)
			rest = ls_page_text(page, "%s, %zu %s", rest, counts[state], words[state]);
	int is_list = !strcmp(results->sweep, "sweep");
	ls_page_paragraph(page, "%s%s, started %s%s: %zu of %zu point%s%s done%s.", is_list ? "Sweep" : "Sweep ",
			  is_list ? "" : results->sweep, results->started, results->quick ? ", quick form" : "",
			  counts[LS_POINT_DONE], results->point_count, ls_plural(results->point_count, "s"),
			  of_model(page, results), rest);
	if (results->note[0])
		ls_page_paragraph(page, "%s", results->note);
}

/* The quick form of a recipe runs smaller jobs than the published table: its title says so. */
static const char *name_of(ls_page *page, const ls_results *results)
{
	const char *name = results->title[0] ? results->title : results->sweep;
	return results->quick ? ls_page_text(page, "%s (quick form)", name) : name;
}

/* "Differs from the original in: launches (1, there 7); ..." */
static void add_differences(ls_page *page, const ls_results *results)
{
	ls_difference list[DIFFERENCES_MAX];
	size_t counts[4], count = ls_results_differences(results, list, DIFFERENCES_MAX);
	const char *text = "";

	if (!ls_results_has_original(results))
		return;
	count_points(results, counts);
	for (size_t i = 0; i < count; i++) {
		const char *points =
			list[i].points < counts[LS_POINT_DONE]
				? ls_page_text(page, ", %zu of %zu points", list[i].points, counts[LS_POINT_DONE])
				: "";
		text = ls_page_text(page, "%s%s%s (%s, there %s%s)", text, i ? "; " : "", list[i].name,
				    list[i].ours[0] ? list[i].ours : "none", list[i].original, points);
	}
	ls_page_paragraph(page, "Differs from the original in: %s%s.", count ? text : "nothing that the recipe records",
			  count == DIFFERENCES_MAX ? "; and more" : "");
}

static ls_status add_sweep(ls_page *page, const ls_results *results, const ls_sources *sources, const char *title)
{
	ls_study study;
	const ls_form *form = ls_form_of(results);

	LS_TRY(ls_study_make(&study, page, results));
	const char *name = name_of(page, results);
	ls_page_heading(page, 2, "%s", strcmp(name, title) ? name : results->sweep);
	introduce(page, results);
	ls_figures_scaling(&study,
			   ls_published_for(sources->published, sources->published_count, results->sweep, form->name));
	ls_figures_strategies(&study);
	ls_figures_target(&study);
	ls_figures_curves(&study);
	ls_figures_time(&study);
	form->tables(&study);
	add_differences(page, results);
	ls_page_legend(page);
	ls_study_missing(&study);
	ls_form_testbed(&study, &results->machine, 1);
	return LS_OK;
}

static ls_status add_runs(ls_page *page, const ls_sources *sources)
{
	const ls_results *runs = &sources->runs;
	ls_study study;
	if (runs->point_count == 0)
		return LS_OK;
	LS_TRY(ls_study_make(&study, page, runs));
	study.runs = 1;
	study.logs = sources->logs;
	ls_page_heading(page, 2, "Runs");
	ls_figures_curves(&study);
	ls_section_nodes(page, &study);
	ls_section_classes(page, &study);
	ls_form_epochs(&study);
	ls_page_legend(page);
	ls_study_missing(&study);
	ls_form_testbed(&study, sources->machines, runs->point_count);
	return LS_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static const char *title_of(ls_page *page, const ls_report_options *options, const ls_sources *sources)
{
	if (options->title)
		return options->title;
	if (sources->sweep_count == 1 && sources->sweeps[0].title[0])
		return name_of(page, &sources->sweeps[0]);
	return "Lockstep report";
}

static ls_status fill(ls_page *page, const ls_sources *sources, const char *title)
{
	ls_page_heading(page, 1, "%s", title);
	ls_section_summary(page, sources);
	for (size_t i = 0; i < sources->sweep_count; i++)
		LS_TRY(add_sweep(page, &sources->sweeps[i], sources, title));
	LS_TRY(add_runs(page, sources));
	ls_section_predicted(page, sources);
	if (sources->published_count > 0)
		ls_section_published(page, sources);
	return ls_page_check(page);
}

static size_t count_simulated(const ls_results *results)
{
	size_t count = 0;
	for (size_t i = 0; i < results->point_count; i++)
		count += results->points[i].state == LS_POINT_DONE &&
			 ls_point_figure(&results->points[i]) == LS_FIGURE_SIMULATED;
	return count;
}

static void count_sources(ls_report_result *result, const ls_page *page, const ls_sources *sources)
{
	size_t counts[4];
	result->sweeps = sources->sweep_count;
	result->runs = sources->runs.point_count;
	result->forecasts = sources->forecast_count;
	result->flags = page->flags;
	result->published = page->published;
	for (size_t i = 0; i < sources->sweep_count; i++) {
		count_points(&sources->sweeps[i], counts);
		result->points += sources->sweeps[i].point_count;
		result->done += counts[LS_POINT_DONE];
		result->simulated += count_simulated(&sources->sweeps[i]);
	}
}

typedef struct output {
	FILE *markdown; /* or else HTML to */
	const char *path;
} output;

static ls_status write_html(const ls_page *page, const char *title, const char *path)
{
	ls_file_draft draft;
	LS_TRY(ls_file_begin(&draft, path));
	ls_page_html(page, title, draft.stream);
	return ls_file_publish(&draft);
}

static ls_status make(const ls_report_options *options, const output *out, ls_report_result *result)
{
	ls_page page = LS_PAGE_INIT;
	ls_sources *sources;

	sources = calloc(1, sizeof(*sources));
	if (!sources)
		return ls_fail(LS_EMEMORY, "no memory for the report");
	ls_published *published = NULL;
	size_t published_count = 0;
	ls_status status = LS_OK;
	if (options->compare)
		status = ls_published_read(&published, &published_count, &page.arena, options->compare, 0);
	if (status == LS_OK)
		status = ls_sources_read(sources, options->paths, options->path_count);
	if (status != LS_OK)
		goto release_page;
	sources->published = published;
	sources->published_count = published_count;
	const char *title = title_of(&page, options, sources);
	status = fill(&page, sources, title);
	if (status == LS_OK && out->markdown)
		ls_page_markdown(&page, options->brief, out->markdown);
	else if (status == LS_OK)
		status = write_html(&page, title, out->path);
	if (status == LS_OK)
		count_sources(result, &page, sources);
	ls_sources_release(sources);
release_page:
	ls_page_release(&page);
	free(sources);
	return status;
}

/* report.html in a directory, or beside a file. */
static ls_status place(char *out, size_t size, const ls_report_options *options)
{
	char directory[4096];
	if (options->out) {
		if ((size_t)snprintf(out, size, "%s", options->out) >= size)
			return ls_fail(LS_EINVALID, "the path of the report is longer than %zu bytes", size - 1);
		return LS_OK;
	}
	if (options->path_count == 0)
		return ls_fail(LS_EINVALID, "options.paths is empty; a report needs at least one path");
	if (ls_path_is_directory(options->paths[0]))
		return ls_path_join(out, size, options->paths[0], "report.html");
	const char *slash = strrchr(options->paths[0], '/');
	snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - options->paths[0]) : 1,
		 slash ? options->paths[0] : ".");
	return ls_path_join(out, size, directory[0] ? directory : "/", "report.html");
}

/* The report must not overwrite one of its inputs. */
static ls_status check_out(const char *out, const ls_report_options *options)
{
	static const char *const inputs[] = { "results.json", "run.json", "metrics.jsonl", "eval.json" };
	struct stat page, input;

	if (stat(out, &page) != 0)
		return LS_OK;
	for (size_t i = 0; i < options->path_count; i++)
		for (size_t k = 0; k <= LS_COUNT(inputs); k++) {
			char path[4096];
			if (k == LS_COUNT(inputs))
				snprintf(path, sizeof(path), "%s", options->paths[i]);
			else
				snprintf(path, sizeof(path), "%s/%s", options->paths[i], inputs[k]);
			if (stat(path, &input) == 0 && input.st_dev == page.st_dev && input.st_ino == page.st_ino)
				return ls_fail(LS_EINVALID, "%s is an input of the report; choose another options.out",
					       path);
		}
	return LS_OK;
}

ls_status ls_report_write(const ls_report_options *options, ls_report_result *result)
{
	ls_report_options own = LS_REPORT_OPTIONS_INIT;
	ls_report_result made = { 0 };

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, unused, "LS_REPORT_OPTIONS_INIT"));
	LS_TRY(place(made.path, sizeof(made.path), &own));
	LS_TRY(check_out(made.path, &own));
	const output out = { .path = made.path };
	LS_TRY(make(&own, &out, &made));
	*result = made;
	return LS_OK;
}

ls_status ls_report_print(const ls_report_options *options, FILE *to)
{
	const output out = { .markdown = to };
	ls_report_options own = LS_REPORT_OPTIONS_INIT;
	ls_report_result made = { 0 };

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, unused, "LS_REPORT_OPTIONS_INIT"));
	return make(&own, &out, &made);
}

ls_status ls_report_markdown(const char *path, FILE *to)
{
	ls_report_options options = LS_REPORT_OPTIONS_INIT;
	options.paths = &path;
	options.path_count = 1;
	options.brief = 1;
	return ls_report_print(&options, to);
}
