/*
 * section_summary.c - the first lines of a report: settings and result of each run and sweep.
 */
#include <inttypes.h>
#include <string.h>

#include "base/names.h"
#include "tools/report/sections.h"
#include "tools/report/text.h"

static const char *epochs_text(ls_page *page, int64_t epochs)
{
	return ls_page_text(page, ", %" PRId64 " epoch%s", epochs, ls_plural((uint64_t)epochs, "s"));
}

/* Epochs whose last step was done. */
static int64_t whole_epochs(const ls_point *run)
{
	int64_t count = 0;
	for (size_t i = 0; i < run->epoch_count; i++)
		count += run->epochs[i].seconds > 0;
	return count;
}

/* ", 3 epochs" or ", 7 steps (1.75 epochs)": what was trained; of a run that has not ended, what it was asked for. */
static const char *length_text(ls_page *page, const ls_point *run)
{
	const ls_point_job *job = &run->job;
	int64_t batch = job->batch * job->devices;
	int64_t steps = run->end_step > 0 ? run->end_step : job->steps;
	int64_t steps_per_epoch = batch > 0 ? (job->samples + batch - 1) / batch : 0;
	double epochs = steps_per_epoch > 0 ? (double)steps / (double)steps_per_epoch : 0;

	if (job->epochs > 0 && (run->end_step == 0 || whole_epochs(run) == job->epochs))
		return epochs_text(page, job->epochs);
	if (steps == 0)
		return "";
	const char *text = ls_page_text(page, ", %" PRId64 " step%s", steps, ls_plural((uint64_t)steps, "s"));
	return job->samples > 0 ? ls_page_text(page, "%s (%.4g epoch%s)", text, epochs, epochs == 1 ? "" : "s") : text;
}

/* "cnn on glyphs, adam, batch 256 (2 nodes, 2 devices), 3 epochs" */
static const char *job_text(ls_page *page, const ls_point_job *job, const char *length)
{
	const char *nodes =
		job->nodes > 1 ? ls_page_text(page, "%" PRId64 " nodes with %s, ", job->nodes, job->strategy) : "";
	return ls_page_text(page, "%s%s%s%s%s, batch %" PRId64 " (%s%" PRId64 " device%s)%s", job->model,
			    job->data[0] ? " on " : "", job->data, job->optimizer[0] ? ", " : "", job->optimizer,
			    job->batch * job->devices, nodes, job->devices, ls_plural((uint64_t)job->devices, "s"),
			    length);
}

static void add_run(ls_page *page, const ls_point *run)
{
	char rate[LS_NUMBER_TEXT];
	const char *accuracy = run->accuracy > 0 ? ls_page_text(page, "test accuracy %.4f, ", run->accuracy) : "";
	const char *print = run->fingerprint[0] ? ls_page_text(page, ", fingerprint xxh64 %s after step %" PRId64,
							       run->fingerprint, run->end_step)
						: "";

	const char *job = job_text(page, &run->job, length_text(page, run));

	if (run->state != LS_POINT_DONE)
		ls_page_item(page, "%s: %s: %s%s%s", ls_run_name(run), job, accuracy, run->reason, print);
	else
		ls_page_item(page, "%s: %s: %s%s samples/s%s", ls_run_name(run), job, accuracy,
			     ls_number_text(rate, run->samples_per_s), print);
}

/* The point with most samples/s among figures of one kind; NULL: there is none. */
static const ls_point *fastest(const ls_results *sweep, ls_figure kind)
{
	const ls_point *best = NULL;
	for (size_t i = 0; i < sweep->point_count; i++) {
		const ls_point *point = &sweep->points[i];
		if (point->state == LS_POINT_DONE && ls_point_figure(point) == kind &&
		    (!best || point->samples_per_s > best->samples_per_s))
			best = point;
	}
	return best;
}

/* "; fastest (measured): cnn, batch 64 (2 devices) with 120.0 samples/s, 1.90 times one device" */
static const char *fastest_text(const ls_study *study, const ls_point *best)
{
	double times = ls_study_speedup(study, best);
	char rate[LS_NUMBER_TEXT];
	const char *speedup =
		best->job.devices > 1 && times > 0 ? ls_page_text(study->page, ", %.2f times one device", times) : "";
	return ls_page_text(study->page, "; fastest (%s): %s with %s samples/s%s",
			    ls_figure_name(ls_point_figure(best)),
			    job_text(study->page, &best->job,
				     best->job.epochs > 0 ? epochs_text(study->page, best->job.epochs) : ""),
			    ls_number_text(rate, best->samples_per_s), speedup);
}

static void add_sweep(ls_page *page, const ls_results *sweep)
{
	const ls_study study = { .page = page, .results = sweep };
	const char *text = "";
	size_t done = 0;

	for (size_t i = 0; i < sweep->point_count; i++)
		done += sweep->points[i].state == LS_POINT_DONE;
	for (int kind = 0; kind < LS_FIGURE_KINDS; kind++) {
		const ls_point *best = fastest(sweep, (ls_figure)kind);
		if (best)
			text = ls_page_text(page, "%s%s", text, fastest_text(&study, best));
	}
	if (done == 0)
		ls_page_item(page, "%s: no point done yet", sweep->sweep);
	else
		ls_page_item(page, "%s: %zu of %zu point%s done%s", sweep->sweep, done, sweep->point_count,
			     ls_plural(sweep->point_count, "s"), text);
}

void ls_section_summary(ls_page *page, const ls_sources *sources)
{
	for (size_t i = 0; i < sources->runs.point_count; i++)
		add_run(page, &sources->runs.points[i]);
	for (size_t i = 0; i < sources->sweep_count; i++)
		add_sweep(page, &sources->sweeps[i]);
}
